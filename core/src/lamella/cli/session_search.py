"""`lamella sessions search`: words in all transcripts, in use or put aside."""

from __future__ import annotations

from typing import Any

import click

from lamella.cli.common import CommonOptions, Out, agent_options, argument_text, json_option, open_runtime, warn


@click.command()
@click.argument("text")
@agent_options
@click.option("-n", "--max-results", type=click.IntRange(1, 1000), default=20, show_default=True, help="Most entries.")
@json_option
def search(common: CommonOptions, text: str, max_results: int, as_json: bool) -> None:
    """Find entries in which all words of TEXT stand, in transcripts in use and put aside, newest first."""
    from lamella.cli.quotes import quote_text
    from lamella.sessions.search import search as find
    from lamella.sessions.search import searchable

    wanted = argument_text(text)
    if not wanted.split():
        raise click.UsageError("TEXT is empty")
    runtime = open_runtime(common)
    keys = {row.path: row.key for row in runtime.store.rows()}
    found, skipped = find(searchable(runtime.store.folder), wanted, max_results)
    for file in skipped:
        warn(f"warning: not searched: {file.reason}")
    if as_json:
        rows: list[dict[str, Any]] = [
            {
                "file": match.path.name,
                "archived": match.archived,
                "key": keys.get(match.path),
                "sessionId": match.session_id,
                **match.quote.to_json(),
            }
            for match in found
        ]
        Out.json(rows)
    else:
        timezone = runtime.agent.timezone
        texts = [f"{keys.get(m.path) or m.path.name} {quote_text(m.quote, timezone)}" for m in found]
        Out.write("\n\n".join(texts) or "Nothing found.")
