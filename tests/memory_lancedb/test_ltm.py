"""`lamella ltm`: what is shown, chosen, forgotten, moved; with and without the slot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from cli import Ran
from inside import lamella
from memories import texts_on_disk

from lamella_memory_lancedb.store.memory import Selection

Run = Callable[..., Ran]
KEPT = (
    {"text": "The staging server is called bluebird.", "category": "fact", "sessionKey": "agent:main:ops"},
    {"text": "我喜欢绿茶，不喜欢咖啡。", "category": "preference", "sessionId": "5d3c-one"},
    {"text": "We agreed to deploy on Fridays.", "category": "decision", "sessionKey": "agent:main:ops"},
    {"text": "Ada prefers tea over coffee.", "category": "preference"},
)
DAY = 86_400_000
FIRST = 1_767_225_600_000  # 2026-01-01


@pytest.fixture
def home(tmp_path: Path) -> Path:
    lamella("config", "set", "plugins.slots.memory", "memory-lancedb", home=tmp_path, check=True)
    return tmp_path


@pytest.fixture
def run(home: Path) -> Run:
    def run(*arguments: str | Path, check: bool = True, **more: Any) -> Ran:
        return lamella("ltm", *arguments, home=home, check=check, **more)

    return run


@pytest.fixture
def filled(run: Run, tmp_path: Path) -> Path:
    """An export of four memories, a day apart, which are in the table."""
    file = tmp_path / "four.jsonl"
    lines = [json.dumps({**kept, "createdAt": FIRST + DAY * n}) for n, kept in enumerate(KEPT)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run("import", file, "--json").json == {**place(tmp_path), "new": 4, "known": 0}
    return file


def place(home: Path) -> dict[str, str]:
    return {"agent": "main", "store": str(home / "agents" / "main" / "lancedb")}


def texts(ran: Ran) -> list[str]:
    return [memory["text"] for memory in ran.json["memories"]]


def test_list_has_pages_newest_first(run: Run, filled: Path, home: Path) -> None:
    every = [str(kept["text"]) for kept in reversed(KEPT)]
    assert texts(run("list", "--json")) == every
    page = run("list", "-n", "2", "--offset", "1", "--json")
    assert texts(page) == every[1:3]
    assert {k: v for k, v in page.json.items() if k != "memories"} == {**place(home), "total": 4, "offset": 1}
    shown = run("list", "-n", "2")
    assert "Ada prefers tea" in shown.out and "bluebird" not in shown.out
    assert f"4 memories, shown are 1 to 2: agent main, {place(home)['store']}" in shown.err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--category", "preference"), [3, 1]),
        (("--category", "preference", "--category", "fact"), [3, 1, 0]),
        (("--session", "agent:main:ops"), [2, 0]),
        (("--session", "5d3c"), [1]),
        (("--session", "x' OR '1' = '1"), []),
        (("--since", "2026-01-03T00:00:00+00:00"), [3, 2]),
        (("--since", "2026-01-02T12:00:00Z", "--category", "decision"), [2]),
    ],
)
def test_what_is_wanted_is_chosen_everywhere(
    run: Run, filled: Path, options: tuple[str, ...], expected: list[int]
) -> None:
    wanted = [str(KEPT[n]["text"]) for n in expected]
    assert texts(run("list", *options, "--json")) == wanted
    assert run("stats", *options, "--json").json["total"] == len(wanted)
    exported = [json.loads(line)["text"] for line in run("export", *options).out.splitlines()]
    assert exported == wanted[::-1]
    found = texts(run("search", "tea coffee server deploy 茶", *options, "--min-score", "0", "--json"))
    assert sorted(found) == sorted(wanted)
    assert sorted(texts(run("forget", "--all", *options, "--json"))) == sorted(wanted)


def test_a_selection_is_the_same_for_an_index(run: Run, filled: Path, home: Path) -> None:
    """A table too large to be in memory is asked by conditions, another one by masks."""
    from memories import memories_in

    memories = memories_in(home, embedder="none", index_rows=1000)
    some = (Selection(("preference",)), Selection(session="5d3c"), Selection(since=FIRST + 2 * DAY), Selection())
    for only in some:
        reader = evolve(memories.reader(), only=only)
        snapshot = memories.store._newest.current()
        assert snapshot is not None
        by_mask = {snapshot.memory(place).id for place, seen in enumerate(snapshot.visible(reader)) if seen}
        assert by_mask == {m.id for m in memories.page(0, 50, reader=reader)}


def test_search_shows_strength_likeness_and_where(run: Run, filled: Path) -> None:
    (best, *_) = run("search", "what is the staging server called", "--json").json["memories"]
    assert best["text"] == KEPT[0]["text"]
    assert best["strength"] >= best["score"] > 0
    assert run("search", "绿茶 咖啡", "-n", "1", "--json").json["memories"][0]["text"] == KEPT[1]["text"]
    nothing = run("search", "zeppelin", "--min-score", "1.2")
    assert nothing.out == "" and "0 memories" in nothing.err
    assert run("search", "  ", check=False).code == 2


# --- forgetting -----------------------------------------------------------------------------------------------


def test_forgetting_is_shown_first_and_then_done(run: Run, filled: Path, home: Path) -> None:
    name = run("search", "bluebird", "-n", "1", "--json").json["memories"][0]["id"]
    shown = run("forget", name[:8])
    assert "bluebird" in shown.out and "Nothing was changed; --yes does it." in shown.err
    assert len(texts(run("list", "--json"))) == 4
    done = run("forget", name[:8], name, "--yes", "--json").json
    assert (done["done"], done["count"], [m["id"] for m in done["memories"]]) == (True, 1, [name])
    assert "The staging server is called bluebird." not in texts(run("list", "--json"))
    assert run("stats", "--json").json["forgotten"] == 1
    assert not texts_on_disk(home / "agents", "bluebird")


def test_a_query_forgets_only_what_is_close(run: Run, filled: Path) -> None:
    vague = run("forget", "--query", "tea", "--min-score", "0.99", "--yes", "--json", check=False)
    assert (vague.code, vague.json["done"], vague.json["count"]) == (4, False, 0)
    assert "Ada prefers tea over coffee." in [other["text"] for other in vague.json["others"]]
    assert len(texts(run("list", "--json"))) == 4
    hint = run("forget", "--query", "tea", "--min-score", "0.99", check=False)
    assert "not close enough" in hint.err
    close = run("forget", "--query", "Ada prefers tea over coffee.", "--yes", "--json").json
    assert [m["text"] for m in close["memories"]] == ["Ada prefers tea over coffee."]
    assert len(texts(run("list", "--json"))) == 3


def test_all_can_be_forgotten(run: Run, filled: Path) -> None:
    run("forget", "--all", "--category", "preference", "--yes")
    assert texts(run("list", "--json")) == [KEPT[2]["text"], KEPT[0]["text"]]
    run("forget", "--all", "--yes")
    assert texts(run("list", "--json")) == []
    assert run("forget", "--all", "--yes", "--json").json["done"] is False


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "expected one of"),
        (("abcd", "--all"), 2, "expected one of"),
        (("abcdef12",), 4, "no memory has the id abcdef12"),
        (("../x",), 2, "is not a memory id"),
        (("--all", "--since", "soon"), 2, "--since 'soon'"),
    ],
)
def test_a_wrong_forget_changes_nothing(
    run: Run, filled: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ran = run("forget", *arguments, "--yes", check=False)
    assert ran.code == code and said in ran.err
    assert len(texts(run("list", "--json"))) == 4


# --- moving ---------------------------------------------------------------------------------------------------


def test_an_export_comes_back_with_its_times(run: Run, filled: Path, tmp_path: Path) -> None:
    before = run("export").out
    file = tmp_path / "out.jsonl"
    file.write_text("something old")
    told = run("export", "--output", file, "--json").json
    assert (told["count"], file.read_text(encoding="utf-8")) == (4, before)
    run("forget", "--all", "--yes")
    assert "4 memories stored, 0 known already" in run("import", "-", stdin=before).out
    assert run("import", file, "--json").json["known"] == 4
    after = [json.loads(line) for line in run("export").out.splitlines()]
    kept = [json.loads(line) for line in before.splitlines()]
    same = ("text", "category", "importance", "createdAt", "sessionKey", "sessionId")
    assert [[m[f] for f in same] for m in after] == [[m[f] for f in same] for m in kept]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nothing", "line 2: expected an object of JSON"),
        ('{"text": "x", "createdAt": "yesterday"}', "line 2: expected Unix milliseconds, as createdAt"),
        ('{"text": "x", "createdAt": true}', "line 2: expected Unix milliseconds, as createdAt"),
        (f'{{"text": "x", "createdAt": {2**62}}}', "line 2: expected Unix milliseconds, as createdAt"),
        ('{"text": ""}', "line 2: expected a text that is not empty"),
        ('{"text": "\u200b"}', "line 2: the text of a memory is empty"),
        (f'{{"text": "{"长" * 20_001}"}}', "line 2: a memory has 20001 characters, expected at most 20000"),
    ],
    ids=lambda value: value[:40],
)
def test_a_wrong_line_stores_nothing(run: Run, tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "wrong.jsonl"
    file.write_text(f'{{"text": "good"}}\n{line}\n')
    ran = run("import", file, check=False)
    assert ran.code == 2 and said in ran.err
    assert texts(run("list", "--json")) == []
    assert run("import", tmp_path / "gone.jsonl", check=False).code in (1, 2)


def test_vectors_are_made_anew_for_another_embedder(run: Run, filled: Path, home: Path) -> None:
    dimensions = run("stats", "--json").json["dimensions"]
    lamella("config", "set", "plugins.config.memory-lancedb.embedder", "none", home=home, check=True)
    none = run("reindex", check=False)
    assert none.code == 1 and "embedder is none" in none.err
    lamella("config", "set", "plugins.config.memory-lancedb.embedder", "static", home=home, check=True)
    made = run("reindex", "--json").json
    assert made["count"] == 4 and made["model"].startswith("static/")
    shown = run("stats").out
    assert "memories: 4 (decision 1, fact 1, preference 2)" in shown
    assert f"{dimensions} numbers each" in shown and "on disk: " in shown


# --- the slot -------------------------------------------------------------------------------------------------


def test_a_table_can_be_used_while_another_plugin_has_the_slot(run: Run, filled: Path, home: Path) -> None:
    lamella("config", "set", "plugins.slots.memory", "memory-core", home=home, check=True)
    listed = run("list", "--json")
    assert len(texts(listed)) == 4
    assert "plugins.slots.memory is 'memory-core', so agent main does not use these memories" in listed.err
    elsewhere = run("list", "--agent", "other", check=False)
    assert elsewhere.code == 4 and "agent other has no memories in" in elsewhere.err
    assert not (home / "agents" / "other" / "lancedb").exists()


def test_an_empty_memory_of_the_slot_is_no_error(run: Run) -> None:
    assert run("list", "--json").json["total"] == 0
    assert run("stats", "--json").json["bytes"] == 0
    assert run("export").out == ""
    assert run("reindex", "--json").json["count"] == 0
    assert run("forget", "--all", "--yes", "--json").json["count"] == 0


def test_wrong_settings_are_named(run: Run, home: Path) -> None:
    lamella("config", "set", "plugins.config.memory-lancedb.scope", "everyone", home=home)
    wrong = run("list", check=False)
    assert wrong.code == 2 and "plugins.config.memory-lancedb.scope" in wrong.err
