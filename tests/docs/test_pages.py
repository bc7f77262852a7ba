"""Pages: links resolve, the two commands are there, and nothing names a machine or a registry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT, anchors, blocks, links, page, pages, sections

from lamella.types.entries import Damage

SKIPPED_FOLDERS = {".git", ".demo", ".bootstrap", "node_modules", "dist", "build", "__pycache__"}
CORE = ROOT / "core" / "src" / "lamella"
# Package hosts, written so that this file does not name them itself.
HOSTS = [".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"))]
# Installs nothing: a link from a member's page to the core's own page.
MACHINE = re.compile(r"(?<![\w.])/(?:work/(?:main|shared)|root|home/\w+)/\w")


@pytest.mark.parametrize("path", pages(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_resolve(path: Path) -> None:
    for target in links(path):
        if re.match(r"https?://|mailto:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_readme_has_the_two_commands_each_in_a_block_of_its_own() -> None:
    alone = [b.text for b in blocks(ROOT / "README.md")]
    assert "python3 dev.py demo\n" in alone
    assert "python3 dev.py test\n" in alone


def test_every_page_of_the_docs_can_be_reached_from_the_start_page() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "docs" / "index.md"]
    while waiting:
        path = waiting.pop()
        if path in seen or path.suffix != ".md":
            continue
        seen.add(path)
        waiting += [
            (path.parent / t.partition("#")[0]).resolve() for t in links(path) if not t.startswith(("http", "#"))
        ]
    assert not sorted(set(ROOT.glob("docs/**/*.md")) - seen)


def test_decisions_are_numbered_and_listed() -> None:
    files = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [f.name[:4] for f in files] == [f"{n:04}" for n in range(1, len(files) + 1)]
    for file in files:
        assert file.read_text(encoding="utf-8").startswith(f"# {file.name[:4]}: ")
        assert file.name in files[0].read_text(encoding="utf-8") or file == files[0]


def test_sources_named_in_the_docs_exist() -> None:
    for path in pages():
        named = re.findall(r"`((?:core|plugins|tests|examples|docs|bench)/[\w./-]+)`", path.read_text(encoding="utf-8"))
        assert not [n for n in named if not (ROOT / n).exists() and not (CORE / n).exists()], path.name


def test_damage_codes_are_documented() -> None:
    code = "\n".join(f.read_text(encoding="utf-8") for f in (ROOT / "core/src/lamella/sessions").glob("*.py"))
    used = set(re.findall(rf'{Damage.__name__}\(\s*"(\w+)"', code)) | {"torn_line"}
    table = sections(page("session-files.md"))["Damage"]
    assert not [c for c in used if f"`{c}`" not in table]


def repository_files() -> list[Path]:
    found = []
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        if any(
            p in SKIPPED_FOLDERS or p.startswith((".venv", ".mypy", ".ruff", ".pytest", ".hypothesis")) for p in parts
        ):
            continue
        if path.is_file() and path.suffix in (".py", ".md", ".toml", ".txt", ".sh", "") and "data" not in parts:
            found.append(path)
    return found


def test_nothing_names_a_machine_or_a_package_host() -> None:
    wrong = []
    for path in repository_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        wrong += [f"{path.relative_to(ROOT)}: {host}" for host in HOSTS if host in text]
        wrong += [f"{path.relative_to(ROOT)}: {m[0]}" for m in MACHINE.finditer(text)]
    assert not wrong, "\n".join(wrong)
