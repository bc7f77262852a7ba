"""The HTML page of a conversation: whatever was said stays text, for every kind of message."""

from __future__ import annotations

from html.parser import HTMLParser

from builders import assistant, call, result, user
from hypothesis import given
from hypothesis import strategies as st

from lamella.cli.transcript_html import html_page
from lamella.text.width import printable
from lamella.types.messages import (
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageBlock,
    Message,
    UserMessage,
)

TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "h1",
    "h2",
    "article",
    "div",
    "details",
    "summary",
    "pre",
    "img",
}


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(['"><script>alert(1)</script>', "</title><b onload=x>", "<!--", "]]>", "&lt;", "\x1b[2J\x00"]),
)


def messages(text: str) -> list[Message]:
    return [
        user(text),
        assistant(text, call("c1", text, a=text)),
        result("c1", text, text),
        assistant(text, stop_reason="error", error_message=text),
        UserMessage((ImageBlock(text, text), ImageBlock(text, "image/png")), 1),
        BashExecutionMessage(text, text),
        CustomMessage(text, text, True, None, 1),
        CompactionSummaryMessage(text, 1, 1),
        BranchSummaryMessage(text, "m1", 1),
    ]


@given(HOSTILE)
def test_what_was_said_is_text_and_nothing_else(text: str) -> None:
    page = Page(html_page(text, messages(text)))
    assert page.tags <= TAGS
    assert page.attributes <= {"charset", "http-equiv", "content", "name", "class", "dir", "alt", "src"}
    said = "".join(page.texts)
    assert said.count(printable(text)) >= len(messages(text)) - 1


def test_an_image_is_in_the_page_only_as_an_image() -> None:
    page = html_page("t", [UserMessage((ImageBlock("aGk=", "image/png"), ImageBlock("aGk=", "image/svg+xml")), 1)])
    assert page.count("<img") == 1
    assert "[image image/svg+xml]" in page
