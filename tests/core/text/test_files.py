import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.text.files import decode_text, split_lines, write_atomic


def test_reading_keeps_line_ends_and_drops_the_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"\xef\xbb\xbf# Title\r\n- a\rb\r\nlast\n")
    read = decode_text(path.read_bytes())
    assert (read.text, read.bom, read.newline, read.replaced) == ("# Title\r\n- a\rb\r\nlast\n", True, "\r\n", 0)


def test_bad_bytes_are_replaced_and_counted() -> None:
    decoded = decode_text(b"caf\xe9 na\xefve \xef\xbf\xbd ok")
    assert decoded.text == "caf\ufffd na\ufffdve \ufffd ok"
    assert decoded.replaced == 2


def test_utf16_is_recognised_by_its_mark() -> None:
    decoded = decode_text("日本\n".encode("utf-16"))
    assert (decoded.text, decoded.encoding) == ("日本\n", "utf-16")


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", []), ("a", ["a"]), ("a\n", ["a"]), ("a\r\n\r\nb", ["a", "", "b"]), ("a\rb\u2028c\x0c", ["a\rb\u2028c\x0c"])],
)
def test_lines_are_those_of_an_editor(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


@given(st.binary())
def test_decoding_never_fails(data: bytes) -> None:
    decode_text(data).text.encode("utf-8")


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_atomic(path, b"one", mode=0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a", tmp_path / "link"
    target.write_bytes(b"one")
    link.symlink_to(target)
    write_atomic(link, b"two")
    assert link.is_symlink()
    assert target.read_bytes() == b"two"


def test_a_name_of_full_length_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 127)
    write_atomic(path, b"x")
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_failure_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(*_arguments: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError, match=str(path)) as caught:
            write_atomic(path, b"new" * 1000)
    assert caught.value.errno == code
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"


def test_writes_that_take_only_part_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
    write_atomic(tmp_path / "a", b"0123456789" * 10)
    assert (tmp_path / "a").read_bytes() == b"0123456789" * 10


def test_what_a_killed_writer_left_is_removed_and_a_living_ones_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    stuck = (
        "import os, sys, time, pathlib\n"
        "from lamella.text.files import write_atomic\n"
        "os.fsync = lambda fd: time.sleep(60)\n"
        "write_atomic(pathlib.Path(sys.argv[1]), b'half')\n"
    )
    with subprocess.Popen([sys.executable, "-c", stuck, str(path)]) as process:
        try:
            while len(list(tmp_path.iterdir())) < 2:
                assert process.poll() is None
                time.sleep(0.01)
            temporary = next(p for p in tmp_path.iterdir() if p != path)
            while not temporary.read_bytes():
                time.sleep(0.01)
            write_atomic(path, b"while the other one lives")
            assert temporary.exists()
        finally:
            process.send_signal(signal.SIGKILL)
    assert path.read_bytes() == b"while the other one lives"
    write_atomic(path, b"afterwards")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
