"""What the doctor finds, and the checks that find it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrs import field, frozen

if TYPE_CHECKING:
    from lamella.runtime import Runtime

# A note is unusual, and nothing is wrong: it has no command, and leaves the exit code as it is.
Level: TypeAlias = Literal["error", "warning", "note"]

# The command of what `--fix` mends itself.
FIX = "lamella doctor --fix"


@frozen(slots=True)
class Finding:
    """One thing that is wrong. `where`: a file or a setting; `command`: the one that mends it, or empty.

    `mend` does it, and says what was done and where the old state is kept; None where only people can.
    It raises `LamellaError` or `OSError` when it cannot.
    """

    level: Level
    where: str
    message: str
    command: str = ""
    mend: Callable[[], str] | None = field(default=None, eq=False, repr=False)


@frozen(slots=True)
class Check:
    """A part of the examination. It looks only; `run` gives what is wrong."""

    name: str
    about: str
    run: Callable[[Runtime], Iterable[Finding]]


@frozen(slots=True)
class Result:
    """A finding of a check, and what became of it: `mended` says what was done, `failed` why it was not."""

    check: str
    finding: Finding
    mended: str = ""
    failed: str = ""

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do."""
        return bool(self.mended) or self.finding.level == "note"

    def to_json(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "level": self.finding.level,
            "where": self.finding.where,
            "message": self.finding.message,
            "command": self.finding.command,
            "mended": self.mended or None,
            "failed": self.failed or None,
        }
