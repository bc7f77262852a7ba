"""Which of a workspace's files a prompt has, cut to a budget, and what is said about the cuts.

Pure functions over `PromptFile`s. The arithmetic is OpenClaw's (2026.3.13), whose recorded results
are tests; lengths are in characters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from attrs import frozen

from lamella.text.javascript import js_json
from lamella.types.hooks import PromptFile
from lamella.types.host import SHARED_CHATS, ChatType, SessionKind, Trigger

Cause: TypeAlias = Literal["per-file-limit", "total-limit"]

FIXED_FILES = ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md")
MEMORY_FILES = ("MEMORY.md", "memory.md")  # the first that exists; no file is not a missing one
# Runs that nobody watches get the rules, not the user's memory.
_UNATTENDED_FILES = frozenset({"AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md"})

_HEAD_PERCENT, _TAIL_PERCENT = 70, 20
_LEAST_ROOM = 64  # a file that is present is not begun with less
_NEAR_SHARE = 0.85
_MOST_LINES = 3
HINT = "If unintentional, raise file_max_chars or total_max_chars in [plugins.config.workspace-files]."


# --- which files -------------------------------------------------------------------------------------


def files_for_session(
    files: Iterable[PromptFile],
    *,
    kind: SessionKind,
    chat_type: ChatType,
    trigger: Trigger,
    lightweight: Sequence[str] = (),
    memory_in_groups: bool = False,
) -> tuple[PromptFile, ...]:
    """The files that a kind of session sees, in the same order.

    Sub-agents and scheduled runs see five of the fixed files. A turn whose trigger is `lightweight`
    sees nothing, or HEARTBEAT.md when it is a heartbeat. What others read leaves out the memory file.
    """
    if trigger in lightweight:
        return tuple(f for f in files if trigger == "heartbeat" and f.name == "HEARTBEAT.md")
    if kind in ("subagent", "cron"):
        return tuple(f for f in files if f.name in _UNATTENDED_FILES)
    private = chat_type in SHARED_CHATS and not memory_in_groups
    return tuple(f for f in files if not (private and f.name in MEMORY_FILES))


# --- within a budget ---------------------------------------------------------------------------------


@frozen(slots=True)
class Cut:
    """A text within a limit. `raw` is its length before, without blanks at its end."""

    text: str
    raw: int
    truncated: bool


@frozen(slots=True)
class Injected:
    """A file as the prompt has it. `raw` is 0 for a missing one; `causes` may be empty for a cut one."""

    file: PromptFile
    text: str
    raw: int
    truncated: bool = False
    causes: tuple[Cause, ...] = ()

    @property
    def removed_percent(self) -> int:
        return math.floor((self.raw - len(self.text)) / self.raw * 100 + 0.5) if self.raw else 0


@frozen(slots=True)
class Fitted:
    """Files within both limits, and warnings about what was cut or left out."""

    files: tuple[Injected, ...]
    warnings: tuple[str, ...] = ()


def cut_file(text: str, name: str, limit: int) -> Cut:
    """A text within a limit: 70 % of it as head and 20 % as tail, with two marker lines between.

    The markers come on top, so that the result of a very small limit is longer than the limit.
    """
    text = text.rstrip()
    if len(text) <= limit:
        return Cut(text, len(text), False)
    head, tail = limit * _HEAD_PERCENT // 100, limit * _TAIL_PERCENT // 100
    markers = (
        f"[...truncated, read {name} for full content...]",
        f"…(truncated {name}: kept {head}+{tail} chars of {len(text)})…",
    )
    ending = text[len(text) - tail :]
    return Cut("\n".join((text[:head], "", *markers, "", ending)), len(text), True)


def fit_files(files: Iterable[PromptFile], file_max: int, total_max: int) -> Fitted:
    """Files in their order, each within `file_max` and all within `total_max` characters.

    Who comes first is served first. A missing file is a marker that says where it is expected, and
    counts. A file that no room is left for has no text.
    """
    left, full = max(1, total_max), False
    fitted: list[Injected] = []
    warnings: list[str] = []
    for file in files:
        if not file.path.strip():
            if not full:
                warnings.append(f"workspace file {file.name!r} is left out: its field 'path' is empty")
            continue
        if not full and file.text is not None and left < _LEAST_ROOM:
            warnings.append(f"{left} characters are left for workspace files (<{_LEAST_ROOM}); the rest is left out")
            full = True
        limit = max(1, min(file_max, left))
        placed = _place(file, limit, 0 if full else left)
        if placed.truncated and not full:
            warnings.append(f"workspace file {file.name} has {placed.raw} characters (limit {limit}); it is cut")
        fitted.append(placed)
        left -= len(placed.text)
    return Fitted(_with_causes(fitted, file_max, total_max), tuple(warnings))


def _place(file: PromptFile, limit: int, room: int) -> Injected:
    """A file, or the marker of a missing one, in what room is left."""
    if file.text is None:
        return Injected(file, _clamp(f"[MISSING] Expected at: {file.path}", room), 0)
    cut = cut_file(file.text, file.name, limit)
    text = _clamp(cut.text, room)
    return Injected(file, text, cut.raw, len(text) < cut.raw)


def is_near_limit(injected: Injected, file_max: int) -> bool:
    """Whether a file is about to be cut."""
    return not injected.truncated and injected.raw >= math.ceil(file_max * _NEAR_SHARE)


def _clamp(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    return text[:room] if room <= 3 else text[: room - 1] + "…"


def _with_causes(files: Sequence[Injected], file_max: int, total_max: int) -> tuple[Injected, ...]:
    full = sum(len(f.text) for f in files) >= total_max
    return tuple(_caused(f, file_max, full) if f.truncated else f for f in files)


def _caused(injected: Injected, file_max: int, full: bool) -> Injected:
    causes: list[Cause] = []
    if injected.raw > file_max:
        causes.append("per-file-limit")
    if full:
        causes.append("total-limit")
    return Injected(injected.file, injected.text, injected.raw, True, tuple(causes))


# --- what is said about cuts -------------------------------------------------------------------------


def cut_signature(files: Sequence[Injected], file_max: int, total_max: int) -> str | None:
    """What was cut, and how much of it, as JSON; None when nothing was. The same cuts, the same text."""
    cut = sorted((f for f in files if f.truncated), key=lambda f: f.file.path)
    if not cut:
        return None
    rows = [
        {"path": f.file.path, "rawChars": f.raw, "injectedChars": len(f.text), "causes": list(f.causes)} for f in cut
    ]
    return js_json({"bootstrapMaxChars": file_max, "bootstrapTotalMaxChars": total_max, "files": rows})


def cut_lines(files: Sequence[Injected]) -> tuple[str, ...]:
    """One line for each of the first three cut files, the number of others, and what to do."""
    cut = [f for f in files if f.truncated]
    if not cut:
        return ()
    names = Counter(f.file.name for f in cut)
    lines = [_cut_line(f, with_path=names[f.file.name] > 1) for f in cut[:_MOST_LINES]]
    if len(cut) > _MOST_LINES:
        lines.append(f"+{len(cut) - _MOST_LINES} more truncated file(s).")
    return (*lines, HINT)


def cut_note(injected: Injected) -> str:
    """A cut in short: lengths, and the limits that caused it."""
    limits = {"per-file-limit": "max/file", "total-limit": "max/total"}
    why = f"; {', '.join(limits[c] for c in injected.causes)}" if injected.causes else ""
    size = f"{injected.raw} raw -> {len(injected.text)} injected"
    return f"{size} (~{injected.removed_percent}% removed{why})"


def _cut_line(injected: Injected, *, with_path: bool) -> str:
    name = f"{injected.file.name} ({injected.file.path})" if with_path else injected.file.name
    return f"{name}: {cut_note(injected)}."


MOST_SIGNATURES = 32


def remember(seen: Iterable[str], signature: str) -> tuple[str, ...]:
    """The signatures that have been told, with another one: each once, the newest 32."""
    return (*(s for s in dict.fromkeys(seen) if s != signature), signature)[-MOST_SIGNATURES:]
