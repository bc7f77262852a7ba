"""Files of judged questions: workspaces of notes, questions to them, and where the answers stand.

    {"name": "...", "workspaces": [{"id": "...", "now": "2023-05-09",
        "files": {"memory/2023-05-08.md": "..."},
        "queries": [{"id": "...", "query": "...", "type": "...", "gold": [[["memory/2023-05-08.md", 7, 7]]]}]}]}

`gold` is a list of groups of [path, first line, last line]. All groups are wanted; any range of a
group gives it. `now` is the day on which the questions are asked.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from attrs import field, frozen

from lamella.errors import UsageError

T = TypeVar("T")


@frozen(slots=True)
class Lines:
    """Lines of a file, counted from 1, both ends included."""

    path: str
    first: int
    last: int

    def overlaps(self, other: Lines) -> bool:
        return self.path == other.path and self.first <= other.last and self.last >= other.first


@frozen(slots=True)
class Question:
    """`gold`: groups of places, of which each is wanted once."""

    text: str
    type: str
    gold: tuple[tuple[Lines, ...], ...]


@frozen(slots=True)
class JudgedWorkspace:
    """Notes by path, and questions asked on the day `now` (YYYY-MM-DD)."""

    id: str
    now: str
    files: dict[str, str] = field(repr=False)
    questions: tuple[Question, ...] = field(repr=False)


def read_judged(path: Path) -> tuple[JudgedWorkspace, ...]:
    """The workspaces of a file. Raises `UsageError` that names the place of what is wrong."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    root = _Node(str(path), document)
    return tuple(_workspace(node) for node in root.get("workspaces").items())


@frozen(slots=True)
class _Node:
    """A JSON value that knows its place."""

    place: str
    value: Any

    def get(self, key: str) -> _Node:
        mapping = self.as_a(dict, "an object")
        if key not in mapping:
            raise UsageError(f"{self.place}: {key} is missing")
        return _Node(f"{self.place}: {key}" if ": " not in self.place else f"{self.place}.{key}", mapping[key])

    def items(self) -> list[_Node]:
        found = self.as_a(list, "a list")
        if not found:
            raise UsageError(f"{self.place}: expected a list with something in it")
        return [_Node(f"{self.place}[{i}]", value) for i, value in enumerate(found)]

    def as_a(self, kind: type[T], expected: str) -> T:
        if not isinstance(self.value, kind) or isinstance(self.value, bool):
            raise UsageError(f"{self.place}: expected {expected}, found {json.dumps(self.value)[:60]}")
        return self.value


def _workspace(node: _Node) -> JudgedWorkspace:
    files = {
        _safe(name, node.place): _Node(f"{node.place}.files[{name!r}]", text).as_a(str, "a text")
        for name, text in node.get("files").as_a(dict, "an object").items()
    }
    return JudgedWorkspace(
        id=node.get("id").as_a(str, "a text"),
        now=_day(node.get("now")),
        files=files,
        questions=tuple(_question(query, files) for query in node.get("queries").items()),
    )


def _question(node: _Node, files: dict[str, str]) -> Question:
    return Question(
        text=node.get("query").as_a(str, "a text"),
        type=node.get("type").as_a(str, "a text"),
        gold=tuple(tuple(_lines(place, files) for place in group.items()) for group in node.get("gold").items()),
    )


def _lines(node: _Node, files: dict[str, str]) -> Lines:
    value = node.as_a(list, "[path, first line, last line]")
    if [type(part) for part in value] != [str, int, int]:
        raise UsageError(f"{node.place}: expected [path, first line, last line], found {json.dumps(value)[:60]}")
    path, first, last = value
    if path not in files:
        raise UsageError(f"{node.place}: {path} is none of the workspace's files")
    return Lines(path, first, last)


def _day(node: _Node) -> str:
    text = node.as_a(str, "a day, YYYY-MM-DD")
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"{node.place}: expected a day, YYYY-MM-DD, found {text!r}") from None


def _safe(name: str, place: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or "\\" in name or not path.parts:
        raise UsageError(f"{place}: {name!r} is no path within a workspace")
    return name
