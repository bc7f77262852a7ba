"""`lamella context build` and `repair`: the next request of files, for other programs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lamella.cli.common import Out, json_option, say_config_problems, set_up_logging, warn
from lamella.errors import ContextOverflow, LamellaError, SessionNotFound, TranscriptError, UsageError

if TYPE_CHECKING:
    from lamella.agent.preview import Source
    from lamella.runtime import Runtime
    from lamella.sessions.transcript import SessionFile
    from lamella.types.host import Host

PROFILE_HELP = "Provider profile: anthropic, openai-chat, openai-responses, gemini, mistral, strict, lenient."


@click.command("build")
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--provider", required=True, metavar="NAME", help=PROFILE_HELP)
@click.option("--model", required=True, metavar="NAME", help="Model whose own thinking may go back.")
@click.option("--window", required=True, type=click.IntRange(1), help="Context window in tokens.")
@click.option("--key", default="agent:main:main", show_default=True, help="Session key (kind of chat).")
@click.option("--now", metavar="ISO", help="Time of the request (default: the last entry's).")
@click.option("--config", "config_file", type=click.Path(path_type=Path, dir_okay=False), help="Config file.")
@click.option("--workspace", type=click.Path(path_type=Path), help="Workspace folder.")
@click.option("--prompt", default="", metavar="TEXT", help="A new prompt at the end.")
@click.option("--estimator", default="", metavar="NAME", help="Token estimator (default: the configured one).")
@json_option
def build(
    files: tuple[Path, ...],
    provider: str,
    model: str,
    window: int,
    key: str,
    now: str | None,
    config_file: Path | None,
    workspace: Path | None,
    prompt: str,
    estimator: str,
    as_json: bool,
) -> int:
    """Print the next request of transcript FILES after plugins and repair, one JSON line each.

    Without --config only built-in settings count. Exit code 1 when a file has an error.
    """
    from lamella.context.profiles import profile
    from lamella.runtime import Options, Runtime
    from lamella.sessions.keys import parse_key

    set_up_logging(False)
    Out.claim()
    rules = profile(provider)
    session_key = parse_key(key)
    runtime = Runtime(
        Options(
            agent_id=session_key.agent_id,
            workspace=workspace,
            config_file=config_file,
            builtin_config=config_file is None,
            overrides={"context.estimator": estimator} if estimator else {},
        )
    )
    say_config_problems(runtime)
    say_plugin_problems(runtime)
    runtime.estimate  # noqa: B018 - an unknown one is a fault of the call, not of a file
    if workspace is not None:
        runtime.require_workspace()
    moment = _milliseconds(now) if now else None
    failed = False
    for file in files:
        row = asyncio.run(_build_one(runtime, file, rules, model, window, session_key.text, moment, prompt))
        failed = failed or row["error"] is not None
        Out.json_line(row) if as_json else Out.write(_summary(row))
    return 1 if failed else 0


def say_plugin_problems(runtime: Runtime) -> None:
    """Why plugins are left out, such as a setting that is wrong. Turns tell it as notices."""
    for problem in runtime.catalog.problems:
        warn(f"{problem.level}: {problem}")


def _milliseconds(text: str) -> int:
    from lamella.text.days import parse_iso_ms

    found = parse_iso_ms(text)
    if found is None:
        raise UsageError(f"--now {text!r}: expected an ISO time such as 2026-05-10T09:00:00Z")
    return found


async def _build_one(
    runtime: Runtime, file: Path, rules: Any, model: str, window: int, key: str, now: int | None, prompt: str
) -> dict[str, Any]:
    from lamella.agent.preview import Source, preview
    from lamella.types.message_json import dump_message
    from lamella.types.messages import TextBlock, UserMessage

    row: dict[str, Any] = {
        "file": str(file),
        "messages": [],
        "actions": [],
        "remarks": [],
        "tokens": 0,
        "plugins": [r.name for r in runtime.catalog.active],
        "error": None,
    }
    try:
        from lamella.sessions.transcript import SessionFile

        session = SessionFile.open(file)
        moment = now if now is not None else last_moment(session)
        sources = session_sources(session)
        if prompt:
            sources.append(Source(UserMessage((TextBlock(prompt),), moment), None))
        host = only_shown(runtime, session, rules.name, model, window, key)
        made = await preview(
            sources,
            rules,
            same_model=_same(rules.name, model),
            estimate=runtime.estimate,
            hooks=runtime.hooks,
            host=host,
            window=window,
            now=moment,
        )
        row["messages"] = [dump_message(m) for m in made.messages]
        row["actions"] = [a.to_json() for a in made.actions]
        row["remarks"] = [r.to_json() for r in made.remarks]
        row["tokens"] = made.tokens
        if made.tokens > window:
            text = f"the request needs about {made.tokens} tokens, the window holds {window}"
            raise ContextOverflow(text)
    except LamellaError as error:
        row["error"] = {"code": _code(error), "message": str(error), "line": getattr(error, "line", None)}
    return row


def session_sources(session: SessionFile) -> list[Source]:
    """The messages of a session's context, each with its entry."""
    from lamella.agent.preview import Source

    return [Source(m, item.entry.id) for item in session.context().items for m in item.messages]


