"""Days that a question names: `2 May 2023`, `in May`, `5月2日`, `yesterday`, and the like.

A date without a year is meant in every year that the notes have. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Final

from attrs import define, field, frozen

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_NUMBER: Final = {name[:length]: n for n, name in enumerate(_MONTHS, 1) for length in (3, len(name))} | {"sept": 9}
_MONTH = "(" + "|".join(sorted(_NUMBER, key=len, reverse=True)) + ")"
_ORDINAL = "(?:st|nd|rd|th)?"
_IN_NAME = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")

# Days before today, first and last. A person says "last week" loosely, so it reaches a little further.
_RELATIVE: Final = (
    (re.compile(r"\btoday\b|今天|今日"), 0, 0),
    (re.compile(r"\byesterday\b|昨天|昨日"), 1, 1),
    (re.compile(r"\bday before yesterday\b|前天"), 2, 2),
    (re.compile(r"\blast week\b|上周|上个?星期"), 9, 1),
    (re.compile(r"\blast month\b|上个?月"), 45, 1),
)


@frozen(slots=True)
class Span:
    """Days from `first` to `last`, both included."""

    first: date
    last: date

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last


def day_in(name: str) -> date | None:
    """The day that a file's name begins with or holds, as YYYY-MM-DD."""
    found = _IN_NAME.search(name)
    return _day(*map(int, found.groups())) if found else None


def named_spans(question: str, today: date, years: Iterable[int]) -> tuple[Span, ...]:
    """What the question names, in no particular order. `years`: those that the notes have."""
    reader = _Reader(question.lower(), tuple(sorted(set(years))) or (today.year,))
    for pattern, use in _FORMS:
        reader.take(pattern, use)
    relative = (
        Span(today - timedelta(first), today - timedelta(last))
        for pattern, first, last in _RELATIVE
        if pattern.search(question.lower())
    )
    return (*reader.found, *relative)


@define(slots=True)
class _Reader:
    """A question that is read form by form; what was understood is not read again."""

    text: str
    years: tuple[int, ...]
    found: list[Span] = field(factory=list)

    def take(self, pattern: re.Pattern[str], use: Callable[[_Reader, re.Match[str]], None]) -> None:
        for match in pattern.finditer(self.text):
            use(self, match)
        self.text = pattern.sub(" ", self.text)

    def day(self, year: str | None, month: int, day: str) -> None:
        days = (_day(y, month, int(day)) for y in self._years(year))
        self.found += [Span(d, d) for d in days if d]

    def month(self, year: str | None, month: int) -> None:
        for y in self._years(year):
            first = _day(y, month, 1)
            if first:
                after = date(y + month // 12, month % 12 + 1, 1) if (y, month) != (9999, 12) else date.max
                self.found.append(Span(first, after - timedelta(1)))

    def _years(self, year: str | None) -> tuple[int, ...]:
        return (int(year),) if year else self.years


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


# Years come after months in English and before them elsewhere. More exact forms come first.
_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[_Reader, re.Match[str]], None]], ...]] = (
    (
        re.compile(r"(?<!\d)(\d{4})\s*[-/.年년]\s*(\d{1,2})\s*[-/.月월]\s*(\d{1,2})(?!\d)\s*[日号號일]?"),
        lambda r, m: r.day(m[1], int(m[2]), m[3]),
    ),
    (
        re.compile(r"(?<!\d)(?:(\d{4})\s*[年년]\s*)?(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日号號일]"),
        lambda r, m: r.day(m[1], int(m[2]), m[3]),
    ),
    (
        re.compile(r"(?<!\d)(\d{4})-(\d{2})(?![\d-])|(?<!\d)(?:(\d{4})\s*[年년]\s*)?(\d{1,2})\s*[月월](?!\s*\d)"),
        lambda r, m: r.month(m[1] or m[3], int(m[2] or m[4])),
    ),
    (
        re.compile(rf"\b{_MONTH}\.? (\d{{1,2}}){_ORDINAL}\b(?:,? (\d{{4}})\b)?"),
        lambda r, m: r.day(m[3], _NUMBER[m[1]], m[2]),
    ),
    (
        re.compile(rf"\b(\d{{1,2}}){_ORDINAL}(?: of)? {_MONTH}\b\.?,?(?: (\d{{4}})\b)?"),
        lambda r, m: r.day(m[3], _NUMBER[m[2]], m[1]),
    ),
    (
        re.compile(rf"\b(?:in|during|of|since|early|late|mid|around)[ -]+{_MONTH}\b\.?,?(?: (?:of )?(\d{{4}})\b)?"),
        lambda r, m: r.month(m[2], _NUMBER[m[1]]),
    ),
    (re.compile(rf"\b{_MONTH}\.?,? (\d{{4}})\b"), lambda r, m: r.month(m[2], _NUMBER[m[1]])),
)
