"""Every field that a command prints as JSON is in the reference."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest
from cli import EXAMPLE
from inside import lamella
from other_programs import openclaw
from pages import page, sections

from lamella.agent.preview import ActionName
from lamella.errors import Problem
from lamella.moving.report import Action, Kind
from lamella.sessions.status import SessionStatus
from lamella.types.entries import Damage
from lamella.types.memory import Degraded, FileProblem, MemoryWrite, WatchEvent

JSON = sections(page("json.md"))
IMPORT = "`lamella import --json`, `lamella export --json`"
# What below these is of other shapes: messages, settings, and facts of whoever answers.
OPEN = {"messages", "config", "value", "tree"}

Run = Callable[..., Any]


def fields(value: Any) -> Iterator[str]:
    """The names of all fields of a JSON value, those below open ones left out."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield name
            if name not in OPEN:
                yield from fields(below)
    elif isinstance(value, list):
        for item in value:
            yield from fields(item)


def undocumented(heading: str, *values: Any) -> set[str]:
    (text,) = (body for title, body in JSON.items() if f"`{heading} --json`" in title)
    return {name for value in values for name in fields(value) if f"`{name}`" not in text}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with one turn in it."""
    home = tmp_path_factory.mktemp("state")
    asked = ask(home)
    assert asked["error"] is None
    return home


def ask(home: Path, *more: str) -> Any:
    return lamella("ask", "When is the boiler serviced?", "--json", "--workspace", EXAMPLE, *more, home=home).json


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    def run(*arguments: str | Path) -> Any:
        return lamella(*arguments, "--json", "--workspace", EXAMPLE, home=home, check=True).json

    return run


def test_ask(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"error": "invalid api key"}]))
    failed = ask(home, "--model", f"scripted/{script}", "--key", "agent:main:failed")
    assert failed["error"] is not None
    assert undocumented("lamella ask", ask(home, "--new", "--key", "agent:main:other"), failed) == set()


def test_status_and_sessions_list(run: Run) -> None:
    status, listed = run("status"), run("sessions", "list")
    assert len(status[0]) > len(attrs.fields(SessionStatus)) - 1
    assert status[0].keys() == listed[0].keys()
    assert undocumented("lamella status", status, listed) == set()


def test_sessions_show_and_tree(run: Run) -> None:
    shown, tree = run("sessions", "show"), run("sessions", "tree")
    assert undocumented("lamella sessions show", shown) == set()
    assert undocumented("lamella sessions tree", tree, [dict.fromkeys(node) for node in tree["tree"]]) == set()


def test_sessions_put_aside_and_back(tmp_path: Path) -> None:
    workspace, state = tmp_path / "notes", tmp_path / "state"
    workspace.mkdir()
    common = ("--json", "--workspace", workspace)
    lamella("ask", "When is tea?", "--model", "offline", "--workspace", workspace, home=state, check=True)

    def sessions(*arguments: str) -> Any:
        return lamella("sessions", *arguments, *common, home=state, check=True).json

    assert undocumented("lamella sessions search", sessions("search", "tea")) == set()
    compacted = lamella("sessions", "compact", "agent:main:main", "--model", "offline", *common, home=state).json
    assert undocumented("lamella sessions compact", compacted) == set()
    done = sessions("archive", "agent:main:main", "--yes")
    assert done["steps"]
    assert undocumented("lamella sessions prune", done) == set()
    (archived,) = sessions("list", "--archived")
    assert undocumented("lamella sessions list --archived", archived) == set()
    assert undocumented("lamella sessions restore", sessions("restore", archived["file"], "--yes")) == set()
    assert undocumented("lamella sessions reset", sessions("reset", "agent:main:main", "--yes")) == set()


def test_context_of_a_file(home: Path, run: Run) -> None:
    file = run("status")[0]["transcript"]
    found = lamella("sessions", "context", file, "--json", home=home, check=True).json
    damage = Damage("torn_line", "...", 1, 2).to_json()
    assert undocumented("lamella sessions context FILE", found, damage) == set()


def test_context(run: Run) -> None:
    assert undocumented("lamella context", run("context", "--model", "offline")) == set()
    explained = run("context", "--model", "offline", "--explain")
    below = {"actions": [{"role": a["role"]} for a in explained["actions"]]}
    assert explained["actions"]
    assert undocumented("lamella context", {**explained, "remarks": [], **below}) == set()


def test_context_diff(home: Path, run: Run) -> None:
    for replaced in ("one prompt", "another prompt"):
        ask(home, "--key", "agent:main:diff", "--system", replaced)
    found = run("context", "--key", "agent:main:diff", "--diff", "1", "2")
    assert found["change"] is not None
    assert undocumented("lamella context --diff", found) == set()


def test_context_build_and_repair(home: Path, run: Run, tmp_path: Path) -> None:
    file = Path(run("status")[0]["transcript"])
    common = ("--provider", "strict", "--model", "m", "--json")
    built = lamella("context", "build", file, *common, "--window", "100000", home=home, check=True).json
    missing = lamella("context", "build", tmp_path / "no", *common, "--window", "1", home=home).json
    assert missing["error"]["code"] == "not_found"
    assert undocumented("lamella context build", built, missing) == set()
    names = ActionName.__args__  # type: ignore[attr-defined]
    assert not [n for n in names if f"`{n}`" not in JSON["`lamella context build --json`"]]
    messages = tmp_path / "messages.json"
    messages.write_text(json.dumps(built["messages"]))
    repaired = lamella("context", "repair", messages, *common, home=home, check=True).json
    assert undocumented("lamella context repair", repaired) == set()


def test_memory(run: Run) -> None:
    found = run("memory", "search", "boiler")
    assert found["results"]
    degraded = Degraded("...", "sqlite").to_json()
    assert undocumented("lamella memory search", found, degraded, [{"query": ""}]) == set()
    assert undocumented("lamella memory get", run("memory", "get", "MEMORY.md")) == set()
    problem = attrs.asdict(FileProblem("...", "..."))
    assert undocumented("lamella memory index", run("memory", "index"), problem) == set()
    assert undocumented("lamella memory status", run("memory", "status")) == set()
    assert undocumented("lamella memory add", MemoryWrite("...", 1, 1, 1).to_json()) == set()
    assert undocumented("lamella memory watch", WatchEvent("start", 1).to_json()) == set()


def test_memory_journal_and_recall(tmp_path: Path) -> None:
    workspace, state = tmp_path / "notes", tmp_path / "state"
    workspace.mkdir()
    common = ("--workspace", workspace)
    lamella("ask", "Remember that tea is at four.", "--model", "offline", *common, home=state, check=True)
    (written,) = lamella("memory", "log", "--json", *common, home=state, check=True).json
    assert written["hunks"]
    assert undocumented("lamella memory log", written) == set()
    why = lamella("memory", "why", f"{written['path']}:3", "--json", *common, home=state, check=True).json
    assert why["quotes"]
    assert undocumented("lamella memory why", why) == set()
    found = lamella("sessions", "recall", "agent:main:main", "tea", "--json", *common, home=state, check=True).json
    assert found["results"]
    assert undocumented("lamella sessions recall", found) == set()
    undone = lamella("memory", "undo", written["id"], "--json", *common, home=state, check=True).json
    assert undocumented("lamella memory undo", undone) == set()


def test_ltm(tmp_path: Path) -> None:
    def ltm(*arguments: str | Path) -> Any:
        return lamella("ltm", *arguments, "--json", home=tmp_path, check=True).json

    exported = tmp_path / "out.jsonl"
    exported.write_text('{"text": "Ada prefers tea"}\n')
    assert undocumented("lamella ltm import", ltm("import", exported)) == set()
    listed, found = ltm("list"), ltm("search", "tea")
    assert listed["memories"] and found["memories"]
    assert undocumented("lamella ltm list", listed, found) == set()
    assert undocumented("lamella ltm import", ltm("export", "--output", exported)) == set()
    forgotten = ltm("forget", "--query", "Ada prefers tea")
    assert len(forgotten.pop("memories")) == 1
    assert undocumented("lamella ltm forget", forgotten) == set()
    facts = ltm("stats")
    assert undocumented("lamella ltm stats", {**facts, "byCategory": {}, "bySource": {}}) == set()
    assert undocumented("lamella ltm reindex", ltm("reindex")) == set()


def test_plugins_and_config(run: Run, home: Path) -> None:
    assert undocumented("lamella plugins list", run("plugins", "list")) == set()
    assert undocumented("lamella plugins check", run("plugins", "check")) == set()
    assert undocumented("lamella config show", run("config", "show", "agent")) == set()
    broken = home / "broken.toml"
    broken.write_text("[agent]\nnane = 1\n")
    checked = lamella("config", "check", "--config", broken, "--json", home=home).json
    assert checked["problems"]
    assert len(checked["problems"][0]) == len(attrs.fields(Problem))
    assert undocumented("lamella config check", checked) == set()


def test_init(home: Path, tmp_path: Path) -> None:
    made = lamella("init", tmp_path / "notes", "--json", home=home, check=True).json
    assert undocumented("lamella init", made) == set()


def test_import_and_export(tmp_path: Path) -> None:
    imported = lamella("import", "openclaw", openclaw(tmp_path), "--json", home=tmp_path / "state", check=True).json
    assert undocumented("lamella import", imported) == set()
    assert not [kind for kind in (*get_args(Kind), *get_args(Action)) if f"`{kind}`" not in JSON[IMPORT]]
    exported = lamella("export", "openclaw", tmp_path / "out", "--json", home=tmp_path / "state", check=True).json
    assert undocumented("lamella export", exported) == set()


def test_doctor(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[agent]\nnane = 1\n")
    found = lamella("doctor", "--json", home=tmp_path).json
    assert found["findings"]
    assert undocumented("lamella doctor", found) == set()
