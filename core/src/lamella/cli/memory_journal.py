"""`lamella memory log`, `why` and `undo`: what was written into memory, from where, and taking it back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamella.cli.common import (
    CommonOptions,
    Out,
    agent_options,
    json_option,
    local_minute,
    open_runtime,
    since_ms,
    warn,
)
from lamella.cli.quotes import quote_text
from lamella.text.days import parse_iso_ms
from lamella.text.width import clip

if TYPE_CHECKING:
    from lamella.memory.journal import Journal, JournalEntry
    from lamella.memory.provenance import Why
    from lamella.runtime import Runtime

_PLACE = re.compile(r"(?P<file>.+?)(?::|#L)(?P<line>\d+)(?:-L?\d+)?")
_MOST_LINES = 6
_COLUMNS = 110


@click.command("log")
@agent_options
@click.option("--file", metavar="FILE", help="Only writes to this memory file.")
@click.option("--session", metavar="KEY|ID", help="Only writes of this session; the beginning of an id is enough.")
@click.option("--since", metavar="TIME", help="Only writes from this day or time on (ISO, in the agent's zone).")
@click.option("-n", "--max-entries", type=click.IntRange(1), default=20, show_default=True, help="Most writes.")
@json_option
def log(
    common: CommonOptions, file: str | None, session: str | None, since: str | None, max_entries: int, as_json: bool
) -> None:
    """List what was written into memory, newest first."""
    runtime = open_runtime(common)
    journal = _journal(runtime)
    found = [e for e in reversed(journal.entries) if _of_session(e, session)]
    if file is not None:
        name = _name(runtime, file)
        found = [e for e in found if e.path == name]
    if since is not None:
        start = since_ms(since, runtime.agent.timezone)
        found = [e for e in found if (parse_iso_ms(e.time) or 0) >= start]
    shown = found[:max_entries]
    undone = {e.id: undo.id for e in shown if (undo := journal.undone_by(e.id)) is not None}
    if as_json:
        Out.json([{**e.to_json(), "undoneBy": undone.get(e.id)} for e in shown])
        return
    Out.write("\n\n".join(_entry_text(e, undone.get(e.id), runtime.agent.timezone) for e in shown) or "Nothing found.")


@click.command("why")
@click.argument("place", metavar="FILE:LINE")
@agent_options
@json_option
def why(common: CommonOptions, place: str, as_json: bool) -> int:
    """Show the conversation that a line of a memory file comes from. Exit code 4 when there is no such file."""
    from lamella.memory.paths import memory_file
    from lamella.memory.provenance import why as find_why

    parsed = _PLACE.fullmatch(place)
    if parsed is None:
        raise click.UsageError(f"{place!r}: expected FILE:LINE, such as memory/2026-05-10.md:3")
    runtime = open_runtime(common, need_workspace=True)
    file = memory_file(runtime.workspace, _name(runtime, parsed["file"]))
    found = find_why(_journal(runtime), runtime.store, runtime.workspace, file, int(parsed["line"]))
    if found is None:
        click.echo(f"{file.name}: missing", err=True)
        return 4
    if as_json:
        Out.json(found.to_json())
    else:
        Out.write(_why_text(found, runtime.agent.timezone))
    return 0


@click.command("undo")
@click.argument("entry_id", metavar="ID")
@agent_options
@json_option
def undo(common: CommonOptions, entry_id: str, as_json: bool) -> None:
    """Take a write back. ID is as `lamella memory log` shows it; a unique beginning is enough."""
    from lamella.types.memory import Provenance

    runtime = open_runtime(common, need_workspace=True)
    written = runtime.writer.undo(entry_id, Provenance("cli", trigger="user"))
    if as_json:
        Out.json(written.to_json())
    else:
        Out.write(f"Undone in {written.path}. An undo is a write too: `lamella memory log` shows its id.")


def _journal(runtime: Runtime) -> Journal:
    from lamella.memory.journal import NAME, read_journal

    journal = read_journal(runtime.state_dir)
    if journal.damaged:
        warn(f"warning: {runtime.state_dir / NAME}: lines that cannot be read: {journal.damaged}")
    return journal


def _name(runtime: Runtime, file: str) -> str:
    """A memory file's name, from it or from a path to it; the name itself when it is neither."""
    from lamella.memory.paths import memory_name

    return memory_name(runtime.workspace, file) or memory_name(runtime.workspace, Path.cwd() / file) or file


def _of_session(entry: JournalEntry, wanted: str | None) -> bool:
    if wanted is None:
        return True
    key = wanted.strip().lower()
    return bool(key) and (entry.session_key == key or entry.session_id.startswith(key))


def _entry_text(entry: JournalEntry, undone_by: str | None, timezone: str) -> str:
    about = [f"undoes {entry.undoes}"] if entry.undoes else []
    about += [f"undone by {undone_by}"] if undone_by else []
    place = f"{entry.path}#L{entry.start_line}" + (f"-L{entry.end_line}" if entry.end_line != entry.start_line else "")
    head = f"{entry.id}  {_when(entry.time, timezone)}  {entry.mode} {place}  by {_who(entry)}"
    changed = [f"    {sign} {clip(line, _COLUMNS)}".rstrip() for sign, line in _changed(entry)]
    if len(changed) > _MOST_LINES:
        changed = [*changed[:_MOST_LINES], f"    ... {len(changed) - _MOST_LINES} more lines"]
    return "\n".join([f"{head}  ({', '.join(about)})" if about else head, *changed])


def _changed(entry: JournalEntry) -> list[tuple[str, str]]:
    return [
        (sign, line)
        for hunk in entry.hunks
        for sign, lines in (("-", hunk.removed.lines), ("+", hunk.added.lines))
        for line in lines
    ]


def _who(entry: JournalEntry) -> str:
    trigger = f", {entry.trigger}" if entry.trigger not in ("", "user") else ""
    return f"{entry.actor}{trigger} in {entry.session_key}" if entry.session_key else f"{entry.actor}{trigger}"


def _why_text(found: Why, timezone: str) -> str:
    head = f"{found.path}:{found.line}  {clip(found.text, _COLUMNS)}"
    if found.origin is None:
        return f"{head}\nEdited by hand: no write in the journal has this line."
    entry = found.origin.entry
    when = f"{_when(entry.time, timezone)} ({entry.mode} {entry.id}, line {found.origin.line} then)"
    said = f"Written by {_who(entry)}, {when}."
    quotes = [quote_text(q, timezone) for q in found.quotes]
    return "\n\n".join([f"{head}\n{said}", *(quotes or [f"No conversation: {found.note}."])])


def _when(time: str, timezone: str) -> str:
    return local_minute(parse_iso_ms(time), timezone)
