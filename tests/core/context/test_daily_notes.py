"""The notes of the last days at the beginning of a session: when they come, which, how much of them, and that
they are a message of the transcript."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from agents import scripted
from cli import lamella
from hypothesis import given
from hypothesis import strategies as st

from lamella.context.daily_notes import INTRODUCTION, keep_end, note_names, prelude
from lamella.runtime import Runtime
from lamella.text.days import human_day
from lamella.types.messages import text_of

ZONE = "Asia/Shanghai"
NOTES = "plugins.config.daily-notes"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "memory").mkdir(parents=True)
    today = date.fromisoformat(human_day(tz=ZONE))
    for back in range(4):
        (folder / "memory" / f"{today - timedelta(days=back)}.md").write_text(f"note of {back} days ago")
    return folder


def opened(workspace: Path, **settings: Any) -> Runtime:
    return Runtime.open(
        workspace=workspace,
        model=scripted(["ok"] * 9),
        settings={"agent.timezone": ZONE, **{f"{NOTES}.{k}": v for k, v in settings.items()}},
        environ={"LAMELLA_HOME": str(workspace.parent / "state"), "LAMELLA_PLUGINS": ""},
    )


async def first_messages(workspace: Path, key: str = "", *, bare: bool = True, **settings: Any) -> list[str]:
    """What the model sees in the second turn of a session that was reset."""
    async with opened(workspace, **settings) as runtime, runtime.session(key) as session:
        await session.prompt("before")
        session.reset(bare=bare)
        await session.prompt("first")
        await session.prompt("second")
        return [text_of(m.content) for m in runtime.model.requests[-1].messages]  # type: ignore[attr-defined]


async def test_a_bare_reset_begins_with_the_notes_of_two_days(workspace: Path) -> None:
    seen = " ".join(await first_messages(workspace))
    assert seen.count("note of 0 days ago") == 1
    assert seen.count("note of 1 days ago") == 1
    assert "note of 2 days ago" not in seen
    assert seen.index("note of 0") < seen.index("note of 1") < seen.index("first")


async def test_a_reset_with_something_to_say_does_not(workspace: Path) -> None:
    assert INTRODUCTION not in " ".join(await first_messages(workspace, bare=False))


@pytest.mark.parametrize("key", ["agent:main:x:group:1", "agent:main:x:channel:1", "agent:main:cron:job"])
async def test_others_do_not_see_them(workspace: Path, key: str) -> None:
    assert INTRODUCTION not in " ".join(await first_messages(workspace, key))


async def test_settings(workspace: Path) -> None:
    assert "note of 3 days ago" in " ".join(await first_messages(workspace, days=4))
    assert INTRODUCTION not in " ".join(await first_messages(workspace, "agent:main:b", apply_on=["new"]))


async def test_without_notes_there_is_no_message(workspace: Path) -> None:
    for note in (workspace / "memory").iterdir():
        note.unlink()
    assert INTRODUCTION not in " ".join(await first_messages(workspace))


async def test_links_out_are_not_followed(workspace: Path, tmp_path: Path) -> None:
    note = workspace / "memory" / f"{human_day(tz=ZONE)}.md"
    note.unlink()
    (tmp_path / "secret").write_text("secret words")
    note.symlink_to(tmp_path / "secret")
    seen = " ".join(await first_messages(workspace))
    assert "secret" not in seen
    assert "note of 1 days ago" in seen


# --- the text ----------------------------------------------------------------------------------------------


def test_names_over_the_end_of_a_year() -> None:
    assert note_names("2026-01-01", 2) == ("memory/2026-01-01.md", "memory/2025-12-31.md")


def test_a_long_note_keeps_its_end_from_a_line_on() -> None:
    text = "\n".join(f"line {n}" for n in range(100))
    kept = keep_end(text, 100)
    head, *lines = kept.split("\n")
    assert head.startswith("[...")
    assert lines[-1] == "line 99"
    assert all(line in text.split("\n") for line in lines)


@given(
    st.lists(st.tuples(st.sampled_from(["a.md", "b.md"]), st.text(max_size=300)), max_size=5),
    st.integers(1, 300),
    st.integers(1, 900),
)
def test_any_notes_are_within_their_limits(notes: list[tuple[str, str]], file_max: int, total_max: int) -> None:
    text = prelude(notes, file_max=file_max, total_max=total_max)
    assert len(text) <= total_max
    assert bool(text) <= any(note.strip() for _, note in notes)
    for _, note in notes:
        assert len(keep_end(note, file_max)) <= max(file_max, 0)


def test_a_bare_new_in_chat(workspace: Path, tmp_path: Path) -> None:
    """Through the command: the notes are a message of the new transcript, before the user's words."""
    home = tmp_path / "state"
    home.mkdir()
    (home / "config.toml").write_text(f'[agent]\ntimezone = "{ZONE}"\n')
    script = tmp_path / "script.json"
    script.write_text('["one", "two", "three"]')
    typed = "before\n/new\nfirst\n/new second\n"
    common = ("--workspace", workspace, "--model", f"scripted/{script}")
    lamella("chat", *common, home=home, stdin=typed, check=True, LAMELLA_PLUGINS="")
    transcripts = [f.read_text(encoding="utf-8") for f in (home / "agents/main/sessions").glob("*.jsonl*")]
    by_prompt = {word: text for text in transcripts for word in ("before", "first", "second") if f'"{word}"' in text}
    assert len(by_prompt) == 3
    assert ["note of 0 days ago" in by_prompt[word] for word in ("before", "first", "second")] == [False, True, False]
    assert by_prompt["first"].index("note of 0 days ago") < by_prompt["first"].index('"first"')
