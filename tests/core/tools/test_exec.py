from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tool_calls import call, context_in, shown

from lamella.tools.builtin import builtin_tools


async def run(root, command, context=None, **arguments):
    tools = builtin_tools(root, exec_enabled=True)
    return await call(tools, "exec", context or context_in(root), command=command, **arguments)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)


async def test_commands_run_in_the_workspace_without_input(tmp_path):
    result = await run(tmp_path, "pwd; cat; echo done")
    assert shown(result) == f"{os.path.realpath(tmp_path)}\ndone\n"
    assert result.details == {"exitCode": 0}
    assert not result.is_error


async def test_a_failure_is_an_error_result_with_its_output(tmp_path):
    result = await run(tmp_path, "echo out; echo err >&2; exit 3")
    assert shown(result) == "out\nerr\n\nCommand exited with code 3"
    assert result.is_error
    assert result.details["exitCode"] == 3
    assert shown(await run(tmp_path, "exit 1")) == "Command exited with code 1"
    assert shown(await run(tmp_path, "kill -9 $$")) == "Command was killed by signal 9"


async def test_a_time_limit_kills_everything_the_command_started(tmp_path):
    result = await run(tmp_path, "sleep 300 & echo $! > child; echo begun; wait", timeout=0.3)
    assert shown(result) == "begun\n\nCommand timed out after 0.3 seconds"
    assert result.is_error
    await until(lambda: not alive(int((tmp_path / "child").read_text())))


async def test_an_abort_kills_everything_the_command_started(tmp_path):
    context = context_in(tmp_path)
    task = asyncio.create_task(run(tmp_path, "sleep 300 & echo $! > child; wait", context))
    await until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().strip())
    context.cancelled.set()
    result = await task
    assert shown(result) == "Command aborted"
    assert result.is_error
    await until(lambda: not alive(int((tmp_path / "child").read_text())))


async def test_a_cancelled_task_kills_the_command(tmp_path):
    task = asyncio.create_task(run(tmp_path, "echo $$ > pid; sleep 300"))
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(int((tmp_path / "pid").read_text()))


async def test_a_process_left_behind_does_not_keep_the_call_waiting(tmp_path):
    result = await run(tmp_path, "sleep 300 & echo $!")
    pid = int(shown(result))
    assert alive(pid)
    os.kill(pid, 9)


async def test_long_output_keeps_its_end_and_the_whole_in_a_file(tmp_path):
    result = await run(tmp_path, "seq 1 30000")
    full = Path(result.details["fullOutputPath"])
    try:
        body, _, note = shown(result).partition("\n\n[")
        assert body.split("\n") == [str(n) for n in range(28001, 30001)]
        assert note == f"Showing lines 28001-30000 of 30000. Full output: {full}]"
        assert full.read_text() == "".join(f"{n}\n" for n in range(1, 30001))
        assert not full.is_relative_to(tmp_path / "workspace")
    finally:
        full.unlink()


async def test_output_beyond_what_is_read_back_is_still_counted(tmp_path):
    result = await run(tmp_path, "yes 0123456789 | head -n 600000")
    try:
        assert "Showing lines 598001-600000 of 600000" in shown(result)
        assert result.details["truncation"]["totalBytes"] == 6_600_000
    finally:
        Path(result.details["fullOutputPath"]).unlink()


async def test_one_endless_line_keeps_its_end(tmp_path):
    result = await run(tmp_path, "head -c 60000 /dev/zero | tr '\\0' q; printf END")
    try:
        assert "qEND\n\n[Showing the last 50.0KB of line 1. Full output: " in shown(result)
    finally:
        Path(result.details["fullOutputPath"]).unlink()


async def test_terminal_codes_and_bad_bytes_do_not_reach_the_model(tmp_path):
    result = await run(tmp_path, r"printf '\033[1;31mred\033[0m\t\001\377ok\n'")
    assert shown(result) == "red\t\ufffdok\n"


async def test_short_output_leaves_no_file(tmp_path, monkeypatch):
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spool))
    await run(tmp_path, "echo short")
    await run(tmp_path, "exit 2")
    assert list(spool.iterdir()) == []


async def test_running_commands_report_their_output(tmp_path, monkeypatch):
    monkeypatch.setattr("lamella.tools.shell._UPDATE_SECONDS", 0.05)
    updates = []
    context = context_in(tmp_path, update=updates.append)
    task = asyncio.create_task(run(tmp_path, "echo first; until [ -e go ]; do sleep 0.02; done", context))
    await until(lambda: any("first" in shown(update) for update in updates))
    (tmp_path / "go").touch()
    assert shown(await task) == "first\n"


async def test_impossible_commands_are_explained(tmp_path):
    from lamella.errors import ToolError

    with pytest.raises(ToolError, match="could not be started"):
        await run(tmp_path, "echo a\0b")
