"""The folder of the private index: locks in it, and a cache folder for each generation of the index."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import filelock

_CACHE = "cache-"


@contextlib.contextmanager
def held(folder: Path, what: str, seconds: float) -> Iterator[bool]:
    """Whether this process alone does something now, after waiting so many seconds for others."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / f".{what}.lock", timeout=seconds, thread_local=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def cache_of(folder: Path, generation: int) -> Path:
    """Where the database of a generation is."""
    return folder / f"{_CACHE}{generation}"


def generations(folder: Path) -> list[int]:
    """All that there are, those put aside as broken too."""
    names = (path.name.removeprefix(_CACHE).partition(".")[0] for path in folder.glob(f"{_CACHE}*"))
    return [int(name) for name in names if name.isdecimal()]


def remove_others(folder: Path, generation: int) -> list[int]:
    """Remove all generations but one, but for the one put aside as broken; which they were."""
    removed = []
    for path in folder.glob(f"{_CACHE}*"):
        number = path.name.removeprefix(_CACHE)
        if number.isdecimal() and int(number) != generation:
            shutil.rmtree(path, ignore_errors=True)
            removed.append(int(number))
    return removed


def put_aside(folder: Path, generation: int) -> Path:
    """Move a broken generation out of the way; only the last one is kept."""
    for older in folder.glob(f"{_CACHE}*.broken"):
        shutil.rmtree(older, ignore_errors=True)
    broken = folder / f"{_CACHE}{generation}.broken"
    with contextlib.suppress(OSError):
        cache_of(folder, generation).rename(broken)
    return broken


def share(link: Path, folder: Path) -> None:
    """Make a folder appear in another place too: downloaded models outlive the index."""
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        link.symlink_to(folder, target_is_directory=True)
