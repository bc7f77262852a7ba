"""A session's long life: thousands of turns with tools, two languages, and a model that fails at random.

Faults depend on seed, turn, purpose and attempt alone, so that a life can be lived again. The model finds facts
that were planted and saves them when a flush asks it to; a summary of it holds nothing but a few words.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agents import open_agent
from attrs import define, evolve, field, frozen
from folding import safeguard, summary
from pruning import settings as pruning_settings

from lamella.agent.request import fixed_tokens
from lamella.errors import ModelError
from lamella.models.classify import classify_error
from lamella.models.whole import stream_whole
from lamella.runtime import Runtime
from lamella.text.estimate import estimate_tokens
from lamella.types.messages import AssistantMessage, Block, TextBlock, ToolCall, Usage, UserMessage, text_of
from lamella.types.model import ModelRequest, StreamEvent
from lamella.types.tools import Tool
from lamella_context_pruning.plugin import ContextPruning
from lamella_memory_core import Config, MemoryCore

Purpose: TypeAlias = Literal["talk", "summary", "flush"]
Fault: TypeAlias = Literal["", "overflow", "429", "timeout", "empty", "garbage", "cut off", "death"]


def _words(text: str) -> list[str]:
    return text.split()


WINDOW = 32_000
FACT_EVERY = 9  # turns
HUGE = 9_000  # trays, whose list fills the window
ERRORS = {
    "overflow": ("prompt is too long: 33000 tokens > 32000 maximum", 400),
    "429": ("429 too many requests", 429),
    "timeout": ("the request timed out", None),
}
# How often each fault comes, of 1,000 calls.
FAULTS: dict[Purpose, dict[Fault, int]] = {
    "talk": {"overflow": 12, "429": 10, "timeout": 10, "garbage": 10, "death": 6},
    "summary": {"overflow": 60, "429": 80, "timeout": 60, "empty": 80, "garbage": 80, "cut off": 40},
    "flush": {"overflow": 30, "429": 40, "timeout": 40, "garbage": 60},
}
GARBAGE = "\u0000\ufffd{[<|im_start|>]} \u202e ```"
ENGLISH = _words("the greenhouse fans turn slowly while seeds wait for rain and someone counts all trays again")
CHINESE = list("温室里的风扇慢慢转着种子等着下雨有人又数了一遍托盘然后关上了门")
COLOURS = _words("amber basil cedar delta ember fjord grove hazel inlet jolly kelp larch maple north ocean plume")
THINGS = _words("pump gate valve meter boiler filter ladder engine heater sensor tank switch fan roof door shelf")
THINGS += _words("cart stove lamp bell rope crate")
_NOTE = re.compile(r"NOTE (?P<what>[a-z]+ [a-z]+) = (?P<value>[a-z]+ \d+)")


class Died(RuntimeError):
    """The process is killed."""


@frozen
class Fact:
    """Something that the user says once, in so many words."""

    what: str
    value: str

    @property
    def line(self) -> str:
        return f"- {self.what}: {self.value}"


def fact(number: int) -> Fact:
    colour, thing = COLOURS[number % len(COLOURS)], THINGS[number // len(COLOURS) % len(THINGS)]
    return Fact(f"{colour} {thing}", f"crowns {3 * number + 1}")


def identifier(number: int) -> str:
    return f"ORD-{48_213 + 37 * number}"


def talk(chance: random.Random, count: int) -> str:
    """Some talk in one of two languages."""
    if chance.random() < 0.5:
        return " ".join(chance.choice(ENGLISH) for _ in range(count))
    return "".join(chance.choice(CHINESE) for _ in range(count))


@define
class LifeModel:
    """The model of a life. `turn` is set before each turn; `calls` holds those of the turn."""

    seed: int
    faulty: bool = True
    provider: str = "anthropic"
    id: str = "life"
    api: str = "anthropic-messages"
    context_window: int = WINDOW
    max_output: int = 4_000
    supports_images: bool = False
    turn: int = 0
    calls: list[tuple[Purpose, ModelRequest]] = field(factory=list)
    saved: dict[str, Fact] = field(factory=dict)
    last_saved: int = 0  # the turn
    _attempts: Counter[Purpose] = field(factory=Counter)

    def begin(self, turn: int) -> None:
        self.turn = turn
        self.calls.clear()
        self._attempts.clear()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        purpose = purpose_of(request)
        self.calls.append((purpose, request))
        self._attempts[purpose] += 1
        chance = random.Random(f"{self.seed} {self.turn} {purpose} {self._attempts[purpose]}")
        fault = self._fault(purpose, chance)
        if fault == "death":
            raise Died
        reply, error = self._reply(purpose, request, chance, fault)
        for event in stream_whole(reply, error):
            yield event

    def _fault(self, purpose: Purpose, chance: random.Random) -> Fault:
        drawn = chance.randrange(1_000)
        for fault, share in FAULTS[purpose].items() if self.faulty else ():
            drawn -= share
            if drawn < 0:
                return fault
        return ""

    def _reply(
        self, purpose: Purpose, request: ModelRequest, chance: random.Random, fault: Fault
    ) -> tuple[AssistantMessage, ModelError | None]:
        if fault in ERRORS:
            text, status = ERRORS[fault]
            error = classify_error(text, status=status)
            return self._message((), request, stop_reason="error", error_message=text), error
        if fault in ("empty", "garbage"):
            return self._message((TextBlock(GARBAGE if fault == "garbage" else ""),), request), None
        if fault == "cut off":
            return self._message((TextBlock("## Decisions\n- half"),), request, stop_reason="length"), None
        if purpose == "summary":
            text = summary(talk(chance, 12), Decisions=f"- {talk(chance, 20)}")
            return self._message((TextBlock(text),), request), None
        block = self._save(request) if purpose == "flush" else self._talk(request, chance)
        stop = "toolUse" if isinstance(block, ToolCall) else "stop"
        return self._message((block,), request, stop_reason=stop), None

    def _message(self, content: tuple[Block, ...], request: ModelRequest, **fields: Any) -> AssistantMessage:
        fields.setdefault("stop_reason", "stop")
        reply = AssistantMessage(content, self.provider, self.id, self.api, **fields)
        sent, received = size(request), estimate_tokens(reply)
        return reply if reply.failed else _counted(reply, sent, received)

    def _talk(self, request: ModelRequest, chance: random.Random) -> Block:
        looks = request.messages[-1].role == "user" and chance.random() < 0.45
        if looks and any(tool.name == "look" for tool in request.tools):
            trays = HUGE if chance.random() < 0.03 else chance.randrange(40, 900)
            return ToolCall(f"c{self.turn}n{len(self.calls)}", "look", {"trays": trays})
        return TextBlock(talk(chance, chance.randrange(20, 160)))

    def _save(self, request: ModelRequest) -> Block:
        """The facts in sight that have not been saved, in one call; then silence."""
        if request.messages[-1].role == "toolResult":
            return TextBlock("NO_REPLY")
        said = "\n".join(text_of(m.content) for m in request.messages if isinstance(m, UserMessage))
        facts = [Fact(found["what"], found["value"]) for found in _NOTE.finditer(said)]
        new = {fact.what: fact for fact in facts if fact.what not in self.saved}
        if not new:
            return TextBlock("NO_REPLY")
        self.saved |= new
        self.last_saved = self.turn
        return ToolCall(f"f{self.turn}", "write", {"content": "\n".join(fact.line for fact in new.values())})


def _counted(reply: AssistantMessage, sent: int, received: int) -> AssistantMessage:
    return evolve(reply, usage=Usage(input=sent, output=received, total_tokens=sent + received))


def size(request: ModelRequest) -> int:
    """Tokens of a request by lamella's estimate."""
    return fixed_tokens(request.system_prompt, request.tools) + sum(map(estimate_tokens, request.messages))


