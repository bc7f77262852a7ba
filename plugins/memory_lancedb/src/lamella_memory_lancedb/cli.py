"""`lamella ltm`: long-term memories in LanceDB, listed, searched, forgotten, moved and re-embedded.

The commands work on the agent's table also while another plugin fills the slot `memory`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lamella.cli.common import (
    CommonOptions,
    NumberRange,
    Out,
    agent_options,
    argument_text,
    json_option,
    local_minute,
    open_runtime,
    print_table,
    since_ms,
    warn,
)
from lamella.cli.progress import progress_bar
from lamella_memory_lancedb.opening import Opened, open_table
from lamella_memory_lancedb.store.memory import CATEGORIES, Memory, Selection

if TYPE_CHECKING:
    from lamella_memory_lancedb.search.finding import Hit

R = TypeVar("R")

NOT_FOUND = 4
_NOT_DONE = "Nothing was changed; --yes does it."
_ID_CHARS, _TEXT_COLUMNS = 8, 70
_NEAREST = 5

_yes_option = click.option("--yes", is_flag=True, help="Do it. Without this, it is only shown.")


def _selection_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add --category, --session and --since; the command gets `selection`, a function of the agent's zone."""

    @click.option(
        "--category", type=click.Choice(CATEGORIES), multiple=True, help="Only memories of this kind. May be repeated."
    )
    @click.option(
        "--session", default="", metavar="KEY|ID", help="Only from this session; the beginning of an id is enough."
    )
    @click.option("--since", metavar="TIME", help="Only stored from this day or time on (ISO, in the agent's zone).")
    @wraps(command)
    def wrapped(*arguments: Any, category: tuple[str, ...], session: str, since: str | None, **options: Any) -> R:
        def selection(timezone: str) -> Selection:
            return Selection(category, argument_text(session).strip(), since_ms(since, timezone) if since else 0)

        return command(*arguments, selection=selection, **options)

    return wrapped


_Chosen = Callable[[str], Selection]


@click.group()
def ltm() -> None:
    """Long-term memories in LanceDB: list, search, forget, move them.

    Works on the agent's table also while another plugin fills the slot memory.
    """


@ltm.command("list")
@agent_options
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="Most memories.")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="Leave out so many before them.")
@_selection_options
@json_option
def list_(common: CommonOptions, limit: int, offset: int, selection: _Chosen, as_json: bool) -> None:
    """List memories, newest first."""
    with _opened(common) as table:
        reader = table.reader(selection(table.timezone))
        total = table.memories.count(reader)
        found = table.memories.page(offset, limit, reader=reader)
    if as_json:
        Out.json({**table.named(), "total": total, "offset": offset, "memories": [m.to_json() for m in found]})
        return
    last = offset + len(found)
    which = f", shown are {offset + 1} to {last}" if found and len(found) < total else ""
    _print_memories(found, table.timezone)
    warn(f"{_counted(total)}{which}: {table.place}")


@ltm.command("search")
@click.argument("query")
@agent_options
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Most memories.")
@click.option("--min-score", type=NumberRange(0, 1.4), help="Least strength (default: search_threshold).")
@_selection_options
@json_option
def search(
    common: CommonOptions, query: str, limit: int, min_score: float | None, selection: _Chosen, as_json: bool
) -> None:
    """Search memories for QUERY, strongest first."""
    text = _needed(query)
    with _opened(common) as table:
        found = table.memories.find(text, limit, table.reader(selection(table.timezone)))
        least = table.memories.config.search_threshold if min_score is None else min_score
        hits = found.above(least)
    if as_json:
        Out.json({**table.named(), "memories": [_scored(hit) for hit in hits], "problem": found.problem or None})
        return
    _print_hits(hits, table.timezone)
    warn(f"{_counted(len(hits))}: {table.place}")
    if found.problem:
        warn(f"note: {found.problem}")


@ltm.command("forget")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@agent_options
@click.option("--query", default="", metavar="TEXT", help="Forget what says this.")
@click.option(
    "--min-score", type=NumberRange(0, 1), help="With --query: least likeness (default: candidate_threshold)."
)
@click.option("--all", "everything", is_flag=True, help="Forget all memories that the other options leave.")
@_selection_options
@_yes_option
@json_option
def forget(
    common: CommonOptions,
    ids: tuple[str, ...],
    query: str,
    min_score: float | None,
    everything: bool,
    selection: _Chosen,
    yes: bool,
    as_json: bool,
) -> int:
    """Forget memories for good: by ID (its beginning is enough), --query or --all. Only shown without --yes.

    A tombstone stays, so that the same is not captured again. Exit code 4 when nothing is found.
    """
    if [bool(ids), bool(query.strip()), everything].count(True) != 1:
        raise click.UsageError("expected one of: ids, --query TEXT, --all")
    others: Sequence[Hit] = ()
    with _opened(common) as table:
        memories, reader = table.memories, table.reader(selection(table.timezone))
        if ids:
            found = list({m.id: m for m in (memories.get(name, reader) for name in ids)}.values())
        elif everything:
            found = memories.page(0, memories.count(reader), reader=reader)
        else:
            least = memories.config.candidate_threshold if min_score is None else min_score
            hits = memories.find(argument_text(query), 100, reader).above(memories.config.search_threshold)
            found = [hit.memory for hit in hits if hit.score >= least]
            others = [hit for hit in hits if hit.score < least][:_NEAREST]
        if yes:
            memories.forget(found)
    if as_json:
        shown = {"done": yes and bool(found), "count": len(found), "memories": [m.to_json() for m in found]}
        Out.json({**table.named(), **shown, "others": [_scored(hit) for hit in others]})
    else:
        _say_forgotten(found, others, table, yes)
    return 0 if found or everything else NOT_FOUND


