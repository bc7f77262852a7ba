"""Recall before a turn: one search for each prompt, with a deadline and without a model call."""

from __future__ import annotations

import time

from lamella.memory.errand import Errand
from lamella.memory.recalling import RECALLING_TRIGGERS, RecallSearch
from lamella.text.days import unix_ms
from lamella.text.recalled import question_of
from lamella.types.hooks import BeforePromptBuild, PromptAddition
from lamella.types.host import Host
from lamella.types.memory import MemoryResults, SearchQuery
from lamella_memory_core.config import Config
from lamella_memory_core.privacy import visible_to
from lamella_memory_core.recall.block import Recalled, recalled
from lamella_memory_core.service import Memory

# Meaning adds to a score; where it took no part, so much of the floor says the same.
_WORDS_ALONE = 2 / 3


class Recaller:
    """Implements the setting `auto_recall`."""

    def __init__(self, memory: Memory, config: Config) -> None:
        self._memory = memory
        self._config = config
        self._searches = RecallSearch[MemoryResults]()
        Errand(memory.warm_up, "lamella-warm-up")  # a first search would take most of the time that there is

    async def before_prompt(self, event: BeforePromptBuild, host: Host) -> PromptAddition | None:
        """What is recalled for a prompt. It is also noted in the session's entry, as `lastRecall`."""
        started = time.monotonic()
        question = question_of(event.prompt) if host.turn.trigger in RECALLING_TRIGGERS and event.room > 0 else ""
        found = await self._search(question, host) if question else None
        block = self._block(found, event) if found is not None else Recalled()
        took = round((time.monotonic() - started) * 1000)
        host.patch_session_entry(lastRecall={**block.to_json(), "at": unix_ms(), "milliseconds": took})
        return PromptAddition(prepend_context=block.text) if block.text else None

    def _block(self, found: MemoryResults, event: BeforePromptBuild) -> Recalled:
        floor = self._config.recall_min_score * (_WORDS_ALONE if found.mode == "keyword" else 1.0)
        hits = [hit for hit in found.hits if hit.score >= floor]
        return recalled(hits, event.system_prompt, self._config.recall_chars, event.room)

    async def _search(self, question: str, host: Host) -> MemoryResults | None:
        config, turn = self._config, host.turn
        query = SearchQuery(question, config.recall_results, config.recall_min_score * _WORDS_ALONE)
        return await self._searches.run(
            lambda: self._memory.search(visible_to(query, turn.chat_type, config, turn.workspace)),
            config.recall_timeout_ms,
            host,
        )
