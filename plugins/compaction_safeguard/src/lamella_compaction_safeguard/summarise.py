"""Writing a summary: asked of the model, checked, mended; by rules when nothing else is left."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from attrs import evolve, frozen

from lamella.agent.summaries import TURN_CONTEXT
from lamella.errors import ContextOverflow, ModelAborted, ModelError
from lamella.text.summary import SummaryLimits, summarize_messages
from lamella.types.messages import Message
from lamella_compaction_safeguard.headings import fallback_summary
from lamella_compaction_safeguard.plan import Plan
from lamella_compaction_safeguard.prompts import Piece, prompt
from lamella_compaction_safeguard.quality import audit, feedback, mended_to_fit
from lamella_compaction_safeguard.requests import Draft, Requests

log = logging.getLogger(__name__)

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
class _Body:
    """The model's part: summary of the history, and of the beginning of a split turn."""

    history: Draft
    turn: Draft | None = None
    last: Piece | None = None
    extracted: int = 0

    @property
    def text(self) -> str:
        return f"{self.history.text}{TURN_CONTEXT}{self.turn.text}" if self.turn else self.history.text

    @property
    def cut_off(self) -> bool:
        return self.history.cut_off or (self.turn is not None and self.turn.cut_off)

    def replaced(self, draft: Draft) -> _Body:
        """With another answer to the last request that can be asked again."""
        if self.last is not None and self.last.kind == "turn":
            return evolve(self, turn=draft)
        return evolve(self, history=draft)


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
        if not self._guard:
            return self._finished(body, 0, ())
        reasons = self._audit(body)
        retries = 0
        while reasons and body.last is not None and retries < self._retries and self.requests.left:
            retries += 1
            better = await self._again(body, reasons)
            if better is None:
                break
            body, reasons = better, self._audit(better)
        return self._finished(body, retries, reasons)

    def by_rules(self) -> Written:
        """Extracts of everything, without a model; marked as such."""
        plan = self.plan
        pieces = (*plan.older, *plan.newer, *plan.turn)
        text = self._extract([m for piece in pieces for m in piece], plan.previous)
        mended, repaired = mended_to_fit(text, plan.facts, plan.body_limit)
        return Written(mended + plan.tail, "rules", (), repaired, extracted=len(pieces))

    # --- asking --------------------------------------------------------------------------------------------

    async def _body(self) -> _Body:
        plan = self.plan
        for_turn = min(len(plan.turn), max(self.requests.left // 2, 1))
        history, last, extracted = await self._staged(
            [*plan.older, *plan.newer], plan.previous, len(plan.older), self.requests.left - for_turn
        )
        body = _Body(history or Draft(fallback_summary(plan.previous)), None, last, extracted)
        if not plan.turn:
            return body
        turn, last_of_turn, more = await self._staged(plan.turn, "", 0, self.requests.left, kind="turn")
        return evolve(body, turn=turn, last=last or last_of_turn, extracted=extracted + more)

    async def _staged(
        self, pieces: Sequence[tuple[Message, ...]], previous: str, dispensable: int, calls: int, kind: str = "history"
    ) -> tuple[Draft | None, Piece | None, int]:
        """Pieces in order, each with the summary so far.

        The oldest are quoted by rules when there are more pieces than `calls`; so is one of the first
        `dispensable` when the model fails at it. Gives the draft, the last piece that was asked for,
        and the number of pieces that were quoted.
        """
        surplus = max(len(pieces) - max(calls, 0), 0)
        draft, last, extracted, running = None, None, 0, previous
        for number, messages in enumerate(pieces):
            piece = Piece(messages, running, "turn" if kind == "turn" else "history")
            if number < surplus:
                draft, extracted = Draft(self._extract(messages, running)), extracted + 1
            else:
                try:
                    draft, last = await self._ask(piece), piece
                except (ModelError, TimeoutError) as error:
                    if number >= dispensable or isinstance(error, ModelAborted):
                        raise
                    log.warning("old history is quoted by rules, since its summary failed: %s", error)
                    draft, extracted = Draft(self._extract(messages, running)), extracted + 1
            running = draft.text
        return draft, last, extracted

    async def _ask(self, piece: Piece, said: str = "") -> Draft:
        """One answer. What does not fit the model is halved: the older half is quoted by rules."""
        try:
            return await self.requests.ask(prompt(piece, self.plan.wishes, said), self._max_tokens(piece))
        except ContextOverflow:
            half = len(piece.messages) // 2
            if not half or not self.requests.left:
                raise
            older = self._extract(piece.messages[:half], piece.previous)
            return await self._ask(evolve(piece, messages=piece.messages[half:], previous=older), said)

    async def _again(self, body: _Body, reasons: Sequence[str]) -> _Body | None:
        """Another try at the last request; None when it failed, and the last good one stays."""
        assert body.last is not None
        try:
            return body.replaced(await self._ask(body.last, feedback(reasons)))
        except ModelAborted:
            raise
        except (ModelError, TimeoutError) as error:
            log.warning("the second try at a summary failed, the first one is mended: %s", error)
            return None

    # --- the result ----------------------------------------------------------------------------------------

    def _audit(self, body: _Body) -> tuple[str, ...]:
        return audit(body.text, self.plan.facts, cut_off=body.cut_off)

    def _finished(self, body: _Body, retries: int, reasons: tuple[str, ...]) -> Written:
        by = "model" if body.last is not None else "rules" if body.extracted else "nobody"
        mended, repaired = mended_to_fit(body.text, self.plan.facts, self.plan.body_limit)
        return Written(mended + self.plan.tail, by, reasons, repaired, retries, body.extracted)

    def _max_tokens(self, piece: Piece) -> int:
        return int(self.plan.reserve * (_TURN_SHARE if piece.kind == "turn" else _HISTORY_SHARE))

    def _extract(self, messages: Sequence[Message], previous: str) -> str:
        tokens = self.plan.limit // 4
        limits = SummaryLimits(new_tokens=tokens // 2, total_tokens=tokens)
        return summarize_messages(messages, previous=previous, limits=limits, layout="compact")
