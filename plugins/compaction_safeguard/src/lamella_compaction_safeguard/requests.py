"""Calls of the model for one compaction: bounded in number and in time."""

from __future__ import annotations

import asyncio
import logging
import time

from attrs import frozen

from lamella.agent.summaries import SYSTEM_PROMPT
from lamella.errors import ModelError, ModelTransient
from lamella.text.silent import spoken
from lamella.types.host import Host
from lamella.types.messages import AssistantMessage, text_of

log = logging.getLogger(__name__)

_MOST_WAIT = 5.0


@frozen(slots=True)
class Draft:
    """A model's answer. `cut_off` tells that the length limit ended it."""

    text: str
    cut_off: bool = False


class Requests:
    """Asks the session's model. At most `max_calls` calls within `seconds`, second tries included."""

    def __init__(self, host: Host, *, max_calls: int, seconds: float, retry_delay_ms: int) -> None:
        self.calls = 0
        self._host = host
        self._max_calls = max_calls
        self._ends = time.monotonic() + seconds
        self._delay = retry_delay_ms / 1000

    @property
    def left(self) -> int:
        """Calls that may still be made."""
        return max(self._max_calls - self.calls, 0)

    async def ask(self, prompt: str, max_tokens: int, *, tries: int = 2) -> Draft:
        """One answer; after a passing fault, another try.

        Raises `ModelError` (also for an empty answer, and when no call is left) and `TimeoutError`.
        """
        while True:
            tries -= 1
            try:
                return await self._call(prompt, max_tokens)
            except ModelTransient as error:
                if tries <= 0 or not self.left:
                    raise
                log.info("the summary is asked for again: %s", error)
                await asyncio.sleep(min(max(self._delay, error.retry_after or 0), _MOST_WAIT))

    async def _call(self, prompt: str, max_tokens: int) -> Draft:
        if not self.left:
            raise ModelError(f"{self._max_calls} model calls gave no summary")
        seconds = self._ends - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the time for summaries is over")
        self.calls += 1
        try:
            reply = await self._host.complete(
                prompt, system_prompt=SYSTEM_PROMPT, max_tokens=max(max_tokens, 1), timeout=seconds
            )
        except TimeoutError:
            raise TimeoutError(f"no answer within {seconds:.0f} s") from None
        return _draft(reply)


def _draft(reply: AssistantMessage) -> Draft:
    text = spoken(text_of(reply.content, "\n")).strip()
    if not text:
        raise ModelError("the model returned an empty summary")
    return Draft(text, reply.stop_reason == "length")
