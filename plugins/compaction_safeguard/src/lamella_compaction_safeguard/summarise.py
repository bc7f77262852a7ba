"""Writing a summary: asked of the model, checked, mended; by rules when nothing else is left."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeAlias

from attrs import evolve, frozen

from lamella.agent.summaries import TURN_CONTEXT
from lamella.errors import ContextOverflow, ModelAborted, ModelError
from lamella.text.summary import SummaryLimits, summarize_messages
from lamella.types.messages import Message
from lamella_compaction_safeguard.headings import fallback_summary, fitted, with_low_headings
from lamella_compaction_safeguard.plan import Plan
from lamella_compaction_safeguard.prompts import Piece, PieceKind, prompt
from lamella_compaction_safeguard.quality import audit, feedback, mended_to_fit
from lamella_compaction_safeguard.requests import Draft, Requests

log = logging.getLogger(__name__)

Pieces: TypeAlias = Sequence[tuple[Message, ...]]

_HISTORY_SHARE, _TURN_SHARE = 0.8, 0.5


@frozen(slots=True)
class Written:
    """A summary with its tail, and how it came about.

    `by`: model, rules (extracts), or nobody (nothing new to summarise). `reasons` are what the check
    still found before the repair, `repaired` what that added.
    """

    text: str
    by: str
    reasons: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    retries: int = 0
    extracted: int = 0


@frozen(slots=True)
class _Stage:
    """How far a part of the conversation has come, piece by piece.

    `draft` is the summary so far, `last` the piece that the model was asked about last, `extracted`
    how many pieces rules have quoted.
    """

    kind: PieceKind
    draft: Draft | None = None
    last: Piece | None = None
    extracted: int = 0

    @property
    def text(self) -> str:
        return self.draft.text if self.draft else ""


@frozen(slots=True)
class _Body:
    """The model's part of a summary: of the history, and of the beginning of a split turn."""

    history: _Stage
    turn: _Stage

    @property
    def text(self) -> str:
        return f"{self.history.text}{TURN_CONTEXT}{self.turn.text}" if self.turn.draft else self.history.text

    @property
    def cut_off(self) -> bool:
        return any(stage.draft.cut_off for stage in (self.history, self.turn) if stage.draft)

    @property
    def extracted(self) -> int:
        return self.history.extracted + self.turn.extracted

    @property
    def last(self) -> Piece | None:
        """The request to repeat after a failed check: the history's, which has the headings, if there was one."""
        return self.history.last or self.turn.last

    def replaced(self, draft: Draft) -> _Body:
        """With another answer to the last request."""
        if self.history.last is not None:
            return evolve(self, history=evolve(self.history, draft=draft))
        return evolve(self, turn=evolve(self.turn, draft=draft))


