"""The core's floors: a module imports from floors below its own, or beside it without a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core" / "src" / "lamella"
PLUGINS = sorted(p.parents[1] for p in ROOT.glob("plugins/*/src/lamella_*/__init__.py"))

FLOORS = {
    "testing": 7,
    "scaffold": 6,
    "cli": 7,
    "runtime": 6,
    "session": 6,
    "doctor": 6,
    "mcp": 6,
    "agent": 5,
    "moving": 5,
    "context": 4,
    "models": 4,
    "tools": 4,
    "plugins": 3,
    "memory": 3,
    "sessions": 2,
    "types": 1,
    "errors": 1,
    "paths": 1,
    "config": 1,
    "text": 1,
}
# The front doors of the package: they name what lies behind them and are imported by nobody.
FRONT = {"__init__", "__main__"}


def modules() -> list[Path]:
    return sorted(CORE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The part of the core that a file belongs to: a folder, or a module of its own."""
    first = path.relative_to(CORE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path, *, for_types: bool = True) -> Iterator[tuple[int, str]]:
    """(line, module) of every import in a file, wherever it stands; names of modules are in full.

    Without `for_types`, those below `if TYPE_CHECKING` are left out: they do not happen at run time.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set() if for_types else {n for block in ast.walk(tree) if _is_for_types(block) for n in ast.walk(block)}
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports name their module in full"
            module = node.module or ""
            if module == "lamella":  # `from lamella import x`: x may be a module
                yield from ((node.lineno, f"lamella.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def arrows(*, for_types: bool = True) -> dict[tuple[str, str], list[str]]:
    """(part, imported part) to the places where that happens."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in modules():
        for line, module in imports(path, for_types=for_types):
            if module.split(".")[0] == "lamella" and "." in module:
                target = module.split(".")[1]
                place = f"{path.relative_to(ROOT)}:{line}: {module}"
                found.setdefault((part_of(path), target), []).append(place)
    return found


def test_every_part_has_a_floor() -> None:
    parts = {part_of(p) for p in modules()} - FRONT - {"templates"}
    assert parts == FLOORS.keys()


def test_imports_never_go_up() -> None:
    wrong = [
        place
        for (source, target), places in arrows().items()
        if source not in FRONT and FLOORS.get(target, 99) > FLOORS[source]
        for place in places
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("floor", sorted(set(FLOORS.values())))
def test_parts_of_one_floor_form_no_circle(floor: int) -> None:
    beside = {
        (source, target): places
        for (source, target), places in arrows(for_types=False).items()
        if source != target and FLOORS.get(source) == FLOORS.get(target) == floor
    }
    reached = set(beside)
    while longer := {(a, d) for a, b in reached for c, d in beside if b == c} - reached:
        reached |= longer
    circles = {a for a, b in reached if a == b}
    places = [p for (a, b), found in beside.items() if {a, b} <= circles for p in found]
    assert not circles, "\n".join(places)


def test_the_core_imports_no_plugin() -> None:
    names = {p.name for folder in PLUGINS for p in folder.glob("lamella_*")}
    wrong = [f"{path}:{line}" for path in modules() for line, name in imports(path) if name.split(".")[0] in names]
    assert not wrong


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda p: p.parent.name)
def test_a_plugin_imports_no_other_plugin(folder: Path) -> None:
    (own,) = (p.name for p in folder.glob("lamella_*"))
    wrong = [
        f"{path}:{line}: {name}"
        for path in folder.rglob("*.py")
        for line, name in imports(path)
        if name.startswith("lamella_") and name.split(".")[0] != own
    ]
    assert not wrong


def test_only_the_plugins_folder_touches_pluggy() -> None:
    users = {part_of(path) for path in modules() for _, name in imports(path) if name.split(".")[0] == "pluggy"}
    assert users == {"plugins"}
