"""The embedder in use: opened when it is first needed, and never a reason for a search to fail."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from lamella.errors import LamellaError
from lamella.memory.errand import Errand, StillRunning
from lamella.memory.vectors import checked
from lamella.types.memory import Embedder, EmbedderRegistration

NONE = "none"
QUESTION_SECONDS = 10.0
# Questions that an embedder may leave unanswered before it is not asked any more.
_MOST_HANGING = 4

log = logging.getLogger(__name__)

T = TypeVar("T")

# Takes an embedder's answer, how many rows it should have, and the embedder; gives float32 (rows,
# dimensions), or raises.
Check = Callable[[Any, int, Embedder], Any]


class NoMeaning(LamellaError):
    """There are no vectors to compare now; the text says why."""


class Meaning:
    """The embedder that the settings name. Whatever goes wrong with it comes as `NoMeaning`."""

    def __init__(self, name: str, on_offer: Mapping[str, EmbedderRegistration], check: Check = checked) -> None:
        self.name = name
        self._on_offer = on_offer
        self._check = check
        self._opening: Errand[Embedder] | None = None
        self._one_opens = threading.Lock()
        self._questions: list[Errand[Any]] = []

    @property
    def wanted(self) -> bool:
        """Whether meaning takes part at all."""
        return self.name != NONE

    def embedder(self, seconds: float | None = None) -> Embedder:
        """The embedder, opened; a service far away, or a large model, may take its time for that.

        Raises `NoMeaning` when it is not installed, cannot be opened, or is not open after `seconds`:
        then it goes on opening for those who ask later.
        """
        opening = self._begin_to_open()
        try:
            return self.guarded(lambda: opening.result(seconds))
        except StillRunning:
            raise NoMeaning(f"embedder {self.name} is still being opened") from None
        except NoMeaning:
            if self._opening is opening:
                self._opening = None  # the next one tries again
            raise

    def question(self, text: str) -> Any:
        """float32 (dimensions,). Raises `NoMeaning`; also after `QUESTION_SECONDS`, and for a vector of zeros."""
        embedder = self.embedder(QUESTION_SECONDS)
        vector = self._in_time(lambda: self.guarded(lambda: self._check([embedder.embed_query(text)], 1, embedder)[0]))
        if not vector.any():
            raise NoMeaning(f"embedder {self.name} knows no word of the question")
        return vector

    def embed(self, texts: Sequence[str], embedder: Embedder) -> Any:
        """float32 (len(texts), dimensions), by an embedder that `embedder` gave. Raises `NoMeaning`."""
        return self.guarded(lambda: self._check(embedder.embed_documents(texts), len(texts), embedder))

    def embed_soon(self, texts: Sequence[str], embedder: Embedder) -> Any:
        """The same for a few texts that somebody waits for; raises `NoMeaning` after `QUESTION_SECONDS` too."""
        return self._in_time(lambda: self.embed(texts, embedder))

    def guarded(self, action: Callable[[], T]) -> T:
        """Do something with the embedder; what it raises becomes `NoMeaning`."""
        try:
            return action()
        except (NoMeaning, StillRunning):
            raise
        except Exception as error:  # providers bring libraries of their own, with errors of their own
            log.warning("embedder %s", self.name, exc_info=True)
            raise NoMeaning(f"embedder {self.name}: {error or type(error).__name__}") from error

    def _begin_to_open(self) -> Errand[Embedder]:
        registered = self._on_offer.get(self.name)
        if registered is None:
            on_offer = ", ".join(sorted(self._on_offer)) or "none"
            raise NoMeaning(
                f"embedder {self.name!r} is not installed (on offer: {on_offer})",
                hint="pip install lamella-embedders",
            )
        with self._one_opens:
            if self._opening is None:
                self._opening = Errand(registered.factory, "lamella-embedder")
            return self._opening

    def _in_time(self, action: Callable[[], T]) -> T:
        """The result of an action that may hang; one that does is left behind in its thread."""
        self._questions = [question for question in self._questions if not question.done]
        if len(self._questions) >= _MOST_HANGING:
            raise NoMeaning(f"embedder {self.name} has not answered earlier questions yet")
        question = Errand(action, "lamella-question")
        self._questions.append(question)
        try:
            return question.result(QUESTION_SECONDS)
        except StillRunning:
            raise NoMeaning(f"embedder {self.name} did not answer within {QUESTION_SECONDS:g} seconds") from None
