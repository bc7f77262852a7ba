"""A stored conversation, compacted through a real runtime with the compaction safeguard."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents import Recorder, open_agent, scripted
from attrs import frozen

from lamella.agent.compaction import Outcome
from lamella.config.structure import structure
from lamella.models.scripted import ScriptedModel
from lamella.sessions.context import Context
from lamella.sessions.keys import parse_key
from lamella.types.messages import Message, text_of
from lamella_compaction_safeguard import CompactionSafeguard, Config

KEY = "agent:main:main"
HEADINGS = ("## Decisions", "## Open TODOs", "## Constraints/Rules", "## Pending user asks", "## Exact identifiers")


def safeguard(**settings: Any) -> CompactionSafeguard:
    """The plugin, with its settings checked as those of a configuration file are."""
    config, problems = structure(Config, {"retry_delay_ms": 0, **settings}, path="plugins.config.compaction-safeguard")
    assert config is not None, problems
    return CompactionSafeguard(config)


def summary(*asks: str, **sections: str) -> str:
    """A well-formed summary; `sections` by the first word of their headings."""
    texts = {"Pending": "\n".join(f"- {ask}" for ask in asks), **sections}
    return "\n\n".join(f"{heading}\n{texts.get(heading.split()[1].split('/')[0]) or 'None.'}" for heading in HEADINGS)


@frozen
class Folded:
    """What became of a compaction."""

    outcome: Outcome
    compaction: Mapping[str, Any] | None
    model: ScriptedModel
    context: Context
    before: bytes
    after: bytes
    events: Recorder
    entry: Mapping[str, Any]

    @property
    def summary(self) -> str:
        assert self.compaction is not None, self.outcome.error
        return str(self.compaction["summary"])

    @property
    def details(self) -> Mapping[str, Any]:
        assert self.compaction is not None, self.outcome.error
        found: Mapping[str, Any] = self.compaction["details"]
        return found

    @property
    def prompts(self) -> list[str]:
        return [text_of(request.messages[-1].content) for request in self.model.requests]

    @property
    def untouched(self) -> bool:
        """Whether nothing was stored at all."""
        return self.compaction is None and self.after == self.before


async def fold(
    home: Path,
    messages: Iterable[Message],
    steps: Sequence[Any],
    *,
    window: int = 200_000,
    keep: int = 1,
    instructions: str = "",
    agents_md: str | None = None,
    settings: Mapping[str, Any] | None = None,
    plugin: CompactionSafeguard | None = None,
    times: int = 1,
    **config: Any,
) -> Folded:
    """Store messages, then compact by hand. Only about the last `keep` tokens are kept."""
    model = scripted(steps, context_window=window)
    chosen = {"compaction.keep_recent_tokens": keep, **(settings or {})}
    events = Recorder()
    plugin = plugin or safeguard(**config)
    async with open_agent(home, model, settings=chosen, plugins=[plugin], environ={"TZ": "UTC"}) as runtime:
        runtime.listeners.append(events)
        if agents_md is not None:
            (runtime.workspace / "AGENTS.md").write_text(agents_md, encoding="utf-8")
        key = parse_key(KEY)
        located = runtime.store.locate(key) or runtime.store.start(key)
        file = runtime.store.open(located, cwd=str(runtime.workspace))
        for message in messages:
            file.append_message(message)
        file.close()
        before = located.path.read_bytes()
        async with runtime.session() as session:
            for _ in range(times):
                outcome = await session.compact(instructions)
            context = session.agent.file.context()
        after = located.path.read_bytes()
        entry = runtime.store.index.get(KEY) or {}
    new = [json.loads(line) for line in after[len(before) :].splitlines()]
    compactions = [row for row in new if row["type"] == "compaction"]
    assert after.startswith(before)
    return Folded(outcome, compactions[-1] if compactions else None, model, context, before, after, events, entry)
