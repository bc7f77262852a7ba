"""Sessions put aside, restored and removed: byte for byte, never while they run, and whatever kills them in between."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import transcript, write_lines

from lamella.config.schema import MaintenanceSection
from lamella.errors import LamellaError, SessionError, SessionLocked, SessionNotFound, UsageError
from lamella.sessions import upkeep
from lamella.sessions.archive import parse_archive_name, put_aside
from lamella.sessions.keys import parse_key
from lamella.sessions.maintenance import Limits, Plan, plan
from lamella.sessions.store import Located, SessionStore
from lamella.sessions.writer import rewrite
from lamella.text.days import unix_ms

DAY = 86_400_000
BYTES = b'{"type":"session","version":3,"id":"odd","timestamp":"","cwd":""}\r\n\x00\x00\n{"torn": '


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions")


def add(store: SessionStore, name: str, *, age_days: float = 0, data: bytes | None = None) -> Located:
    """A session of the key agent:main:NAME, with a label and a transcript."""
    store.folder.mkdir(exist_ok=True)
    path = store.folder / f"{name}.jsonl"
    if data is None:
        write_lines(path, transcript([f"hello from {name}"]))
    else:
        path.write_bytes(data)
    entry = {"sessionId": name, "updatedAt": int(unix_ms() - age_days * DAY), "label": name.upper()}
    store.index.update(f"agent:main:{name}", lambda _none: entry)
    return store.require(parse_key(f"agent:main:{name}"))


def names(store: SessionStore) -> set[str]:
    return {
        file.name for file in store.folder.iterdir() if file.is_file() and not file.name.startswith("sessions.json")
    }


def restore(store: SessionStore, source: Path, key: str = "") -> Path | None:
    return upkeep.restore(store, upkeep.plan_restore(store, source, key))


@pytest.mark.parametrize("data", [BYTES, b"", None], ids=["odd", "empty", "plain"])
def test_a_session_comes_back_byte_for_byte_with_its_entry(store: SessionStore, data: bytes | None) -> None:
    located = add(store, "a", data=data)
    before = located.path.read_bytes()
    archive = upkeep.set_aside(store, located, "deleted")
    assert archive is not None
    assert archive.read_bytes() == before
    assert store.locate(parse_key(located.key)) is None
    assert names(store) == {archive.name}
    assert restore(store, archive) is None
    again = store.require(parse_key(located.key))
    assert again.path.read_bytes() == before
    assert again.entry["label"] == "A"
    assert again.entry["updatedAt"] > located.entry["updatedAt"]
    assert names(store) == {"a.jsonl"}
    assert not list((store.folder / upkeep.ENTRIES_FOLDER).iterdir())


def test_a_copy_takes_its_transcripts_place_again(store: SessionStore) -> None:
    located = add(store, "a", data=BYTES)
    copy = rewrite(located.path, [b'{"type":"session","id":"a"}'])
    now = located.path.read_bytes()
    replaced = restore(store, copy)
    assert located.path.read_bytes() == BYTES
    assert replaced is not None
    assert restore(store, replaced) is not None  # and back again
    assert located.path.read_bytes() == now


def test_an_archive_of_another_program_tells_its_key_or_is_given_one(store: SessionStore) -> None:
    located = add(store, "a")
    store.index.remove(located.key)
    archive = put_aside(located.path, "reset")
    with pytest.raises(UsageError, match="does not tell its session key"):
        restore(store, archive)
    restore(store, archive, "agent:main:b")
    assert store.require(parse_key("agent:main:b")).entry["sessionId"] == "s"  # of the header


def test_what_the_key_has_now_is_put_aside(store: SessionStore) -> None:
    old, new = add(store, "old"), add(store, "new")
    archive = upkeep.set_aside(store, old, "deleted")
    assert archive is not None
    before = new.path.read_bytes()
    replaced = restore(store, archive, new.key)
    assert store.require(parse_key(new.key)).path == old.path
    assert replaced is not None
    name = parse_archive_name(replaced.name)
    assert name is not None
    assert (name.transcript, name.kind) == ("new.jsonl", "reset")
    assert replaced.read_bytes() == before


def test_a_transcript_in_use_is_not_restored_over(store: SessionStore) -> None:
    located = add(store, "a")
    archive = upkeep.set_aside(store, located, "deleted")
    assert archive is not None
    add(store, "a")
    with pytest.raises(UsageError, match="is there already"):
        restore(store, archive)
    with pytest.raises(UsageError, match="is the session of agent:main:a"):
        restore(store, store.folder / "a.jsonl")


def test_a_running_session_is_left_alone(store: SessionStore) -> None:
    located = add(store, "a", age_days=90)
    before = located.path.read_bytes()
    with store.lock(located):
        assert upkeep.maintain(store, Limits(unused_ms=0, entries=1).with_bytes(1)) == []
        for act in (lambda: upkeep.set_aside(store, located, "deleted"), lambda: upkeep.remove_session(store, located)):
            with pytest.raises(SessionLocked, match=f"process {os.getpid()}"):
                act()
    assert store.require(parse_key(located.key)).path.read_bytes() == before


def test_what_was_used_since_the_plan_stays(store: SessionStore) -> None:
    add(store, "a", age_days=90)
    planned = plan(upkeep.take_inventory(store), Limits(unused_ms=DAY))
    store.index.patch("agent:main:a", {})
    (done,) = upkeep.carry_out(store, planned.steps)
    assert "has changed" in done.problem
    assert store.locate(parse_key("agent:main:a")) is not None


def test_g18_warn_touches_nothing_and_enforce_does_what_was_shown(store: SessionStore) -> None:
    for name, age in (("a", 90.0), ("b", 31.0), ("c", 1.0)):
        add(store, name, age_days=age)
    before = {f: f.read_bytes() for f in store.folder.iterdir() if f.is_file()}
    planned: Plan = plan(upkeep.take_inventory(store), Limits.of(MaintenanceSection()))
    assert {f: f.read_bytes() for f in store.folder.iterdir() if f.is_file()} == before
    done = upkeep.maintain(store, Limits.of(MaintenanceSection()))
    assert [d.step for d in done] == list(planned.steps)
    assert not [d.problem for d in done if d.problem]
    assert list(store.index.load().sessions) == ["agent:main:c"]
    for archived in upkeep.list_archives(store):
        restore(store, archived.path)
    assert {r.path: r.path.read_bytes() for r in store.rows()}.items() <= before.items()


def test_g20_a_shared_transcript_stays_until_its_last_key_goes(store: SessionStore) -> None:
    located = add(store, "a")
    store.index.update("agent:main:b", lambda _none: dict(located.entry))
    assert upkeep.set_aside(store, located, "deleted") is None
    assert located.path.exists()
    upkeep.remove_session(store, store.require(parse_key("agent:main:b")))
    assert names(store) == set()


def test_g22_sessions_json_is_there_at_every_moment_of_a_backup(store: SessionStore) -> None:
    add(store, "a")
    content = store.index.path.read_bytes()
    for _ in range(5):
        done = upkeep.maintain(store, Limits(index_bytes=10))
        assert [d.problem for d in done] == [""] * len(done)
        assert store.index.path.read_bytes() == content
    copies = list(store.folder.glob("sessions.json.bak.*"))
    assert len(copies) == 3
    assert all(copy.read_bytes() == content for copy in copies)


def test_a_key_that_leads_elsewhere_is_left_to_people(store: SessionStore) -> None:
    add(store, "a", age_days=90)
    store.index.update("agent:main:out", lambda _none: {"sessionId": "x", "sessionFile": "../x.jsonl", "updatedAt": 1})
    done = upkeep.maintain(store, Limits(unused_ms=DAY, entries=0))
    assert [(d.step.key, d.problem) for d in done] == [("agent:main:a", "")]
    assert list(store.index.load().sessions) == ["agent:main:out"]


def test_g15_g19_variants_of_a_key_are_one_key(store: SessionStore) -> None:
    add(store, "a", age_days=90)
    text = store.index.path.read_text()
    store.index.path.write_text(text.replace("agent:main:a", "Agent:Main:A"))
    assert upkeep.maintain(store, Limits(unused_ms=DAY), {"agent:main:a"}) == []
    (done,) = upkeep.maintain(store, Limits(unused_ms=DAY))
    assert done.problem == ""
    assert upkeep.find_stored(store, "AGENT:main:a").name == done.archive


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_a_transcript_that_a_key_reaches_by_a_link_stays(store: SessionStore) -> None:
    located = add(store, "a")
    (store.folder / "link.jsonl").symlink_to("a.jsonl")
    store.index.update(
        "agent:main:b", lambda _none: {"sessionId": "b", "sessionFile": "link.jsonl", "updatedAt": unix_ms()}
    )
    assert upkeep.set_aside(store, located, "deleted") is None
    assert located.path.is_file()


def test_removed_files_are_gone_and_those_in_use_are_not(store: SessionStore) -> None:
    located = add(store, "a")
    with pytest.raises(SessionError, match="has a session"):
        upkeep.remove_file(store, located.path)
    archive = upkeep.set_aside(store, located, "deleted")
    assert archive is not None
    upkeep.remove_file(store, archive)
    assert names(store) == set()
    assert not list((store.folder / upkeep.ENTRIES_FOLDER).iterdir())


def test_archives_are_found_by_name_id_and_key(store: SessionStore) -> None:
    archives = [upkeep.set_aside(store, add(store, "a"), "deleted") for _ in range(2)]
    newest = archives[-1]
    assert newest is not None
    for text in (newest.name, "agent:main:a"):
        assert upkeep.find_stored(store, text) == newest
    for text in ("agent:main:z", "../sessions/" + newest.name, "sessions.json", ""):
        with pytest.raises(SessionNotFound):
            upkeep.find_stored(store, text)


@pytest.mark.parametrize("rename", ["rename", "replace"])
def test_k143_a_fault_in_between_leaves_a_transcript_that_can_be_restored(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch, rename: str
) -> None:
    located = add(store, "a")
    before = located.path.read_bytes()

    def full(*_given: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(*((Path, "rename") if rename == "rename" else (os, "replace")), full)
        with pytest.raises((OSError, LamellaError)):
            upkeep.set_aside(store, located, "deleted")
    assert located.path.read_bytes() == before
    if store.locate(parse_key(located.key)) is None:
        restore(store, located.path, located.key)
    assert store.require(parse_key(located.key)).path.read_bytes() == before


@pytest.fixture(autouse=True)
def no_lock_is_left(store: SessionStore) -> Iterator[None]:
    yield
    assert not list(store.folder.glob("*.lock"))
