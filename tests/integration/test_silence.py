"""Nothing of a flush, and no letter of the silent token, reaches the user: through the library, `chat` and `ask`.

Case K70 and I9. The library is given every way of cutting a stream (hypothesis); the commands talk to a
server on the loopback that streams single letters.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Recorder, open_agent
from cli import Ran
from hypothesis import given, settings
from hypothesis import strategies as st
from inside import lamella
from provider_server import Call, ProviderServer, Reply, Tokens
from streams import InPieces, cut

from lamella.agent.turn import TurnResult
from lamella.text.silent import SILENT, spoken
from lamella.types import events as e
from lamella.types.message_json import dump_message
from lamella.types.messages import AssistantMessage, text_of

REPLIES = [
    SILENT,
    f" {SILENT}\n",
    f"Done. {SILENT}",
    f"好的。\n\n{SILENT}",
    "no_reply",
    f"**{SILENT}**",
    f"{SILENT}\nAnd so on.",
]


def told(events: Recorder) -> str:
    """All that a listener could print of replies: streamed pieces, and every message that it was handed."""
    updates = events.of(e.MessageUpdate)
    handed = [m for ev in events.events for m in (getattr(ev, "message", None), *getattr(ev, "messages", ()))]
    replies = [m for m in handed if isinstance(m, AssistantMessage)]
    return "\n".join([u.delta.delta for u in updates] + [text_of(r.content) for r in replies])


async def run(home: Path, pieces: list[str]) -> tuple[TurnResult, Recorder, str]:
    events = Recorder()
    async with open_agent(home, InPieces([pieces])) as runtime:
        runtime.listeners.append(events)
        result = await runtime.ask("?")
        (stored,) = runtime.store.folder.glob("*.jsonl")
        return result, events, stored.read_text(encoding="utf-8")


def streamed(events: Recorder) -> str:
    return "".join(u.delta.delta for u in events.of(e.MessageUpdate) if u.delta.type == "text_delta")


@settings(max_examples=60, deadline=None)
@given(text=st.sampled_from(REPLIES), places=st.one_of(st.just(list(range(40))), st.lists(st.integers(1, 20))))
def test_k70_the_library_says_no_letter_of_the_token(text: str, places: list[int]) -> None:
    with tempfile.TemporaryDirectory() as home:
        result, events, stored = asyncio.run(run(Path(home), cut(text, places)))
    assert streamed(events) == spoken(text)
    assert result.text == spoken(text).strip()
    assert result.silent is (not result.text)
    shown = told(events) + json.dumps([dump_message(m) for m in result.messages]) + str(result.reply)
    assert "no_" not in shown.casefold()
    assert json.loads(stored.splitlines()[-1])["message"]["content"][0]["text"] == text  # as it was written


async def test_talk_about_the_token_comes_through_unchanged(tmp_path: Path) -> None:
    text = f"The token {SILENT} means silence; in code: `{SILENT}`."
    result, events, _ = await run(tmp_path, list(text))
    assert result.text == text == streamed(events)
    assert not result.silent


# --- the commands ------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


def configured(home: Path, server: ProviderServer, window: int = 50_000) -> Path:
    (home / "ws" / "memory").mkdir(parents=True, exist_ok=True)
    config = home / "config.toml"
    config.write_text(
        f"""
[models.providers.house]
api = "openai-chat"
base_url = "{server.url}/v1"
api_key = "k"
[models.providers.house.models.m]
context_window = {window}
[plugins.config.memory-core]
embedder = "none"
"""
    )
    return config


def command(home: Path, server: ProviderServer, *arguments: str, stdin: str = "", window: int = 50_000) -> Ran:
    config = configured(home, server, window)
    at = ("--config", config, "--workspace", home / "ws", "--model", "house/m")
    return lamella(arguments[0], *at, *arguments[1:], home=home / "state", stdin=stdin, check=True)


@pytest.mark.parametrize("text", [SILENT, f"好的。\n\n{SILENT}"], ids=["silence", "a reply before it"])
def test_k70_ask_and_chat_print_no_letter_of_the_token(text: str, server: ProviderServer, tmp_path: Path) -> None:
    server.script([Reply(text, piece=1)] * 3)
    for ran in (
        command(tmp_path, server, "ask", "?"),
        command(tmp_path, server, "chat", stdin="?\n"),
        command(tmp_path, server, "ask", "?", "--json"),
    ):
        assert "no_" not in ran.out.casefold() + ran.err.casefold()
        assert "gave no answer" not in ran.err
        wanted = spoken(text).strip()
        assert wanted in ran.out
        assert wanted or ran.out == "" or ran.json["silent"]


def test_k70_an_empty_reply_is_told(server: ProviderServer, tmp_path: Path) -> None:
    server.script([Reply("")])
    assert "The model gave no answer." in command(tmp_path, server, "ask", "?").err


@pytest.mark.parametrize("name", ["ask", "chat"])
def test_k70_nothing_of_a_flush_is_printed(name: str, server: ProviderServer, tmp_path: Path) -> None:
    """A flush that talks, writes, and ends with more talk before the user's turn."""
    nearly_full = Reply("Hm.", tokens=Tokens(input=15_000))
    save = Call("write", {"content": "- boiler: Anna, SECRET-17"})
    server.script([nearly_full, Reply("I stored your notes!", calls=(save,)), Reply("All SAVED now."), Reply("Hello.")])
    command(tmp_path, server, "ask", "first", window=24_000)
    arguments = ("ask", "second") if name == "ask" else ("chat",)
    ran = command(tmp_path, server, *arguments, stdin="second\n" if name == "chat" else "", window=24_000)
    flush, _, talk = (str(r.body) for r in server.requests[1:])
    assert "Save now" in flush
    assert "Save now" not in talk
    (note,) = (tmp_path / "ws" / "memory").glob("*.md")
    assert "SECRET-17" in note.read_text()
    assert "Hello." in ran.out
    assert not {w for w in ("SECRET", "SAVED", "stored", "write", "Save now") if w in ran.out + ran.err}
    stored = next((tmp_path / "state").rglob("sessions/*.jsonl")).read_text()
    assert "SECRET" not in stored
    assert "Save now" not in stored


def test_json_tells_silence_from_an_answer(server: ProviderServer, tmp_path: Path) -> None:
    server.script([Reply("Hello."), Reply(SILENT)])
    shown: list[Any] = [command(tmp_path, server, "ask", "?", "--json").json for _ in range(2)]
    assert [(s["text"], s["silent"]) for s in shown] == [("Hello.", False), ("", True)]
