"""The whole examination, check by check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from lamella.doctor.configuration import check_configuration, check_memory, check_plugins, check_workspace
from lamella.doctor.finding import Check, Finding, Result
from lamella.doctor.machine import check_clocks, check_permissions
from lamella.doctor.sessions import check_compactions, check_index, check_locks, check_transcripts
from lamella.errors import LamellaError

if TYPE_CHECKING:
    from lamella.runtime import Runtime

CONFIGURATION = Check("config", "settings, of plugins too", check_configuration)
CHECKS = (
    CONFIGURATION,
    Check("plugins", "what is installed can be loaded", check_plugins),
    Check("workspace", "the agent's folder", check_workspace),
    Check("memory", "the backend answers", check_memory),
    Check("permissions", "files can be read and written, and not by everybody", check_permissions),
    Check("locks", "no lock outlives its owner", check_locks),
    Check("index", "sessions.json and its pointers", check_index),
    Check("transcripts", "every line of every session", check_transcripts),
    Check("compactions", "they free enough, and flush before", check_compactions),
    Check("clocks", "no time lies ahead", check_clocks),
)


@frozen(slots=True)
class Diagnosis:
    """What was found, and the names of the checks that were made and that could not be made."""

    results: tuple[Result, ...]
    made: tuple[str, ...]
    skipped: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong any more."""
        return not self.skipped and all(result.settled for result in self.results)


def examine(open_runtime: Callable[[], Runtime], *, fix: bool = False, checks: Sequence[Check] = CHECKS) -> Diagnosis:
    """Make the checks of an agent; with `fix`, mend what can be mended.

    A configuration that cannot be used hides where everything else is: without it, only that is told.
    """
    results: list[Result] = []
    made: list[str] = []
    runtime = open_runtime()
    try:
        for check in checks:
            if check is not CONFIGURATION and not _usable(runtime):
                return Diagnosis(tuple(results), tuple(made), tuple(c.name for c in checks if c.name not in made))
            results += _results(check, runtime, fix)
            made.append(check.name)
            if check is CONFIGURATION and any(result.mended for result in results):
                runtime.close()
                runtime = open_runtime()
    finally:
        runtime.close()
    return Diagnosis(tuple(results), tuple(made))


def _usable(runtime: Runtime) -> bool:
    try:
        _ = runtime.config
    except LamellaError:
        return False
    return True


def _results(check: Check, runtime: Runtime, fix: bool) -> Iterator[Result]:
    """The findings of a check; that it cannot be made is one."""
    try:
        found = list(check.run(runtime))  # all are found before the first is mended
    except (LamellaError, OSError) as error:
        found = [Finding("error", check.name, str(error))]
    for finding in found:
        yield _mended(check, finding) if fix else Result(check.name, finding)


def _mended(check: Check, finding: Finding) -> Result:
    if finding.mend is None:
        return Result(check.name, finding)
    try:
        return Result(check.name, finding, mended=finding.mend())
    except (LamellaError, OSError) as error:
        return Result(check.name, finding, failed=str(error))
