"""`lamella sessions`: what there is, what was said, and the doors for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lamella.cli.common import (
    CommonOptions,
    Out,
    agent_options,
    argument_text,
    json_option,
    local_minute,
    open_runtime,
    print_table,
    set_up_logging,
)
from lamella.cli.lazy import LazyGroup
from lamella.errors import EntryNotFound, UsageError
from lamella.text.width import clip

if TYPE_CHECKING:
    from lamella.runtime import Runtime
    from lamella.sessions.transcript import SessionFile

_ELSEWHERE = {
    "archive": "lamella.cli.session_upkeep:archive",
    "compact": "lamella.cli.session_changes:compact",
    "prune": "lamella.cli.session_upkeep:prune",
    "rename": "lamella.cli.session_changes:rename",
    "reset": "lamella.cli.session_changes:reset",
    "restore": "lamella.cli.session_upkeep:restore",
    "rm": "lamella.cli.session_upkeep:rm",
    "search": "lamella.cli.session_search:search",
}


@click.group(cls=LazyGroup, lazy=_ELSEWHERE)
def sessions() -> None:
    """List, show, search, export and keep sessions in order."""


@sessions.command("list")
@agent_options
@click.option("--archived", is_flag=True, help="Transcripts that were put aside instead.")
@json_option
def list_sessions(common: CommonOptions, archived: bool, as_json: bool) -> None:
    """List the agent's sessions, newest first."""
    from lamella.cli.status import memory_backend, session_rows
    from lamella.sessions.status import session_status

    runtime = open_runtime(common)
    if archived:
        _list_archives(runtime, as_json)
        return
    backend = memory_backend(runtime) if as_json else {}  # a table does not show it, and needs no plugins
    states = [session_status(row, runtime.settings, backend) for row in session_rows(runtime)]
    if as_json:
        Out.json([s.to_json() for s in states])
    elif not states:
        Out.write(f"No sessions in {runtime.store.folder}.")
    else:
        timezone = runtime.agent.timezone
        rows = [
            [s.key, clip(s.label, 40), s.session_id, local_minute(s.updated_at, timezone), clip(s.model, 40)]
            for s in states
        ]
        print_table(rows, ["KEY", "NAME", "SESSION", "UPDATED", "MODEL"])


def _list_archives(runtime: Runtime, as_json: bool) -> None:
    from lamella.sessions.upkeep import list_archives
    from lamella.text.truncate import format_size

    found = list_archives(runtime.store)
    if as_json:
        Out.json([a.to_json() for a in found])
    elif not found:
        Out.write(f"No archives in {runtime.store.folder}.")
    else:
        timezone = runtime.agent.timezone
        rows = [[a.path.name, a.key, local_minute(a.name.at, timezone), format_size(a.size)] for a in found]
        print_table(rows, ["ARCHIVE", "KEY", "PUT ASIDE", "SIZE"])


def open_transcript(common: CommonOptions, target: str, *, whole: bool = True) -> SessionFile:
    """A session by key, a transcript by path, or an archive of the sessions folder by its file name.

    Raises `SessionNotFound` or `TranscriptError`.
    """
    from lamella.sessions.archive import parse_archive_name
    from lamella.sessions.transcript import SessionFile

    if target.endswith(".jsonl") or "/" in target or Path(target).is_file():
        return SessionFile.open(Path(target), whole=whole)
    runtime = open_runtime(common)
    if parse_archive_name(target) is not None:
        return SessionFile.open(runtime.store.folder / target, whole=whole)
    located = runtime.store.require(runtime.key(target))
    return runtime.store.open(located, cwd=str(runtime.workspace), whole=whole)


@sessions.command()
@click.argument("session", metavar="KEY|FILE", default="")
@agent_options
@click.option("--raw", is_flag=True, help="All entries of the branch as JSON lines.")
@click.option("--all", "everything", is_flag=True, help="Also what a compaction has folded.")
@json_option
def show(common: CommonOptions, session: str, raw: bool, everything: bool, as_json: bool) -> None:
    """Show a session's conversation: what compactions have left of it, without silent turns."""
    from lamella.cli.transcripts import conversation_text
    from lamella.sessions.context import entry_messages
    from lamella.sessions.hidden import without_hidden
    from lamella.types.message_json import dump_message

    file = open_transcript(common, session)
    for damage in file.damage:
        click.echo(f"warning: {file.path.name}: {damage.message}", err=True)
    entries = list(file.branch_entries())
    if raw:
        for entry in entries:
            Out.json_line(dict(entry.fields))
        return
    said = [m for e in entries for m in entry_messages(e)] if everything else file.context().messages
    messages = list(without_hidden(said))
    if as_json:
        Out.json({"sessionId": file.id, "name": file.name, "messages": [dump_message(m) for m in messages]})
        return
    Out.write(f"{file.name or file.id}  ({file.path})")
    Out.write(conversation_text(messages))


@sessions.command()
@click.argument("session", metavar="KEY|FILE", default="")
@agent_options
@json_option
def tree(common: CommonOptions, session: str, as_json: bool) -> None:
    """Show a session's branches; * marks where it goes on."""
    from lamella.cli.transcripts import tree_json, tree_lines
    from lamella.sessions.tree import build_tree

    file = open_transcript(common, session)
    nodes = build_tree(file.lines())
    if as_json:
        Out.json({"sessionId": file.id, "leafId": file.leaf_id, "tree": tree_json(nodes)})
        return
    Out.write("\n".join(tree_lines(nodes, file.leaf_id)) or "(no entries)")


