"""History made legal for a provider: pure functions, applied to every request after every cut.

Nothing a user said is ever dropped. What does not pair is mended: calls without results get an
error result, results without calls go, a late real result wins over a made-up one. Applying the
repair twice gives the same as once; a history that needs nothing comes back as the same object.
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import evolve

from lamella.context.images import without_old_images
from lamella.context.profiles import ProviderProfile
from lamella.context.repairs.blocks import clean, spoken
from lamella.context.repairs.changes import History, each
from lamella.context.repairs.ids import unique_ids
from lamella.context.repairs.pairing import pair_results
from lamella.context.repairs.responses import without_lone_items
from lamella.context.repairs.thinking import SameModel, without_old_thinking
from lamella.context.repairs.turns import begin_with_user, merge_turns, reply_after_results
from lamella.types.messages import AssistantMessage, ModelMessage, TextBlock, ToolResultMessage


def repair(
    messages: History, profile: ProviderProfile, *, same_model: SameModel, tools: Collection[str] = ()
) -> History:
    """A legal request history.

    `same_model` tells whose thinking and signatures may go back. Calls of other tools than `tools`
    are left out, in any case of letters; with none given, every tool may be called.

    The order matters. Blocks are cleaned before calls and results are paired, since an invalid call
    takes its result with it. Only paired messages tell where the running turn began, which thinking
    and images go by, and which result belongs to which of two calls with one id. What lost its last
    block goes before neighbours of one role are merged.
    """
    known = frozenset(name.lower() for name in tools)
    kept = each(messages, without_failure)
    kept = each(kept, lambda m: clean(m, profile, same_model, known))
    kept = each(pair_results(kept).messages, without_details)
    if profile.thinking == "loop":
        kept = without_old_thinking(kept)
    if not profile.old_images:
        kept = without_old_images(kept)
    kept = each(kept, spoken)
    if profile.reasoning_items:
        kept = without_lone_items(kept)
    return _in_order(unique_ids(kept, profile.ids), profile)


def _in_order(messages: History, profile: ProviderProfile) -> History:
    if profile.merge_turns:
        messages = merge_turns(messages)
    if profile.reply_after_results:
        messages = reply_after_results(messages)
    return begin_with_user(messages) if profile.first_user else messages


def without_failure(message: ModelMessage) -> ModelMessage | None:
    """None for a failed reply; what an aborted one said stays, without its calls and thinking."""
    if not isinstance(message, AssistantMessage) or not message.failed:
        return message
    said = tuple(b for b in message.content if isinstance(b, TextBlock) and b.text.strip())
    if message.stop_reason != "aborted" or not said:
        return None
    return evolve(message, content=said, stop_reason="stop", error_message=None, usage=None)


def without_details(message: ModelMessage) -> ModelMessage:
    """A result without what is for programs only."""
    if isinstance(message, ToolResultMessage) and message.details is not None:
        return evolve(message, details=None)
    return message
