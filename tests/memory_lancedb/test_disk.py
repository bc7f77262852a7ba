"""Holds: a program that dies at any step loses nothing, and what was removed leaves the disk all the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from memories import memories_in, texts_on_disk

from lamella.errors import MemoryUnavailable
from lamella.types.memory import SearchQuery
from lamella_memory_lancedb.service import Memories
from lamella_memory_lancedb.store import database
from lamella_memory_lancedb.store.database import Database
from lamella_memory_lancedb.store.memory import Memory, Origin, new_id

OWN = Origin("main", "test")
STAYS = {"I prefer tea", "The gate closes at eight"}
SECRET = "The quokka lives at 12 Elm Street"


class Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


def dying_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Let the program die before or after a call of LanceDB: twice as many steps as calls."""
    guarded, taken = Database.guarded, 0

    def counted(self: Database, action: Callable[[], Any]) -> Any:
        nonlocal taken
        for act in (lambda: None, lambda: guarded(self, action)):
            taken += 1
            if taken == step:
                raise Killed
            done = act()
        return done

    monkeypatch.setattr(Database, "guarded", counted)


def do(memories: Memories, what: str, secret: Memory) -> None:
    if what == "forget":
        memories.forget([secret])
    elif what == "change":
        memories.keeper.change(secret, text="The wombat lives elsewhere")
    elif what == "store":
        memories.keeper.keep("My bicycle is red", OWN)
    else:
        memories.reindex()


@pytest.mark.parametrize("what", ["forget", "change", "store", "reindex"])
def test_who_dies_at_any_step_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    died, step = True, 0
    while died:
        step += 1
        folder = tmp_path / str(step)
        first = memories_in(folder)
        for text in (*STAYS, SECRET):
            first.keeper.keep(text, OWN)
        secret = next(m for m in first.page() if m.text == SECRET)
        with monkeypatch.context() as patch:
            dying_at(patch, step)
            try:
                do(first, what, secret)
                died = False
            except Killed:
                died = True
        second = memories_in(folder)
        texts = [m.text for m in second.page()]
        assert set(texts) >= STAYS and len(texts) == len(set(texts))
        assert (len(texts) == 3) or what in ("forget", "store")
        assert second.search(SearchQuery("when does the gate close")).hits
        second.warm_up()  # as when a session starts
        second.close()
        assert SECRET in texts or not texts_on_disk(folder, "quokka")
    assert step > 2


def test_what_was_written_before_the_clock_went_back_leaves_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = memories_in(tmp_path)
    for text in (*STAYS, SECRET):
        memories.keeper.keep(text, OWN)
    # As for a clock that goes back a day: versions are younger than what is to be removed.
    monkeypatch.setattr(database, "_NO_OLD_VERSIONS", timedelta(days=1))
    memories.forget([m for m in memories.page() if m.text == SECRET])
    assert {m.text for m in memories.page()} == STAYS
    assert not texts_on_disk(tmp_path, "quokka")


def test_files_that_a_killed_program_had_begun_leave_the_disk(tmp_path: Path) -> None:
    memories = memories_in(tmp_path)
    for text in (*STAYS, SECRET):
        memories.keeper.keep(text, OWN)
    data = tmp_path / "agents/main/lancedb/memories.lance/data"
    for name in (".tmpLgo3JP", "0101.lance#1"):
        (data / name).write_bytes(next(data.glob("*.lance")).read_bytes() + SECRET.encode())
    memories.forget([m for m in memories.page() if m.text == SECRET])
    assert {m.text for m in memories.page()} == STAYS
    assert not texts_on_disk(tmp_path, "quokka")


def test_what_is_forgotten_or_corrected_leaves_the_table_of_an_older_version_too(tmp_path: Path) -> None:
    import lancedb

    texts = ["I prefer tea", "The quokka lives at 12 Elm Street", "The gate closes at eight"]
    rows = [
        {"id": new_id(), "text": text, "vector": [0.6, 0.8], "importance": 0.7, "category": "fact", "createdAt": 1}
        for text in texts
    ]
    folder = tmp_path / "openclaw"
    lancedb.connect(str(folder)).create_table("memories", rows)
    memories = memories_in(tmp_path, uri=str(folder))
    quokka, gate = (next(m for m in memories.page() if word in m.text) for word in ("quokka", "gate"))
    memories.forget([quokka])
    memories.keeper.change(gate, text="The gate closes at nine")
    assert not texts_on_disk(tmp_path, "quokka") and not texts_on_disk(tmp_path, "at eight")
    assert lancedb.connect(str(folder)).open_table("memories_v0").to_arrow()["text"].to_pylist() == ["I prefer tea"]
    memories.forget_all()
    assert not texts_on_disk(tmp_path, "prefer tea") and not (folder / "memories_v0.lance").exists()


