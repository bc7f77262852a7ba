"""The engine's own summary: what a model is asked when no plugin answers `on_compaction`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from attrs import frozen

from lamella.text.conversation import (
    FileLists,
    convert_to_model_messages,
    file_tags,
    serialize_conversation,
)
from lamella.types.hooks import Preparation
from lamella.types.messages import UserMessage, text_of

SYSTEM_PROMPT = (
    "You summarise a conversation between a person and an assistant, for an assistant that will carry on "
    "from your summary. Do not continue the conversation and do not answer anything in it: write the "
    "summary in the given structure and nothing else. Write in the conversation's own language; keep "
    "the headings as they are given."
)

_STRUCTURE = """\
## Goal
What the person wants to reach; several goals as a list.

## Constraints & Preferences
Requirements, limits and tastes that were stated, or "(none)".

## Progress
### Done
- [x] What is finished
### In Progress
- [ ] What is under way
### Blocked
- What is stuck and why, or "(none)"

## Key Decisions
- **Decision**: the reason in short

## Next Steps
1. What comes next, in order

## Critical Context
- Facts, data and references that are needed to go on, or "(none)\""""

_FIRST = (
    "Write a checkpoint of the conversation above from which another assistant can continue. Use exactly "
    "this structure, keep each section short, and keep exact file paths, function names, identifiers and "
    f"error messages:\n\n{_STRUCTURE}"
)
_UPDATE = (
    "The messages above are new. Merge them into the summary in <previous-summary>: keep everything in it "
    "that still matters, add new progress, decisions and facts, move what is finished from In Progress to "
    "Done, and bring Next Steps up to date. Drop only what no longer matters. Keep exact file paths, "
    f"function names, identifiers and error messages. Use exactly this structure:\n\n{_STRUCTURE}"
)
_PREFIX = (
    "The conversation above is the beginning of one long turn whose later part is kept word for word. "
    "Summarise this beginning so that the kept part can be understood. Use exactly this structure:\n\n"
    "## Original Request\nWhat the person asked for in this turn.\n\n"
    "## Progress So Far\n- What was done and found in this beginning\n\n"
    "## Context Needed to Continue\n- What one must know to follow the kept part"
)

# Most characters of a request that is quoted behind a summary.
_REQUEST_CHARS = 8_000

TURN_CONTEXT = "\n\n---\n\n**Turn Context (split turn):**\n\n"


@frozen(slots=True)
class SummaryRequest:
    """One request to a model: prompt, system prompt, and the most tokens of the answer."""

    prompt: str
    max_tokens: int
    system_prompt: str = SYSTEM_PROMPT


Ask: TypeAlias = Callable[[SummaryRequest], Awaitable[str]]


def history_request(preparation: Preparation, instructions: str = "") -> SummaryRequest:
    """The request for the folded history, as an update when there is an earlier summary."""
    text = serialize_conversation(convert_to_model_messages(preparation.messages_to_summarize))
    prompt = f"<conversation>\n{text}\n</conversation>\n\n"
    if preparation.previous_summary:
        prompt += f"<previous-summary>\n{preparation.previous_summary}\n</previous-summary>\n\n{_UPDATE}"
    else:
        prompt += _FIRST
    return SummaryRequest(prompt + _focus(instructions), int(0.8 * preparation.reserve_tokens))


def prefix_request(preparation: Preparation, instructions: str = "") -> SummaryRequest:
    """The request for the beginning of a split turn."""
    text = serialize_conversation(convert_to_model_messages(preparation.turn_prefix))
    prompt = f"<conversation>\n{text}\n</conversation>\n\n{_PREFIX}"
    return SummaryRequest(prompt + _focus(instructions), int(0.5 * preparation.reserve_tokens))


def _focus(instructions: str) -> str:
    return f"\n\nAdditional focus: {instructions.strip()}" if instructions.strip() else ""


def _request_of(preparation: Preparation) -> str:
    """The folded request of a turn that goes on, word for word: a model must not answer a paraphrase."""
    first = preparation.turn_prefix[0]
    text = text_of(first.content).strip() if isinstance(first, UserMessage) else ""
    if not text:
        return ""
    if len(text) > _REQUEST_CHARS:
        text = f"{text[:_REQUEST_CHARS]} [...]"
    return f"\n\n<latest-user-request>\n{text}\n</latest-user-request>"


async def summarize(preparation: Preparation, ask: Ask, instructions: str = "") -> str:
    """The summary of a compaction, with file lists at its end.

    When only the beginning of a turn is folded, an earlier summary stays as it is.
    """
    if preparation.messages_to_summarize:
        summary = await ask(history_request(preparation, instructions))
    else:
        summary = preparation.previous_summary or "No prior history."
    if preparation.turn_prefix:
        prefix = await ask(prefix_request(preparation, instructions))
        summary = f"{summary}{TURN_CONTEXT}{prefix}{_request_of(preparation)}"
    return summary + file_tags(FileLists(preparation.read_files, preparation.modified_files))
