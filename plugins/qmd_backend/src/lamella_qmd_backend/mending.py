"""Asking the private index, and mending what a question finds broken."""

from __future__ import annotations

import logging
import time

from attrs import evolve

from lamella.memory.errand import StillRunning
from lamella_qmd_backend.asking import Asker, Question
from lamella_qmd_backend.faults import Kind, QmdFailed
from lamella_qmd_backend.health import check_health
from lamella_qmd_backend.index import PrivateIndex
from lamella_qmd_backend.output import Result
from lamella_qmd_backend.upkeep import Background

_PAUSE = 0.1  # between looks at what another process makes
_SETTINGS = (Kind.COLLECTION, Kind.SETTINGS)

log = logging.getLogger(__name__)


class Mender:
    """Asks once more when what is broken could be mended; a broken database is put aside and made anew."""

    def __init__(self, index: PrivateIndex, asker: Asker, background: Background) -> None:
        self._index = index
        self._asker = asker
        self._background = background
        self._known_full = ""  # the state of the index of which is known that its database holds something

    def wait_for_first_index(self, seconds: float) -> None:
        """Make the index, or wait until another process has. Raises `QmdFailed` when that takes too long."""
        deadline = time.monotonic() + seconds
        while not self._index.is_made():
            try:
                self._background.update().result(max(deadline - time.monotonic(), 0.0))
            except StillRunning:
                raise QmdFailed("QMD's index is still being made", Kind.TIME) from None
            if self._index.is_made():
                return
            if time.monotonic() >= deadline:
                raise QmdFailed("QMD's index is being made by another program", Kind.TIME)
            time.sleep(_PAUSE)

    def ask(self, question: Question) -> list[Result]:
        """See `Asker.ask`. An index that is replaced meanwhile takes its database away, so the new one is asked."""
        try:
            results = self._ask(question)
        except QmdFailed:
            if not self._is_replaced(question):
                raise
        else:
            if not self._is_replaced(question):
                return results
        return self._ask(evolve(question, identity=self._generation()))

    def _ask(self, question: Question) -> list[Result]:
        try:
            results = self._asker.ask(question)
            if not results and not self._is_replaced(question):
                self._check_emptiness(question)
            return results
        except QmdFailed as failed:
            self._asker.close()
            if self._is_replaced(question):
                raise
            if failed.kind is Kind.CORRUPT:
                self._index.move_aside(str(failed))
                self._background.update()
                raise
            if failed.kind not in _SETTINGS:
                raise
            log.warning("QMD's index is mended: %s", failed)
            try:
                self._background.update(again=True).result(max(question.deadline - time.monotonic(), 0.0))
            except StillRunning:
                raise failed from None
            return self._asker.ask(question)

    def _generation(self) -> str:
        return str(self._index.state().generation)

    def _is_replaced(self, question: Question) -> bool:
        """Whether another index has taken the place of the one that was asked."""
        return self._generation() != question.identity

    def _check_emptiness(self, question: Question) -> None:
        """Once for each state: a database that somebody emptied finds nothing, and says nothing of it."""
        state = self._index.state()
        if not state.documents or self._known_full == state.identity or self._index.is_updating():
            return
        if check_health(self._index, question.seconds).documents == 0:
            raise QmdFailed("QMD's database was emptied", Kind.COLLECTION)
        self._known_full = state.identity
