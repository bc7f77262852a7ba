"""Faults that other agents had in public (K46, K48, K49, K54, K73, K75), as inputs and what must hold."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from builders import CASES
from folding import KEY, fold, safeguard, summary

from lamella.runtime import Runtime
from lamella.sessions.keys import parse_key
from lamella.sessions.transcript import SessionFile
from lamella.text.days import human_day
from lamella.types.messages import Message, ToolResultMessage, UserMessage, text_of
from lamella.types.model import ModelRequest
from lamella.types.tools import Tool
from lamella_compaction_safeguard.refresh import refresh_text

SMALL = {"compaction.keep_recent_tokens": 800, "context.estimator": "pi"}


def stored(case: str, file: str) -> list[Message]:
    """The messages of a case's transcript."""
    return list(SessionFile.open(CASES / case / file).context().messages)


def place(runtime: Runtime, case: str, file: str) -> Path:
    """A case's transcript as the main session's."""
    located = runtime.store.start(parse_key(KEY))
    located.path.parent.mkdir(parents=True, exist_ok=True)
    located.path.write_bytes((CASES / case / file).read_bytes())
    return located.path


def texts(messages: Sequence[Any]) -> list[str]:
    return [text_of(m.content) for m in messages]


# --- K46: a failed summary ---------------------------------------------------------------------------

SCRIPTS = json.loads((CASES / "K46" / "summariser_scripts.json").read_text())


def as_step(script: dict[str, Any]) -> dict[str, Any]:
    if script.get("no_model"):
        return {"throwBeforeStart": "no model is configured"}
    if "returns" in script:
        return {"text": script["returns"]}
    status = re.match(r"\d+", script["raises"])
    return {"throwBeforeStart": script["raises"], **({"status": int(status[0])} if status else {})}


@pytest.mark.parametrize("script", SCRIPTS, ids=json.dumps)
async def test_k46_a_failed_summary_replaces_nothing(tmp_path: Path, script: dict[str, Any]) -> None:
    history = stored("K46", "history.jsonl")
    folded = await fold(tmp_path, history, [as_step(script)] * 20, window=6000, keep=400)
    assert folded.untouched
    assert folded.outcome.error.startswith("cancelled: the model gave no summary: ")
    assert not folded.entry.get("compactionCount")
    assert [m.content for m in folded.context.messages] == [m.content for m in history]  # type: ignore[union-attr]
    assert 1 <= len(folded.model.requests) <= 3


async def test_k46_when_the_window_is_exceeded_rules_quote_what_was_said(tmp_path: Path) -> None:
    folded = await fold(tmp_path, stored("K46", "history.jsonl"), [as_step(SCRIPTS[0])] * 20, window=4000, keep=400)
    assert folded.summary.startswith("> Extractive summary: ")
    assert folded.details["summarisedBy"] == "rules"
    assert "503" in folded.details["error"]
    assert "note 19" in " ".join(texts(folded.context.messages[1:]))
    assert folded.outcome.freed > 0


# --- K48: nothing left to summarise --------------------------------------------------------------------


def echo(request: ModelRequest) -> str:
    """A summariser that knows nothing but what it is given."""
    lines = text_of(request.messages[-1].content).split("\n")
    return "\n".join(line for line in lines if "PREVIOUS-SUMMARY" in line or "plant table" in line) or "nothing"


async def test_k48_the_earlier_summary_is_never_replaced_by_a_skeleton(tmp_path: Path) -> None:
    model = scripted([echo] * 8, context_window=8000)
    settings = {"compaction.keep_recent_tokens": 2000}
    async with open_agent(tmp_path, model, settings=settings, plugins=[safeguard()]) as runtime:
        place(runtime, "K48", "chain.jsonl")
        async with runtime.session() as session:
            outcome = await session.compact()
            (summary_message, *kept) = session.agent.file.context().messages
            again = await session.compact()
    assert outcome.entry_id
    assert "budget 4100" in summary_message.summary  # type: ignore[union-attr]
    assert "below 2 metres" in summary_message.summary  # type: ignore[union-attr]
    assert "Now draft the whole planting list." in summary_message.summary  # type: ignore[union-attr]
    assert "List drafted." in texts(kept)[-1]
    assert again.entry_id is None


async def test_k48_a_tiny_session_is_left_alone(tmp_path: Path) -> None:
    model = scripted([])
    async with open_agent(tmp_path, model, plugins=[safeguard()]) as runtime:
        path = place(runtime, "K48", "tiny.jsonl")
        before = path.read_bytes()
        async with runtime.session() as session:
            outcome = await session.compact()
    assert "nothing to compact" in outcome.error
    assert path.read_bytes() == before
    assert model.requests == []


# --- K49: the newest request ---------------------------------------------------------------------------

NEWEST = "先不写指南了。请改为：把温室的三个风扇都改成晚上九点关闭，并且不要动二号风扇的转速。"
OLDER = "## Pending user asks\n- continue with chapter 10"


@pytest.mark.parametrize("keep", [1, 100, 800, 2000])
async def test_k49_the_newest_request_comes_through_whole_and_first(tmp_path: Path, keep: int) -> None:
    folded = await fold(tmp_path, stored("K49", "switch.jsonl"), [OLDER] * 8, window=6000, keep=keep)
    shown = [
        folded.summary.partition("## Recent turns preserved verbatim")[0]
        + folded.summary.rpartition("<latest-user-request>")[2],
        *(text_of(m.content) for m in folded.context.messages[1:] if isinstance(m, UserMessage)),
    ]
    whole = "\n".join(shown)
    assert whole.count(NEWEST) == 1
    assert whole.index(NEWEST) > whole.index("chapter 10")
    calls = [m.tool_call_id for m in folded.context.messages if isinstance(m, ToolResultMessage)]
    assert calls in ([], ["f1"])


