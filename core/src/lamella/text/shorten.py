"""Shortening a tool's output: the head stays, and the tail where it tells how things went.

A cut never falls inside a character, combining marks and joined emoji included, and prefers line
ends. The rule for head and tail is OpenClaw's (2026.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from attrs import evolve, frozen

from lamella.text.unicode import character_start
from lamella.types.messages import TextBlock, ToolResultMessage

MIN_KEEP = 2000
MAX_TAIL = 4000
_TAIL_SHARE = 0.3
_TELLING = 2000  # characters at the end that are looked at
_OUTCOME = re.compile(
    r"\b(?:error|exception|failed|fatal|traceback|panic|stack trace|errno|exit code"
    r"|total|summary|result|complete|finished|done)\b"
    r"|错误|失败|异常|致命|完成|总计|エラー|失敗|完了|오류|실패|완료",
    re.IGNORECASE,
)
# How JSON ends, and the notes in brackets that tools put behind output which they have cut themselves.
_CLOSING = ("}", "]")


# The mark where something is missing. It may say more, such as the lines of a file.
_MARK = re.compile(r"\n\n\[\.\.\. (\d+) of \d+ characters left out[^\]\n]* \.\.\.\](?:\n\n|\Z)")


@frozen(slots=True)
class Cut:
    """What stays of a text: `text[:head]` and `text[tail:]`. Without a tail, `tail` is the length.

    `earlier` counts what an older mark within the missing part stands for, less the mark itself.
    """

    head: int
    tail: int
    length: int
    earlier: int = 0

    @property
    def missing(self) -> int:
        """Characters left out."""
        return self.tail - self.head + self.earlier

    @property
    def whole(self) -> bool:
        return self.head == self.length


# Says more about a cut of a text, to stand in the mark: `: ...`, or nothing.
Tell: TypeAlias = Callable[[str, Cut], str]


def _nothing_more(_text: str, _cut: Cut) -> str:
    return ""


def find_cut(text: str, limit: int, *, suffix: int = 0, gap: int = 0, min_keep: int = MIN_KEEP) -> Cut:
    """Where to cut a text so that it fits `limit` characters.

    `suffix` characters of the limit are kept free for a mark, `gap` more for one between head and
    tail. At least `min_keep` characters stay, even above the limit.
    """
    length = len(text)
    if length <= limit:
        return Cut(length, length, length)
    budget = max(min_keep, limit - suffix)
    if budget > 2 * min_keep and tells_outcome(text):
        tail = min(int(budget * _TAIL_SHARE), MAX_TAIL)
        head = budget - tail - gap
        if head > min_keep:
            return Cut(_head_end(text, head), _tail_start(text, length - tail), length)
    return Cut(_head_end(text, budget), length, length)


def tells_outcome(text: str) -> bool:
    """Whether the end of an output says how things went: errors, totals, the end of JSON, a note."""
    end = text[-_TELLING:]
    return end.rstrip().endswith(_CLOSING) or _OUTCOME.search(end) is not None


def _head_end(text: str, at: int) -> int:
    line_end = text.rfind("\n", 0, at)
    return line_end if line_end > at * 0.8 else character_start(text, at)


def _tail_start(text: str, at: int) -> int:
    line_end = text.find("\n", at)
    if line_end >= 0 and line_end - at < (len(text) - at) * 0.2:
        return line_end + 1
    return character_start(text, at)


def shorten(text: str, limit: int, tell: Tell = _nothing_more, *, min_keep: int = MIN_KEEP) -> str:
    """A text within a limit of characters, with a mark where something is missing.

    A text that was shortened before keeps one mark, which counts all that is missing.
    """
    whole = Cut(0, len(text), len(text))
    longest = len(_mark(text, whole, tell)) + 2 * len(str(len(text))) + 2
    cut = find_cut(text, limit, suffix=longest, min_keep=min_keep)
    if cut.whole:
        return text
    cut = _with_older_mark(text, cut)
    return text[: cut.head] + _mark(text, cut, tell) + text[cut.tail :]


def _mark(text: str, cut: Cut, tell: Tell) -> str:
    mark = f"\n\n[... {cut.missing} of {cut.length + cut.earlier} characters left out{tell(text, cut)} ...]"
    return mark + "\n\n" if cut.tail < cut.length else mark


def _with_older_mark(text: str, cut: Cut) -> Cut:
    """The cut, made wide enough to take in a mark that the text has already."""
    found = older_mark(text)
    if found is None:
        return cut
    earlier = int(found[1]) - len(found[0])
    return Cut(min(cut.head, found.start()), max(cut.tail, found.end()), cut.length, earlier)


def older_mark(text: str) -> re.Match[str] | None:
    """The mark of a text that was shortened before."""
    return _MARK.search(text)


def shorten_result(
    message: ToolResultMessage, limit: int, tell: Tell = _nothing_more, *, min_keep: int = MIN_KEEP
) -> ToolResultMessage:
    """A tool result whose texts have at most `limit` characters together; the same object if they had.

    Each text gets a share of the limit by its length. Everything else stays.
    """
    total = text_length(message)
    if total <= limit:
        return message

    def part(text: str) -> str:
        return shorten(text, limit * len(text) // total, tell, min_keep=min_keep)

    if isinstance(message.content, str):
        return evolve(message, content=part(message.content))
    content = tuple(evolve(b, text=part(b.text)) if isinstance(b, TextBlock) else b for b in message.content)
    return evolve(message, content=content)


def text_length(message: ToolResultMessage) -> int:
    """Characters of all texts of a result."""
    if isinstance(message.content, str):
        return len(message.content)
    return sum(len(b.text) for b in message.content if isinstance(b, TextBlock))