def test_tombstones_stay_few_files(tmp_path: Path) -> None:
    memories = memories_in(tmp_path)
    for number in range(12):
        memories.keeper.keep(f"Box {number} is blue", OWN)
        memories.forget(memories.page())
    folder = tmp_path / "agents/main/lancedb/forgotten.lance"
    assert memories.stats().forgotten == 12
    assert len(list((folder / "data").iterdir())) <= 2 and len(list((folder / "_versions").glob("*.manifest"))) <= 2


def test_an_index_of_words_that_is_missing_is_made_again(tmp_path: Path) -> None:
    import shutil

    memories = memories_in(tmp_path)
    for text in STAYS:
        memories.keeper.keep(text, OWN)
    memories.close()
    shutil.rmtree(tmp_path / "agents/main/lancedb/memories.lance/_indices")
    found = memories_in(tmp_path).search(SearchQuery("when does the gate close"))
    assert found.hits[0].snippet == "The gate closes at eight" and found.degraded is None


# --- folders that are damaged, foreign or closed -------------------------------------------------------------


def is_said(memories: Memories, *expected: str) -> None:
    """Every door tells the same, with what to do, and nothing is written."""
    for act in (
        lambda: memories.search(SearchQuery("tea")),
        lambda: memories.keeper.keep("My bicycle is red", OWN),
        memories.page,
        memories.forget_all,
        memories.sync,
    ):
        with pytest.raises(MemoryUnavailable) as said:
            act()
        assert said.value.hint and all(part in str(said.value) for part in expected), str(said.value)
        assert ".rs:" not in str(said.value)
    problem = memories.status()["problem"]
    assert all(part in problem for part in expected)


def test_a_file_in_place_of_the_folder_is_said(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.write_text("in the way")
    is_said(memories_in(tmp_path, uri=str(place)), str(place))
    assert place.read_text() == "in the way"


def test_a_name_that_no_folder_can_have_is_said(tmp_path: Path) -> None:
    is_said(memories_in(tmp_path, uri=str(tmp_path / ("x" * 300))), "File name too long")


def test_a_folder_that_may_not_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = memories_in(tmp_path)
    memories.keeper.keep("I prefer tea", OWN)
    memories.close()

    def closed(path: Path, *arguments: object, **named: object) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    for name in ("stat", "mkdir"):  # tests may run as root, who may do everything
        monkeypatch.setattr(Path, name, closed)
    is_said(memories_in(tmp_path), "Permission denied")


@pytest.mark.parametrize("part", ["_versions/*", "data/*"])
@pytest.mark.parametrize("damage", ["truncated", "gone"])
def test_damage_is_said_with_the_table(tmp_path: Path, part: str, damage: str) -> None:
    memories = memories_in(tmp_path)
    for text in STAYS:
        memories.keeper.keep(text, OWN)
    memories.close()
    table = tmp_path / "agents/main/lancedb/memories.lance"
    files = [path for path in table.glob(part) if path.is_file()]
    if damage == "gone" and part.startswith("data"):
        files[0].unlink()
    else:
        for path in files:
            path.write_bytes(path.read_bytes()[:9])
    is_said(memories_in(tmp_path), str(table))


@pytest.mark.parametrize(
    "row",
    [
        {"x": 1, "vector": [1.0, 2.0]},
        {"id": 7, "text": "hello", "importance": "high", "createdAt": "2024-01-01", "vector": [1.0, 2.0]},
    ],
)
def test_a_table_of_something_else_is_left_alone(tmp_path: Path, row: dict[str, Any]) -> None:
    import lancedb

    folder = tmp_path / "agents/main/lancedb"
    lancedb.connect(str(folder)).create_table("memories", [row])
    is_said(memories_in(tmp_path), "not of memories", "createdAt")
    left = lancedb.connect(str(folder))
    assert left.open_table("memories").to_arrow().drop_columns(["vector"]).to_pylist() == [
        {name: value for name, value in row.items() if name != "vector"}
    ]
    assert not (folder / "memories_v0.lance").exists()


def test_damaged_tombstones_are_told_apart(tmp_path: Path) -> None:
    memories = memories_in(tmp_path)
    for text in STAYS:
        memories.keeper.keep(text, OWN)
    memories.forget(memories.page(0, 1))
    memories.close()
    for path in (tmp_path / "agents/main/lancedb/forgotten.lance").rglob("*"):
        if path.is_file():
            path.write_bytes(b"junk")
    second = memories_in(tmp_path)
    assert second.search(SearchQuery("tea gate")).hits
    with pytest.raises(MemoryUnavailable, match=r"forgotten\.lance"):
        second.forget(second.page())
    assert len(second.page()) == 1
