"""Transcripts, and the index that the user keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from qmd_programs import Scene

from lamella.errors import MemoryUnavailable
from lamella_qmd_backend.config import Update


def message(role: str, text: str) -> str:
    content = [{"type": "text", "text": text}]
    return json.dumps({"type": "message", "message": {"role": role, "content": content}}, ensure_ascii=False)


KEY = "sk-" + "ant-api03-" + "a1B2c3D4" * 6
HEADER = '{"type": "session", "version": 3, "id": "s1", "timestamp": "2026-03-02T10:00:00Z", "cwd": "/"}'


@pytest.fixture
def talked(make: Callable[..., Scene]) -> Scene:
    scene = make()
    folder = scene.workspace.parent / "sessions"
    folder.mkdir()
    lines = [
        HEADER,
        message("user", f"Where does the okapi sleep? The key is {KEY}"),
        '{"type": "message", "message": {"role": "toolResult", "content": [{"type": "text", "text": "okapi okapi"}]}}',
        message("assistant", "In the\nreed hut, 在芦苇屋里。"),
    ]
    (folder / "s1.jsonl").write_text("\n".join(lines) + "\n")
    scene.context = evolve(scene.context, transcripts=folder)
    return scene


def test_what_was_said_is_found_with_the_lines_of_the_transcript(talked: Scene) -> None:
    (hit,) = talked.search("where does the okapi sleep").hits
    assert (hit.path, hit.source, hit.start_line, hit.end_line) == ("sessions/s1.jsonl", "sessions", 2, 4)
    assert hit.snippet.startswith("User: Where does the okapi sleep?") and KEY not in hit.snippet
    assert "Assistant: In the reed hut" in hit.snippet
    assert talked.paths("芦苇屋") == ["sessions/s1.jsonl"]


def test_sources_limit_what_is_asked_for(talked: Scene) -> None:
    talked.write("memory/a.md", "an okapi\n")
    assert talked.paths("okapi", sources=("memory",)) == ["memory/a.md"]
    assert talked.paths("okapi", sources=("sessions",)) == ["sessions/s1.jsonl"]
    call = talked.qmd.calls_of("query")[-1]["argv"]
    assert call[call.index("-c") + 1 :][:2] == ["sessions", "--"]
    assert talked.paths("okapi", sources=("other",)) == []


def test_only_what_changed_is_exported_again_and_what_is_gone_goes(talked: Scene) -> None:
    talked.backend.sync()
    exported = talked.state / "qmd" / "sessions"
    (before,) = exported.glob("*.md")
    stamp = before.stat().st_mtime_ns
    transcripts = talked.workspace.parent / "sessions"
    (transcripts / "s2.jsonl").write_text(f"{HEADER}\n{message('user', 'a tapir')}\n")
    talked.backend.sync()
    assert before.stat().st_mtime_ns == stamp
    assert talked.paths("tapir") == ["sessions/s2.jsonl"]
    (transcripts / "s1.jsonl").unlink()
    assert talked.backend.sync().removed == 1
    assert sorted(path.name for path in exported.iterdir()) == ["s2.jsonl.lines.json", "s2.jsonl.md"]
    assert talked.paths("okapi") == []


def test_an_export_that_does_not_fit_its_lines_is_left_out(talked: Scene) -> None:
    talked.backend.sync()
    (lines,) = (talked.state / "qmd" / "sessions").glob("*.lines.json")
    lines.write_text("[2]")
    assert talked.paths("okapi") == []


# --- the user's own index ------------------------------------------------------------------------------------


@pytest.fixture
def own(make: Callable[..., Scene], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A scene on an index that its user has made, of notes elsewhere."""
    notes = tmp_path / "my notes"
    notes.mkdir()
    (notes / "zoo.md").write_text("the okapi eats figs\n")
    config, cache = tmp_path / "user" / "config", tmp_path / "user" / "cache"
    config.mkdir(parents=True)
    (cache / "qmd").mkdir(parents=True)
    (config / "index.yml").write_text(
        json.dumps({"collections": {"notes": {"path": str(notes), "pattern": "**/*.md"}}})
    )
    texts = {"zoo.md": "the okapi eats figs\n"}
    (cache / "qmd" / "index.sqlite").write_text(json.dumps({"notes": {"path": str(notes), "texts": texts}}))
    monkeypatch.setenv("QMD_CONFIG_DIR", str(config))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    scene = make(collections=("notes",))
    scene.context = evolve(scene.context, extra_paths=(str(notes),))
    return scene


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mcp", [False, True])
def test_the_users_index_is_searched_and_not_touched(own: Scene, tmp_path: Path, mcp: bool) -> None:
    own.backends.insert(0, own.another(mcp=mcp))
    before = contents(tmp_path / "user")
    assert own.paths("okapi") == ["../../my notes/zoo.md"]
    report = own.backend.sync(force=True)
    assert (report.seen, report.unchanged) == (1, 1)
    own.backend.probe()
    assert contents(tmp_path / "user") == before
    assert not own.qmd.calls_of("update") and not (own.state / "qmd" / "config").exists()
    assert {call["cwd"] for call in own.qmd.calls} == {str((own.state / "qmd" / "run").resolve())}
    status = own.backend.status()
    assert status["problem"] is None and [c["name"] for c in status["collections"]] == ["notes"]


def test_results_outside_of_memory_say_how_to_take_them_in(own: Scene) -> None:
    own.context = evolve(own.context, extra_paths=())
    found = own.search("okapi")
    assert found.hits == () and found.degraded
    assert "plugins.config.memory-core.extra_paths" in found.degraded.reason
    assert "my notes" in own.backend.status()["problem"]


def test_a_collection_that_does_not_exist_is_named(own: Scene) -> None:
    backend = own.another(collections=("ghost",))
    own.backends.insert(0, backend)
    with pytest.raises(MemoryUnavailable, match="Collection not found: ghost") as caught:
        own.search("okapi")
    assert "plugins.config.qmd-backend.collections" in caught.value.hint


def test_the_users_index_is_not_repaired(own: Scene, tmp_path: Path) -> None:
    database = tmp_path / "user" / "cache" / "qmd" / "index.sqlite"
    assert own.paths("okapi")
    database.write_text("no database")
    with pytest.raises(MemoryUnavailable, match="file is not a database"):
        own.search("okapi")
    assert database.read_text() == "no database"


def test_the_first_wait_is_for_lamellas_own_index_only(own: Scene) -> None:
    backend = own.another(update=Update(first_wait_seconds=0.0))
    own.backends.insert(0, backend)
    assert own.paths("okapi")
