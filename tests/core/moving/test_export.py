"""`lamella export openclaw`: what other programs can open, and the way there and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import transcript, write_lines
from inside import lamella
from other_programs import openclaw, snapshot

from lamella.moving.entries import ORIGIN
from lamella.sessions.mend import defects
from lamella.sessions.reader import read_transcript

SESSIONS = Path("agents/main/sessions")
# Those that a session of lamella may have; the last two are of 2026.9.
OF_OPENCLAW = {"sessionId", "sessionFile", "updatedAt", "chatType", "label", "systemSent", "abortedLastRun"}
OF_OPENCLAW |= {"inputTokens", "outputTokens", "totalTokens", "totalTokensFresh", "cacheRead", "cacheWrite"}
OF_OPENCLAW |= {"contextTokens", "modelProvider", "model", "compactionCount", "memoryFlushAt"}
OF_OPENCLAW |= {"memoryFlushCompactionCount", "lastInteractionAt", "sessionStartedAt"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "state"
    lamella("ask", "Remember that tea is at four.", "--model", "offline", home=home, check=True)
    return home


def exported(home: Path, folder: Path) -> dict[str, Any]:
    return dict(lamella("export", "openclaw", folder, "--json", home=home, check=True).json)


def index(home: Path) -> dict[str, Any]:
    return dict(json.loads((home / SESSIONS / "sessions.json").read_bytes()))


def test_transcripts_entries_and_archives_without_lamellas_own_fields(home: Path, tmp_path: Path) -> None:
    archive = home / SESSIONS / "old.jsonl.reset.2026-03-16T09-30-00.000Z"
    write_lines(archive, transcript(["old"]))
    before = snapshot(home)
    exported(home, tmp_path / "out")
    assert snapshot(home) == before
    (entry,) = index(tmp_path / "out").values()
    name = entry["sessionFile"]
    for file in (name, archive.name):
        assert (tmp_path / "out" / SESSIONS / file).read_bytes() == (home / SESSIONS / file).read_bytes()
    assert entry["contextTokens"] == index(home)["agent:main:main"]["contextTokens"]
    assert entry.keys() <= OF_OPENCLAW | {ORIGIN}
    assert exported(home, tmp_path / "out")["changes"] == 0


def test_what_has_grown_is_continued_and_what_went_on_there_stays(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported(home, out)
    lamella("ask", "When is tea?", "--model", "offline", home=home, check=True)
    assert exported(home, out)["changes"] == 2
    (file,) = (out / SESSIONS).glob("*.jsonl")
    file.write_bytes(file.read_bytes() + b'{"type":"custom","id":"x","parentId":null}\n')
    before = snapshot(out)
    report = exported(home, out)
    assert [i["action"] for i in report["items"] if i["kind"] == "transcript"] == ["kept"]
    assert snapshot(out) == before


def test_damaged_and_old_transcripts_are_written_whole(home: Path, tmp_path: Path) -> None:
    (home / SESSIONS / "damaged.jsonl").write_bytes(
        b"\xef\xbb\xbf" + b"".join(json.dumps(row).encode() + b"\r\n" for row in transcript(["one", "二"])) + b'{"torn'
    )
    old = [
        {k: v for k, v in row.items() if k not in ("id", "parentId", "version")} for row in transcript(["one", "two"])
    ]
    write_lines(home / SESSIONS / "old.jsonl", [{**old[0], "id": "old"}, *old[1:]])
    exported(home, tmp_path / "out")
    for name in ("damaged.jsonl", "old.jsonl"):
        found = read_transcript(tmp_path / "out" / SESSIONS / name)
        assert (defects(found), found.needs_rewrite, len(found.lines)) == ([], False, 2)


def test_there_and_back(tmp_path: Path) -> None:
    folder, home = openclaw(tmp_path), tmp_path / "state"
    lamella("import", "openclaw", folder, home=home, check=True)
    exported(home, tmp_path / "out")
    there, back = (json.loads((f / SESSIONS / "sessions.json").read_bytes()) for f in (folder, tmp_path / "out"))
    assert there.keys() == back.keys()
    for key, entry in there.items():
        kept = {name: value for name, value in entry.items() if name != "sessionFile"}
        assert kept.items() <= back[key].items()
    for file in (folder / SESSIONS).glob("*.jsonl*"):
        assert (tmp_path / "out" / SESSIONS / file.name).read_bytes() == file.read_bytes()
    again = lamella("import", "openclaw", folder, "--json", home=home, check=True).json
    assert again["changes"] == 0


def test_a_key_of_openclaws_own_is_left_to_it(home: Path, tmp_path: Path) -> None:
    folder = openclaw(tmp_path)
    report = exported(home, folder)
    (item,) = (i for i in report["items"] if i["kind"] == "session")
    assert item["target"].startswith("agent:main:lamella-")
    assert index(folder)["agent:main:main"]["sessionId"] == "one"
