from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.text.conversation import convert_to_model_messages, serialize_conversation
from lamella.text.dialogue import Turn, parse_conversation, sentences
from lamella.text.estimate import estimate_text
from lamella.text.summary import MARK, SummaryLimits, summarize_messages, summarize_text
from lamella.text.summary_format import COMPACT_HEADINGS, Summary, merge, parse_summary, render
from lamella.types.messages import (
    AssistantMessage,
    CompactionSummaryMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

HEADINGS = [
    "## Goal",
    "## Constraints & Preferences",
    "## Progress",
    "### Done",
    "### In Progress",
    "### Blocked",
    "## Key Decisions",
    "## Next Steps",
    "## Critical Context",
]


def said(text, *calls):
    return AssistantMessage((ThinkingBlock("secret thought 42"), TextBlock(text), *calls))


def call(number, name, **arguments):
    return ToolCall(number, name, arguments)


ENGLISH = [
    UserMessage(
        "Hi! Please help me plan release 2.4 of atlas. The deadline is 12 March 2026. Never publish on a Friday."
    ),
    said("Sure.\n\n```python\nprint('not prose')\n```", call("1", "read", path="CHANGELOG.md")),
    ToolResultMessage("1", "read", "# Changelog"),
    said("", call("2", "edit", path="src/app.py"), call("3", "exec", command="pytest -q")),
    ToolResultMessage("2", "edit", "Replaced 1 block in src/app.py."),
    ToolResultMessage("3", "exec", "FAILED test_login\n\nCommand exited with code 1", is_error=True),
    said("We decided to keep Redis instead of SQLite. Next, we need to update docs/install.md. Shall I tag it?"),
]
CHINESE = [
    UserMessage("请帮我安排三月的上海之行。我叫小明，预算是8000元。酒店一定要离会场近。"),
    said("已经预订了3月12日的高铁G7。我们决定住在静安区，而不是浦东。接下来需要确认酒店的发票。"),
    UserMessage("谢谢"),
]


def section(summary, heading):
    body = summary.split(f"{heading}\n", 1)[1]
    return re.split(r"\n\n#", body)[0].split("\n")


def test_english_conversation():
    summary = summarize_messages(ENGLISH)
    assert summary.startswith(MARK)
    assert [line for line in summary.split("\n") if line.startswith("#")] == HEADINGS
    assert section(summary, "## Goal") == ["- User: Please help me plan release 2.4 of atlas."]
    assert section(summary, "## Constraints & Preferences") == ["- User: Never publish on a Friday."]
    assert section(summary, "### Done") == ["- [x] Changed `src/app.py`"]
    assert section(summary, "### Blocked") == [
        "- `exec` of `pytest -q` failed: FAILED test_login (Command exited with code 1)"
    ]
    assert section(summary, "## Key Decisions") == ["- Assistant: We decided to keep Redis instead of SQLite."]
    assert section(summary, "## Next Steps") == [
        "1. Assistant: Next, we need to update docs/install.md.",
        "2. Assistant: Shall I tag it?",
    ]
    assert "- User: The deadline is 12 March 2026." in section(summary, "## Critical Context")
    assert "secret thought" not in summary
    assert "not prose" not in summary


def test_chinese_conversation():
    summary = summarize_messages(CHINESE)
    assert section(summary, "## Goal") == ["- User: 请帮我安排三月的上海之行。"]
    assert section(summary, "## Constraints & Preferences") == ["- User: 酒店一定要离会场近。"]
    assert section(summary, "### Done") == ["- [x] Assistant: 已经预订了3月12日的高铁G7。"]
    assert section(summary, "## Key Decisions") == ["- Assistant: 我们决定住在静安区，而不是浦东。"]
    assert section(summary, "## Next Steps") == ["1. Assistant: 接下来需要确认酒店的发票。"]
    assert section(summary, "## Critical Context") == ["- User: 我叫小明，预算是8000元。"]


def test_serialised_conversation_gives_the_same_summary():
    text = serialize_conversation(convert_to_model_messages(ENGLISH))
    assert summarize_text(text) == summarize_messages(ENGLISH)


def test_a_request_without_an_answer_is_in_progress():
    summary = summarize_messages([*ENGLISH, UserMessage("Can you also check the licence of left-pad?")])
    assert section(summary, "### In Progress") == ["- [ ] User: Can you also check the licence of left-pad?"]


def test_a_failure_that_was_made_good_is_not_a_blocker():
    repaired = [
        UserMessage("Run the tests please"),
        said("", call("1", "exec", command="pytest -q")),
        ToolResultMessage("1", "exec", "Command exited with code 1", is_error=True),
        said("", call("2", "exec", command="pytest -q")),
        ToolResultMessage("2", "exec", "12 passed"),
    ]
    assert section(summarize_messages(repaired), "### Blocked") == ["(none)"]
    assert section(summarize_messages(repaired[:3]), "### Blocked") == [
        "- `exec` of `pytest -q` failed: Command exited with code 1"
    ]


def test_nothing_of_an_earlier_summary_is_lost_or_doubled():
    previous = summarize_messages(ENGLISH) + "\n\n<read-files>\nCHANGELOG.md\n</read-files>"
    merged = summarize_messages([*CHINESE, *ENGLISH[:1]], previous=previous)
    items = [text for _, text in parse_summary(merged).items()]
    for _, text in parse_summary(previous).items():
        assert items.count(text) == 1
    assert "- Files read: CHANGELOG.md" in section(merged, "## Critical Context")
    assert merged.count("Never publish on a Friday") == 1
    assert merged.count(MARK) == 1
    assert "预算是8000元" in merged


def test_file_lists_of_several_summaries_become_one():
    first = summarize_messages(CHINESE, previous="<modified-files>\na.py\nb.py\n</modified-files>")
    second = summarize_messages(CHINESE, previous=first + "\n\n<modified-files>\nb.py\nc.py\n</modified-files>")
    assert second.count("Files changed") == 1
    assert "- Files changed: a.py, b.py, c.py" in second


def test_a_summary_by_a_model_is_understood():
    previous = (
        "Some words before.\n\n## Goal\nShip it\n\n## Progress\n### Done\n- [x] Wrote tests\n  for login\n"
        "### In Progress\n- [ ] Docs\n\n### Blocked\n(none)\n\n## Key Decisions\n- **Redis**: faster\n\n"
        "## Next Steps\n1. Tag\n2. Publish\n\n## Something New\n* unknown place\n\n---\n\n"
        "**Turn Context (split turn):**\n\n## Original Request\nFix the bug"
    )
    summary = parse_summary(previous)
    assert dict(summary.sections) == {
        "context": ("Some words before.", "unknown place"),
        "goal": ("Ship it", "Fix the bug"),
        "done": ("Wrote tests for login",),
        "in_progress": ("Docs",),
        "decisions": ("**Redis**: faster",),
        "next": ("Tag", "Publish"),
    }


def test_fewer_headings_hold_the_same_items():
    few = summarize_messages(ENGLISH, layout="compact")
    assert [line for line in few.split("\n") if line.startswith("#")] == list(COMPACT_HEADINGS)
    usual, again = summarize_messages(ENGLISH), parse_summary(few)
    assert {text for _, text in again.items()} == {text for _, text in parse_summary(usual).items()}
    assert again.of("constraints") == ("User: Never publish on a Friday.",)
    assert section(few, "## Exact identifiers") == ["None."]
    assert parse_summary("## Exact identifiers\nNone captured.") == Summary()


def test_a_summary_message_in_the_history_counts_as_earlier_summary():
    summary = summarize_messages([CompactionSummaryMessage("## Goal\n- Learn Rust"), UserMessage("What is a trait?")])
    assert section(summary, "## Goal") == ["- Learn Rust", "- User: What is a trait?"]


def test_the_wanted_focus_is_preferred_when_room_is_short():
    talk = [UserMessage(f"Fact number {n} about gardens is {n * 7} roses.") for n in range(40)]
    talk.insert(20, UserMessage("The invoice number is 4711."))
    limits = SummaryLimits(new_tokens=80)
    assert "4711" in summarize_messages(talk, focus="invoice details", limits=limits)
    assert "4711" not in summarize_messages(talk, limits=limits)


def test_a_summary_stays_bounded_over_many_compactions_and_says_so():
    limits = SummaryLimits(new_tokens=200, total_tokens=600)
    summary = ""
    for cycle in range(30):
        talk = [UserMessage(f"Please do task {cycle}-{n}: it costs {cycle * 100 + n} coins.") for n in range(20)]
        summary = summarize_messages(talk, previous=summary, limits=limits)
        assert estimate_text(summary) < 600 + 150
    assert "task 29-" in summary
    left_out = re.findall(r"- \((\d+) older items were left out\)", summary)
    assert len(left_out) == 1
    assert int(left_out[0]) > 50


def test_long_sentences_are_shortened_at_a_word():
    summary = summarize_messages([UserMessage("Please fix " + "very " * 200 + "much")])
    (goal,) = section(summary, "## Goal")
    assert goal.endswith("very …")
    assert len(goal) < 320


def test_an_empty_conversation_has_an_empty_summary():
    summary = summarize_messages([])
    assert summary.count("(none)") == 8
    assert summarize_text("") == summary


@given(st.lists(st.text(alphabet="ab1 .?!\n`[]#*-<>/请不。", max_size=60), max_size=6), st.text(max_size=80))
def test_any_text_can_be_summarised_and_merged_again(texts, previous):
    talk = [UserMessage(t) if i % 2 else AssistantMessage((TextBlock(t),)) for i, t in enumerate(texts)]
    first = summarize_messages(talk, previous=previous)
    again = summarize_messages([], previous=first)
    assert again == first


@given(st.text(max_size=200))
def test_rendering_a_parsed_summary_changes_nothing_any_more(text):
    rendered = render(merge(parse_summary(text), parse_summary("")))
    assert render(parse_summary(rendered)) == rendered


def test_serialised_turns_are_told_apart():
    text = (
        '[User]: one\n\nstill one [Assistant]: no\n\n[Assistant tool calls]: read(path="a; b(c)"); ls()\n\n'
        "[Tool result]: Error: no\n\n[Tool result]: fine"
    )
    assert parse_conversation(text) == [
        Turn("user", "one\n\nstill one [Assistant]: no"),
        Turn("call", 'read(path="a; b(c)")'),
        Turn("call", "ls()"),
        Turn("result", "Error: no", failed=True),
        Turn("result", "fine"),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Version 3.5 is out. See a.py! Why?", ["Version 3.5 is out.", "See a.py!", "Why?"]),
        ("今天下雨。明天呢？好的！", ["今天下雨。", "明天呢？", "好的！"]),
        ("他说“好。”然后走了。 (It is so.) Yes.", ["他说“好。”", "然后走了。", "(It is so.)", "Yes."]),
        ("# Title\n- [x] one item\n2. two item\n\n> quoted", ["one item", "two item", "quoted"]),
        ("before\n```\ncode. more\n```\nafter", ["before", "after"]),
        ("***\n...", []),
    ],
)
def test_sentences(text, found):
    assert sentences(text) == found
