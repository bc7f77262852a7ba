"""What limits ask to be put aside or removed: rows G16 to G24 of the edge cases of session stores, and invariants."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lamella.config.schema import MaintenanceSection
from lamella.sessions.archive import ArchiveName
from lamella.sessions.index_file import Sessions
from lamella.sessions.maintenance import Inventory, Limits, Plan, StoredFile, plan

DAY = 86_400_000.0
NOW = 1_800_000_000_000.0
DEFAULTS = Limits.of(MaintenanceSection())
NONE = Limits()


def entry(session_id: str, age_days: float | None) -> dict[str, object]:
    times = {} if age_days is None else {"updatedAt": int(NOW - age_days * DAY)}
    return {"sessionId": session_id, **times}


def inventory(sessions: Sessions, *more: StoredFile, size: int = 100, **fields: object) -> Inventory:
    """A folder in which each session has a transcript of so many bytes."""
    names = {key: f"{value['sessionId']}.jsonl" for key, value in sessions.items()}
    files = [StoredFile(name, size, NOW) for name in sorted(set(names.values()))]
    return evolve(Inventory(NOW, sessions, (*files, *more), names), **fields)


def archive(name: str, kind: str, age_days: float, size: int = 10) -> StoredFile:
    at = int(NOW - age_days * DAY)
    return StoredFile(str(ArchiveName(f"{name}.jsonl", kind, at)), size, at)  # type: ignore[arg-type]


def shown(found: Plan) -> list[tuple[str, str]]:
    return [(step.action, step.key or step.file) for step in found.steps]


def test_g16_an_entry_without_a_time_is_not_pruned_by_age() -> None:
    found = inventory({"a": entry("a", None), "b": entry("b", 31), "c": entry("c", 29)})
    assert shown(plan(found, DEFAULTS)) == [("archive", "b")]


def test_g17_an_entry_without_a_time_goes_first_above_the_most() -> None:
    found = inventory({"new": entry("n", 1), "none": entry("x", None), "old": entry("o", 5)})
    assert shown(plan(found, Limits(entries=2))) == [("archive", "none")]
    assert shown(plan(found, Limits(entries=1))) == [("archive", "none"), ("archive", "old")]


@pytest.mark.parametrize("limits", [Limits(unused_ms=DAY), Limits(entries=1), NONE.with_bytes(1)])
def test_g19_protected_and_running_sessions_stay(limits: Limits) -> None:
    sessions = {"active": entry("a", 90), "running": entry("r", 80), "other": entry("o", 70), "newest": entry("n", 60)}
    found = inventory(sessions, protected=frozenset({"active"}), busy=frozenset({"r.jsonl"}))
    touched = {name for _, name in shown(plan(found, limits))}
    assert "other" in touched
    assert touched.isdisjoint({"active", "running"})


def test_g20_a_transcript_that_another_entry_has_stays() -> None:
    found = inventory({"old": entry("same", 40), "new": entry("same", 1)})
    assert shown(plan(found, DEFAULTS)) == [("forget", "old")]
    assert shown(plan(evolve(found, sessions={"old": entry("same", 40)}), DEFAULTS)) == [("archive", "old")]


def test_g21_k05_archives_are_deleted_when_their_time_is_over() -> None:
    files = [archive("r", "reset", 40), archive("d", "deleted", 40), archive("b", "bak", 40), archive("n", "reset", 29)]
    found = inventory({}, *files)
    assert shown(plan(found, DEFAULTS)) == [("delete", files[0].name), ("delete", files[1].name)]
    never = Limits.of(MaintenanceSection(reset_archive_retention="never"))
    assert shown(plan(found, never)) == [("delete", files[1].name)]
    short = Limits.of(MaintenanceSection(reset_archive_retention="12h"))
    assert {name for _, name in shown(plan(found, short))} == {files[0].name, files[1].name, files[3].name}


def test_g22_a_large_index_is_copied_and_the_newest_copies_stay() -> None:
    copies = [StoredFile(f"sessions.json.bak.{n}", 5, NOW) for n in (1, 2, 3, 4)]
    index = StoredFile("sessions.json", 11 * 1024**2, NOW)
    found = plan(inventory({}, index, *copies), DEFAULTS)
    assert shown(found) == [("back_up", "sessions.json"), ("delete", copies[0].name), ("delete", copies[1].name)]
    assert not plan(inventory({}, evolve(index, size=10 * 1024**2), *copies), DEFAULTS).steps


def test_g23_of_a_full_folder_the_oldest_archives_go_down_to_the_high_water() -> None:
    files = [archive(f"a{age}", "reset", age, 100_000) for age in range(20)]
    limits = NONE.with_bytes(1_000_000)
    found = plan(inventory({}, *files), limits)
    assert shown(found) == [("delete", file.name) for file in reversed(files[8:])]
    assert found.after == 800_000
    assert not plan(inventory({}, *files[:10]), limits).steps


def test_g24_then_the_oldest_sessions_go_with_their_transcripts() -> None:
    sessions = {name: entry(name, age) for name, age in (("a", 1), ("b", 3), ("c", 2))}
    orphan, old = StoredFile("orphan.jsonl", 400, NOW - 5), archive("x", "bak", 1, 400)
    found = plan(inventory(sessions, orphan, old, size=400), NONE.with_bytes(1000))
    assert shown(found) == [("delete", old.name), ("delete", "orphan.jsonl"), ("remove", "b")]
    assert not found.missed
    held = plan(inventory(sessions, size=400, protected=frozenset("abc")), NONE.with_bytes(1000))
    assert (held.steps, held.missed) == ((), True)


def test_what_is_put_aside_counts_as_an_archive_of_a_full_folder() -> None:
    found = plan(inventory({"old": entry("o", 40), "new": entry("n", 1)}, size=1000), DEFAULTS.with_bytes(1500))
    (step,) = found.steps
    assert (step.action, step.key, step.file, step.size) == ("remove", "old", "o.jsonl", 1000)


def test_limits_of_a_configuration() -> None:
    limits = Limits.of(MaintenanceSection(prune_after="7", max_disk_bytes="1mb", high_water_bytes="2mb"))
    assert limits.unused_ms == limits.reset_ms == limits.deleted_ms == 7 * DAY
    assert limits.left_bytes == limits.most_bytes == 1024**2
    assert Limits.of(MaintenanceSection(max_disk_bytes="1kb")).left_bytes == 819


AGES = st.one_of(st.none(), st.floats(0, 100))
FOLDERS = st.builds(
    lambda ages, archives, busy, protected: inventory(
        {f"k{i}": entry(f"s{i // 2}", age) for i, age in enumerate(ages)},
        *(archive(f"a{i}", kind, age, 50) for i, (kind, age) in enumerate(archives)),
        busy=frozenset(f"s{i}.jsonl" for i in busy),
        protected=frozenset(f"k{i}" for i in protected),
    ),
    st.lists(AGES, max_size=8),
    st.lists(st.tuples(st.sampled_from(["reset", "deleted", "bak"]), st.floats(0, 100)), max_size=6),
    st.sets(st.integers(0, 4)),
    st.sets(st.integers(0, 8)),
)
LIMITS = st.builds(
    lambda unused, entries, most: Limits(unused, entries, unused, unused).with_bytes(most),
    st.one_of(st.none(), st.floats(0, 100 * DAY)),
    st.one_of(st.none(), st.integers(0, 8)),
    st.one_of(st.none(), st.integers(0, 1000)),
)


@given(FOLDERS, LIMITS)
def test_a_plan_takes_each_thing_once_and_nothing_that_is_in_use(found: Inventory, limits: Limits) -> None:
    steps = plan(found, limits).steps
    keys, files = [s.key for s in steps if s.key], [s.file for s in steps if s.file]
    assert len(set(keys)) == len(keys)
    assert len(set(files)) == len(files)
    assert found.protected.isdisjoint(keys)
    assert found.busy.isdisjoint(files)
    kept = found.sessions.keys() - set(keys)
    assert {found.transcripts[key] for key in kept}.isdisjoint(files)
    if limits.entries is not None and not (found.protected or found.busy):
        assert len(kept) <= limits.entries
    assert plan(found, NONE).steps == ()
