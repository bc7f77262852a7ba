"""A model without weights: fixed rules that make a whole agent out of the memory tools.

It looks questions up in memory and quotes what it finds, writes down what it is asked to remember,
saves facts before a compaction, and writes extractive summaries. It works through tool calls, so
the rest of lamella treats it as any model.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from lamella.context.images import IMAGE_LEFT_OUT
from lamella.models import offline_recall as recall
from lamella.models.offline_phrases import (
    DISCLOSURES,
    INSTALL_MEMORY,
    Phrases,
    asked_to_remember,
    is_small_talk,
    language_of,
    phrases,
)
from lamella.models.whole import stream_whole
from lamella.text.estimate import estimate_text, estimate_tokens
from lamella.text.javascript import js_json
from lamella.text.recalled import without_blocks
from lamella.text.silent import SILENT
from lamella.text.summary import SummaryLimits, lasting_facts, summarize_text
from lamella.text.summary_format import COMPACT_HEADINGS, same_words
from lamella.types.messages import (
    AssistantMessage,
    Block,
    ModelMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    blocks_of,
    text_of,
)
from lamella.types.model import ModelRequest, StreamEvent, ToolSpec

_SEARCH_TOOLS = ("memory_search", "memory_recall")
_GET_TOOLS = ("memory_get",)
_APPEND_TOOLS = ("memory_append", "memory_store")
_SAVING_TOOLS = (*_APPEND_TOOLS, "write")  # in silent turns, where `write` appends
_MAX_QUERY_CHARS = 500
_CONVERSATION = re.compile(r"<conversation>\n?(.*)\n?</conversation>", re.DOTALL)
_PREVIOUS = re.compile(r"<previous-summary>\n?(.*)\n?</previous-summary>", re.DOTALL)
_FOCUS = re.compile(r"\n\nAdditional focus: (.*)\Z", re.DOTALL)
_TARGET = re.compile(r"\bmemory/[\w./-]+\.md\b")


class OfflineModel:
    """The model `offline/rules`. Deterministic: the same request always gets the same reply."""

    provider = "offline"
    id = "rules"
    api = "offline"
    context_window = 128_000
    max_output = 8_192
    supports_images = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        for event in stream_whole(self._reply(request)):
            yield event

    def _reply(self, request: ModelRequest) -> AssistantMessage:
        block = respond(request)
        return AssistantMessage(
            content=(block,),
            provider=self.provider,
            model=self.id,
            api=self.api,
            usage=_usage(request, block),
            stop_reason="toolUse" if isinstance(block, ToolCall) else "stop",
        )


def respond(request: ModelRequest) -> TextBlock | ToolCall:
    """What the rules say next: one text, or one tool call."""
    turn = _Turn.of(request)
    if (frame := _CONVERSATION.search(turn.prompt)) is not None:
        return TextBlock(_summary(frame[1], turn.prompt[frame.end() :], request.max_tokens))
    if SILENT in turn.prompt:
        return _flush(turn)
    reply = _converse(turn)
    return TextBlock(_with_disclosure(reply, turn)) if isinstance(reply, str) else reply


# --- the turn ------------------------------------------------------------------------------------------


@frozen(slots=True)
class _Turn:
    """The last prompt, what was said before it, and what tools answered since."""

    request: ModelRequest
    prompt: str
    before: Sequence[ModelMessage]
    results: tuple[ToolResultMessage, ...]

    @classmethod
    def of(cls, request: ModelRequest) -> _Turn:
        messages = request.messages
        last = max((i for i, m in enumerate(messages) if isinstance(m, UserMessage)), default=-1)
        if last < 0:
            return cls(request, "", (), ())
        said = [b for b in blocks_of(messages[last].content) if b != TextBlock(IMAGE_LEFT_OUT)]
        prompt = without_blocks(text_of(said, "\n"))
        results = tuple(m for m in messages[last + 1 :] if isinstance(m, ToolResultMessage))
        return cls(request, prompt, messages[:last], results)

    @property
    def phrases(self) -> Phrases:
        return phrases(language_of(self.prompt))

    def tool(self, names: Sequence[str]) -> ToolSpec | None:
        return next((spec for name in names for spec in self.request.tools if spec.name == name), None)

    def result_of(self, names: Sequence[str]) -> ToolResultMessage | None:
        """The newest answer that one of these tools gave in this turn."""
        return next((r for r in reversed(self.results) if r.tool_name in names), None)

    def call(self, tool: ToolSpec, **arguments: Any) -> ToolCall:
        taken = {c.id for m in self.request.messages if isinstance(m, AssistantMessage) for c in m.tool_calls}
        number = len(taken) + 1
        while f"offline_{number}" in taken:
            number += 1
        return ToolCall(f"offline_{number}", tool.name, arguments)


def _converse(turn: _Turn) -> str | ToolCall:
    wanted = asked_to_remember(turn.prompt)
    if wanted is not None:
        return _remember(turn, wanted)
    if is_small_talk(turn.prompt) or not turn.prompt:
        return turn.phrases.hello
    return _recall(turn)


def _with_disclosure(text: str, turn: _Turn) -> str:
    """The text, followed once in a conversation by what this model is."""
    said = (text_of(m.content) for m in turn.before if isinstance(m, AssistantMessage))
    if any(disclosure in earlier for earlier in said for disclosure in DISCLOSURES):
        return text
    return f"{text}\n\n{turn.phrases.not_a_model}"


# --- recalling and remembering ---------------------------------------------------------------------------


def _recall(turn: _Turn) -> str | ToolCall:
    search = turn.tool(_SEARCH_TOOLS)
    if search is None:
        return turn.phrases.no_memory.format(command=INSTALL_MEMORY)
    found = turn.result_of(_SEARCH_TOOLS)
    if found is None:
        return turn.call(search, **{_main_argument(search, "query"): turn.prompt[-_MAX_QUERY_CHARS:].strip()})
    if found.is_error:
        return turn.phrases.search_failed.format(error=_first_line(found))
    passages = recall.parse_passages(text_of(found.content))
    get, read = turn.tool(_GET_TOOLS), turn.result_of(_GET_TOOLS)
    partial = recall.to_look_up(turn.prompt, passages)
    if get is not None and read is None and partial is not None:
        return _look_up(turn, get, partial)
    if read is not None and not read.is_error:
        passages = recall.completed(passages, recall.parse_passages(text_of(read.content)))
    answer = recall.answer(turn.prompt, passages)
    if answer is None:
        return turn.phrases.nothing
    return f"{turn.phrases.found if answer.exact else turn.phrases.nearest}\n\n{answer.text}"


def _look_up(turn: _Turn, get: ToolSpec, passage: recall.Passage) -> ToolCall:
    known = get.parameters.get("properties", {})
    arguments: dict[str, Any] = {"path": passage.path}
    if "from" in known and "lines" in known:
        arguments |= {"from": passage.start, "lines": passage.end - passage.start + 1}
    return turn.call(get, **arguments)


def _remember(turn: _Turn, what: str) -> str | ToolCall:
    append = turn.tool(_APPEND_TOOLS)
    if append is None:
        return turn.phrases.no_memory.format(command=INSTALL_MEMORY)
    if not what:
        return turn.phrases.what_to_save
    saved = turn.result_of(_APPEND_TOOLS)
    if saved is None:
        return turn.call(append, **{_main_argument(append, "text"): f"- {what}"})
    if saved.is_error:
        return turn.phrases.not_saved.format(error=_first_line(saved))
    place = recall.saved_place(text_of(saved.content))
    return turn.phrases.saved.format(place=place or saved.tool_name)


def _main_argument(tool: ToolSpec, usual: str) -> str:
    """The argument that takes the text: the usual name, or the first that the tool requires."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required") or ()
    return usual if usual in properties or not required else str(required[0])