@sessions.command()
@click.argument("session", metavar="KEY|FILE", default="")
@agent_options
@click.option("--format", "form", type=click.Choice(["md", "html", "jsonl"]), default="md", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File to write.")
def export(common: CommonOptions, session: str, form: str, output: Path | None) -> None:
    """Export the current branch as Markdown, as a page of HTML, or as a transcript that lamella and Pi can open."""
    from lamella.cli.transcript_html import html_page
    from lamella.cli.transcripts import markdown
    from lamella.sessions.context import entry_messages
    from lamella.sessions.hidden import without_hidden
    from lamella.sessions.lines import encode_line
    from lamella.text.files import write_atomic

    file = open_transcript(common, session)
    if form == "jsonl":
        lines = [encode_line(file.header.fields), *(encode_line(e.fields) for e in file.branch_entries())]
        text = b"".join(lines).decode("utf-8")
    else:
        document = markdown if form == "md" else html_page
        said = [m for e in file.branch_entries() for m in entry_messages(e)]
        text = document(file.name or file.id, without_hidden(said))
    if output is None:
        Out.write(text, newline=False)
        return
    if output.exists():
        raise UsageError(f"{output} already exists; nothing was written")
    write_atomic(output, text.encode("utf-8"))
    click.echo(f"Wrote {output}.", err=True)


@sessions.command()
@click.argument("key", default="")
@agent_options
@click.option("--model", default="", metavar="PROVIDER/MODEL", help="Model to use.")
def resume(common: CommonOptions, key: str, model: str) -> int:
    """Go on with a session in chat."""
    from lamella.cli.chat import run_chat
    from lamella.cli.choice import SessionChoice

    return run_chat(common, SessionChoice(key=key, model=model), must_exist=True)


@sessions.command()
@click.argument("session", metavar="KEY|FILE")
@click.argument("query", required=False)
@agent_options
@click.option("--entry", metavar="ID", help="Read this entry instead; a unique beginning of its id is enough.")
@click.option("--offset", type=click.IntRange(0), default=0, help="With --entry: the character to start at.")
@click.option("--folded", is_flag=True, help="Only what a compaction has folded.")
@click.option("-n", "--max-results", type=click.IntRange(1, 100), default=5, show_default=True, help="Most passages.")
@json_option
def recall(
    common: CommonOptions,
    session: str,
    query: str | None,
    entry: str | None,
    offset: int,
    folded: bool,
    max_results: int,
    as_json: bool,
) -> None:
    """Quote what was said in a session, found by the words of QUERY, or one entry by its id."""
    from lamella.cli.quotes import quote_text
    from lamella.sessions.recall import read_entry
    from lamella.sessions.recall import recall as find_quotes

    question = argument_text(query or "").strip()
    if bool(question) == (entry is not None):
        raise click.UsageError("either QUERY or --entry is needed")
    file = open_transcript(common, session)
    if entry is not None:
        found = [read_entry(file, full_id(file, entry), offset)]
    else:
        found = find_quotes(file, question, max_results, only_folded=folded)
    if as_json:
        Out.json({"sessionId": file.id, "results": [q.to_json() for q in found]})
        return
    Out.write("\n\n".join(map(quote_text, found)) or "Nothing found.")


@sessions.command("context")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--leaf", metavar="ID", help="Entry to take as the leaf; a unique beginning is enough.")
@click.option("--estimator", type=click.Choice(["lamella", "pi"]), default="lamella", show_default=True)
@click.option("--verify", is_flag=True, help="Read the whole file and report all damage.")
@json_option
def show_context(file: Path, leaf: str | None, estimator: str, verify: bool, as_json: bool) -> None:
    """Print the context of a transcript FILE: messages, model, thinking level, tokens, damage."""
    from lamella.agent.cut import tokens_in_context
    from lamella.sessions.context import build_context
    from lamella.sessions.transcript import SessionFile
    from lamella.text.estimate import ESTIMATORS
    from lamella.types.message_json import dump_message

    set_up_logging(False)
    found = SessionFile.open(file, whole=verify or leaf is not None)
    if leaf is None:
        context = found.context()
    else:
        context = build_context(found.lines(), found.path_of(full_id(found, leaf)))
    estimate = ESTIMATORS[estimator]
    state = context.state
    result: dict[str, Any] = {
        "messages": [dump_message(m) for m in context.messages],
        "model": {"provider": state.provider, "modelId": state.model_id} if state.provider is not None else None,
        "thinkingLevel": state.thinking_level,
        "tokens": tokens_in_context(context, estimate),
        "messageTokens": [estimate(m) for m in context.messages],
        "estimator": estimator,
        "leafId": found.leaf_id if leaf is None else full_id(found, leaf),
        "sessionId": found.id,
        "damage": [d.to_json() for d in found.damage],
    }
    if as_json:
        Out.json(result)
        return
    from lamella.cli.transcripts import conversation_text

    for damage in found.damage:
        click.echo(f"warning: {file.name}: {damage.message}", err=True)
    Out.write(conversation_text(context.messages))
    Out.write(f"\n{len(context.messages)} messages, about {result['tokens']} tokens ({estimator})")


def full_id(file: SessionFile, beginning: str) -> str:
    """The entry id that starts so. Raises `EntryNotFound` when none does, `UsageError` when several do."""
    ids = [h.id for h in file.lines().heads]
    if beginning in ids:
        return beginning
    matches = {i for i in ids if beginning and i.startswith(beginning)}
    if not matches:
        raise EntryNotFound(beginning, file.path)
    if len(matches) > 1:
        first = ", ".join(sorted(matches)[:3])
        raise UsageError(f"entry {beginning!r}: {len(matches)} ids in {file.path} begin so ({first}, ...)")
    return matches.pop()
