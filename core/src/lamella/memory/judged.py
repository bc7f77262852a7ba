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
from lamella.text.files import split_lines
from lamella.text.unicode import well_formed

T = TypeVar("T")

_LONGEST_NAME = 255  # bytes; what every system takes for one part of a path


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
    except (ValueError, RecursionError) as error:
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
            raise self.unexpected(expected)
        return self.value

    def text(self, *, may_be_empty: bool = False) -> str:
        """A string that can be written to a file."""
        text = self.as_a(str, "a text")
        if well_formed(text) != text or not (may_be_empty or text.strip()):
            raise self.unexpected("a text of whole characters" + ("" if may_be_empty else ", not empty"))
        return text

    def unexpected(self, expected: str) -> UsageError:
        return UsageError(f"{self.place}: expected {expected}, found {json.dumps(self.value)[:60]}")


def _workspace(node: _Node) -> JudgedWorkspace:
    files = {
        _safe(name, node.place): _Node(f"{node.place}.files[{name!r}]", text).text(may_be_empty=True)
        for name, text in node.get("files").as_a(dict, "an object").items()
    }
    folders = {str(folder) for name in files for folder in PurePosixPath(name).parents}
    if both := sorted(folders & set(files)):
        raise UsageError(f"{node.place}: {both[0]!r} is a file, and a folder of other files")
    return JudgedWorkspace(
        id=node.get("id").text(),
        now=_day(node.get("now")),
        files=files,
        questions=tuple(_question(query, files) for query in node.get("queries").items()),
    )


def _question(node: _Node, files: dict[str, str]) -> Question:
    return Question(
        text=node.get("query").text(),
        type=node.get("type").text(),
        gold=tuple(tuple(_lines(place, files) for place in group.items()) for group in node.get("gold").items()),
    )


def _lines(node: _Node, files: dict[str, str]) -> Lines:
    value = node.as_a(list, "[path, first line, last line]")
    if [type(part) for part in value] != [str, int, int]:
        raise node.unexpected("[path, first line, last line]")
    path, first, last = value
    if path not in files:
        raise UsageError(f"{node.place}: {path} is none of the workspace's files")
    count = len(split_lines(files[path]))
    if not 1 <= first <= last <= count:
        raise node.unexpected(f"lines of {path}, from 1 to {count}")
    return Lines(path, first, last)


def _day(node: _Node) -> str:
    text = node.as_a(str, "a day, YYYY-MM-DD")
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"{node.place}: expected a day, YYYY-MM-DD, found {text!r}") from None


def _safe(name: str, place: str) -> str:
    """A path that is written in one way only, so that no two names mean one file."""
    path = PurePosixPath(name)
    plain = str(path) == name and name.isprintable() and "\\" not in name
    if not plain or path.is_absolute() or not path.parts or ".." in path.parts or len(name.encode()) > _LONGEST_NAME:
        raise UsageError(f"{place}: {name[:80]!r} is no path within a workspace")
    return name
