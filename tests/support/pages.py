"""The documentation as data: pages, sections, code blocks, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
_FENCE = re.compile(r"^```(\S*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")


@frozen
class Code:
    """A fenced block: `language`, the rest of its first line, its text, the page and the line it begins at."""

    language: str
    info: str
    text: str
    page: Path
    line: int

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def pages() -> list[Path]:
    """Every Markdown page for readers; notes of example workspaces and test data are none."""
    return sorted(
        [
            *ROOT.glob("*.md"),
            *ROOT.glob("docs/**/*.md"),
            *ROOT.glob("core/*.md"),
            *ROOT.glob("plugins/*/*.md"),
            *ROOT.glob("plugins/*/tools/*.md"),
            *ROOT.glob("examples/plugins/**/*.md"),
        ]
    )


def page(name: str) -> str:
    """The text of a page of the reference."""
    return (REFERENCE / name).read_text(encoding="utf-8")


def blocks(path: Path) -> list[Code]:
    text = path.read_text(encoding="utf-8")
    return [Code(m[1], m[2].strip(), m[3], path, text[: m.start(3)].count("\n") + 1) for m in _FENCE.finditer(text)]


def steps(block: Code) -> list[tuple[str, str]]:
    """(command, expected output) of a console block."""
    found: list[tuple[str, str]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, output = found[-1]
            found[-1] = (command, f"{output}{line}\n")
    return found


def sections(text: str) -> dict[str, str]:
    """Heading (without its number signs) to the text below it, up to a heading of the same or a higher level."""
    plain = _FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)  # a `#` in code is no heading
    found = [(len(m[1]), m[2].strip(), m.end(), m.start()) for m in _HEADING.finditer(plain)]
    return {
        title: text[end : next((s for lv, _, _, s in found[i + 1 :] if lv <= level), len(text))]
        for i, (level, title, end, _) in enumerate(found)
    }


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    titles = sections(path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(path: Path) -> Iterator[str]:
    """Targets of links, outside of code."""
    yield from _LINK.findall(_FENCE.sub("", path.read_text(encoding="utf-8")))


def rows(text: str) -> dict[str, list[str]]:
    """First cell (in backticks) of each table row to its cells, escapes undone."""
    found = {}
    for line in text.splitlines():
        cells = [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and cells[0].startswith("`"):
            found[cells[0].strip("`")] = cells
    return found
