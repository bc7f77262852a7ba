"""The token that clients over HTTP show."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest

from lamella.errors import UsageError
from lamella.mcp.http import Place, check_place, is_loopback, security_of
from lamella.mcp.token import TokenGuard, check_token, read_token, readable_by_others

TOKEN = "correct-horse-battery"


async def status_of(*headers: tuple[bytes, bytes]) -> int:
    """What a guarded application answers to a request with these headers."""
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    await TokenGuard(app, TOKEN)({"type": "http", "headers": list(headers)}, receive, send)
    return int(sent[0]["status"])


@pytest.mark.parametrize("value", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER  {TOKEN} "])
async def test_the_token_lets_through(value: str) -> None:
    assert await status_of((b"Authorization", value.encode())) == 200


@pytest.mark.parametrize(
    "values", [(), ("",), ("Bearer ",), (f"Bearer {TOKEN}", f"Bearer {TOKEN}"), (f"Bearer {TOKEN.upper()}",)]
)
async def test_anything_else_does_not(values: tuple[str, ...]) -> None:
    assert await status_of(*((b"authorization", v.encode()) for v in values)) == 401


@pytest.mark.parametrize("text", ["", "short", "with blanks in the middle", "密码密码密码密码密码密码密码密码密码"])
def test_a_poor_token_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="LAMELLA_MCP_TOKEN: expected a token of at least 16 ASCII"):
        check_token(text, "LAMELLA_MCP_TOKEN")


def test_a_token_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"  {TOKEN}\n")
    file.chmod(0o644)
    assert read_token(file) == TOKEN
    assert readable_by_others(file)
    file.chmod(0o600)
    assert not readable_by_others(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="expected a text file"):
        read_token(file)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("localhost.example.org", False),
    ],
)
def test_which_hosts_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_place_that_others_reach_needs_a_token_and_a_name() -> None:
    check_place(Place("127.0.0.1"))
    check_place(Place("192.168.1.5", token=TOKEN))
    check_place(Place("0.0.0.0", token=TOKEN, names=("notes.example.org",)))
    with pytest.raises(UsageError, match="a token is needed"):
        check_place(Place("192.168.1.5", names=("notes.example.org",)))
    with pytest.raises(UsageError, match="name the one that clients use"):
        check_place(Place("::", token=TOKEN))


@pytest.mark.parametrize(
    "name", ["", " ", "*", "http://x.org/", "x.org:80", "127.0.0.1:80", "../x", "a b", "x..org", "笔 记"]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"--host .*: expected a name or an address"):
        check_place(Place(name, token=TOKEN))
    with pytest.raises(UsageError, match=r"--allow-host .*: expected a name or an address"):
        check_place(Place("0.0.0.0", token=TOKEN, names=("notes.example.org", name)))


def test_names_are_known_as_clients_send_them() -> None:
    place = Place("0.0.0.0", token=TOKEN, names=("Notes.Example.org", "笔记.example", "2001:db8::7"))
    check_place(place)
    hosts = security_of(place).allowed_hosts
    assert {"Notes.Example.org", "notes.example.org:*", "xn--uvz335a.example", "[2001:db8::7]:*"} <= set(hosts)
    assert "0.0.0.0" not in hosts
