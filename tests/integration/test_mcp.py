"""`lamella mcp` as programs use it: the real command, and the SDK's own client on the other side."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cli import EXAMPLE, lamella
from inside import lamella as lamella_inside
from mcp import ClientSession, MCPError
from mcp.types import PaginatedRequestParams
from mcp_servers import (
    COMMAND,
    INITIALIZE,
    HttpServer,
    answer,
    call,
    environment,
    lines,
    over_http,
    over_stdio,
    serving,
    text_of,
)

SNAPSHOT = Path(__file__).parents[1] / "data" / "mcp" / "tools.json"
TOKEN = "correct-horse-battery-staple"
POSIX = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
PRIVATE_NOTE = """# Session 2026-11-30 18:00

- Session key: `agent:main:main`

The surprise party for Ella is on Friday.
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace `ws`, the state of an agent, and a session in which something was said."""
    folder = tmp_path_factory.mktemp("mcp")
    workspace = Path(shutil.copytree(EXAMPLE, folder / "ws"))
    (workspace / "memory" / "2026-11-30-party.md").write_text(PRIVATE_NOTE, encoding="utf-8")
    (workspace / "memory" / "会议记录.md").write_text("# 会议\n\n服务器迁移定在十二月九日。\n", encoding="utf-8")
    (folder / "token").write_text(TOKEN + "\n")
    (folder / "token").chmod(0o600)
    said = "Remember that the locker code is 4417 and the key is sk-proj-abcdefghij0123456789abcd."
    lamella("ask", said, "--workspace", workspace, "--model", "offline", home=folder / "state", check=True)
    return folder


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[HttpServer]:
    with serving("--workspace", place / "ws", home=place / "state") as running:
        yield running


@pytest.fixture(scope="module")
def guarded(place: Path) -> Iterator[HttpServer]:
    """A server with a token that shows nothing private and writes nothing."""
    options = ("--read-only", "--shared", "--token-file", place / "token")
    with serving("--workspace", place / "ws", *options, home=place / "state") as running:
        yield running


Client = Callable[[], contextlib.AbstractAsyncContextManager[tuple[ClientSession, Any]]]


# Each client over stdio starts a server of its own.
OVER_STDIO = pytest.param("stdio", marks=pytest.mark.slow)


@pytest.fixture(params=[OVER_STDIO, "http"])
def client(request: pytest.FixtureRequest, place: Path) -> Client:
    """Connects a client over either transport."""
    if request.param == "stdio":
        return lambda: over_stdio("--workspace", place / "ws", home=place / "state")
    url = request.getfixturevalue("server").url
    return lambda: over_http(url)


# --- what is on offer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["stdio", "http"], indirect=True)
async def test_tools_and_their_schemas(client: Client) -> None:
    async with client() as (session, hello):
        listed = await session.list_tools()
    assert hello.server_info.name == "lamella"
    assert "memory_append" in hello.instructions
    found = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
    assert found == json.loads(SNAPSHOT.read_text(encoding="utf-8"))


async def test_search_and_get(client: Client) -> None:
    async with client() as (session, _):
        found = answer(await session.call_tool("memory_search", {"query": "which boiler do we have", "maxResults": 2}))
        best = found["results"][0]
        text = answer(await session.call_tool("memory_get", {"path": best["path"], "from": 5, "lines": 1}))
        missing = answer(await session.call_tool("memory_get", {"path": "memory/1999-01-01.md"}))
    assert best["path"] == "MEMORY.md"
    assert best["citation"].startswith("MEMORY.md#L")
    assert "Viessmann" in best["snippet"]
    assert len(found["results"]) <= 2
    assert found["warning"] == ""
    assert "Vitodens" in text["text"]
    assert (text["startLine"], text["endLine"], text["truncated"], text["nextFrom"]) == (5, 5, True, 6)
    assert (missing["status"], missing["text"], missing["nextFrom"]) == ("missing", "", None)


@pytest.mark.parametrize("client", ["stdio", "http"], indirect=True)
async def test_chinese_is_appended_found_and_read(client: Client, place: Path) -> None:
    async with client() as (session, _):
        written = answer(await session.call_tool("memory_append", {"text": "路由器放在走廊的柜子里。"}))
        found = answer(await session.call_tool("memory_search", {"query": "路由器在哪里"}))
        address = f"lamella://notes/{written['path']}"
        (note,) = (await session.read_resource(address)).contents
    assert found["results"][0]["path"] == written["path"]
    assert "走廊的柜子" in note.text
    assert note.mime_type == "text/markdown"
    last = json.loads((place / "state/agents/main/memory-journal.jsonl").read_text("utf-8").splitlines()[-1])
    assert last["path"] == written["path"]
    assert last["actor"] == "mcp"


async def test_a_megabyte_as_a_question(client: Client) -> None:
    async with client() as (session, _):
        found = answer(await session.call_tool("memory_search", {"query": "boiler 锅炉 " + "x " * 500_000}))
    assert found["results"][0]["path"] == "MEMORY.md"


async def test_mistakes_come_back_as_errors_of_tools(client: Client) -> None:
    wrong = [
        ("memory_search", {"query": " "}, "query is empty"),
        ("memory_search", {"query": "x", "max_results": 3}, "max_results: unknown field"),
        ("memory_search", {"query": "x", "maxResults": 51}, "maxResults: expected at most 50"),
        ("memory_search", {}, "query: missing"),
        ("memory_get", {"path": "../secret.md"}, "is not a memory file. Memory files are"),
        ("memory_get", {"path": "/etc/passwd"}, "is not a memory file"),
        ("memory_append", {"text": "x", "path": "AGENTS.md"}, "is not a memory file"),
        ("memory_append", {"text": "\n \n"}, "nothing to remember"),
        ("session_recall", {}, "needs query"),
        ("session_recall", {"query": "x", "session": "agent:main:nobody"}, "no session with key"),
        ("session_recall", {"query": "x", "session": "bare"}, "expected agent:<agentId>:<name>"),
        ("session_recall", {"entry": "ffffffff"}, "not found"),
    ]
    async with client() as (session, _):
        for name, arguments, expected in wrong:
            result = await session.call_tool(name, arguments)
            assert result.is_error, name
            assert expected in text_of(result)
            assert "Traceback" not in text_of(result)


async def test_sessions_are_quoted_without_their_secrets(client: Client) -> None:
    async with client() as (session, _):
        found = answer(await session.call_tool("session_recall", {"query": "locker code"}))
        first = found["quotes"][0]
        arguments = {"entry": first["entryId"], "session": "agent:main:main"}
        whole = answer(await session.call_tool("session_recall", arguments))
    assert (found["searched"], found["sessions"], found["warning"]) == (1, 1, "")
    assert "4417" in first["text"]
    assert first["session"] == "agent:main:main"
    assert "abcdefghij0123456789" not in json.dumps([found, whole])
    assert "***" in whole["quotes"][0]["text"]


async def test_notes_are_resources(client: Client, place: Path) -> None:
    async with client() as (session, _):
        (template,) = (await session.list_resource_templates()).resource_templates
        notes = {r.name: r for r in (await session.list_resources()).resources}
        (meeting,) = (await session.read_resource(notes["memory/会议记录.md"].uri)).contents
        for address in (
            "lamella://notes/../AGENTS.md",
            "lamella://notes/memory/%2e%2e/%2e%2e/etc/passwd",
            "lamella://notes//etc/passwd",
            "lamella://notes/AGENTS.md",
            "lamella://notes/memory/none.md",
            "file:///etc/passwd",
        ):
            with pytest.raises(MCPError) as refused:
                await session.read_resource(address)
            assert refused.value.code == -32602
        with pytest.raises(MCPError, match="expected one that a list gave"):
            await session.list_resources(params=PaginatedRequestParams(cursor="???"))
    assert template.uri_template == "lamella://notes/{+path}"
    assert {"MEMORY.md", "memory/会议记录.md"} <= notes.keys()
    assert "十二月九日" in meeting.text
    file = place / "ws" / "MEMORY.md"
    assert notes["MEMORY.md"].size == file.stat().st_size
    assert all(r.mime_type == "text/markdown" for r in notes.values())


@pytest.mark.slow
async def test_a_long_list_comes_in_pages(tmp_path: Path) -> None:
    folder = tmp_path / "ws" / "memory"
    folder.mkdir(parents=True)
    for i in range(230):
        (folder / f"note-{i:03}.md").write_text(f"note {i}\n")
    (folder / "large.md").write_text("x" * 1_000_001)
    seen: list[str] = []
    async with over_stdio("--workspace", tmp_path / "ws", home=tmp_path / "state") as (session, _):
        cursor: str | None = None
        sizes = []
        while True:
            page = await session.list_resources(params=PaginatedRequestParams(cursor=cursor))
            sizes.append(len(page.resources))
            seen += [r.name for r in page.resources]
            (folder / "note-0000.md").write_text("comes between two pages\n")
            cursor = page.next_cursor
            if cursor is None:
                break
        with pytest.raises(MCPError, match="memory_get reads parts of it"):
            await session.read_resource("lamella://notes/memory/large.md")
        part = answer(await session.call_tool("memory_get", {"path": "memory/large.md"}))
    assert sizes == [100, 100, 31]
    assert seen == sorted(seen)
    assert len(set(seen)) == 231
    assert len(part["text"]) == 20_000


# --- privacy and tokens --------------------------------------------------------------------------------------


async def test_shared_and_read_only(guarded: HttpServer, server: HttpServer) -> None:
    asked = {"query": "boiler Viessmann or surprise party for Ella", "maxResults": 20, "minScore": 0.0}
    async with over_http(server.url) as (session, _):
        everything = {hit["path"] for hit in answer(await session.call_tool("memory_search", asked))["results"]}
    async with over_http(guarded.url, TOKEN) as (session, hello):
        names = [tool.name for tool in (await session.list_tools()).tools]
        found = {hit["path"] for hit in answer(await session.call_tool("memory_search", asked))["results"]}
        notes = {r.name for r in (await session.list_resources()).resources}
        for hidden in ("MEMORY.md", "memory/2026-11-30-party.md"):
            refused = await session.call_tool("memory_get", {"path": hidden})
            assert refused.is_error
            assert "not shown where others read along" in text_of(refused)
            with pytest.raises(MCPError, match="not shown"):
                await session.read_resource(f"lamella://notes/{hidden}")
        unknown = await session.call_tool("memory_append", {"text": "x"})
    private = {"MEMORY.md", "memory/2026-11-30-party.md"}
    assert private <= everything
    assert found
    assert not private & (found | notes)
    assert names == ["memory_search", "memory_get"]
    assert "memory_append" not in hello.instructions
    assert unknown.is_error


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer 密码"],
)
def test_without_the_token_nothing_is_answered(guarded: HttpServer, header: str) -> None:
    headers = {"Authorization": header.encode(), "Accept": "application/json, text/event-stream"} if header else {}
    for method in ("GET", "POST", "DELETE"):
        refused = httpx2.request(method, guarded.url, headers=headers)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:{port}", "Origin": "http://localhost:{port}"}, 200),
        ({"Host": "evil.example:{port}"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_other_names_of_the_server_are_refused(server: HttpServer, headers: dict[str, str], status: int) -> None:
    sent = {name: value.format(port=server.port) for name, value in headers.items()}
    accept = {"Accept": "application/json, text/event-stream"}
    assert httpx2.post(server.url, json=INITIALIZE, headers={**accept, **sent}).status_code == status


def test_a_request_that_is_too_large_is_refused(server: HttpServer) -> None:
    body = b'{"x": "' + b"y" * (4 * 1024 * 1024) + b'"}'
    refused = httpx2.post(server.url, content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == 413


# --- several at once -------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_two_programs_append_at_once(place: Path, server: HttpServer) -> None:
    async def append(session: ClientSession, who: str) -> list[Any]:
        texts = (f"{who} 第 {i} 条" for i in range(8))
        calls = (session.call_tool("memory_append", {"text": t, "path": "memory/both.md"}) for t in texts)
        return [answer(result) for result in await asyncio.gather(*calls)]

    async with (
        over_stdio("--workspace", place / "ws", home=place / "state") as (first, _),
        over_http(server.url) as (second, _),
    ):
        written = await asyncio.gather(append(first, "甲"), append(second, "乙"))
    kept = (place / "ws/memory/both.md").read_text("utf-8").splitlines()
    assert sorted(kept) == sorted(f"{who} 第 {i} 条" for who in "甲乙" for i in range(8))
    journal = (place / "state/agents/main/memory-journal.jsonl").read_text("utf-8").splitlines()
    entries = [entry for line in journal if (entry := json.loads(line))["path"] == "memory/both.md"]
    assert len(entries) == 16
    assert {entry["actor"] for entry in entries} == {"mcp"}
    assert sorted(w["startLine"] for pair in written for w in pair) == list(range(1, 17))


# --- beginning and end -------------------------------------------------------------------------------------------


def test_requests_are_answered_before_the_input_ends_the_server(place: Path) -> None:
    """And nothing else is on stdout, whatever plugins print."""
    site = place / "site"
    (site / "loud-1.0.dist-info").mkdir(parents=True)
    (site / "loud-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
    (site / "loud-1.0.dist-info/entry_points.txt").write_text("[lamella.plugins]\nloud = loud:Loud\n")
    (site / "loud.py").write_text(
        "import os, subprocess, sys\nprint('print')\nos.write(1, b'write\\n')\n"
        "subprocess.run([sys.executable, '-c', 'print(\"child\", repr(input() if 0 else open(0).read()))'])\n"
        "class Loud:\n    name = 'loud'\n"
    )
    sent = lines(
        call(2, "memory_search", query="boiler"),
        call(3, "memory_append", text="最后一条", path="memory/last.md"),
        {"jsonrpc": "2.0", "id": 4, "method": "tools/list"},
    )
    command = [*COMMAND, "--workspace", str(place / "ws")]
    env = environment(place / "state", PYTHONPATH=str(site))
    done = subprocess.run(command, input=sent, capture_output=True, env=env, timeout=60)
    assert done.returncode == 0, done.stderr
    replies = {reply["id"]: reply for reply in map(json.loads, done.stdout.splitlines())}
    assert replies.keys() == {1, 2, 3, 4}
    assert all("result" in reply for reply in replies.values())
    assert (place / "ws/memory/last.md").read_text("utf-8").endswith("最后一条\n")
    said = done.stderr.decode().split()
    assert {"print", "write", "child"} <= set(said)


@contextlib.contextmanager
def started(place: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server over stdio that has answered the handshake."""
    command = [*COMMAND, "--workspace", str(place / "ws"), *options]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(place / "state"))
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines())
        process.stdin.flush()
        assert b'"lamella"' in process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


