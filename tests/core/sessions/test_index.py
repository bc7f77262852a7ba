"""sessions.json: merged, never emptied, recovered when it is damaged, contained."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from builders import CASES, transcript, user, write_lines

from lamella.errors import SessionError, UsageError
from lamella.sessions.index import IndexDamage, SessionIndex, merge_entry
from lamella.sessions.keys import parse_key
from lamella.sessions.store import SessionStore
from lamella.sessions.transcript import SessionFile

WORKER = """
import json, sys
from pathlib import Path
from lamella.sessions.index import SessionIndex
folder, worker, plan = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
index = SessionIndex(folder, timeout=60)
def more(entry):
    return {**(entry or {"sessionId": "shared", "updatedAt": 1}), "count": (entry or {}).get("count", 0) + 1}
for i in range(plan["newKeysEach"]):
    key = f"agent:main:{worker}-{i}"
    index.update(key, lambda e: {"sessionId": key[11:], "updatedAt": 1})
    print(key, flush=True)
    shared = plan["sharedKeys"][i % len(plan["sharedKeys"])]
    index.update(shared, more)
    print(shared, flush=True)
"""


def folder_of(case: str, tmp_path: Path) -> Path:
    source = CASES / case
    for file in source.rglob("*"):
        if file.is_file():
            target = tmp_path / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes().replace(b"@STATE@", str(tmp_path / "state").encode()))
    return tmp_path


@pytest.mark.parametrize("damaged", ["sessions.json", "sessions.cut.json"])
def test_g12_a_damaged_index_is_not_an_empty_one(damaged: str, tmp_path: Path) -> None:
    folder = folder_of("K01", tmp_path) / "sessions"
    broken = (folder / damaged).read_bytes()
    (folder / "sessions.json").write_bytes(broken)
    transcripts = {f.name: f.read_bytes() for f in folder.glob("*.jsonl")}
    heard: list[IndexDamage] = []
    index = SessionIndex(folder, listener=heard.append)

    state = index.load()
    assert state.damage is not None
    assert {e["sessionId"] for e in state.sessions.values()} >= {"sess_alpha", "sess_beta"}
    assert (folder / "sessions.json").read_bytes() == broken  # looking changes nothing

    index.update("agent:main:other", lambda _e: {"sessionId": "new", "updatedAt": 1})
    assert heard[0].kept_as is not None
    assert heard[0].kept_as.read_bytes() == broken
    after = index.load()
    assert after.damage is None
    assert {e["sessionId"] for e in after.sessions.values()} >= {"sess_alpha", "sess_beta", "new"}
    assert {f.name: f.read_bytes() for f in folder.glob("*.jsonl")} == transcripts


def test_a_lost_index_finds_keys_again(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    key = parse_key("agent:main:telegram:direct:42")
    located = store.start(key)
    file = store.open(located, cwd="/w")
    file.append_message(user("hello"))
    for name in ("sessions.json", "sessions.json.bak"):
        (tmp_path / name).write_bytes(b"{")
    found = store.locate(key)
    assert found is not None
    assert found.entry["sessionId"] == located.entry["sessionId"]


def test_g25_g27_pointers_are_contained_and_made_portable(tmp_path: Path) -> None:
    root = folder_of("K03", tmp_path)
    store = SessionStore(root / "state/agents/main/sessions")
    outside = (root / "state/outside.jsonl").read_bytes()
    for name, text in (("a", "one"), ("b", "two"), ("c", "three")):
        located = store.require(parse_key(f"agent:main:{name}"))
        assert text in str(store.open(located, cwd="/").context().messages)
    with pytest.raises(SessionError, match="leads outside"):
        store.locate(parse_key("agent:main:d"))
    assert len(store.rows()) == 3
    for name in "abc":
        store.index.patch(f"agent:main:{name}", {"label": "x"})
    saved = json.loads(store.index.path.read_text())
    assert [saved[f"agent:main:{n}"]["sessionFile"] for n in "abc"] == ["s1.jsonl", "s2.jsonl", "s3.jsonl"]
    assert (root / "state/outside.jsonl").read_bytes() == outside
    assert not Path("/nonexistent-old-home").exists()


def test_a_link_that_leads_outside_is_refused(tmp_path: Path) -> None:
    secret = write_lines(tmp_path / "secret.jsonl", transcript(["secret"]))
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "s.jsonl").symlink_to(secret)
    store = SessionStore(folder)
    store.index.update("agent:main:x", lambda _e: {"sessionId": "s", "sessionFile": "s.jsonl", "updatedAt": 1})
    with pytest.raises(SessionError):
        store.locate(parse_key("agent:main:x"))


@pytest.mark.parametrize("keys_each", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_g2_several_processes_lose_nothing(keys_each: int, tmp_path: Path) -> None:
    plan = json.loads((CASES / "K138/plan.json").read_text())
    plan["newKeysEach"], plan["sharedKeys"] = keys_each, plan["sharedKeys"][:keys_each]
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path), f"w{i}", json.dumps(plan)], stdout=subprocess.PIPE, text=True
        )
        for i in range(plan["processes"])
    ]
    killed = workers[-1]
    acknowledged: Counter[str] = Counter()
    assert killed.stdout is not None
    for _ in range(random.randrange(1, 2 * plan["newKeysEach"])):
        acknowledged[killed.stdout.readline().strip()] += 1
        json.loads((tmp_path / "sessions.json").read_bytes())
    killed.kill()
    for worker in workers:
        assert worker.stdout is not None
        acknowledged.update(worker.stdout.read().split())
        worker.stdout.close()
        worker.wait(60)

    sessions = SessionIndex(tmp_path).load().sessions
    assert set(acknowledged) <= sessions.keys()
    counted = sum(sessions[key]["count"] for key in plan["sharedKeys"])
    said = sum(acknowledged[key] for key in plan["sharedKeys"])
    assert said <= counted <= said + 1  # the killed one may have stored one more than it said
    assert all(sessions[key]["count"] >= acknowledged[key] for key in plan["sharedKeys"])
    SessionIndex(tmp_path).update("agent:main:z", lambda _e: {"sessionId": "z", "updatedAt": 1})
    left = [p.name for p in tmp_path.iterdir() if p.is_file()]
    assert sorted(left) == ["sessions.json", "sessions.json.bak"]


def test_readers_never_see_a_half_written_index(tmp_path: Path) -> None:
    index = SessionIndex(tmp_path)
    index.update("agent:main:a", lambda _e: {"sessionId": "a", "updatedAt": 1, "n": 0})
    stop = threading.Event()
    faults: list[str] = []

    def read() -> None:
        while not stop.is_set():
            try:
                json.loads(index.path.read_bytes())
            except ValueError as error:
                faults.append(str(error))

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(40):
        index.patch("agent:main:a", {"n": i})
    stop.set()
    reader.join()
    assert faults == []


def test_g15_case_variants_become_one_key(tmp_path: Path) -> None:
    (tmp_path / "sessions.json").write_text(
        json.dumps(
            {
                "Agent:Main:X": {"sessionId": "old", "updatedAt": 1},
                "agent:main:x": {"sessionId": "new", "updatedAt": 2, "room": "r"},
            }
        )
    )
    index = SessionIndex(tmp_path)
    assert (index.get("AGENT:main:x") or {})["sessionId"] == "new"
    index.patch("agent:main:x", {"label": "l"})
    saved = json.loads(index.path.read_text())
    assert list(saved) == ["agent:main:x"]
    assert saved["agent:main:x"]["groupChannel"] == "r"


def test_g43_g44_merging_follows_the_rules() -> None:
    entry = {"sessionId": "s", "updatedAt": 5, "model": "a", "modelProvider": "p"}
    assert merge_entry(entry, {"label": "x"}, touch=False) == {**entry, "label": "x"}
    assert "modelProvider" not in merge_entry(entry, {"model": "b"}, touch=False)
    assert merge_entry(entry, {"updatedAt": 3}, touch=False)["updatedAt"] == 5
    assert merge_entry(entry, {})["updatedAt"] > 5
    assert "model" not in merge_entry(entry, {"model": None})


def test_a_transcript_moved_between_folders_opens(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "s.jsonl", transcript(["x"]))
    assert SessionFile.open(path).id == SessionFile.open(str(path)).id == "s"


def test_a_session_that_another_process_has_begun_meanwhile_stays(tmp_path: Path) -> None:
    one, other = SessionStore(tmp_path), SessionStore(tmp_path)
    key = parse_key("agent:main:main")
    assert one.locate(key) is other.locate(key) is None
    (first, ours), (second, theirs) = one.begin(key), other.begin(key)
    assert (ours, theirs) == (True, False)
    assert first.path == second.path
    assert one.start(key).path != first.path


def test_g1_changes_of_several_threads_are_all_there(tmp_path: Path) -> None:
    index = SessionIndex(tmp_path)

    def write(name: str) -> None:
        for number in range(10):
            index.update(f"agent:main:{name}{number}", lambda _none: {"sessionId": name, "updatedAt": 1})

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(index.load().sessions) == 30


@pytest.mark.parametrize("session_id", ["../x", "", ".hidden", "a/b", "a" * 129])
def test_g26_an_id_that_is_no_file_name_is_an_error(session_id: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="session id"):
        SessionIndex(tmp_path).transcript_path({"sessionId": session_id})