# --- K54: failed attempts ------------------------------------------------------------------------------


async def test_k54_failures_and_files_are_remembered_over_two_compactions(tmp_path: Path) -> None:
    history = stored("K54", "failures.jsonl")
    first = await fold(tmp_path, history, ["S", "S"], keep=4, recent_turns=0)
    assert texts(first.context.messages[1:]) == ["Keep trying.", "I will."]
    section = first.summary.partition("## Tool Failures\n")[2].split("\n\n")[0].split("\n")
    shown = [line for line in section if line.startswith("- exec: ")]
    assert 1 <= len(shown) <= 8
    assert all("permission denied on port" in line and len(line) < 300 for line in shown)
    assert re.fullmatch(r"- \.\.\.and \d+ more", section[-1])
    assert "<read-files>\ndocs/pump.md\n</read-files>" in first.summary
    assert "<modified-files>\nconf/pump.ini\n</modified-files>" in first.summary

    more = [UserMessage("What now?"), *stored("K54", "failures.jsonl")[1:3], UserMessage("Stop.")]
    second = await fold(tmp_path, more, ["S", "S"], keep=1, recent_turns=0)
    ids = [failure["callId"] for failure in second.details["toolFailures"]]
    assert len(ids) == len(set(ids))
    assert set(ids) <= {failure["callId"] for failure in first.details["toolFailures"]} | {"e0"}
    assert second.summary.count("## Tool Failures") == 1
    assert "permission denied on port" in second.summary
    assert second.summary.count("conf/pump.ini\n") == second.summary.count("docs/pump.md\n") == 1


# --- K73, K75: the refresh -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "there", "not_there"),
    [
        ("v1", ["read SOUL.md", "sub rule", "never sell seeds"], ["not this"]),
        ("v2", ["read USER.md", "no fire"], []),
        ("v3", ["real rule", "loud rule"], ["fake rule in a fence"]),
        ("v4", ["先读用户档案", "不许外发"], ["无关", "\r"]),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
async def test_k73_sections_are_found(
    tmp_path: Path, version: str, there: list[str], not_there: list[str], line_end: str
) -> None:
    folder = CASES / "K73" / version
    agents = (folder / "AGENTS.md").read_text(encoding="utf-8").replace("\n", line_end)
    config = {}
    if version == "v4":
        names = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config = {"refresh_sections": names["agents"]["defaults"]["compaction"]["postCompactionSections"]}
    talk = [UserMessage("a"), UserMessage("b"), UserMessage("c")]
    folded = await fold(tmp_path, talk, [], agents_md=agents, **config)
    (event,) = folded.entry["pendingEvents"]
    assert all(text in event for text in there)
    assert not any(text in event for text in not_there)
    assert human_day(tz="") in event


async def test_k73_no_section_no_refresh(tmp_path: Path) -> None:
    agents = (CASES / "K73" / "v5" / "AGENTS.md").read_text(encoding="utf-8")
    folded = await fold(tmp_path, [UserMessage("a"), UserMessage("b")], [], agents_md=agents)
    assert folded.compaction is not None
    assert "pendingEvents" not in folded.entry


def test_k73_a_cut_never_falls_into_a_character() -> None:
    family = "👨‍👩‍👧"
    text = refresh_text("## Red Lines\n" + family * 2000, ["Red Lines"], "2026-05-10", 100)
    assert text.encode().decode() == text
    shown = text.partition("## Red Lines\n")[2].partition("\n...[truncated]...")[0]
    assert shown == family * (len(shown) // len(family))
    assert len(shown) > 50


async def test_k75_the_refresh_does_not_start_the_turn_again(tmp_path: Path) -> None:
    scenario = json.loads((CASES / "K75" / "scenario.json").read_text(encoding="utf-8"))
    tray = {"content": [{"type": "toolCall", "id": "t7", "name": "label", "arguments": {"tray": 7}}]}
    overflow = {"error": "prompt is too long: 9000 tokens > 8000 maximum"}
    model = scripted(["hello", tray, overflow, summary("labelling trays 7 to 9"), "Trays labelled.", "8.", "9."])
    label = Tool("label", "Labels.", {"type": "object", "properties": {}}, lambda _a, _c: "done")
    settings = {"compaction.keep_recent_tokens": 5}
    plugin = safeguard(quality_guard=False)
    async with open_agent(tmp_path, model, settings=settings, plugins=[plugin], tools=[label]) as runtime:
        (runtime.workspace / "AGENTS.md").write_text(scenario["agents_md"])
        await runtime.ask("Hello. " + "We sell seeds. " * 500)
        first = await runtime.ask(scenario["user"])
        for text in (scenario["nextUser"], "And then?"):
            await runtime.ask(text)
        path = runtime.store.index.transcript_path(runtime.store.index.get(KEY) or {})
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert first.compactions == 1
    retried, following, last = (texts(r.messages) for r in model.requests[-3:])
    refresh = "[Post-compaction context refresh]"
    assert isinstance(model.requests[-3].messages[-1], ToolResultMessage)
    assert sum(refresh in text for text in retried) == 0
    assert sum(refresh in text for text in following) == 1
    assert following[-1] == scenario["nextUser"]
    assert sum(refresh in text for text in last) == 1  # the one that was delivered, as history
    asked = [r["message"] for r in rows if r.get("message", {}).get("role") == "user"]
    assert not any(refresh in json.dumps(message) for message in asked)
    assert scenario["user"] in " ".join(retried)
