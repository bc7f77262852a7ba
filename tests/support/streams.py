"""A model that streams prepared texts in prepared pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import pairwise

from lamella.types.messages import AssistantMessage, TextBlock
from lamella.types.model import Delta, Done, ModelRequest, StreamEvent


class InPieces:
    """Answers each call with the next list of pieces, a delta for each."""

    provider = "pieces"
    id = "pieces"
    api = "pieces"
    context_window = 100_000
    max_output = 8_000
    supports_images = False

    def __init__(self, replies: Iterable[Sequence[str]]) -> None:
        self.requests: list[ModelRequest] = []
        self._replies = list(replies)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.requests.append(request)
        pieces = self._replies[len(self.requests) - 1]
        so_far = ""
        yield Delta("start", self._reply(()))
        yield Delta("text_start", self._reply((TextBlock(""),)))
        for piece in pieces:
            so_far += piece
            yield Delta("text_delta", self._reply((TextBlock(so_far),)), 0, piece)
        whole = self._reply((TextBlock(so_far),))
        yield Delta("text_end", whole)
        yield Done(whole)

    def _reply(self, content: tuple[TextBlock, ...]) -> AssistantMessage:
        return AssistantMessage(content, self.provider, self.id, self.api, stop_reason="stop")


def cut(text: str, places: Iterable[int]) -> list[str]:
    """The text in pieces, cut at these places."""
    marks = [0, *sorted({p for p in places if 0 < p < len(text)}), len(text)]
    return [text[a:b] for a, b in pairwise(marks)]