@ltm.command("export")
@agent_options
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File to write.")
@_selection_options
@json_option
def export(common: CommonOptions, output: Path | None, selection: _Chosen, as_json: bool) -> None:
    """Write memories as lines of JSON, oldest first, without vectors."""
    from lamella.text.files import write_pieces

    if as_json and output is None:
        raise click.UsageError("--json tells what was written to a file: name one with --output")
    with _opened(common) as table:
        lines = table.memories.export(table.reader(selection(table.timezone)))
        pieces = [f"{line}\n".encode() for line in lines]
        if output is not None:
            write_pieces(output, pieces, mode=0o600)
    if as_json:
        Out.json({**table.named(), "count": len(pieces), "output": str(output)})
        return
    if output is None:
        for piece in pieces:
            Out.write(piece.decode(), newline=False)
    warn(f"{_counted(len(pieces))} exported{f' to {output}' if output else ''}: {table.place}")


@ltm.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@agent_options
@json_option
def import_(common: CommonOptions, file: Path, as_json: bool) -> None:
    """Store the memories of an export in FILE (- reads standard input) as this agent's.

    What is there already is not stored again. With a line that is none, nothing is stored.
    """
    with _opened(common, reads=False) as table, contextlib.ExitStack() as stack:
        lines = sys.stdin if str(file) == "-" else stack.enter_context(file.open(encoding="utf-8", errors="replace"))
        new, known = table.memories.restore(lines)
    if as_json:
        Out.json({**table.named(), "new": new, "known": known})
    else:
        Out.write(f"{_counted(new)} stored, {known} known already: {table.place}")


@ltm.command("stats")
@agent_options
@_selection_options
@json_option
def stats(common: CommonOptions, selection: _Chosen, as_json: bool) -> None:
    """Count memories, and show what the table is made of."""
    with _opened(common) as table:
        facts = {**table.named(), **table.facts(selection(table.timezone))}
    if as_json:
        Out.json(facts)
        return
    for label, value in table.told(facts):
        Out.write(f"{label}: {value}")


@ltm.command("reindex")
@agent_options
@json_option
def reindex(common: CommonOptions, as_json: bool) -> None:
    """Make all vectors anew with the embedder in use, as after a change of embedders.

    Until they are whole, the old ones answer.
    """
    with _opened(common) as table, progress_bar(wanted=not as_json) as advance:
        count = table.memories.reindex(lambda p: advance(p.stage, p.done, p.total))
        model = table.memories.meaning.embedder().identity
    if as_json:
        Out.json({**table.named(), "count": count, "model": model})
    else:
        Out.write(f"{_counted(count)} with vectors of {model}: {table.place}")


@contextlib.contextmanager
def _opened(common: CommonOptions, *, reads: bool = True) -> Iterator[Opened]:
    """The agent's memories for a block."""
    runtime = open_runtime(common)
    try:
        with open_table(runtime, reads=reads) as table:
            yield table
    finally:
        runtime.close()


def _needed(text: str) -> str:
    if not text.strip():
        raise click.UsageError("a query is needed")
    return argument_text(text)


def _counted(count: int) -> str:
    return f"{count} {'memory' if count == 1 else 'memories'}"


def _scored(hit: Hit) -> dict[str, Any]:
    return {**hit.memory.to_json(), "score": round(hit.score, 6), "strength": round(hit.strength, 6)}


def _row(memory: Memory, timezone: str) -> list[str]:
    from lamella.text.width import clip

    stored = local_minute(memory.created_at, timezone)
    return [memory.id[:_ID_CHARS], stored, memory.category, memory.source, clip(memory.text, _TEXT_COLUMNS)]


def _print_memories(memories: Sequence[Memory], timezone: str) -> None:
    if memories:
        print_table([_row(m, timezone) for m in memories], ["id", "stored", "category", "source", "text"])


def _print_hits(hits: Sequence[Hit], timezone: str) -> None:
    rows = [[f"{hit.strength:.2f}", f"{hit.score:.2f}", *_row(hit.memory, timezone)] for hit in hits]
    if rows:
        print_table(rows, ["strength", "score", "id", "stored", "category", "source", "text"])


def _say_forgotten(found: Sequence[Memory], others: Sequence[Hit], table: Opened, done: bool) -> None:
    _print_memories(found, table.timezone)
    if others:
        warn("not close enough, forget them by their ids:")
        for hit in others:
            warn("  " + "  ".join([f"{hit.score:.2f}", *_row(hit.memory, table.timezone)]))
    what = "forgotten" if done else "would be forgotten"
    warn(f"{_counted(len(found))} {what}: {table.place}")
    if found and not done:
        warn(_NOT_DONE)
