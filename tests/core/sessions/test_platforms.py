"""Systems that lack a call (macOS: fdatasync; Windows: pread, flock, O_CLOEXEC) store and read the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from builders import user

from lamella.sessions import upkeep
from lamella.sessions.keys import parse_key
from lamella.sessions.maintenance import Limits
from lamella.sessions.store import SessionStore
from lamella.text import files
from lamella.types.messages import text_of

KEY = parse_key("agent:main:main")


@pytest.mark.parametrize("lacking", [("fdatasync",), ("pread",), ("fdatasync", "pread", "O_CLOEXEC", "O_NOFOLLOW")])
@pytest.mark.parametrize("flock", [True, False])
def test_a_session_lives_as_elsewhere(
    lacking: tuple[str, ...], flock: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in lacking:
        monkeypatch.delattr(os, name)
    if not flock:
        monkeypatch.setattr(files, "fcntl", None)
    store = SessionStore(tmp_path / "sessions")
    said = [f"message {n} 数据" for n in range(5)]
    for text in said:
        located = store.locate(KEY) or store.start(KEY)
        with store.lock(located):
            file = store.open(located, cwd="/w")
            file.append_message(user(text))
            file.close()
    before = store.require(KEY).path.read_bytes()
    (done,) = upkeep.maintain(store, Limits(entries=0))
    assert done.problem == ""
    upkeep.restore(store, upkeep.plan_restore(store, upkeep.find_stored(store, KEY.text)))
    found = store.require(KEY)
    assert found.path.read_bytes() == before
    assert [text_of(m.content) for m in store.open(found, cwd="/w").context().messages] == said  # type: ignore[union-attr]
    left = {f.name for f in store.folder.iterdir() if f.is_file()}
    assert left == {"sessions.json", "sessions.json.bak", found.path.name}
