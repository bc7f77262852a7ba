"""What hooks are given and what they give back. The hooks themselves: `lamella.plugins.hookspecs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrs import field, frozen

from lamella.types.host import PRIVATE_CHATS, SHARED_CHATS, ChatType, SessionKind, Trigger

if TYPE_CHECKING:
    from lamella.types.entries import Entry
    from lamella.types.events import CompactionCause
    from lamella.types.memory import BackendRegistration, EmbedderRegistration, MemoryService
    from lamella.types.messages import Block, JsonObject, Message, ToolResultMessage

ContextAction: TypeAlias = Literal["kept", "trimmed", "cleared", "dropped"]
SessionReason: TypeAlias = Literal["new", "reset", "idle", "daily", "resume", "shutdown"]
PromptMode: TypeAlias = Literal["full", "minimal", "none"]


@frozen(slots=True)
class SessionStart:
    """A key has got a session id. `previous_id` is the id it had before, if any.

    `bare` tells that the user asked for it with `/new` or `/reset` and said nothing else.
    """

    session_key: str
    session_id: str
    reason: SessionReason
    transcript: Path
    previous_id: str | None = None
    bare: bool = False


@frozen(slots=True)
class SessionEnd:
    """A key is about to leave a session id; the transcript can still be read at `transcript`."""

    session_key: str
    session_id: str
    reason: SessionReason
    transcript: Path
    message_count: int = 0


@frozen(slots=True)
class Input:
    """A user's text has arrived; nothing is stored yet."""

    text: str
    trigger: Trigger = "user"


@frozen(slots=True)
class InputResult:
    """`text` replaces the input; `handled` ends the turn without a model, with `reply` as answer."""

    text: str | None = None
    handled: bool = False
    reply: str = ""


@frozen(slots=True)
class BeforeTurn:
    """The turn's size before its request is assembled.

    `tokens` is the estimate of the context with the new prompt, `window` the model's, `reserve`
    what compaction keeps free, `cycle` the number of compactions so far. `flush_due` tells that memory
    should be saved now, and by what: `tokens`, or the size of the `transcript`; empty: not now.
    """

    prompt: str
    tokens: int
    window: int
    reserve: int
    cycle: int
    transcript_bytes: int = 0
    flush_due: Literal["", "tokens", "transcript"] = ""


@frozen(slots=True)
class BeforePromptBuild:
    """Prompt and history are known; the request is not built yet.

    `room`: tokens that additions may take before the window's reserve is touched; below 0 it is already.
    """

    prompt: str
    messages: tuple[Message, ...]
    system_prompt: str
    room: int = 0


@frozen(slots=True)
class PromptAddition:
    """What a plugin adds to a request. Empty fields add nothing.

    `system_prompt` replaces the whole base prompt (the last one set wins); the others are joined
    in order with a blank line. `prepend_context` goes before the user's prompt, in the user role. `model` is
    `provider/model` (the first one set wins; only `before_agent_start` is asked for it).
    """

    system_prompt: str = ""
    prepend_system: str = ""
    append_system: str = ""
    prepend_context: str = ""
    model: str = ""


@frozen(slots=True)
class BeforeModelCall:
    """The messages of one model call, as copies. `now` is its time in Unix milliseconds."""

    messages: tuple[Message, ...]
    call: int
    window: int
    now: float


@frozen(slots=True)
class ContextNote:
    """What a `context` hook did with a message, or why it did nothing.

    `index` counts in the messages that the hook was given; None for a remark on all of them. `rule`
    is a stable name, `text` says it to people.
    """

    rule: str
    action: ContextAction = "kept"
    index: int | None = None
    text: str = ""


@frozen(slots=True)
class ContextEdit:
    """The messages to use (None: as they were), with notes for `lamella context --explain`."""

    messages: tuple[Message, ...] | None = None
    notes: tuple[ContextNote, ...] = ()


@frozen(slots=True)
class BeforeToolCall:
    """A call of the model with valid arguments; the tool has not run yet."""

    tool_name: str
    tool_call_id: str
    arguments: JsonObject


@frozen(slots=True)
class ToolCallVerdict:
    """`arguments` replaces the call's; `block` refuses it, and no later plugin can undo that."""

    arguments: JsonObject | None = None
    block: bool = False
    reason: str = ""


@frozen(slots=True)
class AfterToolCall:
    """A call that ran, failed or was blocked, with its result. `duration_ms` in milliseconds."""

    tool_name: str
    tool_call_id: str
    arguments: JsonObject
    content: tuple[Block, ...]
    details: Any
    is_error: bool
    duration_ms: float


@frozen(slots=True)
class ToolResultPersist:
    """A tool result that is about to be stored. `synthetic` marks one that lamella made itself."""

    message: ToolResultMessage
    synthetic: bool = False


@frozen(slots=True)
class Preparation:
    """What a compaction would do: the cut, and what has to be summarised. Sizes in tokens.

    `turn_prefix` holds the beginning of the turn that the cut falls into (`is_split_turn`).
    """

    first_kept_entry_id: str
    messages_to_summarize: tuple[Message, ...]
    turn_prefix: tuple[Message, ...]
    is_split_turn: bool
    tokens_before: int
    previous_summary: str | None
    read_files: tuple[str, ...]
    modified_files: tuple[str, ...]
    folded_entry_ids: tuple[str, ...] = ()
    reserve_tokens: int = 16384
    keep_recent_tokens: int = 20000