@POSIX
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_ends_the_server(place: Path, number: int) -> None:
    with started(place) as process:
        process.send_signal(number)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@POSIX
@pytest.mark.slow
def test_a_signal_ends_the_server_also_when_nobody_reads_its_answers(place: Path) -> None:
    with started(place) as process:
        assert process.stdin is not None
        many = b"".join(
            json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/list"}).encode() + b"\n" for i in range(60)
        )
        process.stdin.write(many)  # their answers are more than a pipe holds
        process.stdin.flush()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@POSIX
@pytest.mark.slow
def test_a_signal_ends_a_server_over_http_at_once(place: Path) -> None:
    with serving("--workspace", place / "ws", home=place / "state") as running:
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(20) == 0


@POSIX
@pytest.mark.slow
async def test_a_signal_ends_a_server_over_http_while_a_client_is_connected(place: Path) -> None:
    with serving("--workspace", place / "ws", home=place / "state") as running:
        async with over_http(running.url) as (session, _):
            await session.list_tools()
            running.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(running.process.wait, 20) == 0


async def test_a_cancelled_request_stops_nobody(server: HttpServer) -> None:
    async with over_http(server.url) as (session, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await session.call_tool("memory_search", {"query": "boiler"})
        assert answer(await session.call_tool("memory_search", {"query": "boiler"}))["results"]


@pytest.mark.slow
async def test_any_plugin_in_the_slot_is_served(place: Path) -> None:
    """Also one that keeps no files."""
    pytest.importorskip("lamella_memory_lancedb")
    config = place / "lancedb.toml"
    config.write_text('plugins.slots.memory = "memory-lancedb"\n')
    async with over_stdio("--workspace", place / "ws", "--config", config, home=place / "vectors") as (session, _):
        written = answer(await session.call_tool("memory_append", {"text": "备用钥匙在车库里。"}))
        found = answer(await session.call_tool("memory_search", {"query": "钥匙在哪里"}))
        text = answer(await session.call_tool("memory_get", {"path": written["path"]}))
        refused = await session.call_tool("memory_get", {"path": "../secret.md"})
    assert found["results"][0]["path"] == written["path"]
    assert "车库" in text["text"]
    assert refused.is_error


@POSIX
def test_a_killed_client_leaves_no_server_behind(place: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(p.pid, flush=True)\n"
        f"p.stdin.write({lines()!r}); p.stdin.flush(); p.stdout.readline(); print('up', flush=True); time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script, *COMMAND, "--workspace", str(place / "ws")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(place / "state")) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert owner.stdout.readline() == b"up\n"
        owner.kill()
    assert gone(pid)


def gone(pid: int) -> bool:
    """Whether a process ends, or has ended and only waits for a parent to notice."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
async def test_without_memory_the_tools_say_what_to_install(place: Path) -> None:
    config = place / "without.toml"
    config.write_text('plugins.slots.memory = "acme-memory"\n')
    options = ("--workspace", place / "ws", "--config", config)
    async with over_stdio(*options, home=place / "state") as (session, _):
        refused = await session.call_tool("memory_search", {"query": "boiler"})
        notes = await session.list_resources()
        quotes = answer(await session.call_tool("session_recall", {"query": "locker"}))
    assert refused.is_error
    assert "no memory is installed" in text_of(refused)
    assert "pip install lamella-acme-memory" in text_of(refused)
    assert notes.resources
    assert quotes["quotes"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--port", "9"), "--port goes with --http"),
        (("--http", "--host", "0.0.0.0"), "a token is needed"),
        (("--http", "--host", "0.0.0.0", "--token-file", "token"), "--allow-host"),
        (("--http", "--token-file", "none"), "--token-file none: No such file"),
        (("--http", "--token-file", "short"), "at least 16"),
        (("--http", "--host", "no.such.host.invalid", "--token-file", "token"), "--host no.such.host.invalid"),
        (("--workspace", "nowhere"), "nowhere does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_options_are_told_before_anything_runs(
    options: tuple[str, ...], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "short").write_text("short")
    monkeypatch.chdir(tmp_path)
    done = lamella_inside("mcp", *options, home=tmp_path / "state")
    assert done.code == 2
    assert expected in done.err
    assert done.out == ""


@pytest.mark.slow
def test_a_port_that_is_taken(server: HttpServer, place: Path) -> None:
    done = lamella("mcp", "--http", "--port", str(server.port), "--workspace", place / "ws", home=place / "state")
    assert done.code == 1
    assert f"--port {server.port}: Address already in use" in done.err


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, "lamella mcp needs an optional package"),
        ("1.27.2", "mcp 1.27.2 is installed, expected 2.3 or newer"),
        ("2.2.9rc1", "mcp 2.2.9rc1 is installed, expected 2.3 or newer"),
    ],
)
def test_without_the_sdk_it_says_what_to_install(
    found: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if found is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(importlib.metadata, "version", version)
    done = lamella_inside("mcp", home=tmp_path / "state")
    assert done.code == 3
    assert expected in done.err
    assert "pip install 'lamella[mcp]'" in done.err
