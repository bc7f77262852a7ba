"""What the next request of a transcript would be, and what became of each message on the way.

The same steps as in a turn (`context` hooks, repair), on messages that carry a tag of where they
come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from attrs import evolve, frozen

from lamella.context.profiles import ProviderProfile
from lamella.context.repair import CONVERSATION_GOES_ON, SOURCES, repair
from lamella.plugins.hooks import Hooks
from lamella.text.conversation import convert_to_model_messages
from lamella.text.estimate import Estimator
from lamella.types import hooks as h
from lamella.types.host import Host
from lamella.types.messages import (
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Message,
    ModelMessage,
    OtherMessage,
    ToolResultMessage,
    text_of,
)

ActionName: TypeAlias = Literal["kept", "trimmed", "cleared", "dropped", "synthesised", "merged"]


@frozen(slots=True)
class Source:
    """A message of the context and the entry it comes from (None for a new prompt)."""

    message: Message
    entry_id: str | None


@frozen(slots=True)
class Action:
    """What became of one message. `index` counts in the context, for synthesised ones in the request."""

    entry_id: str | None
    index: int
    action: ActionName
    rule: str
    tokens_before: int
    tokens_after: int

    def to_json(self) -> dict[str, Any]:
        return {
            "entryId": self.entry_id,
            "index": self.index,
            "action": self.action,
            "rule": self.rule,
            "tokensBefore": self.tokens_before,
            "tokensAfter": self.tokens_after,
        }


@frozen(slots=True)
class Preview:
    """A request's messages, what happened on the way, and their estimated tokens."""

    messages: tuple[ModelMessage, ...]
    actions: tuple[Action, ...]
    tokens: int


async def preview(
    sources: Sequence[Source],
    profile: ProviderProfile,
    *,
    same_model: Callable[[AssistantMessage], bool],
    estimate: Estimator,
    hooks: Hooks | None = None,
    host: Host | None = None,
    window: int = 0,
) -> Preview:
    """The request that these messages would make."""
    tagged = [_tag(s.message, (i,)) for i, s in enumerate(sources)]
    shown: Sequence[Message] = tagged
    if hooks is not None and host is not None and hooks.implemented("context"):
        shown = await hooks.context(h.BeforeModelCall(tuple(tagged), 1, window), host)
    # Summaries have no room for a tag; they are known by identity.
    untagged = {id(m): (i,) for i, m in enumerate(tagged) if not _sources(m)}
    converted = [
        evolve(message, extra={**message.extra, SOURCES: _sources(original) or untagged.get(id(original), ())})
        for original in shown
        for message in convert_to_model_messages([original])
    ]
    request = repair(converted, profile, same_model=same_model)
    actions = [*_fates(sources, request, estimate), *_synthesised(request, estimate)]
    messages = tuple(_untag(m) for m in request)
    return Preview(messages, tuple(actions), sum(estimate(m) for m in messages))


def _tag(message: Message, sources: tuple[int, ...]) -> Message:
    if isinstance(message, OtherMessage | BranchSummaryMessage | CompactionSummaryMessage):
        return message
    return evolve(message, extra={**message.extra, SOURCES: sources})


def _untag(message: ModelMessage) -> ModelMessage:
    return evolve(message, extra={k: v for k, v in message.extra.items() if k != SOURCES})


def _sources(message: Message) -> tuple[int, ...]:
    return tuple(getattr(message, "extra", {}).get(SOURCES, ()))


def _fates(sources: Sequence[Source], request: Sequence[ModelMessage], estimate: Estimator) -> list[Action]:
    made_of = {i: m for m in request for i in _sources(m)}
    actions = []
    for i, source in enumerate(sources):
        before = estimate(source.message)
        result = made_of.get(i)
        if result is None:
            actions.append(Action(source.entry_id, i, "dropped", _why_dropped(source.message), before, 0))
        elif len(_sources(result)) > 1:
            actions.append(Action(source.entry_id, i, "merged", "turns_alternate", before, before))
        else:
            after = estimate(result)
            same = result == source.message or after >= before
            name: ActionName = "kept" if same else "trimmed"
            actions.append(Action(source.entry_id, i, name, "" if same else "repair", before, after))
    return actions


def _why_dropped(message: Message) -> str:
    if isinstance(message, AssistantMessage):
        return "failed_reply" if message.failed else "empty_reply"
    if isinstance(message, ToolResultMessage):
        return "result_without_call"
    return "not_for_models"


def _synthesised(request: Sequence[ModelMessage], estimate: Estimator) -> list[Action]:
    actions = []
    for i, message in enumerate(request):
        if not _sources(message):
            first = text_of(getattr(message, "content", "")) == CONVERSATION_GOES_ON
            rule = "first_turn_is_the_users" if first else "call_without_result"
            actions.append(Action(None, i, "synthesised", rule, 0, estimate(message)))
    return actions
