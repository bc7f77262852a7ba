from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_calls import call, context_in, shown

from lamella.errors import ToolError
from lamella.tools.builtin import builtin_tools
from lamella.tools.diff import diff_texts
from lamella.tools.replace import Edit, apply_edits


def replace(text, old, new):
    return apply_edits(text, [Edit(old, new)], "f")


def test_several_edits_apply_to_the_text_as_it_was():
    edits = [Edit("two", "one"), Edit("one", "two"), Edit("three", "")]
    assert apply_edits("one two three", edits, "f") == "two one "


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([Edit("one two", "x"), Edit("two", "y")], r"edits\[0\] and edits\[1\] overlap in f"),
        ([Edit("one", "x"), Edit("zzz", "y")], r"edits\[1\]: Could not find the text in f"),
        ([Edit("one", "x"), Edit("", "y")], r"edits\[1\]: oldText must not be empty"),
        ([Edit("e", "x")], "Found 3 occurrences of the text in f"),
        ([Edit("three", "three")], "No changes made to f"),
    ],
)
def test_edits_that_cannot_be_made_are_explained(edits, message):
    with pytest.raises(ToolError, match=message):
        apply_edits("one two three", edits, "f")


def test_overlapping_occurrences_are_not_unique():
    with pytest.raises(ToolError, match="Found 2 occurrences"):
        replace("aaa", "aa", "b")


def test_very_many_occurrences_are_not_counted_to_the_end():
    with pytest.raises(ToolError, match="Found more than 100 occurrences"):
        replace("a" * 5000, "a", "b")


@pytest.mark.parametrize(
    ("text", "old", "new", "changed"),
    [
        ("say “hi” — ok  \nnext “x”\n", 'say "hi" - ok', "bye", "bye\nnext “x”\n"),
        ("a\u00a0b\u2009c d\n", "a b c", "x", "x d\n"),
        ("one  \ntwo\t\nthree\n", "one\ntwo\n", "1\n2\n", "1\n2\nthree\n"),
        ("ﬁne print\n", "fine print", "ok", "ok\n"),
        ("cafe\u0301 bar\n", "caf\u00e9", "tea", "tea bar\n"),
        ("１２３ keep ４\n", "123", "456", "456 keep ４\n"),
    ],
)
def test_forgiving_search_changes_only_what_it_found(text, old, new, changed):
    assert replace(text, old, new) == changed


def test_exact_matches_win_over_forgiving_ones():
    assert replace('“q” and "q"', '"q"', "x") == "“q” and x"


@pytest.mark.parametrize("old", ["fi", "i"])
def test_a_match_never_ends_inside_a_character(old):
    with pytest.raises(ToolError, match="Could not find"):
        replace("oﬃce", old, "x")


@pytest.mark.parametrize(
    ("text", "old", "new", "changed"),
    [
        ("a\r\nb\r\nc\n", "b\nc", "x\ny", "a\r\nx\r\ny\n"),
        ("a\nb\r\nc\r\n", "a", "x\ny", "x\ny\nb\r\nc\r\n"),
        ("a\r\nb\r\n", "a\n", "", "b\r\n"),
        ("a\rb\r\n", "a\rb", "x", "x\r\n"),
    ],
)
def test_line_ends_outside_the_edit_stay(text, old, new, changed):
    assert replace(text, old, new) == changed


@given(st.text(alphabet="ab \r\n“é", max_size=30), st.data())
def test_an_edit_leaves_everything_else_untouched(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    old = text[start:end]
    try:
        changed = replace(text, old, "NEW")
    except ToolError:
        return
    head, _, tail = changed.partition("NEW")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) <= len(text)


