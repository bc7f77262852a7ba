"""Writing a project from its templates.

A template is a file below `kinds/KIND` (or `kinds/common`, which all have) whose name ends in `.tmpl`.
In its path and its text `@token@` stands for a name; see `Names.as_tokens`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from lamella.errors import LamellaError, UsageError
from lamella.scaffold.names import Names

_TOKEN = re.compile(r"@(\w+)@")
_SUFFIX = ".tmpl"
_NEEDS = {
    "backend": '"attrs>=24.2", "lamella>=0.1,<1", "lamella-memory-core>=0.1,<1"',
    "hook": '"attrs>=24.2", "lamella>=0.1,<1"',
}


def write_project(target: Path, kind: str, names: Names) -> list[Path]:
    """Write a project into a folder, which must be missing or empty. Returns the files, in order.

    Raises `UsageError` where something is in the way, `LamellaError` when the system refuses.
    """
    rendered = render_project(kind, names)
    try:
        if target.exists() and not target.is_dir():
            raise UsageError(f"{target} is a file, expected a folder")
        if target.is_dir() and any(target.iterdir()):
            raise UsageError(f"{target} is not empty", hint="Nothing is overwritten; name another folder with --dir.")
        return [_write(target / name, text) for name, text in rendered.items()]
    except OSError as error:
        raise LamellaError(f"cannot write the project to {target}: {error.strerror}") from error


def render_project(kind: str, names: Names) -> dict[str, str]:
    """Path within the project to text, by path."""
    tokens = {**names.as_tokens(), "needs": _NEEDS.get(kind, '"lamella>=0.1,<1"')}
    found = {}
    for part in ("common", kind):
        for path, template in _templates(files("lamella.scaffold") / "kinds" / part):
            found[_fill(path, tokens)] = _fill(template.read_text(encoding="utf-8"), tokens)
    return dict(sorted(found.items()))


def _templates(folder: Traversable, above: str = "") -> Iterator[tuple[str, Traversable]]:
    """(path without the suffix, template) of all templates in a folder."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _templates(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):
            yield above + entry.name.removesuffix(_SUFFIX), entry


def _fill(text: str, tokens: Mapping[str, str]) -> str:
    return _TOKEN.sub(lambda found: tokens[found[1]], text)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)
    return path
