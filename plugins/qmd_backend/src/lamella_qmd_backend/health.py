"""Whether QMD works: only a command that opens the index tells. `qmd --version` works where nothing else does."""

from __future__ import annotations

from typing import Protocol

from lamella_qmd_backend.faults import Kind, QmdFailed, failure_of
from lamella_qmd_backend.output import IndexFacts, parse_results, parse_status
from lamella_qmd_backend.program import Version
from lamella_qmd_backend.runner import INDEX, Runner

_CAP = 200_000


class _Index(Protocol):
    mended_by: str

    def runner(self) -> Runner: ...

    def version(self) -> Version: ...


def check_health(index: _Index, seconds: float) -> IndexFacts:
    """What `qmd status` tells of the index; a search in versions whose status loads models.

    Raises `QmdFailed`.
    """
    if index.version().has_light_status:
        ran = index.runner().run(*INDEX, "status", timeout=seconds, cap=_CAP)
        facts = parse_status(ran.out)
        if ran.code != 0 or ran.timed_out or facts.documents is None:
            raise _hinting(failure_of(ran, "qmd status"), index)
        return facts
    ran = index.runner().run(*INDEX, "search", "--json", "-n", "1", "--", "lamella", timeout=seconds, cap=_CAP)
    if ran.code != 0 or parse_results(ran.out, ran.err) is None:
        raise _hinting(failure_of(ran, "qmd search"), index)
    return IndexFacts()


def _hinting(failed: QmdFailed, index: _Index) -> QmdFailed:
    if failed.kind in (Kind.CORRUPT, Kind.SETTINGS):
        failed.hint = index.mended_by
    return failed
