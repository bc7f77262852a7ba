"""Every tool call directly followed by exactly one result."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve, field, frozen

from lamella.context.repairs.changes import History, settled
from lamella.types.messages import (
    AssistantMessage,
    ModelMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    blocks_of,
)

NO_RESULT = "[lamella] missing tool result: none was recorded for this call."

# What programs that write this format put where a result is missing. Compared as a whole: a tool
# may quote one of them.
_STAND_INS = (
    NO_RESULT,
    "No result provided",  # Pi
    "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair.",
)


@frozen(slots=True)
class Paired:
    """A history whose calls and results pair up, and how many results that took.

    `added` stand-ins; `duplicates` left out, whose call had a result; `orphans` left out, whose call
    is nowhere before them.
    """

    messages: History
    added: int = 0
    duplicates: int = 0
    orphans: int = 0


@define(slots=True)
class _Call:
    """A call and the result that was found for it."""

    block: ToolCall
    answer: ToolResultMessage | None = None


@define(slots=True)
class _Search:
    """Results on their way to their calls. `calls` has those of each reply, by its place."""

    calls: dict[int, list[_Call]] = field(factory=dict)
    by_id: dict[str, list[_Call]] = field(factory=dict)
    duplicates: int = 0
    orphans: int = 0

    def add_reply(self, place: int, reply: AssistantMessage) -> None:
        found = [_Call(block) for block in reply.tool_calls]
        if not found:
            return
        self.calls[place] = found
        fresh: set[str] = set()
        for call in found:
            # Calls of one reply are answered in order, and before older ones with the same id.
            if call.block.id not in fresh:
                fresh.add(call.block.id)
                same = [c for c in found if c.block.id == call.block.id]
                self.by_id[call.block.id] = same + self.by_id.get(call.block.id, [])

    def add_result(self, result: ToolResultMessage) -> None:
        candidates = self.by_id.get(result.tool_call_id)
        if candidates is None:
            self.orphans += 1
            return
        call = next((c for c in candidates if c.answer is None), None)
        if call is None and not is_stand_in(result):  # the real result came late
            call = next((c for c in candidates if c.answer is not None and is_stand_in(c.answer)), None)
        if call is None:
            self.duplicates += 1
            return
        call.answer = _named(result, call.block)


def pair_results(messages: History) -> Paired:
    """Results behind their calls, in call order; stand-ins for missing ones; the others left out.

    A result belongs to the newest earlier reply that has an unanswered call with its id.
    """
    search = _Search()
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            search.add_reply(place, message)
        elif isinstance(message, ToolResultMessage):
            search.add_result(message)
    paired = _arranged(messages, search.calls)
    added = sum(call.answer is None for calls in search.calls.values() for call in calls)
    return Paired(settled(messages, paired), added, search.duplicates, search.orphans)


def _arranged(messages: History, calls: Mapping[int, list[_Call]]) -> list[ModelMessage]:
    arranged: list[ModelMessage] = []
    for place, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            continue
        arranged.append(message)
        for call in calls.get(place, ()):
            arranged.append(call.answer or missing_result(call.block, message.timestamp))
    return arranged


def missing_result(call: ToolCall, timestamp: float | None) -> ToolResultMessage:
    """The error result that stands in for one that was never recorded."""
    return ToolResultMessage(call.id, call.name, (TextBlock(NO_RESULT),), True, timestamp=timestamp)


def is_stand_in(result: ToolResultMessage) -> bool:
    """Whether a result only says that there is none."""
    if not result.is_error:
        return False
    if isinstance(result.details, Mapping) and result.details.get("synthetic") is True:
        return True
    texts = [b.text for b in blocks_of(result.content) if isinstance(b, TextBlock)]
    return len(texts) == 1 and texts[0] in _STAND_INS


def _named(result: ToolResultMessage, call: ToolCall) -> ToolResultMessage:
    """The result under the name of its call; some servers match names too."""
    return result if result.tool_name == call.name else evolve(result, tool_name=call.name)
