"""What QMD is asked. Pure.

QMD joins the words of a search by AND, so a question finds next to nothing. Each keyword is a search of
its own here, and QMD fuses them.
"""

from __future__ import annotations

import re

from attrs import frozen

from lamella.text.segment import query_terms
from lamella.text.unicode import well_formed

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_PREFIX = re.compile(r"\s*(?:lex|vec|hyde|intent|expand)\s*:", re.I)
MOST_TERMS = 30
MOST_CHARS = 4000


@frozen(slots=True)
class Sub:
    """One line of a question: `lex` (words) or `vec` (meaning)."""

    kind: str
    text: str

    @property
    def line(self) -> str:
        return f"{self.kind}: {self.text}"


def cleaned(text: str) -> str:
    """A question on one line, of whole characters, of bounded length."""
    return " ".join(_UNPRINTABLE.sub(" ", well_formed(text[: 4 * MOST_CHARS])).split())[:MOST_CHARS]


def keyword_subs(text: str, most: int = MOST_TERMS) -> tuple[Sub, ...]:
    """A line for each keyword and each pair of characters; the longer ones when there are too many."""
    terms = query_terms(cleaned(text))
    if len(terms) > most:
        chosen = set(sorted(terms, key=lambda term: -len(term.text))[:most])
        terms = tuple(term for term in terms if term in chosen)
    return tuple(Sub("lex", f'"{term.text}"' if term.kind == "phrase" else term.text) for term in terms)


def whole_sub(text: str) -> Sub:
    """The question as it was put, for a search of all its words. A lone quote would be an error."""
    question = cleaned(text)
    return Sub("lex", cleaned(question.replace('"', " ")) if question.count('"') % 2 else question)


def meaning_sub(text: str) -> Sub:
    """The question for a search by meaning, in which `-word` would be an error."""
    return Sub("vec", cleaned(cleaned(text).replace("-", " ").replace('"', " ")))


def expandable(text: str) -> str:
    """The question for QMD to rewrite, without beginnings that QMD would take for its own syntax."""
    question = cleaned(text)
    while found := _PREFIX.match(question):
        question = question[found.end() :]
    return cleaned(question.replace('"', " "))
