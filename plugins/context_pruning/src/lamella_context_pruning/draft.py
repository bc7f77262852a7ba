"""A history that is being shrunk: what it was, what takes the place of what, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from lamella.types.hooks import ContextAction, ContextNote
from lamella.types.messages import Message, ToolResultMessage
from lamella_context_pruning.sizes import content_units, message_units

# A tool result and its place among the messages.
Placed: TypeAlias = tuple[int, ToolResultMessage]


class Draft:
    """Messages with their sizes. The original is never changed; a copy is made with the first edit."""

    def __init__(self, original: Sequence[Message]) -> None:
        self.original = original
        self.sizes = [message_units(m) for m in original]
        self.notes: dict[int, ContextNote] = {}
        self.remarks: list[ContextNote] = []
        self._edited: list[Message] | None = None

    @property
    def messages(self) -> Sequence[Message]:
        """The history as it is now; the original itself while nothing has been replaced."""
        return self.original if self._edited is None else self._edited

    @property
    def changed(self) -> bool:
        return self._edited is not None

    def results(self, start: int = 0, stop: int | None = None) -> list[Placed]:
        """Tool results with their places, oldest first."""
        stop = len(self.original) if stop is None else stop
        messages = self.messages
        return [(i, m) for i in range(start, stop) if isinstance(m := messages[i], ToolResultMessage)]

    def replace(self, index: int, message: ToolResultMessage, action: ContextAction, rule: str) -> None:
        """Put another result in a place."""
        if self._edited is None:
            self._edited = list(self.original)
        self._edited[index] = message
        self.sizes[index] = content_units(message.content)
        self.notes[index] = ContextNote(rule, action, index)

    def keep(self, index: int, rule: str) -> None:
        """Note why a result stays as it is."""
        self.notes.setdefault(index, ContextNote(rule, "kept", index))

    def remark(self, rule: str, text: str) -> None:
        """Note something about the whole history."""
        self.remarks.append(ContextNote(rule, text=text))
