"""Messages, settings and hosts for tests of context pruning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve
from builders import assistant, call, result, transcript, user

from lamella.agent.host import OnlyShown
from lamella.config.structure import structure
from lamella.models.scripted import ScriptedModel
from lamella.sessions.transcript import SessionFile
from lamella.types.host import TurnInfo
from lamella.types.message_json import dump_message
from lamella.types.messages import Message, ToolResultMessage
from lamella_context_pruning import Config
from lamella_context_pruning.draft import Draft

NOTHING = "[Old tool result content cleared]"


def settings(**section: Any) -> Config:
    """Settings from a config section; raises when something is wrong with it."""
    found, problems = structure(Config, section, path="plugins.config.context-pruning")
    assert found is not None, [str(p) for p in problems]
    return found


def from_openclaw(section: Mapping[str, Any]) -> Config:
    """OpenClaw's resolved `contextPruning` as lamella's settings, ratios above 1 included."""
    trim, clear, tools = section["softTrim"], section["hardClear"], section.get("tools", {})
    plain = settings(
        keep_last_assistants=section["keepLastAssistants"],
        min_prunable_tool_chars=section["minPrunableToolChars"],
        tools={name: tuple(tools.get(name, ())) for name in ("allow", "deny")},
        soft_trim={
            "max_chars": trim["maxChars"],
            "head_chars": trim["headChars"],
            "tail_chars": trim["tailChars"],
        },
        hard_clear={"enabled": clear["enabled"], "placeholder": clear["placeholder"]},
    )
    ratios = {"soft_trim_ratio": section["softTrimRatio"], "hard_clear_ratio": min(section["hardClearRatio"], 1)}
    return evolve(plain, **ratios)


def conversation(*lengths: int, name: str = "exec", after: int = 3) -> list[Message]:
    """A user's request, a call and result of each length, then `after` more replies."""
    messages: list[Message] = [user("go")]
    for i, length in enumerate(lengths):
        messages += [assistant("", call(f"c{i}", name)), long_result(f"c{i}", length, name)]
    for i in range(after):
        messages += [assistant(f"reply {i}"), user(f"question {i}")]
    return messages


def long_result(call_id: str, length: int, name: str = "exec") -> ToolResultMessage:
    """A result whose text begins and ends with its call's id."""
    return result(call_id, f"<{call_id}" + "x" * (length - 2 * len(call_id) - 2) + f"{call_id}>", name)


def results(messages: Sequence[Message]) -> list[ToolResultMessage]:
    return [m for m in messages if isinstance(m, ToolResultMessage)]


def draft(messages: Sequence[Message]) -> Draft:
    return Draft(messages)


def host(tmp_path: Path, *, provider: str = "anthropic", model: str = "m", window: int = 100_000) -> OnlyShown:
    """A host through which nothing can be stored."""
    info = TurnInfo("agent:main:main", "s1", "main", tmp_path, provider=provider, model=model, context_window=window)
    file = SessionFile.create(tmp_path / "s.jsonl")
    return OnlyShown(info, file, ScriptedModel([], context_window=window))


def rows_of(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The lines of a transcript with these messages; entries are m0, m1 and so on."""
    rows = transcript([""] * len(messages))
    for row, message in zip(rows[1:], messages, strict=True):
        row["message"] = dump_message(message)
    return rows