@frozen(slots=True)
class Compacting:
    """History must shrink. `entries` is the branch, root first."""

    preparation: Preparation
    entries: tuple[Entry, ...] = field(repr=False)
    cause: CompactionCause
    instructions: str = ""
    attempt: int = 1


@frozen(slots=True)
class CompactionResult:
    """A summary from a plugin, or `cancel` with a reason: then nothing is compacted."""

    summary: str = ""
    first_kept_entry_id: str = ""
    details: Any = None
    cancel: bool = False
    reason: str = ""


@frozen(slots=True)
class BeforeCompaction:
    """History is about to be compacted. `window` is the model's, in tokens, `cycle` the number of
    compactions so far. `flush` tells whether memory may be saved first (`compaction.flush`)."""

    preparation: Preparation
    cause: CompactionCause
    window: int
    cycle: int = 0
    flush: bool = True


@frozen(slots=True)
class FlushReport:
    """What was saved to memory before a compaction, for the records.

    `outcome` is `written`, `nothing` (the model found nothing worth it), `failed: ...` or `none: ...`
    with the reason why nothing was tried. `path`: the memory file.
    """

    outcome: str
    path: str = ""


@frozen(slots=True)
class AfterCompaction:
    """The compaction is stored as `entry_id`. Sizes of the context in tokens; `message_count` afterwards."""

    entry_id: str
    summary: str
    cause: CompactionCause
    tokens_before: int
    tokens_after: int
    message_count: int


@frozen(slots=True)
class Overflow:
    """The model refused the size and compaction was not enough. `entries`: the branch."""

    entries: tuple[Entry, ...] = field(repr=False)
    tokens: int
    window: int
    error: str


@frozen(slots=True)
class Freed:
    """How many tokens a plugin freed; 0 counts as nothing."""

    tokens: int
    what: str = ""


@frozen(slots=True)
class AgentEnded:
    """The run is over: its new messages, prompts included, and its error. `duration_ms` in milliseconds."""

    messages: tuple[Message, ...]
    success: bool
    error: str = ""
    duration_ms: float = 0.0


@frozen(slots=True)
class PromptSection:
    """A named part of the system prompt. Lower `order` comes first; modes: full, minimal, none.

    `chats`: the types of chat whose prompts have it. `needs_tools`: it is left out unless one of these
    tools is on offer. `note` and `details` are for people, who see them
    in `lamella context`: why the section is as it is, in words and as JSON. `owner` is set by the engine.
    """

    name: str
    text: str
    order: int = 500
    modes: tuple[PromptMode, ...] = ("full",)
    chats: tuple[ChatType, ...] = (*PRIVATE_CHATS, *SHARED_CHATS)
    needs_tools: tuple[str, ...] = ()
    note: str = ""
    details: JsonObject = field(factory=dict, repr=False)
    owner: str = "core"


@frozen(slots=True)
class PromptFile:
    """A file for the system prompt. `path` is what the model is told; `text` None marks a missing file.

    `problem` says why a file that is there counts as missing.
    """

    name: str
    path: str
    text: str | None = field(default=None, repr=False)
    problem: str = ""


@frozen(slots=True)
class TokenEstimator:
    """A named way to guess how many tokens a message takes; `estimate` gets one message."""

    name: str
    estimate: Callable[[Message], int] = field(repr=False)


# Slash commands that chat has itself; a plugin's of the same name is skipped and reported.
OWN_COMMANDS = frozenset({"help", "new", "reset", "compact", "status", "context", "memory", "quit"})


@frozen(slots=True)
class Command:
    """A slash command of chat, without the slash. `run` gets its arguments and returns a reply."""

    name: str
    summary: str
    run: Callable[[str], Any] = field(repr=False)


@frozen(slots=True)
class RegistrationContext:
    """Start-up facts for the `register_*` hooks; `PromptContext` has them too.

    `state_dir` is the agent's own folder (`~/.lamella/agents/<id>`). `memory` is the open memory
    service, or None when no plugin fills the slot.
    """

    agent_id: str
    workspace: Path
    state_dir: Path
    timezone: str = ""
    memory: MemoryService | None = field(default=None, repr=False)


@frozen(slots=True)
class PromptContext(RegistrationContext):
    """Whose system prompt is made, beside the facts of start-up.

    `session_id` is empty for a session that has not begun; what is kept for a session is kept under
    it. `model` is `provider/model`, `tools` names the tools on offer, `files` are the workspace's
    files so far. `preview`: the prompt is only shown, so nothing may be stored.
    """

    session_key: str = ""
    session_id: str = ""
    kind: SessionKind = "main"
    chat_type: ChatType = "direct"
    trigger: Trigger = "user"
    mode: PromptMode = "full"
    model: str = ""
    tools: tuple[str, ...] = ()
    files: tuple[PromptFile, ...] = field(default=(), repr=False)
    preview: bool = False


@frozen(slots=True)
class MemoryContext:
    """What long-term memory is opened with. `backend` is the chosen name, `backends` all on offer.

    `sessions_dir`: the folder of the agent's transcripts.
    """

    agent_id: str
    workspace: Path
    state_dir: Path
    timezone: str
    backend: str
    backends: Mapping[str, BackendRegistration] = field(repr=False)
    embedders: Mapping[str, EmbedderRegistration] = field(repr=False)
    sessions_dir: Path | None = None
