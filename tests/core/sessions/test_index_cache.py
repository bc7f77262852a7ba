"""sessions.json is decoded again exactly when it has changed, and nobody can change what is kept of it.

G13, G14 and G11 are rows of the list of edge cases of session stores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lamella.sessions.index import SessionIndex
from lamella.sessions.index_file import IndexFile, decode_index, encode_index

KEY = "agent:main:main"
UPDATE = """
import sys
from pathlib import Path
from lamella.sessions.index import SessionIndex
SessionIndex(Path(sys.argv[1])).patch("agent:main:main", {"label": sys.argv[2]})
"""


@pytest.fixture
def index(tmp_path: Path) -> SessionIndex:
    """An index of one session that was written a while ago."""
    index = SessionIndex(tmp_path)
    index.update(KEY, lambda _none: {"sessionId": "s", "updatedAt": 1, "label": "a", "origin": {"from": "x"}})
    an_hour_ago = time.time() - 3600
    os.utime(index.path, (an_hour_ago, an_hour_ago))
    return index


def test_an_unchanged_file_is_decoded_once(index: SessionIndex) -> None:
    file = IndexFile(index.path)
    assert file.content() is file.content()
    assert file.fresh().sessions == file.content().sessions
    assert file.fresh() is not file.content()


def test_g13_a_change_by_another_process_is_seen(index: SessionIndex, tmp_path: Path) -> None:
    for label in ("b", "c"):  # of the same length
        subprocess.run([sys.executable, "-c", UPDATE, str(tmp_path), label], check=True)
        assert (index.get(KEY) or {})["label"] == label


def test_g13_every_change_is_seen_however_fast_they_follow(index: SessionIndex) -> None:
    for number in range(200):
        text = json.dumps({KEY: {"sessionId": "s", "label": f"{number:03}"}})
        index.path.write_text(text)  # written into, not replaced: same inode, same size
        assert (index.get(KEY) or {})["label"] == f"{number:03}"


def test_a_file_that_goes_and_comes_back_is_seen(index: SessionIndex) -> None:
    assert index.get(KEY)
    data = index.path.read_bytes()
    index.path.unlink()
    assert index.get(KEY) is None
    index.path.write_bytes(data)
    assert index.get(KEY)


def test_g14_what_callers_do_with_an_entry_changes_nothing(index: SessionIndex) -> None:
    for entry in (index.get(KEY), index.load().sessions[KEY]):
        assert entry is not None
        entry["label"] = "changed"
        entry["origin"]["from"] = "changed"
    assert index.get(KEY) == index.load().sessions[KEY] == json.loads(index.path.read_bytes())[KEY]


def test_g11_what_does_not_change_is_not_written(index: SessionIndex) -> None:
    before = index.path.stat()
    index.patch(KEY, {"label": "a"}, touch=False)
    assert os.path.samestat(before, index.path.stat())
    assert before.st_mtime_ns == index.path.stat().st_mtime_ns


def test_what_others_write_is_read_and_comes_out_as_strict_json() -> None:
    data = b'\xef\xbb\xbf{"a": {"label": "\\ud83d", "n": 1e400, "provider": "x"}}'
    content = decode_index(Path("sessions.json"), data)
    assert content.problem is None
    written = encode_index(content.sessions)
    assert json.loads(written) == {"a": {"label": "\ufffd", "n": None, "channel": "x"}}
    assert decode_index(Path("sessions.json"), written).sessions == json.loads(written)
    assert b'\n  "a": {\n    "label"' in written