def last_moment(session: SessionFile) -> int | None:
    """The time of a session's last entry, in Unix milliseconds."""
    from lamella.text.days import parse_iso_ms

    entries = session.branch_entries()
    return parse_iso_ms(entries[-1].timestamp) if entries else None


def only_shown(runtime: Runtime, session: SessionFile, provider: str, model: str, window: int, key: str) -> Host:
    """A host for `context` hooks: nothing can be stored through it, and no model asked."""
    from lamella.agent.host import OnlyShown
    from lamella.models.scripted import ScriptedModel
    from lamella.sessions.keys import parse_key
    from lamella.types.host import TurnInfo

    parsed = parse_key(key)
    info = TurnInfo(
        session_key=parsed.text,
        session_id=session.id,
        agent_id=parsed.agent_id,
        workspace=runtime.workspace,
        chat_type=parsed.chat_type,
        workspace_writable=False,
        provider=provider,
        model=model,
        context_window=window,
    )
    silent = ScriptedModel([], provider=provider, id=model, context_window=window)
    return OnlyShown(info, session, silent)


def _same(profile_name: str, model: str) -> Any:
    from lamella.context.profiles import profile_for_api

    def same(message: Any) -> bool:
        return bool(message.model == model and profile_for_api(message.api).name == profile_name)

    return same


def _code(error: LamellaError) -> str:
    if isinstance(error, ContextOverflow):
        return "context_overflow"
    if isinstance(error, SessionNotFound):
        return "not_found"
    return "not_a_transcript" if isinstance(error, TranscriptError) else "failed"


def _summary(row: dict[str, Any]) -> str:
    if row["error"]:
        return f"{row['file']}: {row['error']['message']}"
    changed = [f"{a['action']} {a['entryId'] or 'new'} ({a['rule']})" for a in row["actions"] if a["action"] != "kept"]
    lines = [f"{row['file']}: {len(row['messages'])} messages, about {row['tokens']} tokens", *changed]
    lines += [f"{r['plugin']}: {r['text']} ({r['rule']})" for r in row["remarks"]]
    return "\n  ".join(lines)


@click.command("repair")
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--provider", required=True, metavar="NAME", help=PROFILE_HELP)
@click.option("--model", default="", metavar="NAME", help="Model whose own thinking may go back.")
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="Keep only calls of this tool (may be repeated).")
@json_option
def repair(files: tuple[Path, ...], provider: str, model: str, tools: tuple[str, ...], as_json: bool) -> None:
    """Print lists of bare messages (JSON FILES), repaired for a provider, one JSON line each."""
    from lamella.context.profiles import profile
    from lamella.context.repair import repair as mend
    from lamella.text.conversation import convert_to_model_messages
    from lamella.types.message_json import dump_message, parse_message

    set_up_logging(False)
    rules = profile(provider)
    for file in files:
        messages = [parse_message(m) for m in _read_messages(file)]
        mended = mend(convert_to_model_messages(messages), rules, same_model=_same(rules.name, model), tools=tools)
        row = {"file": str(file), "messages": [dump_message(m) for m in mended]}
        Out.json_line(row) if as_json else Out.write(f"{file}: {len(mended)} of {len(messages)} messages")


def _read_messages(file: Path) -> list[dict[str, Any]]:
    from lamella.sessions.lines import decode_line

    if not file.is_file():
        raise SessionNotFound(f"{file}: no such file")
    try:
        value = decode_line(file.read_bytes())
    except ValueError as error:
        raise UsageError(f"{file}: is not JSON: {error}") from None
    if not isinstance(value, list) or not all(isinstance(m, dict) for m in value):
        raise UsageError(f"{file}: expected a list of messages")
    return value
