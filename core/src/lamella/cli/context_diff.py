"""`lamella context --diff`: where the prefix of two turns first differs, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamella.agent.prefix import Change, Part, compare
from lamella.agent.prefix_log import PrefixHistory, TurnPrefix, log_path, read_prefixes
from lamella.errors import LamellaError, UsageError

if TYPE_CHECKING:
    from lamella.runtime import Runtime

_EXCERPT = 60


def prefixes_of(runtime: Runtime, session_id: str) -> PrefixHistory:
    """What is on record of a session's turns. Raises `LamellaError` when it cannot be read."""
    try:
        return read_prefixes(log_path(runtime.state_dir, session_id))
    except OSError as error:
        raise LamellaError(f"the prefixes of session {session_id} cannot be read: {error.strerror}") from error


def diff(history: PrefixHistory, first: int, second: int) -> dict[str, Any]:
    """Two turns compared. Turns count from 1; negative ones from the newest (-1). Raises `UsageError`."""
    one, other = _turn(history, first), _turn(history, second)
    found = compare(one.prefix, other.prefix, history.text_of)
    return {
        "from": turn_json(one),
        "to": turn_json(other),
        "change": _change_json(found.change, history) if found.change else None,
        "keptTokens": found.kept_tokens,
        "repaidTokens": found.repaid_tokens,
        "newTokens": found.new_tokens,
    }


def diff_lines(found: dict[str, Any]) -> list[str]:
    """The comparison for people."""
    lines = [f"turn {found['from']['turn']} -> turn {found['to']['turn']}"]
    change = found["change"]
    if change is None:
        lines.append(f"the prefix is the same for all {found['from']['bytes']} bytes")
    else:
        about = "" if change["exact"] else "about "
        lines.append(
            f"first change at {about}byte {change['byte']} of {found['from']['bytes']}: {change['part']}, "
            f"byte {change['partByte']} of it"
        )
        if change["was"] != change["part"]:
            lines.append(f"  where {change['was']} had been")
        lines += [f"  {sign} {change[key]}" for sign, key in (("-", "before"), ("+", "after")) if change[key]]
    lines.append(
        f"tokens of turn {found['to']['turn']}: {found['keptTokens']} as before, "
        f"{found['repaidTokens']} paid again, {found['newTokens']} new"
    )
    return lines


def _turn(history: PrefixHistory, number: int) -> TurnPrefix:
    turns = {t.turn: t for t in history.turns}
    wanted = max(turns, default=0) + 1 + number if number < 0 else number
    if wanted not in turns:
        there = f"{min(turns)} to {max(turns)} are on record" if turns else "no turn is on record"
        raise UsageError(f"turn {number}: {there}", hint="Turns count from 1 in each session; -1 is the newest.")
    return turns[wanted]


def turn_json(turn: TurnPrefix) -> dict[str, Any]:
    """A turn on record as JSON."""
    prefix = turn.prefix
    return {
        "turn": turn.turn,
        "time": turn.time,
        "hash": prefix.hash,
        "bytes": prefix.size,
        "tokens": prefix.tokens,
        "parts": len(prefix.parts),
    }


def _change_json(change: Change, history: PrefixHistory) -> dict[str, Any]:
    before = _excerpt(change.before, change.part_byte, history)
    after = _excerpt(change.after, change.part_byte, history)
    return {
        "byte": change.byte,
        "partByte": change.part_byte,
        "exact": change.exact,
        "part": _name(change.after, change.position),
        "was": _name(change.before, change.position),
        "before": before,
        "after": after,
    }


def _name(part: Part | None, position: int) -> str:
    if part is None:
        return "the end"
    return f"{part.kind} {part.name}" if part.kind != "message" else f"part {position + 1}, message ({part.name})"


def _excerpt(part: Part | None, place: int, history: PrefixHistory) -> str:
    """What stands at the place of the change; empty where no text is kept."""
    text = history.text_of(part) if part is not None else None
    if text is None:
        return ""
    data = text.encode()
    shown = data[place : place + _EXCERPT].decode("utf-8", "ignore")
    return " ".join(shown.split())