def purpose_of(request: ModelRequest) -> Purpose:
    prompts = [text_of(m.content) for m in request.messages if isinstance(m, UserMessage)]
    if prompts[-1].startswith("<conversation>"):
        return "summary"
    return "flush" if "Save now what must outlast" in prompts[-1] else "talk"


def flush_runs(calls: Sequence[tuple[Purpose, ModelRequest]]) -> int:
    """How many flushes began."""
    return sum(purpose == "flush" and request.messages[-1].role == "user" for purpose, request in calls)


def request_of(seed: int, turn: int, *, turns: int, identifiers: int) -> tuple[str, list[str]]:
    """What the user says in a turn, and the identifiers in it."""
    chance = random.Random(f"{seed} {turn} user")
    text = f"{talk(chance, chance.randrange(10, 120))} ({turn})"
    if turn % FACT_EVERY == 1:
        new = fact(turn // FACT_EVERY)
        text += f" NOTE {new.what} = {new.value}."
    every = max(turns // identifiers, 1)
    planted = [identifier(turn // every)] if turn % every == 2 % every and turn // every < identifiers else []
    return " ".join([text, *planted]), planted


def look() -> Tool:
    """A tool with answers of every size."""

    def run(arguments: Any, _context: Any) -> str:
        count = int(arguments["trays"])
        chance = random.Random(count)
        return "\n".join(f"tray {talk(chance, 6)}" for _ in range(count // 4))

    schema = {"type": "object", "properties": {"trays": {"type": "integer"}}}
    return Tool("look", "Looks at trays.", schema, run)


def open_life(home: Path, model: LifeModel, **pruning: Any) -> Runtime:
    """The session's runtime with everything that guards its window; `pruning` are settings of context-pruning."""
    memory = MemoryCore(Config(embedder="none", sync_on_session_start=False, watch=False))
    plugins = [memory, safeguard(), ContextPruning(pruning_settings(**pruning))]
    settings = {"retry.base_delay_ms": 0, "compaction.reserve_tokens_floor": 20_000, "agent.timezone": "UTC"}
    return open_agent(home, model, plugins=plugins, tools=[look()], settings=settings)
