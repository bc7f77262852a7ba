from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_calls import call, context_in, shown

from lamella.errors import ToolError
from lamella.tools.builtin import builtin_tools
from lamella.tools.globs import glob_regex
from lamella.tools.patterns import has_nested_repetition, search_pattern


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


async def run(root, name, **arguments):
    return await call(builtin_tools(root, exec_enabled=False), name, context_in(root), **arguments)


async def text(root, name, **arguments):
    return shown(await run(root, name, **arguments))


async def test_grep_names_places_from_the_workspace(tmp_path):
    write(tmp_path, {"b.txt": "beta\nalpha\r\n", "a/c.md": "Alpha\n", "a/.hidden": "alpha", "bin": b"alpha\0"})
    assert await text(tmp_path, "grep", pattern="alpha") == "a/.hidden:1: alpha\nb.txt:2: alpha"
    assert await text(tmp_path, "grep", pattern="alpha", ignoreCase=True, path="a") == (
        "a/.hidden:1: alpha\na/c.md:1: Alpha"
    )
    assert await text(tmp_path, "grep", pattern="^al", path="b.txt") == "b.txt:2: alpha"
    assert await text(tmp_path, "grep", pattern="gamma") == "No matches found"


async def test_grep_takes_plain_text_and_file_patterns(tmp_path):
    write(tmp_path, {"x.py": "f(a)\n", "y.md": "f(a)\n", "src/deep/z.py": "f(a)\n"})
    assert (
        await text(tmp_path, "grep", pattern="f(a)", literal=True, glob="*.py") == "src/deep/z.py:1: f(a)\nx.py:1: f(a)"
    )
    assert await text(tmp_path, "grep", pattern="f(a)", literal=True, glob="src/**/*.py") == "src/deep/z.py:1: f(a)"
    assert await text(tmp_path, "grep", pattern="f(a)", literal=True, glob="*.{md,rst}") == "y.md:1: f(a)"


async def test_grep_shows_context_once(tmp_path):
    write(tmp_path, {"f": "1\nhit\n3\nhit\n5\n6\n7\nhit\n"})
    assert await text(tmp_path, "grep", pattern="hit", context=1) == "\n".join(
        ["f-1- 1", "f:2: hit", "f-3- 3", "f:4: hit", "f-5- 5", "--", "f-7- 7", "f:8: hit"]
    )


async def test_grep_says_what_it_left_out(tmp_path):
    write(tmp_path, {"many.txt": "hit\n" * 5, "wide.txt": "hit" + "x" * 600})
    result = await run(tmp_path, "grep", pattern="hit", limit=3)
    assert shown(result).endswith("\n\n[3 matches limit reached. Use limit=6 for more, or refine pattern]")
    assert shown(result).count("hit\n") == 3
    assert result.details == {"matchLimitReached": 3}
    assert "limit reached" not in await text(tmp_path, "grep", pattern="hit", limit=5, path="many.txt")
    wide = await text(tmp_path, "grep", pattern="hit", path="wide.txt")
    assert wide.endswith("... [truncated]\n\n[Some lines cut to 500 characters. Use read to see them whole]")


async def test_grep_output_has_a_byte_limit(tmp_path):
    write(tmp_path, {"f": ("x" * 480 + "\n") * 300})
    result = await run(tmp_path, "grep", pattern="x", limit=300)
    assert len(shown(result).encode()) < 51_500
    assert "50.0KB limit reached" in shown(result)
    assert result.details["truncation"]["truncatedBy"] == "bytes"


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|aa)*$", r"(\w+\s?)*x", "((ab)+c)+", "(x{2,})+", "(?:a*b?){10,}"])
async def test_patterns_that_may_run_for_ever_are_refused(tmp_path, pattern):
    write(tmp_path, {"f": "a" * 60 + "!"})
    with pytest.raises(ToolError, match="can take for ever"):
        await run(tmp_path, "grep", pattern=pattern)
    assert "No matches" in await text(tmp_path, "grep", pattern=pattern, literal=True)


@pytest.mark.parametrize(
    "pattern", [r"\(a+\)+", "[(a+)]+", "(ab)+", "a+b*c{2,}", "(a|b)c", r"(\d+)?-x", "(?:foo|bar)baz"]
)
def test_usual_patterns_are_accepted(pattern):
    assert not has_nested_repetition(pattern)
    search_pattern(pattern, literal=False, ignore_case=False)


