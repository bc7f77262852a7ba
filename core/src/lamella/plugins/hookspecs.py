"""Every hook of lamella, on one page.

A plugin implements the hooks it needs with `@hookimpl` and nothing else. Events are frozen, so a
plugin can never change what others see; what it wants changed, it returns. An implementation may
leave out parameters that it does not use.

Rules that hold for all of them:

- `def` or `async def`; what runs at start-up or makes the system prompt is a plain `def`. A plain `def`
  runs in a worker thread.
- Order: the plugin's `priority`, highest first, then its name. `@hookimpl(tryfirst=True)` and
  `trylast=True` go before and after everything else.
- An exception, a wrong return type or a time-out is logged with the plugin's name, reported as a
  `plugin_fault` event, and skipped; the turn goes on. A late result is ignored.
- Time-outs in seconds: 15; `before_turn`, `before_compaction` 180; `on_compaction` 300;
  `session_end`, `agent_end` 60. Config: `[hooks.timeouts]`.
- `host` acts on the session; see `lamella.types.host.Host`.
"""

# mypy: disable-error-code="empty-body"
# Specifications have no body: pluggy only reads their signatures.
from __future__ import annotations

from collections.abc import Iterable

import pluggy

from lamella.types import hooks as h
from lamella.types.host import Host
from lamella.types.memory import BackendRegistration, EmbedderRegistration, MemoryService
from lamella.types.messages import Message, ToolResultMessage
from lamella.types.model import ModelProvider
from lamella.types.tools import Tool

PROJECT = "lamella"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

# --- a session's life ------------------------------------------------------------------------------


@hookspec
def session_start(event: h.SessionStart, host: Host) -> None:
    """A key has got a session id. All run."""


@hookspec
def session_end(event: h.SessionEnd, host: Host) -> None:
    """A key is about to leave a session id; its transcript can still be read. All run."""


# --- one turn, in order ----------------------------------------------------------------------------


@hookspec
def input(event: h.Input, host: Host) -> h.InputResult | None:
    """A user text has arrived; nothing is stored yet. Chained: each sees the text so far.

    `handled` ends the chain and the turn.
    """


@hookspec
def before_turn(event: h.BeforeTurn, host: Host) -> None:
    """Before the request is assembled; may run a silent turn (the memory flush). All run."""


@hookspec
def before_prompt_build(event: h.BeforePromptBuild, host: Host) -> h.PromptAddition | None:
    """Prompt and history are known. Texts are joined in order, the last `system_prompt` wins."""


@hookspec
def before_agent_start(event: h.BeforePromptBuild, host: Host) -> h.PromptAddition | None:
    """Just before the loop. As `before_prompt_build`, and `model`: the first one set wins."""


@hookspec
def context(event: h.BeforeModelCall, host: Host) -> h.ContextEdit | Iterable[Message] | None:
    """Before each model call. Chained; the result is used for this call only and never stored.

    A `ContextEdit` tells beside the messages what was done with them and why.
    """


@hookspec
def before_tool_call(event: h.BeforeToolCall, host: Host) -> h.ToolCallVerdict | None:
    """Before a tool runs. Arguments are chained; a block is final and stops the chain."""


@hookspec
def after_tool_call(event: h.AfterToolCall, host: Host) -> None:
    """After a tool ran, failed or was blocked. All run."""


@hookspec
def tool_result_persist(event: h.ToolResultPersist, host: Host) -> ToolResultMessage | None:
    """Before a tool result is stored and shown to the model. Chained. Call id and name are kept."""


@hookspec
def on_overflow(event: h.Overflow, host: Host) -> h.Freed | None:
    """The model refused the size and compaction was not enough. In order until one freed tokens."""


@hookspec
def agent_end(event: h.AgentEnded, host: Host) -> None:
    """The loop is over. All run."""


# --- compaction ------------------------------------------------------------------------------------


@hookspec
def before_compaction(event: h.BeforeCompaction, host: Host) -> h.FlushReport | None:
    """History is about to be compacted: the last moment to save what a summary would lose. All run;
    the first report of what was saved is stored with the compaction."""


@hookspec
def on_compaction(event: h.Compacting, host: Host) -> h.CompactionResult | None:
    """Summarise, or cancel. The first answer wins; without one the engine summarises by itself."""


@hookspec
def after_compaction(event: h.AfterCompaction, host: Host) -> None:
    """History has been compacted: the moment to refresh what must not be forgotten. All run."""


# --- start-up: each returns objects, all collected ---------------------------------------------------


@hookspec
def register_tools(context: h.RegistrationContext) -> Iterable[Tool]:
    """Tools for the model. A name that is taken is skipped and reported."""


@hookspec
def register_memory_backends(context: h.RegistrationContext) -> Iterable[BackendRegistration]:
    """Memory backends, chosen by `memory.backend`."""


@hookspec
def open_memory(context: h.MemoryContext) -> MemoryService | None:
    """Open long-term memory. Only the plugin in slot `memory` is asked."""


@hookspec
def register_embedders(context: h.RegistrationContext) -> Iterable[EmbedderRegistration]:
    """Embedders, chosen by name."""


@hookspec
def register_models(context: h.RegistrationContext) -> Iterable[ModelProvider]:
    """Model providers, named in `provider/model`."""


@hookspec
def register_token_estimators(context: h.RegistrationContext) -> Iterable[h.TokenEstimator]:
    """Token estimators, chosen by `context.estimator`."""


@hookspec
def register_commands(context: h.RegistrationContext) -> Iterable[h.Command]:
    """Slash commands of chat."""


# --- the system prompt of a session: plain `def`, asked when the session is opened --------------------


@hookspec
def prompt_files(context: h.PromptContext) -> Iterable[h.PromptFile] | None:
    """The workspace's files for the prompt, in order. Chained: `context.files` is the list so far."""


@hookspec
def prompt_sections(context: h.PromptContext) -> Iterable[h.PromptSection]:
    """Named parts of the prompt; stable text only, so that providers can cache it. All collected."""