class SummaryWriter:
    """Writes the summary of one plan."""

    def __init__(self, plan: Plan, requests: Requests, *, guard: bool, retries: int) -> None:
        self.plan = plan
        self.requests = requests
        self._guard = guard
        self._retries = retries

    async def write(self) -> Written:
        """Ask the model. Raises `ModelError` or `TimeoutError` when it gives no summary."""
        body = await self._body()
        reasons = self._audit(body)
        retries = 0
        while reasons and body.last is not None and retries < self._retries and self.requests.left:
            retries += 1
            better = await self._again(body, body.last, reasons)
            if better is None:
                break
            body, reasons = better, self._audit(better)
        by = "model" if body.last is not None else "rules" if body.extracted else "nobody"
        return self._finished(body.history.text, by, body.turn.text, reasons, retries, body.extracted)

    def by_rules(self) -> Written:
        """Extracts of everything, without a model; marked as such."""
        plan = self.plan
        pieces = (*plan.older, *plan.newer, *plan.turn)
        text = self._extract([m for piece in pieces for m in piece], plan.previous)
        return self._finished(text, "rules", extracted=len(pieces))

    # --- asking --------------------------------------------------------------------------------------------

    async def _body(self) -> _Body:
        plan = self.plan
        for_turn = min(len(plan.turn), max(self.requests.left // 2, 1))
        history = await self._staged("history", plan.older, plan.newer, self.requests.left - for_turn)
        if history.draft is None:
            history = evolve(history, draft=Draft(fallback_summary(plan.previous)))
        return _Body(history, await self._staged("turn", (), plan.turn, self.requests.left))

    async def _staged(self, kind: PieceKind, older: Pieces, newer: Pieces, calls: int) -> _Stage:
        """Pieces in order, each with the summary of what came before it.

        Rules quote the oldest ones when there are more than `calls`. They also quote what the model
        fails at in `older`, and the rest of it: further calls are for the newest part.
        """
        stage = _Stage(kind)
        quoted = len(older) + len(newer) - max(calls, 0)
        for number, messages in enumerate((*older, *newer)):
            piece = Piece(messages, stage.text or (self.plan.previous if kind == "history" else ""), kind)
            if number < quoted:
                stage = self._quoted(stage, piece)
                continue
            dispensable = number < len(older)
            try:
                draft, asked = await self._ask(piece, tries=1 if dispensable else 2)
                stage = evolve(stage, draft=draft, last=asked)
            except ModelAborted:
                raise
            except (ModelError, TimeoutError) as error:
                if not dispensable:
                    raise
                log.warning("old history is quoted by rules, since its summary failed: %s", error)
                quoted = len(older)
                stage = self._quoted(stage, piece)
        return stage

    def _quoted(self, stage: _Stage, piece: Piece) -> _Stage:
        draft = Draft(self._extract(piece.messages, piece.previous))
        return evolve(stage, draft=draft, extracted=stage.extracted + 1)

    async def _ask(self, piece: Piece, said: str = "", *, tries: int = 2) -> tuple[Draft, Piece]:
        """One answer, and what it is the answer to.

        What does not fit the model is halved: rules quote the older half.
        """
        text = prompt(piece, self.plan.wishes, said)
        try:
            return await self.requests.ask(text, self._max_tokens(piece), tries=tries), piece
        except ContextOverflow:
            half = len(piece.messages) // 2
            if not half or not self.requests.left:
                raise
            older = self._extract(piece.messages[:half], piece.previous)
            return await self._ask(evolve(piece, messages=piece.messages[half:], previous=older), said, tries=tries)

    async def _again(self, body: _Body, last: Piece, reasons: Sequence[str]) -> _Body | None:
        """Another try at the last request; None when it failed, and the last good one stays."""
        try:
            draft, _ = await self._ask(last, feedback(reasons))
        except ModelAborted:
            raise
        except (ModelError, TimeoutError) as error:
            log.warning("the second try at a summary failed, the first one is mended: %s", error)
            return None
        return body.replaced(draft)

    # --- the result ----------------------------------------------------------------------------------------

    def _audit(self, body: _Body) -> tuple[str, ...]:
        return audit(body.text, self.plan.facts, cut_off=body.cut_off) if self._guard else ()

    def _finished(
        self, history: str, by: str, turn: str = "", reasons: tuple[str, ...] = (), retries: int = 0, extracted: int = 0
    ) -> Written:
        """Within the limit, and mended when the guard is on."""
        plan = self.plan
        if turn:
            turn = TURN_CONTEXT + fitted(with_low_headings(turn), plan.body_limit // 3)
        room = plan.body_limit - len(turn)
        if self._guard:
            body, repaired = mended_to_fit(history, plan.facts, room, turn)
        else:
            body, repaired = fitted(history, room), ()
        return Written(body + turn + plan.tail, by, reasons, repaired, retries, extracted)

    def _max_tokens(self, piece: Piece) -> int:
        return int(self.plan.reserve * (_TURN_SHARE if piece.kind == "turn" else _HISTORY_SHARE))

    def _extract(self, messages: Sequence[Message], previous: str) -> str:
        tokens = self.plan.limit // 4
        limits = SummaryLimits(new_tokens=tokens // 2, total_tokens=tokens)
        return summarize_messages(messages, previous=previous, limits=limits, layout="compact")