async def test_a_malformed_pattern_is_explained(tmp_path):
    with pytest.raises(ToolError, match=r"'\(a' is not a regular expression: .*set literal to true"):
        await run(tmp_path, "grep", pattern="(a")


async def test_find_by_name_and_by_path(tmp_path):
    write(tmp_path, {"notes/2026-01.md": "", "notes/old/2025-12.md": "", "notes/x.txt": "", ".env.md": ""})
    assert await text(tmp_path, "find", pattern="*.md") == ".env.md\nnotes/2026-01.md\nnotes/old/2025-12.md"
    assert await text(tmp_path, "find", pattern="notes/*.md") == "notes/2026-01.md"
    assert await text(tmp_path, "find", pattern="**/20*.md", path="notes") == "notes/2026-01.md\nnotes/old/2025-12.md"
    assert await text(tmp_path, "find", pattern="old") == "notes/old/"
    assert await text(tmp_path, "find", pattern="*.rs") == "No files found matching the pattern"


async def test_find_has_a_limit(tmp_path):
    write(tmp_path, {f"f{n}": "" for n in range(5)})
    result = await run(tmp_path, "find", pattern="f*", limit=3)
    assert shown(result) == "f0\nf1\nf2\n\n[3 results limit reached. Use limit=6 for more, or refine the pattern]"
    assert result.details == {"resultLimitReached": 3}
    assert await text(tmp_path, "find", pattern="f*", limit=5) == "f0\nf1\nf2\nf3\nf4"


async def test_gitignore_is_respected(tmp_path):
    write(
        tmp_path,
        {
            ".gitignore": "# build output\n*.log\n!keep.log\nbuild/\n/top.txt\ndocs/*.tmp\n**/cache\n\n",
            "a.log": "hit",
            "keep.log": "hit",
            "build/x": "hit",
            "src/build": "hit",
            "top.txt": "hit",
            "src/top.txt": "hit",
            "docs/a.tmp": "hit",
            "docs/deep/a.tmp": "hit",
            "src/deep/cache/x": "hit",
            "src/.gitignore": "local\n!*.log\n",
            "src/local": "hit",
            "src/b.log": "hit",
            "local": "hit",
            ".git/config": "hit",
        },
    )
    found = await text(tmp_path, "grep", pattern="hit")
    assert [line.split(":")[0] for line in found.split("\n")] == [
        "docs/deep/a.tmp",
        "keep.log",
        "local",
        "src/b.log",
        "src/build",
        "src/top.txt",
    ]
    assert "src/local" not in await text(tmp_path, "grep", pattern="hit", path="src")
    assert await text(tmp_path, "grep", pattern="hit", path="build") == "build/x:1: hit"


async def test_folder_links_are_not_followed(tmp_path):
    write(tmp_path, {"a/f": "hit"})
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "same").symlink_to(tmp_path / "a" / "f")
    assert await text(tmp_path, "grep", pattern="hit") == "a/f:1: hit\nsame:1: hit"


async def test_a_cancelled_search_stops(tmp_path):
    write(tmp_path, {"f": "x"})
    context = context_in(tmp_path)
    context.cancelled.set()
    with pytest.raises(ToolError, match="Search aborted"):
        await call(builtin_tools(tmp_path, exec_enabled=False), "grep", context, pattern="x")


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.md", "a.md", True),
        ("*.md", "a/b.md", False),
        ("**/*.md", "b.md", True),
        ("a/**", "a/b/c", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[!a]x", "/x", False),
        ("[z-a]", "[z-a]", True),
        ("{a,b{c,d}}.x", "bd.x", True),
        (r"\*", "*", True),
        ("[", "[", True),
    ],
)
def test_shell_patterns(pattern, path, fits):
    assert bool(glob_regex(pattern).fullmatch(path)) == fits


@given(st.text(alphabet="ab*?[]!-{},/\\.^&|", max_size=14))
def test_any_shell_pattern_can_be_translated(pattern):
    glob_regex(pattern).fullmatch("a/b.txt")


def test_braces_are_bounded():
    with pytest.raises(ValueError, match="more than 64 patterns"):
        glob_regex("{a,b}" * 12)