async def test_edit_reports_what_changed(tmp_path):
    (tmp_path / "f.txt").write_text("".join(f"line {n}\n" for n in range(1, 31)))
    tools = builtin_tools(tmp_path, exec_enabled=False)
    edits = [{"oldText": "line 2\n", "newText": ""}, {"oldText": "line 25\n", "newText": "x\ny\n"}]
    result = await call(tools, "edit", context_in(tmp_path), path="f.txt", edits=edits)
    assert shown(result) == "Replaced 2 blocks in f.txt."
    assert result.details["firstChangedLine"] == 2
    assert result.details["diff"].split("\n") == [
        "  1 line 1",
        "- 2 line 2",
        *(f" {n:>2} line {n}" for n in range(3, 7)),
        "    ...",
        *(f" {n:>2} line {n}" for n in range(21, 25)),
        "-25 line 25",
        "+24 x",
        "+25 y",
        *(f" {n:>2} line {n}" for n in range(26, 30)),
    ]


async def test_edit_needs_something_to_do(tmp_path):
    (tmp_path / "f.txt").write_text("x")
    tools = builtin_tools(tmp_path, exec_enabled=False)
    with pytest.raises(ToolError, match="edit needs edits"):
        await call(tools, "edit", context_in(tmp_path), path="f.txt")
    with pytest.raises(ToolError, match="both oldText and newText"):
        await call(tools, "edit", context_in(tmp_path), path="f.txt", oldText="x")


async def test_edit_refuses_bytes_that_it_would_damage(tmp_path):
    (tmp_path / "f.txt").write_bytes(b"caf\xe9 one\n")
    with pytest.raises(ToolError, match=r"f\.txt is not UTF-8 text \(byte 3\)"):
        await call(
            builtin_tools(tmp_path, exec_enabled=False),
            "edit",
            context_in(tmp_path),
            path="f.txt",
            oldText="one",
            newText="two",
        )
    assert (tmp_path / "f.txt").read_bytes() == b"caf\xe9 one\n"


async def test_edits_at_the_same_time_lose_nothing(tmp_path):
    import asyncio

    (tmp_path / "f.txt").write_text("".join(f"<{n}>\n" for n in range(20)))
    tools = builtin_tools(tmp_path, exec_enabled=False)
    await asyncio.gather(
        *(call(tools, "edit", context_in(tmp_path), path="f.txt", oldText=f"<{n}>", newText=f"{n}!") for n in range(20))
    )
    assert (tmp_path / "f.txt").read_text() == "".join(f"{n}!\n" for n in range(20))


# --- differences -------------------------------------------------------------------------------------


def test_patch_is_a_unified_diff():
    assert diff_texts("a\nb\n", "a\nc\nb\n", "f.txt").patch == ("--- f.txt\n+++ f.txt\n@@ -1,2 +1,3 @@\n a\n+c\n b\n")
    assert "@@ -0,0 +1,1 @@" in diff_texts("", "a\n", "f").patch
    assert "@@ -1,1 +0,0 @@" in diff_texts("a\n", "", "f").patch


def test_equal_texts_have_no_difference():
    diff = diff_texts("a\n", "a", "f")
    assert (diff.numbered, diff.patch, diff.first_changed_line) == ("", "", None)


@given(st.lists(st.sampled_from("abc"), max_size=25), st.lists(st.sampled_from("abc"), max_size=25))
def test_a_patch_turns_the_old_text_into_the_new(old, new):
    patch = diff_texts("".join(f"{x}\n" for x in old), "".join(f"{x}\n" for x in new), "f").patch
    assert _applied(old, patch) == new


def _applied(old, patch):
    out, at = [], 0
    for line in patch.split("\n")[2:-1]:
        if line.startswith("@@"):
            position, count = line.split()[1][1:].split(",")
            start = int(position) - (count != "0")
            out += old[at:start]
            at = start
        elif line[0] == "-":
            assert old[at] == line[1:]
            at += 1
        elif line[0] == "+":
            out.append(line[1:])
        else:
            assert old[at] == line[1:]
            out.append(old[at])
            at += 1
    return out + old[at:]
