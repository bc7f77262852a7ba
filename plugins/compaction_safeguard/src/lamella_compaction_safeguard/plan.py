"""Everything about a compaction that can be told before a model is asked."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from lamella.text.conversation import FileLists
from lamella.types.hooks import Compacting
from lamella.types.messages import (
    AssistantMessage,
    Message,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from lamella_compaction_safeguard import tail
from lamella_compaction_safeguard.carried import (
    Carried,
    all_files,
    carried_from,
    latest_compaction,
    without_additions,
)
from lamella_compaction_safeguard.config import Config
from lamella_compaction_safeguard.failures import Failures, failure_section, tool_failures
from lamella_compaction_safeguard.identifiers import checked_identifiers, distinct, kept_identifiers
from lamella_compaction_safeguard.preserved import quote_turns, split_recent
from lamella_compaction_safeguard.prompts import Wishes
from lamella_compaction_safeguard.quality import Facts
from lamella_compaction_safeguard.refresh import without_refreshes
from lamella_compaction_safeguard.sections import rules
from lamella_compaction_safeguard.stages import chunk_tokens, chunks, text_sent, within_share, without_large


@frozen(slots=True)
class Plan:
    """What is summarised, checked, and added. Sizes of `limit` and of the tail are characters.

    `older`, `newer` and `turn` are pieces of one request each: history beyond its share of the
    window, within it, and the beginning of a split turn.
    """

    older: tuple[tuple[Message, ...], ...] = field(repr=False)
    newer: tuple[tuple[Message, ...], ...] = field(repr=False)
    turn: tuple[tuple[Message, ...], ...] = field(repr=False)
    previous: str = field(repr=False)
    wishes: Wishes
    facts: Facts
    tail: str = field(repr=False)
    limit: int
    reserve: int
    files: FileLists
    failures: Failures
    notes: tuple[str, ...] = ()
    quoted_only: bool = True

    @property
    def body_limit(self) -> int:
        """Characters that are left for the model's part."""
        return self.limit - len(self.tail)


def is_conversation(messages: Sequence[Message]) -> bool:
    """Whether anybody said or did anything in these messages."""
    return any(isinstance(m, (UserMessage, AssistantMessage, ToolResultMessage)) for m in messages)


def make_plan(event: Compacting, window: int, config: Config, agents: str) -> Plan:
    """Plan a compaction. `agents` is the text of the workspace's AGENTS.md, or empty."""
    prepared = event.preparation
    carried = carried_from(latest_compaction(event.entries))
    history, prefix = map(without_refreshes, (prepared.messages_to_summarize, prepared.turn_prefix))
    folded = (*history, *prefix)
    request = _unkept_request(event, folded, carried)
    limit = tail.allowed_chars(config.summary_max_chars, window, text_sent(folded[-20:]))

    split = split_recent(history, config.recent_turns)
    quoted = quote_turns(split.recent, limit // 5)
    told = without_large(split.rest if quoted.whole else history, window)
    turn = without_large(prefix, window)
    notes = (*told.notes, *turn.notes)
    budgeted = within_share(told.messages, int(window * config.history_share))
    summarised = (*told.messages, *turn.messages)
    size = chunk_tokens(summarised, window)

    strict = _is_strict(config)
    checked = checked_identifiers(summarised) if strict else ()
    kept = kept_identifiers(carried.identifiers, folded, limit // 6) if strict else ()
    files = all_files(prepared.read_files, prepared.modified_files, carried.files)
    failures = tool_failures(folded, carried.failures)
    sections = (
        quoted.text,
        failure_section(failures, limit // 8),
        tail.notes_section(notes),
        tail.file_section(files, limit // 8),
        tail.rules_section(rules(agents, config.refresh_sections, min(tail.MAX_RULES, limit // 8))),
        tail.request_section(request, limit // 4),
    )
    return Plan(
        older=tuple(chunks(budgeted.older, size)),
        newer=tuple(chunks(budgeted.newer, size)),
        turn=tuple(chunks(turn.messages, size)),
        previous=without_additions(prepared.previous_summary or "", quotes=carried.quotes),
        wishes=Wishes(config.identifier_policy, config.identifier_instructions, event.instructions),
        facts=Facts(
            checked,
            distinct((*kept, *checked)),
            _latest_ask(summarised),
            quoted=bool(request),
            user_text=_user_text(folded),
        ),
        tail="".join(f"\n\n{section}" for section in sections if section),
        limit=limit,
        reserve=prepared.reserve_tokens,
        files=files,
        failures=failures,
        notes=notes,
        quoted_only=quoted.whole,
    )


def _unkept_request(event: Compacting, folded: Sequence[Message], carried: Carried) -> str:
    """The user's latest request when no kept message has it: then the summary must."""
    entries = event.entries
    first_kept = next((i for i, e in enumerate(entries) if e.id == event.preparation.first_kept_entry_id), len(entries))
    if any(entry.role == "user" for entry in entries[first_kept:]):
        return ""
    return _latest_ask(folded) or carried.request


def _latest_ask(messages: Sequence[Message]) -> str:
    asked = (text_of(m.content, "\n").strip() for m in reversed(messages) if isinstance(m, UserMessage))
    return next((text for text in asked if text), "")


def _user_text(messages: Sequence[Message]) -> str:
    """A sample of what the user writes, the newest first."""
    return "\n".join(text_of(m.content, "\n") for m in reversed(messages) if isinstance(m, UserMessage))


def _is_strict(config: Config) -> bool:
    """Whether identifiers are checked: also for custom rules without any text."""
    policy = config.identifier_policy
    return policy == "strict" or (policy == "custom" and not config.identifier_instructions.strip())
