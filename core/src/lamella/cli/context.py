"""`lamella context`: what the next request would contain, section by section."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from lamella.cli.common import CommonOptions, Out, agent_options, json_option, open_runtime, print_table, warn
from lamella.cli.context_diff import diff, diff_lines, prefixes_of, turn_json
from lamella.cli.context_doors import build, repair, say_plugin_problems, session_sources
from lamella.cli.context_explain import explanation, next_request, show
from lamella.errors import LamellaError

if TYPE_CHECKING:
    from lamella.agent.prefix_log import TurnPrefix
    from lamella.runtime import Runtime
    from lamella.sessions.keys import SessionKey
    from lamella.sessions.transcript import SessionFile


@click.group(invoke_without_command=True)
@agent_options
@click.option("--key", default="", metavar="KEY", help="Session key (default: agent:<agent>:main).")
@click.option("--model", default="", metavar="PROVIDER/MODEL", help="Model to measure for.")
@click.option("--full", is_flag=True, help="Print the texts too.")
@click.option(
    "--diff",
    "turns",
    type=(int, int),
    metavar="TURN TURN",
    help="Show where the prefixes of two turns first differ (-1: the newest turn).",
)
@click.option("--explain", is_flag=True, help="Tell for each message what becomes of it, why, and what it costs.")
@json_option
def context(
    common: CommonOptions,
    key: str,
    model: str,
    full: bool,
    turns: tuple[int, int] | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Show what the next request would contain, with estimated tokens."""
    if click.get_current_context().invoked_subcommand is not None:
        return
    runtime = open_runtime(common, model=model, need_workspace=True)
    say_plugin_problems(runtime)
    if turns is not None:
        show_diff(runtime, key, turns, as_json)
        return
    found = asyncio.run(overview(runtime, key, explain=explain))
    if as_json:
        Out.json(found)
        return
    Out.write(overview_head(found))
    Out.write("")
    print_table(overview_rows(found), OVERVIEW_HEADINGS)
    if full:
        for section in found["sections"]:
            Out.write(f"\n--- {section['name']} ---\n{section['text']}")
    if explain:
        Out.write("")
        show(found)


context.add_command(build)
context.add_command(repair)


async def overview(runtime: Runtime, key: str, *, explain: bool = False) -> dict[str, Any]:
    """Sections of the system prompt, tools and history, each with its estimated tokens; with `explain`
    what became of each message."""
    from lamella.agent.request import tool_tokens
    from lamella.config.budget import budget
    from lamella.context.assembly import PromptFor
    from lamella.text.estimate import estimate_text
    from lamella.types.message_json import dump_message

    model = runtime.model
    window = runtime.environment.window(model)
    session_key = runtime.key(key)
    file = _transcript(runtime, session_key)
    session_id = file.id if file is not None else ""
    sources = session_sources(file) if file is not None else []
    request = await next_request(runtime, session_key, file, sources)
    sections: list[dict[str, Any]] = [
        {
            "name": s.name,
            "owner": s.owner,
            "tokens": estimate_text(s.text),
            "characters": len(s.text),
            "note": s.note,
            "details": dict(s.details),
            "text": s.text.strip(),
        }
        for s in runtime.prompts.sections(
            PromptFor(session_key, session_id, model=f"{model.provider}/{model.id}", preview=True)
        )
    ]
    tools: list[dict[str, Any]] = [
        {
            "name": t.name,
            "owner": t.owner,
            "tokens": tool_tokens(t.spec),
        }
        for t in runtime.tools.values()
    ]
    limits = budget(runtime.settings.compaction, window)
    recorded = _recorded(runtime, session_id)
    found = {
        "key": session_key.text,
        "model": f"{model.provider}/{model.id}",
        "windowTokens": window,
        "reserveTokens": limits.reserve,
        "prefix": turn_json(recorded[-1]) if recorded else None,
        "sections": sections,
        "tools": tools,
        "history": {
            "messages": [dump_message(m) for m in request.messages],
            "count": len(request.messages),
            "tokens": request.tokens,
        },
        "lastRecall": _last_recall(runtime, session_key),
        "tokens": sum(s["tokens"] for s in sections) + sum(t["tokens"] for t in tools) + request.tokens,
    }
    return found | explanation(request, sources) if explain else found


def _recorded(runtime: Runtime, session_id: str) -> tuple[TurnPrefix, ...]:
    """The turns on record; none when the record cannot be read, since it only helps to find costs."""
    try:
        return prefixes_of(runtime, session_id).turns
    except LamellaError as error:
        warn(f"warning: {error}")
        return ()


def _last_recall(runtime: Runtime, key: SessionKey) -> dict[str, Any] | None:
    """What memory put before the last prompt, as its plugin has noted it."""
    located = runtime.store.locate(key)
    noted = located.entry.get("lastRecall") if located is not None else None
    return noted if isinstance(noted, dict) else None


def _transcript(runtime: Runtime, key: SessionKey) -> SessionFile | None:
    """The transcript of a key's session, if there is one."""
    located = runtime.store.locate(key)
    return runtime.store.open(located, cwd="") if located is not None and located.exists else None


def show_diff(runtime: Runtime, key: str, turns: tuple[int, int], as_json: bool) -> None:
    """Print where the prefixes of two turns of a key's session first differ."""
    file = _transcript(runtime, runtime.key(key))
    found = diff(prefixes_of(runtime, file.id if file is not None else ""), *turns)
    if as_json:
        Out.json(found)
    else:
        Out.write("\n".join(diff_lines(found)))


OVERVIEW_HEADINGS = ["PART", "TOKENS", "NOTE"]


def overview_rows(found: dict[str, Any]) -> list[list[str]]:
    """A row for each part of the request."""
    rows = [[f"prompt: {s['name']} ({s['owner']})", str(s["tokens"]), s["note"]] for s in found["sections"]]
    rows += [[f"tool: {t['name']} ({t['owner']})", str(t["tokens"]), ""] for t in found["tools"]]
    rows.append([f"history: {found['history']['count']} messages", str(found["history"]["tokens"]), ""])
    rows.append(["total", str(found["tokens"]), ""])
    if found["lastRecall"]:
        places = ", ".join(found["lastRecall"].get("citations") or ()) or "nothing"
        rows.append(["recalled for the last prompt", str(found["lastRecall"].get("tokens", 0)), places])
    return rows


def overview_head(found: dict[str, Any]) -> str:
    """How full the window would be, on one line."""
    window, reserve = found["windowTokens"], found["reserveTokens"]
    share = found["tokens"] / window if window else 0
    return f"{found['key']} with {found['model']}: {share:.1%} of {window} tokens (compaction above {window - reserve})"
