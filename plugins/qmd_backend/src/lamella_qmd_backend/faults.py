"""What went wrong with qmd, from what can be seen outside. Pure."""

from __future__ import annotations

import errno
import re
import signal
from enum import Enum
from pathlib import Path

from attrs import field, frozen

from lamella.errors import MemoryUnavailable

INSTALL = (
    "Install it with `npm install -g @tobilu/qmd` (it needs Node 22 or newer), or give its full path in"
    " plugins.config.qmd-backend.command."
)
NODE = "QMD needs Node 22 or newer where lamella runs; `node --version` shows which one is found."

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_STACK = re.compile(
    r"\s+at |Node\.js v|node:internal|file:///|\s*\^+\s*\Z|\s*throw |\s*[{}\[\]]|\s*(code|errno|syscall):"
)
_TELLING = re.compile(r"error|not found|cannot|failed|locked|denied|refused|no such|no space|read-only|malformed", re.I)
_WARNING = re.compile(r"\s*(?:QMD )?Warning:")
_COLLECTION = re.compile(r"Collection not found: (.*)")
_LONGEST = 300


@frozen(slots=True)
class Ran:
    """How a run ended. `code` as Python gives it: negative for a signal. `out` and `err` are what was kept."""

    code: int
    out: str = field(repr=False)
    err: str = field(repr=False)
    timed_out: bool = False
    overflowed: bool = False
    seconds: float = 0.0


class Kind(Enum):
    """What a failure calls for."""

    PROGRAM = "program"  # it cannot be started, or its runtime is wrong
    TIME = "time"
    OUTPUT = "output"
    BUSY = "busy"
    COLLECTION = "collection"
    CORRUPT = "corrupt"
    SETTINGS = "settings"  # index.yml cannot be read
    OTHER = "other"


class QmdFailed(MemoryUnavailable):
    """qmd did not do what it was asked for."""

    def __init__(self, reason: str, kind: Kind = Kind.OTHER, *, hint: str = "") -> None:
        super().__init__(reason, hint=hint)
        self.kind = kind


def not_found(command: str) -> QmdFailed:
    """The program that was configured is nowhere."""
    return QmdFailed(f"the program {command!r} is not found", Kind.PROGRAM, hint=INSTALL)


def not_started(command: str, error: OSError | ValueError) -> QmdFailed:
    """The system refused to start it."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.E2BIG:
        return QmdFailed("the question is too long for a command line", Kind.OTHER)
    reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
    return QmdFailed(f"{command} cannot be started: {reason}", Kind.PROGRAM, hint=INSTALL)


def failure_of(ran: Ran, what: str) -> QmdFailed:
    """Why a run was no success; `what` names the command, such as `qmd update`."""
    told = without_ansi(f"{ran.err}\n{ran.out[:20_000]}")
    if ran.overflowed:
        return QmdFailed(f"{what} gave more output than expected", Kind.OUTPUT)
    if ran.timed_out:
        return QmdFailed(f"{what} took longer than {ran.seconds:.0f} s{_while_saying(ran)}", Kind.TIME)
    if ran.code < 0:
        return _by_signal(-ran.code, what)
    if ran.code in (126, 127):
        missing_node = "node" in told.lower()
        hint = NODE if missing_node else INSTALL
        return QmdFailed(f"{what} failed: {first_line(told) or f'code {ran.code}'}", Kind.PROGRAM, hint=hint)
    if ran.code > 128:
        return _by_signal(ran.code - 128, what)
    if ran.code == 0:
        return QmdFailed(f"{what} gave no answer that can be read", Kind.OUTPUT)
    return QmdFailed(f"{what} failed: {first_line(told) or f'code {ran.code}, without a word'}", kind_of(told))


def kind_of(told: str) -> Kind:
    """What a text of qmd says has happened."""
    if _COLLECTION.search(told):
        return Kind.COLLECTION
    if "SQLITE_BUSY" in told or "database is locked" in told:
        return Kind.BUSY
    if any(sign in told for sign in ("SQLITE_NOTADB", "SQLITE_CORRUPT", "not a database", "is malformed")):
        return Kind.CORRUPT
    if "Failed to parse" in told and "yml" in told:
        return Kind.SETTINGS
    return Kind.OTHER


def first_line(told: str) -> str:
    """The line that says most, without what a stack trace adds, at most 300 characters; home is `~`."""
    lines = [line for line in told.splitlines() if line.strip() and not _STACK.match(line)]
    lines = [line for line in lines if not _WARNING.match(line)] or lines
    telling = next((line for line in lines if _TELLING.search(line)), lines[0] if lines else "")
    shown = " ".join(telling.split()).replace(str(Path.home()), "~")
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."


def without_ansi(text: str) -> str:
    """A text without what moves a terminal's cursor."""
    return _ANSI.sub("", text)


def _by_signal(number: int, what: str) -> QmdFailed:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    too_old = number in (signal.SIGSEGV, signal.SIGILL, getattr(signal, "SIGBUS", signal.SIGSEGV))
    guess = " (Node too old?)" if too_old else ""
    hint = NODE if too_old else ""
    return QmdFailed(
        f"{what} was killed by signal {number}, {name}{guess}", Kind.PROGRAM if too_old else Kind.OTHER, hint=hint
    )


def _while_saying(ran: Ran) -> str:
    last = [line.strip() for line in without_ansi(ran.err).splitlines() if line.strip()]
    return f" (last said: {last[-1][:100]})" if last else ""