def _first_line(result: ToolResultMessage) -> str:
    return text_of(result.content).strip().partition("\n")[0]


# --- silent turns ----------------------------------------------------------------------------------------


def _flush(turn: _Turn) -> TextBlock | ToolCall:
    """Save what should outlast a compaction; never say anything."""
    append = turn.tool(_SAVING_TOOLS)
    if append is None or turn.result_of(_SAVING_TOOLS) is not None:
        return TextBlock(SILENT)
    saved = _already_saved(turn.before) + same_words(turn.prompt)  # which holds the end of the note
    told = (asked_to_remember(fact) or fact for fact in lasting_facts(turn.before))
    facts = [fact for fact in dict.fromkeys(told) if same_words(fact) not in saved]
    if not facts:
        return TextBlock(SILENT)
    arguments = {_main_argument(append, "text"): "\n".join(f"- {fact}" for fact in facts)}
    target = _TARGET.search(turn.prompt)
    if target and "path" in append.parameters.get("properties", {}):
        arguments["path"] = target[0]
    return turn.call(append, **arguments)


def _already_saved(messages: Sequence[ModelMessage]) -> str:
    """The words of everything that the conversation has already put into memory."""
    calls = (c for m in messages if isinstance(m, AssistantMessage) for c in m.tool_calls)
    return "\n".join(same_words(str(v)) for c in calls if c.name in _APPEND_TOOLS for v in c.arguments.values())


def _summary(conversation: str, rest: str, max_tokens: int | None) -> str:
    previous, focus = _PREVIOUS.search(rest), _FOCUS.search(rest)
    usual = SummaryLimits()
    total = min(usual.total_tokens, max_tokens or usual.total_tokens)
    return summarize_text(
        conversation,
        previous=previous[1] if previous else "",
        focus=focus[1] if focus else "",
        limits=SummaryLimits(new_tokens=min(usual.new_tokens, total // 2), total_tokens=total),
        layout="compact" if all(heading in rest for heading in COMPACT_HEADINGS) else "checkpoint",
    )


def _usage(request: ModelRequest, block: Block) -> Usage:
    schemas = sum(estimate_text(t.name + t.description + js_json(t.parameters)) for t in request.tools)
    sent = estimate_text(request.system_prompt) + schemas + sum(map(estimate_tokens, request.messages))
    received = estimate_tokens(AssistantMessage((block,)))
    return Usage(input=sent, output=received, total_tokens=sent + received)
