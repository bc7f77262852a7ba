"""Names of archives, as OpenClaw 2026.3.13 reads and writes them; recorded from its functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.sessions.archive import ArchiveKind, ArchiveName, is_live_name, parse_archive_name, put_aside

ROWS = json.loads((Path(__file__).parents[2] / "data/context/sessions.json").read_text())
# Copies of sessions.json are no transcripts; `lamella.sessions.maintenance` knows them by another name.
BACKUPS_OF_THE_INDEX = "sessions.json.bak."


def recorded(group: str) -> list[Any]:
    return [pytest.param(row, id=row["name"]) for row in ROWS if row["group"] == group]


@pytest.mark.parametrize("row", recorded("archive.name"))
def test_g42_names_are_told_apart(row: Any) -> None:
    name, expected = row["input"]["name"], row["output"]
    found = parse_archive_name(name)
    assert (found is not None or name.startswith(BACKUPS_OF_THE_INDEX)) == expected["archive"]
    assert is_live_name(name) == expected["primary"]
    assert (found.at if found is not None and found.kind == "reset" else None) == expected["resetTs"]


@pytest.mark.parametrize("row", recorded("archive.stamp"))
def test_stamps(row: Any) -> None:
    assert str(ArchiveName("a.jsonl", "reset", row["input"]["ms"])) == f"a.jsonl.reset.{row['output']}"


@given(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1),
    st.sampled_from(["reset", "deleted", "bak"]),
    st.integers(0, 4_000_000_000_000),
)
def test_a_name_says_what_it_was_made_of(stem: str, kind: ArchiveKind, at: int) -> None:
    name = ArchiveName(f"{stem}.jsonl", kind, at)
    assert parse_archive_name(str(name)) == name


def test_transcripts_put_aside_in_the_same_moment_get_names_of_their_own(tmp_path: Path) -> None:
    transcript, archives = tmp_path / "s.jsonl", []
    for number in range(20):
        transcript.write_text(str(number))
        archives.append(put_aside(transcript, "reset"))
    assert [path.read_text() for path in archives] == [str(n) for n in range(20)]
    assert not transcript.exists()
