"""Tool call ids that are unique in a request and such as a provider takes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import count

from attrs import evolve, frozen

from lamella.context.repairs.changes import History, each_block, settled
from lamella.text.unicode import well_formed
from lamella.types.messages import AssistantMessage, Block, ModelMessage, ToolCall, ToolResultMessage

_HASH = 8


@frozen(slots=True)
class IdRule:
    """The ids that a provider takes.

    `alphabet` is a regular expression's character class (empty: anything); what lies outside
    becomes `filler`. `longest` counts characters (0: no limit); with `exact`, every id has that
    length. With `items`, an id may be a call's id and an item's, `call|item`: both keep the rule,
    and the first must be unique.
    """

    alphabet: str = ""
    filler: str = ""
    longest: int = 0
    exact: bool = False
    items: bool = False

    def allows(self, tool_call_id: str) -> bool:
        """Whether an id may go out as it is."""
        parts = tool_call_id.split("|", 1) if self.items else [tool_call_id]
        return all(self._allows_part(part) for part in parts)

    def _allows_part(self, part: str) -> bool:
        if not part or (self.alphabet and not re.fullmatch(f"[{self.alphabet}]+", part)):
            return False
        return len(part) == self.longest if self.exact else not self.longest or len(part) <= self.longest


def unique_ids(messages: History, rule: IdRule) -> History:
    """Ids made unique; the first call with an id keeps it as far as the rule lets it.

    Expects paired messages: a result belongs to a call by its place, since an id that was used
    twice does not tell.
    """
    used: set[str] = set()
    waiting: Iterator[str] = iter(())
    renamed: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            ids = [_take(call.id, used, rule) for call in message.tool_calls]
            waiting = iter(ids)
            renamed.append(_with_ids(message, ids))
        elif isinstance(message, ToolResultMessage):
            new = next(waiting, message.tool_call_id)
            renamed.append(message if new == message.tool_call_id else evolve(message, tool_call_id=new))
        else:
            renamed.append(message)
    return settled(messages, renamed)


def _take(raw: str, used: set[str], rule: IdRule) -> str:
    """A fresh id, which is used from now on."""
    new = fresh_id(raw, used, rule)
    used.add(new.partition("|")[0] if rule.items else new)
    return new


def _with_ids(reply: AssistantMessage, ids: Iterable[str]) -> AssistantMessage:
    fresh = iter(ids)

    def change(block: Block) -> Block:
        if not isinstance(block, ToolCall) or (new := next(fresh)) == block.id:
            return block
        return evolve(block, id=new)

    content = each_block(reply.content, change)
    return reply if content is reply.content else evolve(reply, content=content)


def fresh_id(raw: str, used: set[str], rule: IdRule) -> str:
    """An id for a call whose own is `raw`, unlike those in `used`. The same input gives the same id."""
    call, bar, item = raw.partition("|") if rule.items else (raw, "", "")
    tail = bar + clean_id(item, rule)[: rule.longest or None] if item else ""
    return next(candidate for candidate in _candidates(call, raw, rule) if candidate not in used) + tail


def clean_id(raw: str, rule: IdRule) -> str:
    """An id without what the rule forbids; not yet shortened, unless its length is fixed."""
    if not raw:
        return "defaultid" if rule.exact else "defaulttoolid"
    kept = re.sub(f"[^{rule.alphabet}]", rule.filler, raw) if rule.alphabet else well_formed(raw)
    if not rule.exact:
        return kept or "sanitizedtoolid"
    return kept[: rule.longest] if len(kept) >= rule.longest else _digest(kept or "sanitized")[: rule.longest]


def _candidates(call: str, raw: str, rule: IdRule) -> Iterator[str]:
    base = clean_id(call, rule)[: rule.longest or None]
    yield base
    if rule.exact:
        yield from (_digest(f"{raw}:{i}")[: rule.longest] for i in count())
    endings = (_digest(raw)[:_HASH] + (f"x{i}" if i > 1 else "") for i in count(1))
    for ending in endings:
        yield base[: rule.longest - len(ending)] + ending if rule.longest else base + ending


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
