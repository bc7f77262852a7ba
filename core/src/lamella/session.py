"""One session key of a runtime: finding, locking and opening its transcript for each turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from lamella.agent.compaction import Outcome
from lamella.agent.retry import unless_aborted
from lamella.agent.session import AgentSession
from lamella.agent.turn import TurnResult
from lamella.errors import UsageError
from lamella.sessions.keys import SessionKey
from lamella.sessions.store import Located, StoredRecord
from lamella.types import hooks as h
from lamella.types.host import Trigger
from lamella.types.messages import ImageBlock
from lamella.types.model import ThinkingLevel

if TYPE_CHECKING:
    from lamella.runtime import Runtime

T = TypeVar("T")


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

    async def prompt(self, text: str, *, images: Sequence[ImageBlock] = ()) -> TurnResult:
        """Run one user turn. Raises `SessionLocked` when another process keeps the session busy, and
        `ModelAborted` when it is aborted while it waits for that; nothing is stored then."""
        return await self._locked(lambda agent: agent.prompt(text, images=images))

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

    async def _locked(self, work: Callable[[AgentSession], Awaitable[T]]) -> T:
        """Do something with the session, after all who asked for it earlier and under its lock."""
        place = self.runtime.lanes.place(self.key.text)
        try:
            await self._unless_stopped(place.take())
            place.enter()
            return await self._with_lock(work)
        finally:
            place.leave()

    async def _with_lock(self, work: Callable[[AgentSession], Awaitable[T]]) -> T:
        store = self.runtime.store
        self.runtime.require_workspace()
        while True:
            located, previous, started = await asyncio.to_thread(self._locate)
            lock = store.lock(located)
            try:
                await self._unless_stopped(lock.acquire_in_loop())
                # While we waited, another process may have given the key a new session, or none.
                now = store.locate(self.key)
                if now is None or now.path != located.path:
                    continue
                located = now
                agent = self._open(located)
                if started:
                    await self._unless_stopped(self._announce(agent, located, previous))
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

    def _locate(self) -> tuple[Located, Located | None, bool]:
        """(session, the one before, whether it is new)."""
        store = self.runtime.store
        found = store.locate(self.key)
        if found is not None and not self._new:
            return found, None, False
        self._close_file()
        located, is_new = (store.start(self.key), True) if self._new else store.begin(self.key)
        self._new = False
        if is_new:
            self.runtime.maintain(self.key)
        return located, found, is_new

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
        record = StoredRecord(runtime.store.index, self.key.text, str(located.entry.get("sessionId") or ""))
        self._located = located
        self._agent = AgentSession(
            self.key,
            file,
            runtime.model,
            runtime.environment,
            record,
            trigger=self._trigger,
            thinking=self._thinking,
        )
        self._agent.listeners = runtime.listeners
        return self._agent

    async def _announce(self, agent: AgentSession, located: Located, previous: Located | None) -> None:
        hooks = self.runtime.hooks
        reason: h.SessionReason = "reset" if previous is not None else "new"
        before = str(previous.entry.get("sessionId") or "") if previous is not None else None
        if previous is not None and before:
            await hooks.session_end(h.SessionEnd(self.key.text, before, reason, previous.path), agent.host())
        start = h.SessionStart(self.key.text, agent.file.id, reason, located.path, before, self._bare)
        self._bare = False
        await hooks.session_start(start, agent.host())

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
