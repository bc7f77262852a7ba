"""The mark of a shortened `read` names the lines that are missing: reading them gives the missing part."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from agents import open_agent, scripted
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pruning import results
from tool_calls import call as run
from tool_calls import context_in, shown

from lamella.text.shorten import shorten
from lamella.tools.builtin import builtin_tools
from lamella.types.messages import ToolCall, text_of
from lamella_context_pruning import ContextPruning
from lamella_context_pruning.reread import calls_of, tell_how

TELLS = re.compile(
    r"\n\n\[\.\.\. (\d+) of \d+ characters left out: lines (\d+)-(\d+);"
    r" read with offset=(\d+) and limit=(\d+) shows them \.\.\.\](?:\n\n|\Z)"
)


async def read(folder: Path, **arguments: int) -> str:
    tools = builtin_tools(folder, exec_enabled=False, memory_writer=None)
    return shown(await run(tools, "read", context_in(folder), path="file.txt", **arguments))


def numbers(mark: re.Match[str]) -> tuple[int, int]:
    missing, first, last, offset, limit = map(int, mark.groups())
    assert missing > 0
    assert (offset, limit) == (first, last - first + 1)
    return offset, limit


LINES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=40), min_size=3, max_size=60
)


@settings(max_examples=100, deadline=None)
@given(
    LINES, st.booleans(), st.integers(1, 5), st.integers(1, 60), st.floats(0.2, 0.9), st.sampled_from(["", "failed"])
)
async def test_reading_the_named_lines_gives_the_missing_part(
    lines: list[str], line_end: bool, offset: int, limit: int, share: float, last: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = "\n".join([*lines, last]) + ("\n" if line_end else "")
        (folder / "file.txt").write_text(text, encoding="utf-8", newline="")
        start = min(offset, len(lines))
        result = await read(folder, offset=start, limit=limit)
        tell = tell_how(ToolCall("c", "read", {"path": "file.txt", "offset": start}))
        kept = int(len(result) * share)
        short = shorten(result, 0, tell, min_keep=kept // 3)
        mark = TELLS.search(short)
        assume(mark is not None)  # what is missing may be a part of the note behind the lines
        assert mark
        await check(folder, result, short, mark)
        again = shorten(short, 0, tell, min_keep=kept // 6)
        mark = TELLS.search(again)
        assert mark
        await check(folder, result, again, mark)


async def check(folder: Path, whole: str, short: str, mark: re.Match[str]) -> None:
    head, tail = short[: mark.start()], short[mark.end() :]
    assert whole.startswith(head)
    assert whole.endswith(tail)
    missing = whole[len(head) : len(whole) - len(tail)]
    assert len(missing) == int(mark[1])
    offset, limit = numbers(mark)
    content = re.sub(r"\n\n\[[^\n]*\Z", "", missing).strip("\n")
    assert content in await read(folder, offset=offset, limit=limit)


async def test_a_tail_that_is_kept_bounds_the_lines(tmp_path: Path) -> None:
    lines = [f"line {i} " + "x" * 40 for i in range(1, 601)]
    (tmp_path / "file.txt").write_text("\n".join(lines) + "\nexit code 2\n")
    result = await read(tmp_path)
    short = shorten(result, 9000, tell_how(ToolCall("c", "read", {"path": "file.txt"})))
    mark = TELLS.search(short)
    assert mark
    offset, limit = numbers(mark)
    assert short.endswith("exit code 2\n")
    again = await read(tmp_path, offset=offset, limit=limit)
    shown_lines = short[: mark.start()].split("\n") + short[mark.end() :].rstrip("\n").split("\n")[:-1]
    assert [line for line in lines if line not in shown_lines] == re.sub(r"\n\n\[.*\Z", "", again).split("\n")
    assert len(short) <= 9000


async def test_a_stored_read_can_be_read_on(tmp_path: Path) -> None:
    lines = [f"line {i} " + "x" * 40 for i in range(1, 601)]
    call_ = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "file.txt", "offset": 101}}
    model = scripted([{"content": [call_]}, {"text": "done"}], context_window=8000)
    agent = open_agent(tmp_path, model, plugins=[ContextPruning()], settings={"tools.deny": []})
    (tmp_path / "ws" / "file.txt").write_text("\n".join(lines) + "\n")
    async with agent.session() as session:
        await session.prompt("read it")
        (stored,) = results(session.agent.file.context().messages)
    text = text_of(stored.content)
    mark = TELLS.search(text)
    assert mark
    assert len(text) <= 9600
    offset, limit = numbers(mark)
    assert offset > 101
    missing = await read(tmp_path / "ws", offset=offset, limit=limit)
    shown_lines = text[: mark.start()].split("\n")
    assert [*shown_lines, *missing.rstrip("\n").split("\n")] == lines[100:]


@pytest.mark.parametrize("call", [None, ToolCall("c", "exec", {"offset": 3})], ids=["unknown", "exec"])
def test_other_tools_are_told_how_much_is_missing(call: ToolCall | None) -> None:
    short = shorten("a" * 9000, 3000, tell_how(call))
    assert re.search(r"\[\.\.\. \d+ of 9000 characters left out \.\.\.\]\Z", short)


@pytest.mark.parametrize("offset", ["7", 0, -2, None, True])
def test_an_offset_that_is_none_counts_as_the_first_line(offset: object) -> None:
    short = shorten("a\n" * 5000, 3000, tell_how(ToolCall("c", "read", {"offset": offset})))
    mark = TELLS.search(short)
    assert mark
    assert numbers(mark)[0] == short[: mark.start()].count("\n") + 2


def test_calls_are_found_by_the_nearest_earlier_id() -> None:
    from builders import assistant, call, result

    first, second = call("c", "read", path="one"), call("c", "read", path="two")
    messages = [assistant("", first), result("c"), assistant("", second), result("c"), result("gone")]
    assert calls_of(messages) == {1: first, 3: second}
