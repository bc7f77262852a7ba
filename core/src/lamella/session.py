"""One session key of a runtime: finding, locking and opening its transcript for each turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from attrs import frozen

from lamella.agent.compaction import Outcome
from lamella.agent.retry import unless_aborted
from lamella.agent.session import AgentSession
from lamella.agent.turn import TurnResult
from lamella.errors import LamellaError, UsageError
from lamella.sessions.keys import SessionKey
from lamella.sessions.renewal import another_session, first_session
from lamella.sessions.reset import (
    ResetRequest,
    last_interaction,
    overdue,
    policy_for,
    reset_request,
    reset_type,
)
from lamella.sessions.store import Located, StoredRecord
from lamella.sessions.transcript import SessionFile
from lamella.text.days import unix_ms
from lamella.types import hooks as h
from lamella.types.host import SHARED_CHATS, Trigger
from lamella.types.messages import ImageBlock
from lamella.types.model import ThinkingLevel

if TYPE_CHECKING:
    from lamella.runtime import Runtime

T = TypeVar("T")

BEGUN = "A new session has begun."


@frozen(slots=True)
class _Begun:
    """A session that was begun here, and that nobody was told of yet. `previous_id`: what the key had before."""

    session_id: str
    reason: h.SessionReason
    previous_id: str | None = None


async def _say_begun(agent: AgentSession) -> TurnResult:
    return TurnResult(BEGUN, agent.file.id, handled=True)


class Session:
    """One session key of a runtime. The transcript's lock is held during a turn, not between turns."""

    def __init__(
        self,
        runtime: Runtime,
        key: SessionKey,
        *,
        new: bool,
        trigger: Trigger = "user",
        thinking: ThinkingLevel | None = None,
    ) -> None:
        self.runtime = runtime
        self.key = key
        self._new = new
        self._bare = False  # the new session was asked for without anything to say
        self._trigger: Trigger = trigger
        self._thinking = thinking
        self._thinking_kept: ThinkingLevel | None = None  # of the session before, for one that was asked for
        self._ended = ""  # the session that plugins were last told the end of
        self._agent: AgentSession | None = None
        self._located: Located | None = None
        self._waits = 0  # turns that have not begun yet: the session is not free, or is being announced
        self._stop = asyncio.Event()  # ends their wait

    @property
    def agent(self) -> AgentSession:
        """The session at work. Raises `UsageError` before its first turn."""
        if self._agent is None:
            raise UsageError(f"session {self.key.text} has not been opened yet")
        return self._agent

    async def receive(
        self, text: str, *, images: Sequence[ImageBlock] = (), authorized: bool = True, names: Collection[str] = ()
    ) -> TurnResult:
        """Take a message as a person wrote it: a request for a new session (`session.reset_triggers`), or a turn.

        Requests of senders who are not `authorized` are ordinary messages. In groups and channels, mentions of the
        agent by one of its `names` may stand before a request. Raises as `prompt`.
        """
        wanted = self.reset_request(text, authorized=authorized, names=names)
        if wanted is None:
            return await self.prompt(text, images=images)
        if wanted.bare and not images:
            return await self._locked(_say_begun, wanted=wanted)
        return await self._locked(lambda agent: agent.prompt(wanted.first, images=images), wanted=wanted)

    def reset_request(self, text: str, *, authorized: bool = True, names: Collection[str] = ()) -> ResetRequest | None:
        """The request for a new session in a message, see `receive`."""
        return reset_request(
            text,
            triggers=self.runtime.settings.session.reset_triggers,
            authorized=authorized,
            group=self.key.chat_type in SHARED_CHATS,
            names=names,
        )

    async def prompt(self, text: str, *, images: Sequence[ImageBlock] = ()) -> TurnResult:
        """Run one user turn. Raises `SessionLocked` when another process keeps the session busy, and
        `ModelAborted` when it is aborted while it waits for that; nothing is stored then."""
        return await self._locked(lambda agent: agent.prompt(text, images=images), by_time=self._trigger == "user")

    async def compact(self, instructions: str = "") -> Outcome:
        """Compact the session now."""
        return await self._locked(lambda agent: agent.compact(instructions))

    def abort(self) -> None:
        """Stop the running turn, and those that wait for the session to be free."""
        if self._waits:
            self._stop.set()
        if self._agent is not None:
            self._agent.abort()

    def reset(self, *, bare: bool = False) -> None:
        """Give the key a new session id at the next turn. `bare`: the user asked for nothing else, so the
        session may begin with the notes of the last days."""
        self._new = True
        self._bare = bare

    async def begin(self) -> str:
        """Begin the session that `reset` asked for now, without a turn. Returns its id."""

        async def nothing(agent: AgentSession) -> str:
            return agent.file.id

        return await self._locked(nothing)

    async def _locked(
        self,
        work: Callable[[AgentSession], Awaitable[T]],
        *,
        wanted: ResetRequest | None = None,
        by_time: bool = False,
    ) -> T:
        """Do something with the session, after all who asked for it earlier and under its lock.

        `wanted`: in a new session. `by_time`: in a new one when a policy says that this one is over.
        """
        place = self.runtime.lanes.place(self.key.text)
        try:
            await self._unless_stopped(place.take())
            place.enter()
            if wanted is not None:
                self.reset(bare=wanted.bare)
            return await self._with_lock(work, by_time)
        finally:
            place.leave()

    async def _with_lock(self, work: Callable[[AgentSession], Awaitable[T]], by_time: bool) -> T:
        store = self.runtime.store
        self.runtime.require_workspace()
        begun: _Begun | None = None
        while True:
            located = await asyncio.to_thread(store.locate, self.key)
            if located is None:
                begun = await asyncio.to_thread(self._begin_first)
                continue
            reason = self._over(located, by_time)
            if reason is not None:
                begun = await self._begin_another(located, reason)
                continue
            lock = store.lock(located)
            try:
                await self._unless_stopped(lock.acquire_in_loop())
                # While we waited, another process may have given the key a new session, or none.
                now = store.locate(self.key)
                if now is None or now.path != located.path:
                    continue
                agent = self._open(now)
                if begun is not None and begun.session_id == now.entry.get("sessionId"):
                    await self._unless_stopped(self._announce(agent, now, begun))
                return await work(agent)
            finally:
                lock.release()

    async def _unless_stopped(self, work: Awaitable[T]) -> T:
        """Await something that comes before the turn itself. Raises `ModelAborted` when `abort` is called."""
        if not self._waits:
            self._stop = asyncio.Event()
        self._waits += 1
        try:
            return await unless_aborted(work, self._stop)
        finally:
            self._waits -= 1

    def _over(self, located: Located, by_time: bool) -> h.SessionReason | None:
        """Why the key's session is to be left now; None when it goes on."""
        if self._new:
            return "reset"
        last = last_interaction(located.entry)
        if not by_time or last is None:
            return None
        channel = str(located.entry.get("channel") or self.key.channel)
        policy = policy_for(self.runtime.settings.session, reset_type(self.key.text), channel)
        return overdue(policy, last, unix_ms(), self.runtime.agent.timezone)

    def _begin_first(self) -> _Begun | None:
        """Give the key its first session; None when another process was quicker."""
        runtime = self.runtime
        located, ours = first_session(
            runtime.store,
            self.key,
            cwd=str(runtime.workspace),
            fork_max_tokens=runtime.settings.session.parent_fork_max_tokens,
        )
        self._new = False
        if not ours:
            return None
        runtime.maintain(self.key)
        return _Begun(str(located.entry["sessionId"]), "new")

    async def _begin_another(self, old: Located, reason: h.SessionReason) -> _Begun | None:
        """Leave the key's session and give it another one; None when the key's state has changed meanwhile."""
        store = self.runtime.store
        lock = store.lock(old)
        try:
            await self._unless_stopped(lock.acquire_in_loop())
            now = store.locate(self.key)
            if now is None or now.path != old.path or self._over(now, reason != "reset") != reason:
                return None
            agent = self._open_old(now)
            await self._unless_stopped(self._end(agent, now, reason))
            self._thinking_kept = agent.thinking if reason == "reset" else None
            self._close_file()
            begun = await asyncio.to_thread(another_session, store, self.key, now, asked_for=reason == "reset")
        finally:
            lock.release()
        self._new, self._ended = False, ""
        await asyncio.to_thread(self.runtime.maintain, self.key)
        return _Begun(str(begun.entry["sessionId"]), reason, str(now.entry.get("sessionId") or "") or None)

    def _open(self, located: Located) -> AgentSession:
        """The session's object; opened again when somebody else has written to the transcript."""
        if self._agent is not None and self._located is not None:
            if self._located.path == located.path and not self._agent.file.changed_on_disk:
                return self._agent
            self._close_file()
        runtime = self.runtime
        file = runtime.store.open(located, cwd=str(runtime.workspace))
        for damage in file.damage:
            runtime.notify("transcript_damage", f"{file.path.name}: {damage.message}")
        self._located = located
        self._agent = self._agent_on(file, located)
        return self._agent

    def _open_old(self, located: Located) -> AgentSession:
        """The session that is to be left. One that cannot be read counts as empty: a reset is the way out of it."""
        try:
            return self._open(located)
        except (LamellaError, OSError) as error:
            self.runtime.notify("transcript_unreadable", str(error))
            session_id = str(located.entry.get("sessionId") or "")
            return self._agent_on(SessionFile.create(located.path, session_id=session_id), located)

    def _agent_on(self, file: SessionFile, located: Located) -> AgentSession:
        runtime = self.runtime
        agent = AgentSession(
            self.key,
            file,
            runtime.model,
            runtime.environment,
            StoredRecord(runtime.store.index, self.key.text, str(located.entry.get("sessionId") or "")),
            trigger=self._trigger,
            thinking=self._thinking or (self._thinking_kept if file.leaf_id is None else None),
        )
        agent.listeners = runtime.listeners
        return agent

    async def _end(self, agent: AgentSession, old: Located, reason: h.SessionReason) -> None:
        """Tell plugins that a session is left; once, also when the reset is tried again."""
        session_id = str(old.entry.get("sessionId") or "")
        if session_id and session_id != self._ended:
            self._ended = session_id
            count = len(agent.file.context().messages)
            event = h.SessionEnd(self.key.text, session_id, reason, old.path, count)
            await self.runtime.hooks.session_end(event, agent.host())

    async def _announce(self, agent: AgentSession, located: Located, begun: _Begun) -> None:
        start = h.SessionStart(
            self.key.text, begun.session_id, begun.reason, located.path, begun.previous_id, self._bare
        )
        self._bare = False
        await self.runtime.hooks.session_start(start, agent.host())

    def _close_file(self) -> None:
        if self._agent is not None:
            self._agent.file.close()
            self._agent = None

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the transcript. The session can be used again; it is opened anew."""
        self._close_file()
