"""The embedder in use: opened when it is first needed, and never a reason for a search to fail."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from lamella.errors import LamellaError
from lamella.types.memory import Embedder, EmbedderRegistration
from lamella_memory_core.database import Database
from lamella_memory_core.vectors import checked, embed_pending

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Singles

NONE = "none"
QUESTION_SECONDS = 10.0
# Questions that an embedder may leave unanswered before it is not asked any more.
_MOST_HANGING = 4

log = logging.getLogger(__name__)

T = TypeVar("T")


class NoMeaning(LamellaError):
    """There are no vectors to compare now; the text says why."""


class Meaning:
    """The embedder that the settings name. Whatever goes wrong with it comes as `NoMeaning`."""

    def __init__(self, name: str, on_offer: Mapping[str, EmbedderRegistration]) -> None:
        self.name = name
        self._on_offer = on_offer
        self._opened: Embedder | None = None
        self._hanging: list[threading.Thread] = []

    @property
    def wanted(self) -> bool:
        """Whether meaning takes part at all."""
        return self.name != NONE

    @property
    def installed(self) -> bool:
        return self.name in self._on_offer

    def embedder(self) -> Embedder:
        """The embedder, opened. Raises `NoMeaning` when it is not installed or cannot be opened."""
        if self._opened is None:
            registered = self._on_offer.get(self.name)
            if registered is None:
                on_offer = ", ".join(sorted(self._on_offer)) or "none"
                raise NoMeaning(
                    f"embedder {self.name!r} is not installed (on offer: {on_offer})",
                    hint="pip install lamella-embedders",
                )
            self._opened = self.guarded(registered.factory)
        return self._opened

    def question(self, text: str) -> Singles:
        """float32 (dimensions,). Raises `NoMeaning`; also after `QUESTION_SECONDS`, and for a vector of zeros."""
        embedder = self.embedder()
        vector = self.guarded(lambda: self._in_time(lambda: _question(embedder, text)))
        if not vector.any():
            raise NoMeaning(f"embedder {self.name} knows no word of the question")
        return vector

    def guarded(self, action: Callable[[], T]) -> T:
        """Do something with the embedder; what it raises becomes `NoMeaning`."""
        try:
            return action()
        except NoMeaning:
            raise
        except Exception as error:  # providers bring libraries of their own, with errors of their own
            log.warning("embedder %s", self.name, exc_info=True)
            raise NoMeaning(f"embedder {self.name}: {error or type(error).__name__}") from error

    def _in_time(self, action: Callable[[], T]) -> T:
        """The result of an action that may hang; one that does is left behind in its thread."""
        self._hanging = [thread for thread in self._hanging if thread.is_alive()]
        if len(self._hanging) >= _MOST_HANGING:
            raise NoMeaning(f"embedder {self.name} has not answered earlier questions yet")
        done: list[T] = []
        failed: list[Exception] = []

        def run() -> None:
            try:
                done.append(action())
            except Exception as error:  # noqa: BLE001 - raised again below, where it is waited for
                failed.append(error)

        thread = threading.Thread(target=run, name="lamella-question", daemon=True)
        thread.start()
        thread.join(QUESTION_SECONDS)
        if failed:
            raise failed[0]
        if not done:
            self._hanging.append(thread)
            raise NoMeaning(f"embedder {self.name} did not answer within {QUESTION_SECONDS:g} seconds")
        return done[0]


class Filler:
    """Brings vectors up to date: at once, or in the background while searches go on."""

    def __init__(self, database: Database, meaning: Meaning) -> None:
        self._database = database
        self._meaning = meaning
        self._one_at_a_time = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem = ""

    def fill(self) -> int:
        """Embed all that is missing; the number of texts. Raises `NoMeaning`, `NotAnIndex`, `MemoryUnavailable`."""
        with self._one_at_a_time:
            embedder = self._meaning.embedder()
            try:
                return embed_pending(self._database, _Guarded(embedder, self._meaning), self._stop.is_set)
            finally:
                self._problem = ""

    def fill_within(self, seconds: float) -> str:
        """Begin to embed what is missing, unless that goes on already, and wait a while for its end.

        Returns why vectors are missing, or nothing.
        """
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="lamella-vectors", daemon=True)
            self._thread.start()
        self._thread.join(seconds)
        return "vectors are still being made" if self._thread.is_alive() else self._problem

    def close(self) -> None:
        """Stop after the group in work; wait a moment for that."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2.0)

    def _run(self) -> None:
        try:
            self.fill()
        except Exception as error:  # nobody waits for this thread for certain, so it has to be told later
            log.warning("vectors are not up to date", exc_info=True)
            self._problem = str(error)


class _Guarded:
    """An embedder whose faults are `NoMeaning`, so that they are told from those of the index."""

    def __init__(self, embedder: Embedder, meaning: Meaning) -> None:
        self._embedder = embedder
        self._meaning = meaning

    @property
    def identity(self) -> str:
        return self._embedder.identity

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    def embed_documents(self, texts: Any) -> Singles:
        return self._meaning.guarded(lambda: checked(self._embedder.embed_documents(texts), len(texts), self))

    def embed_query(self, text: str) -> Any:
        return self._meaning.guarded(lambda: self._embedder.embed_query(text))


def _question(embedder: Embedder, text: str) -> Singles:
    row: Singles = checked([embedder.embed_query(text)], 1, embedder)[0]
    return row
