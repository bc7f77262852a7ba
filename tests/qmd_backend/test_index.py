"""The private index: settings, repair, damage, locks, several programs, vectors."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest
from attrs import evolve
from qmd_programs import Scene, is_gone, wait_for

from lamella.errors import MemoryUnavailable
from lamella.types.memory import SearchQuery, SyncProgress
from lamella_qmd_backend.asking import Question
from lamella_qmd_backend.config import Config, Models, Update
from lamella_qmd_backend.faults import QmdFailed
from lamella_qmd_backend.output import Result
from lamella_qmd_backend.runner import Runner
from lamella_qmd_backend.state import State, StateFile
from lamella_qmd_backend.vectors import embed

FOUND = ["memory/2026-03-02.md"]


def settings(scene: Scene) -> Path:
    return scene.state / "qmd" / "config" / "index.yml"


def database(scene: Scene) -> Path:
    return Path(scene.backend.status()["database"])


def test_the_settings_name_collections_and_models_that_are_nowhere(scene: Scene) -> None:
    document = json.loads(settings(scene).read_text("utf-8"))
    root = str(scene.workspace.resolve())
    assert document["collections"] == {
        "memory": {"path": root, "pattern": "{MEMORY.md,memory/**/*.md}"},
    }
    assert set(document["models"]) == {"embed", "generate", "rerank"}
    assert not any(Path(path).exists() for path in document["models"].values())


def test_extra_paths_are_collections(make: Callable[..., Scene], tmp_path: Path) -> None:
    folder, file = tmp_path / "more notes", tmp_path / "one [a,b] 项.md"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "x.md").write_text("the okapi eats figs\n")
    file.write_text("the okapi sleeps\n")
    (tmp_path / "one _a_b_ 项.md").write_text("an okapi that is none of ours\n")
    scene = make()
    scene.context = evolve(scene.context, extra_paths=(str(folder), str(file), "gone"))
    paths = scene.paths("okapi", max_results=10)
    assert sorted(paths) == ["../../more notes/deep/x.md", "../../one [a,b] 项.md"]
    document = json.loads(settings(scene).read_text("utf-8"))["collections"]
    assert document["extra-1"] == {"path": str(folder), "pattern": "**/*.md"}
    assert document["extra-2"] == {"path": str(tmp_path), "pattern": "one ?a?b? 项.md"}


def test_memory_md_in_lower_case_is_indexed_where_there_is_no_other(make: Callable[..., Scene]) -> None:
    scene = make()
    scene.write("memory.md", "the okapi eats figs\n")
    assert scene.paths("okapi") == ["memory.md"]
    scene.write("MEMORY.md", "the okapi sleeps\n")
    assert scene.paths("okapi") == ["MEMORY.md"]
    scene.backend.sync()
    assert json.loads(settings(scene).read_text())["collections"]["memory"]["pattern"].startswith("{MEMORY.md,")


def test_a_sync_tells_what_it_did(scene: Scene) -> None:
    told: list[SyncProgress] = []
    scene.write("memory/new.md", "x\n")
    scene.write("MEMORY.md", "changed\n")
    scene.write("memory/.hidden/h.md", "y\n")
    report = scene.backend.sync(progress=told.append)
    assert (report.seen, report.added, report.updated, report.unchanged, report.removed) == (4, 2, 1, 1, 0)
    assert report.chunks == 3 and report.ok and report.rebuilt == ""
    assert [(p.stage, p.done, p.total) for p in told] == [("files", 0, 3), ("files", 3, 3)]
    (scene.workspace / "memory/new.md").unlink()
    assert scene.backend.sync().removed == 1


def test_forcing_makes_a_new_index_while_the_old_one_answers(scene: Scene) -> None:
    old = database(scene)
    other = scene.another()
    scene.qmd.play("slow", "update")
    thread = threading.Thread(target=scene.backend.sync, kwargs={"force": True})
    thread.start()
    wait_for((scene.qmd.folder / "updating").exists)
    assert [h.path for h in other.search(SearchQuery("pool")).hits] == FOUND
    scene.qmd.play("", "update")
    thread.join(30)
    assert database(scene) != old and not old.exists()
    assert [h.path for h in other.search(SearchQuery("pool")).hits] == FOUND


@pytest.mark.parametrize("fails", [False, True])
def test_an_index_that_is_replaced_during_a_search_is_asked_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    other, asker = scene.another(), scene.backend._asker
    ask, asked = asker.ask, 0

    def too_late(question: Question) -> list[Result]:
        nonlocal asked
        asked += 1
        if asked > 1:
            return ask(question)
        other.sync(force=True)
        if fails:
            raise QmdFailed("disk I/O error")
        return []

    monkeypatch.setattr(asker, "ask", too_late)
    assert scene.paths("pool") == FOUND and asked == 2


def test_an_index_that_was_never_finished_is_removed(scene: Scene) -> None:
    unfinished = scene.state / "qmd" / "cache-7" / "qmd"
    unfinished.mkdir(parents=True)
    scene.write("memory/new.md", "x\n")
    assert scene.backend.sync().added == 1
    assert not unfinished.exists() and scene.paths("pool") == FOUND


def test_a_failed_rebuild_leaves_the_old_index(scene: Scene) -> None:
    old = database(scene)
    scene.qmd.play("exit1", "update")
    with pytest.raises(MemoryUnavailable, match="qmd update failed: boom"):
        scene.backend.sync(force=True)
    assert scene.paths("pool") == FOUND and database(scene) == old
    status = scene.backend.status()
    assert "boom" in status["updateError"] and status["updateErrorAt"]
    scene.qmd.play("", "update")
    assert scene.backend.sync(force=True).rebuilt == "asked for"
    assert scene.backend.status()["updateError"] is None


def test_a_collection_that_is_not_found_is_mended_once(scene: Scene) -> None:
    scene.qmd.play("vanished_once", "query")
    assert scene.paths("pool") == FOUND
    assert len(scene.qmd.calls_of("update")) == 2
    scene.qmd.play("vanished", "query")
    with pytest.raises(MemoryUnavailable, match="Collection not found: memory"):
        scene.search("pool")
    assert len(scene.qmd.calls_of("update")) == 3


@pytest.mark.parametrize("text", ["collections: [", "{}"])
def test_broken_settings_are_written_again(scene: Scene, text: str) -> None:
    settings(scene).write_text(text)
    scene.write("memory/new.md", "the okapi eats figs\n")
    assert scene.paths("pool") == FOUND
    scene.backend.sync()
    assert "memory" in json.loads(settings(scene).read_text("utf-8"))["collections"]


def test_a_broken_database_is_put_aside_and_made_anew(scene: Scene) -> None:
    broken = database(scene)
    broken.write_text("no database at all")
    with pytest.raises(MemoryUnavailable, match="file is not a database"):
        scene.search("pool")
    wait_for(lambda: database(scene) != broken and database(scene).exists())
    assert scene.paths("pool") == FOUND
    (kept,) = (scene.state / "qmd").glob("*.broken")
    assert (kept / "qmd" / "index.sqlite").read_text() == "no database at all"
    assert (scene.workspace / "MEMORY.md").exists()


def test_an_update_that_finds_the_database_broken_makes_a_new_one(scene: Scene) -> None:
    database(scene).write_text("no database at all")
    report = scene.backend.sync(progress=lambda _: None)
    assert report.ok and report.rebuilt == "its database was missing or broken" and report.chunks == 2
    assert scene.paths("pool") == FOUND
    assert list((scene.state / "qmd").glob("*.broken"))


def test_a_sync_that_is_asked_for_mends_settings_and_an_emptied_database(scene: Scene) -> None:
    database(scene).write_text("{}")
    settings(scene).write_text("collections: [")
    problem = scene.backend.status()["problem"]
    assert "Failed to parse" in problem and "`lamella memory index` mends it" in problem
    assert scene.backend.sync(progress=lambda _: None).chunks == 2
    assert "memory" in json.loads(settings(scene).read_text("utf-8"))["collections"]


def test_the_working_folder_may_be_removed(scene: Scene) -> None:
    assert scene.paths("pool") == FOUND
    shutil.rmtree(scene.state / "qmd" / "run")
    assert scene.paths("pool") == FOUND


def test_a_folder_that_cannot_be_made_is_named(make: Callable[..., Scene]) -> None:
    scene = make()
    scene.state.mkdir()
    (scene.state / "qmd").write_text("a file where a folder should be")
    for action in (lambda: scene.search("pool"), scene.backend.sync, scene.backend.probe):
        with pytest.raises(MemoryUnavailable, match=r"qmd.* cannot be used: "):
            action()
    assert "cannot be used" in scene.backend.status()["problem"]


def test_a_state_that_is_a_folder_is_named(scene: Scene) -> None:
    path = scene.state / "qmd" / "state.json"
    path.unlink()
    path.mkdir()
    with pytest.raises(MemoryUnavailable, match=r"state\.json cannot be used: Is a directory"):
        scene.search("pool")


def test_a_database_that_is_gone_is_made_anew(scene: Scene) -> None:
    shutil.rmtree(database(scene).parent)
    assert scene.paths("pool") == FOUND
    assert scene.backend.sync().unchanged == 2


def test_a_database_that_was_emptied_is_filled_again(scene: Scene) -> None:
    database(scene).write_text("{}")
    assert scene.paths("pool") == FOUND
    checks = len(scene.qmd.calls_of("status"))
    for _ in range(3):
        assert scene.paths("xyzzynothing") == []
    assert len(scene.qmd.calls_of("status")) == checks + 1, "that it is full is found out once"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"format": 99, "files": {}}',
        '{"format": 1, "files": {"a": 1}}',
        '{"format": 1, "files": {"a": [1e999, 1]}}',
        '{"format": 1, "files": {}, "generation": "x"}',
        '{"format": 1, "files": {}, "generation": -1}',
        '{"format": 1, "files": {}, "updated_at": NaN}',
        '{"format": 1, "files": {}, "unknown": 1}',
    ],
)
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    assert StateFile(path).read() == State()


def test_without_a_state_the_index_is_made_anew(scene: Scene) -> None:
    path = scene.state / "qmd" / "state.json"
    path.write_text('{"format": 1')
    assert scene.paths("pool") == FOUND
    assert json.loads(path.read_text())["documents"] == 2


def test_a_busy_database_is_tried_again(scene: Scene) -> None:
    scene.qmd.play("busy_once", "update")
    scene.write("memory/new.md", "x\n")
    assert scene.backend.sync().added == 1
    assert len(scene.qmd.calls_of("update")) == 3


def test_a_database_that_stays_busy_is_told_in_the_end(scene: Scene) -> None:
    scene.qmd.play("busy")
    with pytest.raises(MemoryUnavailable, match="database is locked"):
        scene.search("pool")
    with pytest.raises(MemoryUnavailable, match="database is locked"):
        scene.backend.sync(force=True)
    scene.qmd.play("")
    assert scene.paths("pool") == FOUND


def test_one_program_at_a_time_updates(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.write("memory/new.md", "the okapi eats figs\n")
    backend = scene.another(update=Update(timeout_seconds=1.0))
    with filelock.FileLock(scene.state / "qmd" / ".update.lock"):
        assert [h.path for h in backend.search(SearchQuery("okapi")).hits] == ["memory/new.md"]
        with pytest.raises(MemoryUnavailable, match="another update"):
            backend.sync(progress=lambda _: None)
        monkeypatch.setattr("lamella_qmd_backend.backend._IMPATIENT_SECONDS", 0.1)
        report = backend.sync()
        assert report.ok and "another update" in report.problem
    assert len(scene.qmd.calls_of("update")) == 1
    assert backend.sync().added == 1


def test_what_changed_is_found_before_qmd_knows_it(make: Callable[..., Scene]) -> None:
    scene = make(update=Update(debounce_seconds=3600.0))
    scene.write("memory/old.md", "the okapi eats figs\n")
    assert scene.paths("okapi") == ["memory/old.md"]
    scene.write("memory/new.md", "the okapi sleeps\n")
    scene.write("memory/.hidden/h.md", "a hidden okapi\n")
    scene.write("memory/old.md", "the tapir eats figs\n")
    assert sorted(scene.paths("okapi")) == ["memory/.hidden/h.md", "memory/new.md"]
    (scene.workspace / "memory/new.md").unlink()
    assert scene.paths("okapi") == ["memory/.hidden/h.md"]
    assert scene.paths("tapir") == ["memory/old.md"]


def test_too_many_changed_files_are_told(make: Callable[..., Scene]) -> None:
    scene = make(update=Update(debounce_seconds=3600.0))
    scene.search("okapi")
    for number in range(70):
        scene.write(f"memory/{number}.md", "the okapi sleeps\n")
    found = scene.search("okapi", max_results=100)
    assert len(found.hits) == 64
    assert found.degraded and found.degraded.reason == "6 changed files are not in QMD's index yet"


def test_a_missing_folder_is_shown_and_is_no_failure(scene: Scene, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "x.md").write_text("the okapi eats figs\n")
    scene.context = evolve(scene.context, extra_paths=(str(folder),))
    scene.backends.insert(0, scene.another())
    (path,) = scene.paths("okapi")
    assert path.endswith("/more/x.md")
    folder.rename(tmp_path / "away")
    (scene.workspace / "memory").rename(scene.workspace / "away")
    assert scene.paths("okapi") == [] and scene.paths("pool") == []
    assert scene.backend.sync().ok
    missing = {c["name"]: c["missing"] for c in scene.backend.status()["collections"]}
    assert missing == {"memory": False, "extra-1": True}
    (tmp_path / "away").rename(folder)
    (scene.workspace / "away").rename(scene.workspace / "memory")
    assert scene.paths("okapi") == [path] and scene.paths("pool") == FOUND


def test_groups_do_not_see_what_is_excluded(scene: Scene) -> None:
    assert scene.paths("staging server pool") != FOUND
    found = scene.paths("staging server pool", exclude=("MEMORY.md",), max_results=1)
    assert found == FOUND
    scene.write("memory/new.md", "a staging server\n")
    assert scene.paths("staging server", exclude=("MEMORY.md", "memory/new.md")) == []


# --- vectors -----------------------------------------------------------------------------------------------


def test_new_texts_get_vectors_where_a_model_is_configured(make: Callable[..., Scene]) -> None:
    scene = make(models=Models(embed="~/e.gguf", context_size=512))
    scene.write("memory/a.md", "the okapi eats figs\n")
    assert scene.backend.sync(progress=lambda _: None).embedded == 3
    document = json.loads(settings(scene).read_text("utf-8"))["models"]
    assert document["embed"] == str(Path("~/e.gguf").expanduser())
    (call,) = scene.qmd.calls_of("embed")
    assert call["env"]["QMD_EMBED_CONTEXT_SIZE"] == "512"
    scene.write("memory/b.md", "x\n")
    assert scene.backend.sync(progress=lambda _: None).embedded == 0, "it is not time yet"


def test_a_note_that_is_written_does_not_wait_for_vectors(make: Callable[..., Scene]) -> None:
    scene = make(models=Models(embed="/e.gguf"))
    scene.write("memory/a.md", "the okapi eats figs\n")
    scene.qmd.play("hang", "embed")
    assert scene.backend.sync().added == 1
    wait_for(lambda: bool(scene.qmd.calls_of("embed")))
    scene.write("memory/b.md", "the tapir sleeps\n")
    assert scene.another().sync().added == 1
    scene.close()
    wait_for(lambda: is_gone(scene.qmd.calls_of("embed")[0]["pid"]))
    assert scene.another().status()["embedError"] is None, "to be closed is no failure"


def test_without_a_model_nothing_is_embedded(scene: Scene) -> None:
    scene.backend.sync(force=True)
    assert not scene.qmd.calls_of("embed")


def test_a_second_program_that_embeds_is_no_failure(make: Callable[..., Scene]) -> None:
    scene = make(models=Models(embed="hf:some/model"))
    scene.qmd.play("locked", "embed")
    assert scene.backend.sync(progress=lambda _: None).degraded == ""


def test_vectors_that_fail_are_put_off_and_told(make: Callable[..., Scene]) -> None:
    update = Update(debounce_seconds=0.0, embed_interval_minutes=0.0)
    scene = make(models=Models(embed="/e.gguf"), update=update)
    scene.write("memory/a.md", "the okapi eats figs\n")
    scene.qmd.play("exit1", "embed")
    report = scene.backend.sync(progress=lambda _: None)
    assert report.ok and report.added == 1 and "boom" in report.degraded
    scene.qmd.play("", "embed")
    scene.write("memory/b.md", "x\n")
    assert "boom" in scene.backend.sync().degraded
    assert len(scene.qmd.calls_of("embed")) == 1
    status = scene.backend.status()
    assert "boom" in status["embedError"] and status["embedRetryAt"]
    assert scene.paths("okapi") == ["memory/a.md"]


def test_the_wait_after_failures_doubles_up_to_an_hour(tmp_path: Path) -> None:
    runner = Runner([sys.executable, "-ESc", "raise SystemExit(1)"], {}, tmp_path)
    waits = []
    for failures in (0, 1, 2, 5, 6, 10_000):
        before = time.time()
        changed = embed(runner, State(embed_failures=failures), Config()).changed
        waits.append(round((changed["embed_after"] - before) / 60))
        assert changed["embed_failures"] == failures + 1
    assert waits == [1, 2, 4, 32, 60, 60]
