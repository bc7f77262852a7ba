"""Where to cut history, and what a compaction would fold: pure functions over a branch.

The rules are those of Pi 1.6: what the last compaction kept takes part in the next one, a giant
newest result still leaves a legal cut, and every entry that a model sees costs something.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from lamella.sessions.context import Context, Projected
from lamella.text.conversation import FileOps, file_lists, file_operations
from lamella.text.estimate import ContextEstimate, Estimator, estimate_context
from lamella.types.entries import Compaction, Entry
from lamella.types.hooks import Preparation
from lamella.types.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    UserMessage,
)

# A kept part may begin with any of these, never with a tool result.
_CUTTABLE = (
    UserMessage,
    AssistantMessage,
    BashExecutionMessage,
    CustomMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
)
_STARTS_TURN = (
    UserMessage,
    BashExecutionMessage,
    CustomMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
)


@frozen(slots=True)
class CutPoint:
    """`first_kept` is an index into the items; `turn_start` -1 unless the cut splits a turn."""

    first_kept: int
    turn_start: int = -1

    @property
    def is_split_turn(self) -> bool:
        return self.turn_start >= 0


def _is_cut_point(item: Projected) -> bool:
    return item.entry.type != "compaction" and any(isinstance(m, _CUTTABLE) for m in item.messages)


def _starts_turn(item: Projected) -> bool:
    return item.entry.type != "compaction" and any(isinstance(m, _STARTS_TURN) for m in item.messages)


def find_turn_start(items: Sequence[Projected], index: int, start: int) -> int:
    """Index of the nearest item at or before `index` that starts a turn, not before `start`; else -1."""
    for i in range(index, start - 1, -1):
        if _starts_turn(items[i]):
            return i
    return -1


def find_cut_point(
    items: Sequence[Projected], start: int, end: int, keep_recent_tokens: int, estimate: Estimator
) -> CutPoint:
    """The cut that keeps about `keep_recent_tokens` of items[start:end], at least one legal start."""
    cut_points = [i for i in range(start, end) if _is_cut_point(items[i])]
    if not cut_points:
        return CutPoint(start)
    cut = cut_points[0]
    total = 0
    for i in range(end - 1, start - 1, -1):
        cost = sum(estimate(m) for m in items[i].messages)
        if cost == 0:
            continue
        total += cost
        if total >= keep_recent_tokens:
            cut = next((c for c in cut_points if c >= i), cut_points[-1])
            break
    first_seen = cut
    while cut > start and not items[cut - 1].messages and items[cut - 1].entry.type != "compaction":
        cut -= 1
    if _starts_turn(items[first_seen]):  # whatever bookkeeping stands before it
        return CutPoint(cut)
    return CutPoint(cut, find_turn_start(items, cut, start))


def tokens_in_context(context: Context, estimate: Estimator) -> int:
    """The size of a context: the last reply's own count plus estimates after it, where there is one.

    Counts from before the latest compaction or edit describe another context and are not used.
    """
    return measure_context(context, estimate).tokens


def measure_context(context: Context, estimate: Estimator) -> ContextEstimate:
    """As `tokens_in_context`, with what the size is made of. Only a reply's count includes the system prompt."""
    barrier = _barrier(context)
    usable_from = count = 0
    for position, item in zip(context.positions, context.items, strict=True):
        count += len(item.messages)
        if position <= barrier:
            usable_from = count
    return estimate_context(context.messages, estimate, usable_from=usable_from)


def _barrier(context: Context) -> int:
    """Position of the latest compaction or context edit of the branch, or -1."""
    marks = [p for p in context.positions if context.lines.heads[p].type in ("compaction", "context_edit")]
    return max(marks, default=-1)


def prepare_compaction(
    context: Context, *, keep_recent_tokens: int, reserve_tokens: int, estimate: Estimator
) -> Preparation | None:
    """What a compaction of this context would fold; None when there is nothing to fold."""
    items = context.items
    if not items or _last_is_compaction(context):
        return None
    previous = items[0].entry if context.compaction is not None else None
    start = 1 if previous is not None else 0
    cut = find_cut_point(items, start, len(items), keep_recent_tokens, estimate)
    if cut.first_kept >= len(items):
        return None
    history_end = cut.turn_start if cut.is_split_turn else cut.first_kept
    history = _messages(items[start:history_end])
    prefix = _messages(items[history_end : cut.first_kept]) if cut.is_split_turn else ()
    if not history and not prefix:
        return None
    files = file_lists(file_operations((*history, *prefix)) | previous_files(previous))
    return Preparation(
        first_kept_entry_id=items[cut.first_kept].entry.id,
        messages_to_summarize=history,
        turn_prefix=prefix,
        is_split_turn=cut.is_split_turn,
        tokens_before=tokens_in_context(context, estimate),
        previous_summary=Compaction.of(previous).summary if previous is not None else None,
        read_files=files.read,
        modified_files=files.modified,
        folded_entry_ids=tuple(i.entry.id for i in items[start : cut.first_kept] if i.messages),
        reserve_tokens=reserve_tokens,
        keep_recent_tokens=keep_recent_tokens,
    )


def _last_is_compaction(context: Context) -> bool:
    """Nothing that a model sees has come after the latest compaction."""
    if context.compaction is None:
        return False
    after = (i for p, i in zip(context.positions, context.items, strict=True) if p > context.compaction)
    return not any(item.messages for item in after)


def _messages(items: Sequence[Projected]) -> tuple[Message, ...]:
    return tuple(m for item in items for m in item.messages if not isinstance(m, CompactionSummaryMessage))


def previous_files(previous: Entry | None) -> FileOps:
    """Files that the previous compaction listed, if lamella or Pi wrote it and no plugin did."""
    if previous is None or previous.fields.get("fromHook"):
        return FileOps()
    return FileOps.from_details(previous.fields.get("details"))
