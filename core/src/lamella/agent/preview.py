"""What the next request of a transcript would be, and what became of each message on the way.

The same steps as in a turn (`context` hooks, repair), on messages that carry a tag of where they
come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import evolve, frozen

from lamella.context.images import without_images
from lamella.context.profiles import ProviderProfile
from lamella.context.repair import repair
from lamella.context.repairs.changes import each
from lamella.context.repairs.turns import SOURCES
from lamella.plugins.hooks import Hooks
from lamella.text.conversation import convert_to_model_messages
from lamella.text.days import unix_ms
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
class Remark:
    """What a plugin says about a whole request, such as why it changed nothing."""

    plugin: str
    rule: str
    text: str

    def to_json(self) -> dict[str, Any]:
        return {"plugin": self.plugin, "rule": self.rule, "text": self.text}


@frozen(slots=True)
class Preview:
    """A request's messages, what happened on the way, and their estimated tokens."""

    messages: tuple[ModelMessage, ...]
    actions: tuple[Action, ...]
    tokens: int
    remarks: tuple[Remark, ...] = ()


@frozen(slots=True)
class _Verdict:
    """What plugins say they did with a message."""

    action: h.ContextAction
    rule: str


class _Listener:
    """Notes what each plugin does with the tagged messages of a `context` hook."""

    def __init__(self, tagged: Sequence[Message]) -> None:
        # Summaries have no room for a tag; they are known by identity.
        self._untagged = {id(m): (i,) for i, m in enumerate(tagged) if not _sources(m)}
        self.verdicts: dict[int, _Verdict] = {}
        self.remarks: list[Remark] = []

    def sources(self, message: Message) -> tuple[int, ...]:
        """Indexes of the messages that this one was made from."""
        return _sources(message) or self._untagged.get(id(message), ())

    def watch(self, plugin: str, given: Sequence[Message], edit: h.ContextEdit) -> None:
        """Take a plugin's notes; what it changed without a note goes under its name."""
        if edit.messages is not None:
            self._see_changes(plugin, given, edit.messages)
        for note in edit.notes:
            if note.index is None:
                self.remarks.append(Remark(plugin, note.rule, note.text))
            elif 0 <= note.index < len(given):
                self._judge(given[note.index], _Verdict(note.action, note.rule))

    def _judge(self, message: Message, verdict: _Verdict) -> None:
        for source in self.sources(message):
            before = self.verdicts.get(source)
            # That a plugin left a message alone does not undo what another one did.
            if verdict.action != "kept" or before is None or before.action == "kept":
                self.verdicts[source] = verdict

    def _see_changes(self, plugin: str, given: Sequence[Message], now: Sequence[Message]) -> None:
        left = {source: message for message in now for source in self.sources(message)}
        for message in given:
            for source in self.sources(message):
                if source not in left:
                    self.verdicts[source] = _Verdict("dropped", plugin)
                elif left[source] is not message:
                    self.verdicts[source] = _Verdict("trimmed", plugin)


async def preview(
    sources: Sequence[Source],
    profile: ProviderProfile,
    *,
    same_model: Callable[[AssistantMessage], bool],
    estimate: Estimator,
    images: bool = True,
    hooks: Hooks | None = None,
    host: Host | None = None,
    window: int = 0,
    now: float | None = None,
) -> Preview:
    """The request that these messages would make at a time (Unix milliseconds; None: this moment).

    `images` tells whether the model takes any.
    """
    tagged = [_tag(s.message, (i,)) for i, s in enumerate(sources)]
    listener = _Listener(tagged)
    shown: Sequence[Message] = tagged
    if hooks is not None and host is not None and hooks.implemented("context"):
        event = h.BeforeModelCall(tuple(tagged), 1, window, unix_ms() if now is None else now)
        shown = await hooks.context(event, host, watch=listener.watch)
    converted = [
        evolve(message, extra={**message.extra, SOURCES: listener.sources(original)})
        for original in shown
        for message in convert_to_model_messages([original])
    ]
    request = repair(converted, profile, same_model=same_model)
    if not images:
        request = each(request, without_images)
    actions = [*_fates(sources, request, listener.verdicts, estimate), *_synthesised(request, estimate)]
    messages = tuple(_untag(m) for m in request)
    return Preview(messages, tuple(actions), sum(estimate(m) for m in messages), tuple(listener.remarks))


def _tag(message: Message, sources: tuple[int, ...]) -> Message:
    if isinstance(message, OtherMessage | BranchSummaryMessage | CompactionSummaryMessage):
        return message
    return evolve(message, extra={**message.extra, SOURCES: sources})


def _untag(message: ModelMessage) -> ModelMessage:
    return evolve(message, extra={k: v for k, v in message.extra.items() if k != SOURCES})


def _sources(message: Message) -> tuple[int, ...]:
    return tuple(getattr(message, "extra", {}).get(SOURCES, ()))


def _fates(
    sources: Sequence[Source],
    request: Sequence[ModelMessage],
    verdicts: Mapping[int, _Verdict],
    estimate: Estimator,
) -> list[Action]:
    made_of = {i: m for m in request for i in _sources(m)}
    return [_fate(i, s, made_of.get(i), verdicts.get(i), estimate) for i, s in enumerate(sources)]


def _fate(
    index: int, source: Source, result: ModelMessage | None, verdict: _Verdict | None, estimate: Estimator
) -> Action:
    """What became of one message: what plugins say first, then what the repair did."""
    before = estimate(source.message)
    if result is None:
        rule = verdict.rule if verdict and verdict.action == "dropped" else _why_dropped(source.message)
        return Action(source.entry_id, index, "dropped", rule, before, 0)
    if len(_sources(result)) > 1:
        return Action(source.entry_id, index, "merged", "turns_alternate", before, before)
    after = estimate(result)
    if verdict and verdict.action != "kept":
        return Action(source.entry_id, index, verdict.action, verdict.rule, before, after)
    if result == source.message or after >= before:
        return Action(source.entry_id, index, "kept", verdict.rule if verdict else "", before, after)
    return Action(source.entry_id, index, "trimmed", "repair", before, after)


def _why_dropped(message: Message) -> str:
    if isinstance(message, AssistantMessage):
        return "failed_reply" if message.failed else "empty_reply"
    if isinstance(message, ToolResultMessage):
        return "result_without_call"
    return "not_for_models"


_RULES_OF_ADDED = {
    "user": "first_turn_is_the_users",
    "assistant": "reply_after_results",
    "toolResult": "call_without_result",
}


def _synthesised(request: Sequence[ModelMessage], estimate: Estimator) -> list[Action]:
    actions = []
    for i, message in enumerate(request):
        if not _sources(message):
            rule = _RULES_OF_ADDED[message.role]
            actions.append(Action(None, i, "synthesised", rule, 0, estimate(message)))
    return actions
