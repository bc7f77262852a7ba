"""What `lamella memory` says to a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lamella.cli.common import local_minute
from lamella.text.truncate import format_size
from lamella.types.memory import MemoryHit, MemoryResults, SyncReport


def report_text(report: SyncReport) -> str:
    """One line that says what happened, also when nothing did."""
    if report.seen == 0:
        return f"{report.workspace}: nothing to index (no MEMORY.md, no notes in memory/)."
    parts = [f"{report.added + report.updated} indexed", f"{report.unchanged} unchanged"]
    parts += [f"{report.removed} removed"] if report.removed else []
    parts += [f"{len(report.failed)} failed"] if report.failed else []
    rebuilt = f" ({report.rebuilt})" if report.rebuilt else ""
    return f"{report.workspace}: {report.seen} files, {', '.join(parts)}, {report.chunks} passages{rebuilt}."


def results_text(found: MemoryResults, timezone: str = "") -> str:
    """Hits for a person: citation, score, passage; and why it may not be all that there is."""
    parts = [f"{h.citation}  ({h.score:.2f}){_reasons(h)}\n{_indented(h.snippet)}" for h in found.hits]
    if found.degraded:
        why = found.degraded
        times = _times(why.since, why.retry_at, timezone)
        parts.append(f"note: {why.reason}; answered by {why.answered_by}{times}")
    return "\n\n".join(parts) or "Nothing found."


def _times(since: float | None, retry_at: float | None, timezone: str) -> str:
    """When a backend failed and when it is asked again, both in Unix seconds."""
    named = (("since", since), ("asked again at", retry_at))
    return "".join(f", {what} {local_minute(round(at * 1000), timezone)}" for what, at in named if at is not None)


def _reasons(hit: MemoryHit) -> str:
    given = [f"{name} {value:.2f}" for name, value in (hit.parts or {}).items() if value is not None]
    return f"\n  [{', '.join(given)}]" if given else ""


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().split("\n"))


def status_text(facts: Mapping[str, Any], timezone: str = "") -> str:
    """A memory's status, one fact a line. Facts that only this memory has stand at the end, as they are."""
    left = dict(facts)
    lines: list[tuple[str, str]] = []
    for label, names, shown in _FACTS:
        if names[0] in left:
            text = shown(*(left.pop(name, None) for name in names))
            lines += [(label, text)] if text else []
    if why := left.pop("fallback", None):
        lines.insert(1, ("fallback", f"{why['reason']}{_times(why['since'], why['retryAt'], timezone)}"))
    if "lastSync" in left:
        at = left.pop("lastSync")
        lines.append(("last sync", local_minute(at, timezone) if at else "never"))
    lines += [("off", f"{off['what']}; to turn it on: {off['turnOn']}") for off in left.pop("off", ())]
    lines += [(name, str(value)) for name, value in left.items() if value not in (None, "", [])]
    return "\n".join(f"{label}: {text}" for label, text in lines)


def _backend(name: str, active: str | None, mode: str | None) -> str:
    answers = f", answered by {active}" if active and active != name else ""
    return f"{name}{answers} ({mode} search)" if mode else f"{name}{answers}"


def _embedder(name: str, model: str | None) -> str:
    return f"{name} ({model})" if model else name


def _database(path: str, size: int | None) -> str:
    return f"{path} ({format_size(size or 0)})"


def _vectors(found: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{row['count']} by {row['identity']}" for row in found)


def _behind(files: int | None) -> str:
    if files is None:
        return ""
    changed = {0: "no file has", 1: "1 file has"}.get(files, f"{files} files have")
    return f"{changed} changed since the last sync"


def _skipped(problems: Sequence[Mapping[str, str]]) -> str:
    named = ", ".join(f"{problem['path']} ({problem['reason']})" for problem in problems[:_MOST_NAMED])
    more = f", and {len(problems) - _MOST_NAMED} more" if len(problems) > _MOST_NAMED else ""
    return f"{len(problems)}: {named}{more}" if problems else ""


def _collections(found: Sequence[Mapping[str, Any]]) -> str:
    missing = {True: ", which is missing", False: "", None: ""}
    return "; ".join(f"{row['name']} ({row['path']}{missing[row.get('missing')]})" for row in found)


def _watch(watch: Mapping[str, Any]) -> str:
    if not watch["wanted"]:
        return "off"
    if watch["problem"]:
        return str(watch["problem"])
    return "active" if watch["active"] else "begins with a program's second search, and with `lamella memory watch`"


_MOST_NAMED = 5

# What the line is called, the facts that it shows, and how.
_FACTS: tuple[tuple[str, tuple[str, ...], Callable[..., str]], ...] = (
    ("backend", ("backend", "active", "mode"), _backend),
    ("workspace", ("workspace",), str),
    ("extra paths", ("extraPaths",), ", ".join),
    ("embedder", ("embedder", "model"), _embedder),
    ("problem", ("problem",), lambda problem: problem or ""),
    ("database", ("database", "databaseBytes"), _database),
    ("files", ("files",), str),
    ("passages", ("chunks",), str),
    ("vectors", ("vectors",), _vectors),
    ("behind", ("behind",), _behind),
    ("collections", ("collections",), _collections),
    ("left out", ("skipped",), _skipped),
    ("last error", ("lastError",), lambda error: error or ""),
    ("following files", ("watch",), _watch),
)
