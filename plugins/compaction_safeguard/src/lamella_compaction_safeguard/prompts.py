"""What the model is asked."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

from lamella.types.messages import Message
from lamella_compaction_safeguard.headings import REQUIRED
from lamella_compaction_safeguard.stages import text_sent
from lamella_compaction_safeguard.untrusted import framed, untrusted_block

PieceKind: TypeAlias = Literal["history", "turn"]

MAX_INSTRUCTIONS = 800

_FRAMES = ("conversation", "previous-summary")
_MEANING = (
    "what was decided and why, facts that were learned, and how things stand",
    "what is under way or still to do, with its state (such as 5 of 17 done)",
    "rules, limits and preferences that were stated",
    "what the user asked for and has not got yet, the latest request first",
    "every identifier that matters, one a line",
)
_IDENTIFIERS = (
    "Copy identifiers letter by letter: ids, hashes, paths, addresses, ports, versions, names in code. Never "
    "shorten, translate or invent one."
)
_IDENTIFIERS_OFF = "Include identifiers only where they are needed to go on."
_STYLE = (
    "Write in the language that the user mainly writes in, but leave the headings as they are, in English, and "
    "never translate or change code, paths, identifiers and error messages. Be short and factual: what was talked "
    "about, decided and done, and the current state. Leave out nothing that is still asked for."
)
_FIRST = "Summarise the conversation above, so that another assistant can go on from your summary alone."
_UPDATE = (
    "The conversation above is new; what was before it is in <previous-summary>. Write one summary of both: keep "
    "what still matters, bring up to date what has changed, and fold earlier turns and requests into their headings."
)
_PREFIX = (
    "The conversation above is the beginning of one long turn whose later part is kept word for word. Summarise it, "
    "so that the kept part can be understood: what was asked, what was done and found so far, and what the kept part "
    "needs to be known."
)


@frozen(slots=True)
class Piece:
    """Messages for one request, and the summary of what came before them.

    A `turn` is the beginning of a turn whose end is kept.
    """

    messages: tuple[Message, ...]
    previous: str = ""
    kind: PieceKind = "history"


@frozen(slots=True)
class Wishes:
    """What all requests of a compaction share: rules for identifiers, and instructions of the user."""

    policy: str = "strict"
    identifier_instructions: str = ""
    instructions: str = ""


def prompt(piece: Piece, wishes: Wishes, feedback: str = "") -> str:
    """The request for one piece. `feedback` tells what the last try lacked."""
    blocks = [framed("conversation", text_sent(piece.messages), others=_FRAMES)]
    if piece.previous:
        blocks.append(framed("previous-summary", piece.previous, others=_FRAMES))
    if piece.kind == "turn":
        blocks += [_PREFIX, _STYLE]
    else:
        blocks += [_UPDATE if piece.previous else _FIRST, _structure(), _STYLE]
    blocks += [_identifier_rule(wishes), _instructions(wishes), feedback]
    return "\n\n".join(block for block in blocks if block)


def _structure() -> str:
    lines = [f"{heading}\n({meaning})" for heading, meaning in zip(REQUIRED, _MEANING, strict=True)]
    return "Use exactly these headings, in this order, each on a line of its own:\n\n" + "\n\n".join(lines)


def _identifier_rule(wishes: Wishes) -> str:
    if wishes.policy == "off":
        return _IDENTIFIERS_OFF
    if wishes.policy == "custom":
        return untrusted_block("Rules for identifiers", wishes.identifier_instructions) or _IDENTIFIERS
    return _IDENTIFIERS


def _instructions(wishes: Wishes) -> str:
    return untrusted_block("What the user wants the summary to look at", wishes.instructions, MAX_INSTRUCTIONS)
