"""The plugin: when its parts act, and what it remembers of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from lamella.plugins import hookimpl
from lamella.text.days import unix_ms
from lamella_context_pruning.config import Config as _Config

if TYPE_CHECKING:
    from lamella.types.hooks import (
        AfterCompaction,
        AgentEnded,
        BeforeModelCall,
        ContextEdit,
        Freed,
        Overflow,
        SessionEnd,
        ToolResultPersist,
    )
    from lamella.types.host import Host, TurnInfo
    from lamella.types.messages import ToolResultMessage
    from lamella_context_pruning.draft import Draft
    from lamella_context_pruning.prune import Key, Replacement


@define(slots=True)
class _Session:
    """What is remembered of a session: what has been pruned, and whether a compaction came last."""

    pruned: dict[Key, Replacement] = field(factory=dict)
    compacted: bool = False


class ContextPruning:
    """Shortens tool results when they are stored, prunes old ones, and makes requests fit.

    Its hooks are `async`, so that all of them run on the session's own loop, one after the other.
    """

    name = "context-pruning"
    Config = _Config

    def __init__(self, config: _Config | None = None) -> None:
        self.config = config or _Config()
        self._sessions: dict[str, _Session] = {}

    # --- storing ---------------------------------------------------------------------------------

    @hookimpl
    async def tool_result_persist(self, event: ToolResultPersist, host: Host) -> ToolResultMessage | None:
        """Shorten a result and its details before they are stored."""
        from lamella_context_pruning.persist import stored_limit, to_store
        from lamella_context_pruning.reread import calls_of
        from lamella_context_pruning.sizes import message_units

        limit = stored_limit(host.turn.context_window, self.config.results)
        call = None
        if message_units(event.message) > limit:
            messages = (*host.messages(), event.message)
            call = calls_of(messages).get(len(messages) - 1)
        kept = to_store(event.message, limit, call, self.config.results)
        return None if kept is event.message else kept

    # --- each request ----------------------------------------------------------------------------

    @hookimpl(trylast=True)
    async def context(self, event: BeforeModelCall, host: Host) -> ContextEdit:
        """Prune when the cache is cold, do again what was pruned before, then make the request fit."""
        from lamella.types.hooks import ContextEdit
        from lamella_context_pruning.draft import Draft
        from lamella_context_pruning.fit import fit

        draft = Draft(event.messages)
        self._prune(draft, event, host)
        if self.config.fit.enabled:
            fit(draft, event.window, self.config)
        notes = (*draft.remarks, *draft.notes.values())
        return ContextEdit(tuple(draft.messages) if draft.changed else None, notes)

    def _prune(self, draft: Draft, event: BeforeModelCall, host: Host) -> None:
        from lamella_context_pruning.prune import again, prune
        from lamella_context_pruning.touch import MARKER, last_touch

        config, turn = self.config, host.turn
        if not self._applies(turn):
            where = "mode is off" if config.mode == "off" else f"{turn.provider}/{turn.model} is not in providers"
            draft.remark("pruning_off" if config.mode == "off" else "pruning_provider", where)
            return
        if config.mode == "always":
            prune(draft, event.window, config)
            return
        session = self._session(host)
        session.compacted = False  # a model call follows, and with it the prefix is in the cache
        touched = last_touch(event.messages, host.latest_entry(MARKER))
        idle = None if touched is None else event.now - touched
        if idle is not None and 0 < config.ttl_ms <= idle:
            session.pruned = prune(draft, event.window, config)
            return
        again(draft, session.pruned, config)
        if idle is None:
            draft.remark("pruning_first_run", "no reply has used the cache yet")
        else:
            draft.remark("pruning_ttl", f"the cache was used {idle / 1000:.0f} s ago; ttl is {config.ttl}")

    def _applies(self, turn: TurnInfo) -> bool:
        from lamella_context_pruning.globs import listed

        return self.config.mode != "off" and listed(turn.provider, turn.model, self.config.providers)

    def _session(self, host: Host) -> _Session:
        """What is remembered of the session; of one that another process ran, what its marker says."""
        from lamella_context_pruning.touch import MARKER, pruned_of

        session = self._sessions.get(host.turn.session_id)
        if session is None:
            session = self._sessions[host.turn.session_id] = _Session(pruned_of(host.latest_entry(MARKER)))
        return session

    # --- the end of a run ------------------------------------------------------------------------

    @hookimpl
    async def after_compaction(self, event: AfterCompaction, host: Host) -> None:
        """The prefix is a new one, which is not in the cache until the next model call."""
        self._session(host).compacted = True

    @hookimpl
    async def agent_end(self, event: AgentEnded, host: Host) -> None:
        """Note that the cache was used, and what was pruned, for whoever goes on."""
        from lamella.types.messages import AssistantMessage
        from lamella_context_pruning.touch import MARKER, marker_data

        session = self._session(host)
        replied = any(isinstance(m, AssistantMessage) and not m.failed for m in event.messages)
        if replied and not session.compacted and self.config.mode == "cache-ttl" and self._applies(host.turn):
            turn = host.turn
            host.append_entry(MARKER, marker_data(unix_ms(), turn.provider, turn.model, session.pruned))

    @hookimpl
    async def session_end(self, event: SessionEnd) -> None:
        """Forget the session."""
        self._sessions.pop(event.session_id, None)

    # --- an overflow -----------------------------------------------------------------------------

    @hookimpl
    async def on_overflow(self, event: Overflow, host: Host) -> Freed | None:
        """Shorten stored results that are too long for the window, on a new branch."""
        from lamella.types.events import Notice
        from lamella.types.hooks import Freed
        from lamella_context_pruning.persist import stored_limit
        from lamella_context_pruning.sizes import UNITS_PER_TOKEN, message_units
        from lamella_context_pruning.stored import replacements

        limit = stored_limit(event.window, self.config.results)
        shorter = replacements(event.entries, limit)
        if not shorter:
            text = f"no stored tool result has more than {limit} characters"
            host.emit(Notice("nothing_to_shorten", text))
            return None
        before = sum(message_units(e.message) for e in event.entries if e.id in shorter and e.message is not None)
        host.replace_messages(shorter)
        freed = (before - sum(map(message_units, shorter.values()))) // UNITS_PER_TOKEN
        return Freed(freed, f"{len(shorter)} tool results shortened")
