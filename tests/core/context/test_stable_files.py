"""Workspace files within a budget: parity with recorded results of OpenClaw 2026.3.13, rows A1 to A8 and
A22 to A27 of the table of edge cases, and invariants over any files and limits.

Where lamella differs on purpose, see docs/decisions/0015-stable-context.md.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.context.stable_files import (
    HINT,
    Fitted,
    Injected,
    cut_file,
    cut_lines,
    cut_signature,
    files_for_session,
    fit_files,
    is_near_limit,
    remember,
)
from lamella.types.hooks import PromptFile

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "context" / "bootstrap.json").read_text(encoding="utf-8"))
NO_LIMIT = 10**9


def vectors(group: str) -> list[Any]:
    found = [v for v in VECTORS["vectors"] if v["group"] == group]
    return [pytest.param(v["input"], v["output"], id=v["name"]) for v in found]


def text_of(value: Any) -> str:
    """A recorded input text."""
    if isinstance(value, str):
        return value
    if "$rep" in value:
        return str(value["$rep"][0]) * int(value["$rep"][1])
    return "".join(map(text_of, value["$cat"]))


def assert_text(found: str, recorded: Any) -> None:
    if isinstance(recorded, str):
        assert found == recorded
        return
    assert len(found) == recorded["$len"]
    assert found.startswith(recorded["$head"])
    assert found.endswith(recorded["$tail"])
    assert hashlib.sha256(found.encode()).hexdigest() == recorded["$sha256"]


def file(name: str = "AGENTS.md", text: str | None = "", path: str = "") -> PromptFile:
    return PromptFile(name, path or f"/w/{name}", text)


def shown(fitted: Fitted) -> list[Injected]:
    return [f for f in fitted.files if f.text]


# --- parity ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given_", "recorded"), vectors("bootstrap.trim"))
def test_a_text_is_cut_as_recorded(given_: Any, recorded: Any) -> None:
    cut = cut_file(text_of(given_["content"]), given_["name"], given_["max"])
    assert (cut.truncated, cut.raw) == (recorded["truncated"], recorded["originalLength"])
    assert_text(cut.text, recorded["content"])


@pytest.mark.parametrize(("given_", "recorded"), vectors("bootstrap.build"))
def test_files_are_fitted_as_recorded(given_: Any, recorded: Any) -> None:
    files = [PromptFile(f["name"], f["path"], None if f["missing"] else text_of(f["content"])) for f in given_["files"]]
    options = given_["opts"]
    fitted = fit_files(files, options.get("maxChars", 20_000), options.get("totalMaxChars", 150_000))
    assert [f.file.path for f in shown(fitted)] == [f["path"] for f in recorded["files"]]
    for found, expected in zip(shown(fitted), recorded["files"], strict=True):
        assert_text(found.text, expected["content"])
    # The words are lamella's own; what is warned of is the same.
    assert len(fitted.warnings) == len(recorded["warnings"])
    for found_warning, expected_warning in zip(fitted.warnings, recorded["warnings"], strict=True):
        numbers = [w for w in expected_warning.replace(")", " ").split() if w.isdigit()]
        assert all(number in found_warning for number in numbers)


@pytest.mark.parametrize(("given_", "recorded"), vectors("bootstrap.warning"))
def test_cuts_are_told_as_recorded(given_: Any, recorded: Any) -> None:
    fitted = fit_files(
        [file("AGENTS.md", "x" * 25_000), file("SOUL.md", None), file("MEMORY.md", "m" * 30_000)], 20_000, 150_000
    )
    stats = [(f.file.name, f.raw, len(f.text), f.truncated) for f in fitted.files]
    assert stats == [(s["name"], s["rawChars"], s["injectedChars"], s["truncated"]) for s in given_["stats"]]
    assert cut_signature(fitted.files, 20_000, 150_000) == recorded["signature"]
    if recorded["lines"]:
        assert cut_lines(fitted.files)[:-1] == tuple(recorded["lines"][:-1])
        assert cut_lines(fitted.files)[-1] == HINT  # names lamella's own settings


# --- the table of edge cases ---------------------------------------------------------------------------


def test_A1_blanks_at_the_end_do_not_count() -> None:
    cut = cut_file("hello  \n\n", "A.md", 100)
    assert (cut.text, cut.truncated, cut.raw) == ("hello", False, 5)


def test_A2_a_text_as_long_as_the_limit_stays() -> None:
    assert cut_file("x" * 100, "A.md", 100).text == "x" * 100


def test_A3_a_long_file_keeps_head_and_tail() -> None:
    fitted = fit_files([file("SOUL.md", "a" * 15_000 + "z" * 15_000)], 20_000, 60_000)
    (found,) = fitted.files
    head, empty, first, second, again, tail = found.text.split("\n")
    assert (head, tail) == ("a" * 14_000, "z" * 4_000)
    assert (empty, again) == ("", "")
    assert first == "[...truncated, read SOUL.md for full content...]"
    assert second == "…(truncated SOUL.md: kept 14000+4000 chars of 30000)…"
    assert found.truncated
    assert found.causes == ("per-file-limit",)
    assert len(fitted.warnings) == 1


def test_A4_too_little_room_for_a_file() -> None:
    fitted = fit_files([file(text="x" * 100), file("SOUL.md", None)], 20_000, 60)
    assert shown(fitted) == []
    assert len(fitted.warnings) == 1
    assert "60" in fitted.warnings[0]
    assert "64" in fitted.warnings[0]


def test_A5_a_marker_is_cut_to_the_budget_and_counts() -> None:
    fitted = fit_files([file(text=None), file("SOUL.md", None)], 20_000, 20)
    (only,) = shown(fitted)
    assert only.text == "[MISSING] Expected …"
    assert len(only.text) == 20


def test_A6_the_first_files_are_served_first() -> None:
    files = [
        file("AGENTS.md", "x" * 25_000),
        file("SOUL.md", None),
        file("USER.md", "u", path=" "),
        file("MEMORY.md", "m" * 30_000),
    ]
    fitted = fit_files(files, 20_000, 18_000)
    agents, soul, memory = shown(fitted)
    assert len(agents.text) == 16_310
    assert soul.text == "[MISSING] Expected at: /w/SOUL.md"
    assert len(agents.text) + len(soul.text) + len(memory.text) <= 18_000
    assert any("USER.md" in w and "path" in w for w in fitted.warnings)


def cuts(*names: str, size: int = 25_000) -> Fitted:
    return fit_files([file(n, "x" * size) for n in names], 20_000, NO_LIMIT)


def test_A23_another_cut_has_another_signature() -> None:
    grown = cuts("AGENTS.md", size=26_000)
    assert cut_signature(cuts("AGENTS.md").files, 20_000, NO_LIMIT) == cut_signature(
        cuts("AGENTS.md").files, 20_000, NO_LIMIT
    )
    assert cut_signature(cuts("AGENTS.md").files, 20_000, NO_LIMIT) != cut_signature(grown.files, 20_000, NO_LIMIT)
    assert cut_signature(cuts("AGENTS.md", size=10).files, 20_000, NO_LIMIT) is None


def test_A24_the_newest_32_signatures_are_remembered() -> None:
    seen: tuple[str, ...] = ()
    for number in range(40):
        seen = remember(seen, f"s{number}")
    assert seen == tuple(f"s{n}" for n in range(8, 40))
    assert remember(seen, "s8") == (*(f"s{n}" for n in range(9, 40)), "s8")


def test_A25_files_of_one_name_are_told_apart() -> None:
    files = [file(text="x" * 25_000), file(text="y" * 25_000, path="/w/docs/AGENTS.md")]
    lines = cut_lines(fit_files(files, 20_000, NO_LIMIT).files)
    assert lines[0].startswith("AGENTS.md (/w/AGENTS.md): 25000 raw")
    assert lines[1].startswith("AGENTS.md (/w/docs/AGENTS.md): 25000 raw")


def test_A26_three_lines_and_the_number_of_others() -> None:
    lines = cut_lines(cuts("A.md", "B.md", "C.md", "D.md", "E.md").files)
    assert [line.split(":")[0] for line in lines[:3]] == ["A.md", "B.md", "C.md"]
    assert lines[3:] == ("+2 more truncated file(s).", HINT)


def test_A27_no_character_is_cut_in_two() -> None:
    for room in range(64, 90):
        (found,) = shown(fit_files([file(text="🙂" * 500)], 500, room))
        found.text.encode("utf-8")
        assert len(found.text) <= room


def test_files_that_no_room_is_left_for_are_told_as_cut() -> None:
    fitted = fit_files([file(text="x" * 100), file("MEMORY.md", "m" * 50)], 20_000, 110)
    assert cut_lines(fitted.files)[0] == "MEMORY.md: 50 raw -> 0 injected (~100% removed)."


def test_a_file_near_its_limit_is_known() -> None:
    near, far = fit_files([file(text="x" * 85), file("B.md", "x" * 84)], 100, NO_LIMIT).files
    assert (is_near_limit(near, 100), is_near_limit(far, 100)) == (True, False)


# --- kinds of session ------------------------------------------------------------------------------------

ALL = tuple(
    file(n, "text")
    for n in ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md", "MEMORY.md")
)


def names(**facts: Any) -> list[str]:
    facts = {"kind": "main", "chat_type": "direct", "trigger": "user", **facts}
    return [f.name for f in files_for_session(ALL, **facts)]


def test_the_users_own_chat_sees_all_files_in_order() -> None:
    assert names() == [f.name for f in ALL]


def test_A14_sub_agents_see_five_files() -> None:
    assert names(kind="subagent") == ["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md"]


def test_A15_scheduled_runs_do_not_see_memory() -> None:
    assert names(kind="cron") == names(kind="subagent")


@pytest.mark.parametrize("chat_type", ["group", "channel"])
def test_A16_chats_that_others_read_do_not_see_memory(chat_type: str) -> None:
    assert names(chat_type=chat_type) == [f.name for f in ALL if f.name != "MEMORY.md"]
    assert names(chat_type=chat_type, memory_in_groups=True) == [f.name for f in ALL]


def test_A19_a_lightweight_heartbeat_sees_its_own_file() -> None:
    assert names(trigger="heartbeat", lightweight=("heartbeat", "cron")) == ["HEARTBEAT.md"]
    assert names(trigger="heartbeat") == [f.name for f in ALL]


def test_A20_a_lightweight_scheduled_run_sees_nothing() -> None:
    assert names(trigger="cron", kind="cron", lightweight=("heartbeat", "cron")) == []


# --- invariants ------------------------------------------------------------------------------------------

TEXTS = st.none() | st.text(max_size=400)


@given(st.lists(TEXTS, max_size=8), st.integers(1, 300), st.integers(1, 600))
def test_the_total_is_never_exceeded_and_order_is_kept(texts: list[str | None], file_max: int, total: int) -> None:
    files = [file(f"F{i}.md", text) for i, text in enumerate(texts)]
    fitted = fit_files(files, file_max, total)
    assert sum(len(f.text) for f in fitted.files) <= total
    assert [f.file for f in fitted.files] == files
    assert fit_files(files, file_max, total) == fitted
    for found in fitted.files:
        assert found.truncated == (len(found.text) < found.raw)
        if found.file.text is not None and not found.truncated and found.raw <= file_max:
            assert found.text == found.file.text.rstrip()


@given(st.text(max_size=500), st.integers(1, 400))
def test_a_cut_keeps_both_ends(text: str, limit: int) -> None:
    cut = cut_file(text, "F.md", limit)
    whole = text.rstrip()
    assert cut.text.startswith(whole[: limit * 7 // 10])
    assert cut.text.endswith(whole[len(whole) - min(limit // 5, len(whole)) :])
