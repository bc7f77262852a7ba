"""The program `qmd`: where it is, which version, and the environment that it runs in."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from lamella.text.files import write_atomic
from lamella_qmd_backend.faults import INSTALL, Kind, QmdFailed, failure_of, not_found
from lamella_qmd_backend.output import parse_version
from lamella_qmd_backend.runner import Runner

_VERSION_SECONDS = 10.0
# Variables by which QMD and Node find their files; the child gets its own.
_OWN = ("QMD_", "XDG_", "INDEX_PATH", "CI", "NODE_OPTIONS")


@frozen(slots=True)
class Version:
    """A version of QMD, and what depends on it: flags that it does not know it passes over in silence."""

    number: tuple[int, int, int]

    def __str__(self) -> str:
        return ".".join(map(str, self.number))

    @property
    def has_structured_queries(self) -> bool:
        """`query "lex: ..." --no-rerank` without any model, and `qmd mcp` with the same."""
        return self.number >= (2, 1, 0)

    @property
    def writes_slugs(self) -> bool:
        """Paths of results are changed."""
        return self.number < (2, 8, 0)

    @property
    def has_light_status(self) -> bool:
        """`qmd status` loads no models; before, it may begin to compile some."""
        return self.number >= (2, 5, 0)


def locate(command: str) -> tuple[str, ...]:
    """The words of a configured command, the first as an absolute path. Raises `QmdFailed`."""
    words = shlex.split(command)
    name = os.path.expanduser(words[0])  # noqa: PTH111
    found = shutil.which(name, path=os.environ.get("PATH") or os.defpath)
    if found is not None:
        return (os.path.abspath(found), *words[1:])  # noqa: PTH100
    if os.sep in name and Path(name).exists():
        what = "is a folder" if Path(name).is_dir() else "is not executable"
        raise QmdFailed(f"the program {name!r} {what}", Kind.PROGRAM, hint=INSTALL)
    raise not_found(name)


def own_environment(program: str) -> dict[str, str]:
    """The environment of the user, for the user's own index."""
    return {**os.environ, **_basics(program), "NO_COLOR": "1"}


def private_environment(program: str, folder: Path, cache: Path, busy_seconds: float, context: int) -> dict[str, str]:
    """An environment in which QMD reads and writes below `folder` and `cache` only."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
    models = {"QMD_EMBED_CONTEXT_SIZE": str(context)} if context else {}
    return {
        **kept,
        **_basics(program),
        **models,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "XDG_CACHE_HOME": str(cache),
        "XDG_DATA_HOME": str(folder),
        "QMD_CONFIG_DIR": str(folder / "config"),
        "QMD_SQLITE_BUSY_TIMEOUT": str(round(busy_seconds * 1000)),
        "NO_COLOR": "1",
    }


def read_version(runner: Runner, memo: Path) -> Version:
    """The version of the program: asked once, and kept in a file as long as the program stays the same.

    Raises `QmdFailed`.
    """
    stamp = _stamp(runner.command)
    known = _known(memo)
    if known.get("program") == stamp and (number := parse_version(str(known.get("version")))):
        return Version(number)
    ran = runner.run("--version", timeout=_VERSION_SECONDS, cap=10_000)
    number = parse_version(ran.out)
    if number is None or ran.code != 0:
        failed = failure_of(ran, "qmd --version")
        raise QmdFailed(str(failed), Kind.PROGRAM, hint=failed.hint or INSTALL)
    version = Version(number)
    write_atomic(memo, json.dumps({"program": stamp, "version": str(version)}).encode())
    return version


def _basics(program: str) -> dict[str, str]:
    """PATH, with the program's folder first: Node is often beside it, and services have short paths."""
    path = os.environ.get("PATH") or os.defpath
    return {"PATH": os.pathsep.join((os.path.dirname(program), path))}  # noqa: PTH120


def _stamp(command: tuple[str, ...]) -> list[object]:
    """What changes when the program does."""
    real = os.path.realpath(command[0])
    try:
        status = Path(real).stat()
    except OSError:
        return [*command, real]
    return [*command, real, status.st_size, status.st_mtime_ns]


def _known(memo: Path) -> Mapping[str, object]:
    try:
        value = json.loads(memo.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
