"""The command line, end to end: the main job, its doors, its exit codes, its manners."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builders import CASES, transcript, write_lines
from cli import EXAMPLE
from cli import lamella as spawned
from inside import lamella
from pi_golden import DATA

OFFLINE = ("--model", "offline")
HEAVY = ("sqlalchemy", "numpy", "rich", "pydantic_ai", "openai", "anthropic", "jsonschema", "tomlkit", "asyncio")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "ws"))


def script(tmp_path: Path, *steps: object) -> str:
    file = tmp_path / "script.json"
    file.write_text(json.dumps(list(steps)))
    return f"scripted/{file}"


# --- the main job ---------------------------------------------------------------------------------------


def test_index_ask_show(home: Path, workspace: Path) -> None:
    at = ("--workspace", workspace)
    index = spawned("memory", "index", *at, home=home, check=True)
    assert "13 files" in index.out
    asked = spawned("ask", "Which day is the boiler serviced?", *OFFLINE, *at, home=home, check=True)
    assert "memory/2026-10-12.md#L" in asked.out or "memory/2026-10-20.md#L" in asked.out
    assert "memory_search" in asked.err
    shown = spawned("sessions", "show", "agent:main:main", *at, home=home, check=True)
    assert "you> Which day is the boiler serviced?" in shown.out
    assert "memory_search" in shown.out


def test_questions_in_chinese_find_chinese_notes(home: Path, workspace: Path) -> None:
    asked = lamella("ask", "家长会是哪一天？", *OFFLINE, "--workspace", workspace, home=home, check=True)
    assert "memory/2026-11-02.md#L" in asked.out
    assert "十一月十九日" in asked.out


def test_what_is_remembered_is_found_again(home: Path, workspace: Path) -> None:
    at = ("--workspace", workspace)
    spawned("ask", "Remember that the attic key hangs behind the kitchen door.", *OFFLINE, *at, home=home, check=True)
    found = spawned("ask", "Where does the attic key hang?", *OFFLINE, "--new", *at, home=home, check=True)
    assert "behind the kitchen door" in found.out


def test_json_of_a_turn(home: Path, workspace: Path) -> None:
    asked = lamella("ask", "hello", *OFFLINE, "--json", "--workspace", workspace, home=home, check=True)
    assert asked.json["provider"] == "offline"
    assert asked.json["stopReason"] == "stop"
    assert asked.json["error"] is None
    status = lamella("status", "agent:main:main", "--json", home=home, check=True).json[0]
    assert status["sessionId"] == asked.json["sessionId"]
    assert status["windowTokens"] == 128_000
    assert status["share"] == pytest.approx(status["usedTokens"] / 128_000, abs=1e-4)
    assert status["level"] == "ok"


def test_piped_chat_runs_turns_and_commands(home: Path, workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "first answer"}, {"text": "second answer"})
    lines = "hello\n/status\n/nope\n/new again\n/quit\n"
    options = ("--model", model, "--workspace", workspace, "--no-plugin", "session-memory")  # it would ask for a name
    chat = lamella("chat", *options, home=home, stdin=lines, check=True)
    assert "first answer" in chat.out
    assert "second answer" in chat.out
    assert "usedTokens" in chat.out
    assert "unknown command /nope" in chat.err
    assert len(list((home / "agents/main/sessions").glob("*.jsonl*"))) == 2


# --- doors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["o11_compaction_single", "o16_v1_linear", "o31_usage_rules"])
def test_the_context_door(name: str, home: Path) -> None:
    golden = json.loads((DATA / "golden" / f"{name}.golden.json").read_text())["pi"]["0.58.0"]
    file = DATA / "sessions" / f"{name}.jsonl"
    found = lamella("sessions", "context", file, "--estimator", "pi", "--json", home=home, check=True).json
    assert found["model"] == golden["context"]["model"]
    assert found["thinkingLevel"] == golden["context"]["thinkingLevel"]
    assert [m["role"] for m in found["messages"]] == [m["role"] for m in golden["context"]["summary"]]
    assert found["messageTokens"] == golden["tokens"]
    assert found["estimator"] == "pi"


@pytest.mark.parametrize(
    ("file", "low", "high"),
    [("before", 61_000, 61_500), ("after_compaction", 1, 2_000), ("after_next_turn", 9_000, 9_300)],
)
def test_the_gauge_is_the_last_calls_and_never_a_sum(file: str, low: int, high: int, home: Path) -> None:
    found = lamella("sessions", "context", CASES / f"K06/{file}.jsonl", "--json", home=home, check=True).json
    assert low <= found["tokens"] <= high


def test_a_leaf_and_damage_are_reported(home: Path, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "s.jsonl", transcript(["one", "two"]))
    with path.open("ab") as file:
        file.write(b'{"type":"mess')
    found = lamella("sessions", "context", path, "--leaf", "m0", "--verify", "--json", home=home, check=True).json
    assert [m["content"] for m in found["messages"]] == ["one"]
    assert [d["code"] for d in found["damage"]] == ["torn_line"]
    missing = lamella("sessions", "context", path, "--leaf", "zz", home=home)
    assert (missing.code, missing.out) == (4, "")
    several = lamella("sessions", "context", path, "--leaf", "m", home=home)
    assert (several.code, several.out) == (2, "")
    assert "2 ids in" in several.err


def test_sessions_list_tree_export_resume(home: Path, workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "an answer"})
    at = ("--workspace", workspace)
    lamella("ask", "a question", "--model", model, *at, home=home, check=True)
    (row,) = lamella("sessions", "list", "--json", *at, home=home, check=True).json
    assert row["key"] == "agent:main:main"
    tree = lamella("sessions", "tree", "agent:main:main", "--json", *at, home=home, check=True).json
    assert [n["type"] for n in tree["tree"]] == ["model_change", "thinking_level_change", "message", "message"]
    exported = tmp_path / "out.jsonl"
    lamella("sessions", "export", "agent:main:main", "--format", "jsonl", "-o", exported, *at, home=home, check=True)
    again = lamella("sessions", "context", exported, "--json", home=home, check=True).json
    assert [m["role"] for m in again["messages"]] == ["user", "assistant"]
    twice = lamella("sessions", "export", "agent:main:main", "-o", exported, *at, home=home)
    assert twice.code == 2
    markdown = lamella("sessions", "export", "agent:main:main", *at, home=home, check=True)
    assert "## User\n\na question" in markdown.out
    assert lamella("sessions", "resume", "agent:main:nobody", *at, home=home).code == 4


def test_the_next_request_is_shown_section_by_section(home: Path, workspace: Path) -> None:
    found = lamella("context", *OFFLINE, "--workspace", workspace, "--json", home=home, check=True).json
    names = [s["name"] for s in found["sections"]]
    assert names[0] == "opening"
    assert "AGENTS.md" in names
    assert "memory_search" in [t["name"] for t in found["tools"]]
    assert found["tokens"] == sum(
        [*(s["tokens"] for s in found["sections"]), *(t["tokens"] for t in found["tools"]), found["history"]["tokens"]]
    )


def test_plugins_are_listed_and_checked(home: Path) -> None:
    found = lamella("plugins", "list", "--json", home=home, check=True).json
    states = {p["name"]: p for p in found["plugins"]}
    assert states["memory-core"]["state"] == "on"
    assert states["memory-core"]["slot"] == "memory"
    assert "open_memory" in states["memory-core"]["hooks"]
    assert states["workspace-files"]["builtin"] is True
    assert all(p["version"] for p in found["plugins"])
    shown = lamella("plugins", "list", home=home, check=True).out
    assert re.search(r"plugins\.config\.workspace-files\.total_max_chars +60000", shown)
    assert lamella("plugins", "check", home=home).code == 0
    lamella("config", "set", "plugins.slots.memory", "memory-coer", home=home, check=True)
    wrong = lamella("plugins", "check", "--json", home=home)
    assert wrong.code == 1
    assert "did you mean memory-core" in wrong.json["problems"][0]["message"]


def test_config_is_shown_set_and_checked(home: Path) -> None:
    lamella("config", "set", "compaction.reserve_tokens", "123", home=home, check=True)
    rows = lamella("config", "show", "compaction", "--json", home=home, check=True).json
    row = next(r for r in rows if r["key"] == "compaction.reserve_tokens")
    assert (row["value"], row["origin"]) == (123, str(home / "config.toml"))
    assert lamella("config", "check", home=home).code == 0
    with (home / "config.toml").open("a") as file:
        file.write('[agnet]\nname = "x"\n')
    checked = lamella("config", "check", "--json", home=home)
    assert checked.code == 2
    assert checked.json["problems"][0]["message"] == "unknown key (did you mean agent?)"
    assert checked.json["problems"][0]["level"] == "error"
    assert lamella("config", "check", home=home).err.count("unknown key") == 1
    assert lamella("sessions", "list", home=home).code == 0  # a run only warns
    refused = lamella("config", "set", "compaction.reserve_tokens", "many", home=home)
    assert refused.code == 2
    assert "expected a whole number" in refused.err
    negative = lamella("config", "set", "compaction.reserve_tokens", "-5", home=home)
    assert negative.code == 2
    assert "expected 0 or more, found -5" in negative.err


def test_config_check_reads_what_is_said_to_plugins(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text(
        '[plugins]\nallow = ["memory-cor"]\n[plugins.config.memory-core]\nmax_resluts = 5\n[plugins.config.ghost]\n'
    )
    checked = lamella("config", "check", "--json", home=home)
    assert checked.code == 2
    assert {(p["key"], p["level"]) for p in checked.json["problems"]} == {
        ("plugins.allow", "error"),
        ("plugins.config.ghost", "error"),
        ("plugins.config.memory-core.max_resluts", "error"),
    }


def test_a_backend_that_is_not_installed_is_said_with_its_command(home: Path, workspace: Path) -> None:
    lamella("config", "set", "memory.backend", "bm25", home=home, check=True)
    at = ("--workspace", workspace)
    asked = lamella("ask", "hello", *OFFLINE, *at, home=home, check=True)
    assert "pip install lamella-bm25-backend" in asked.err
    searched = lamella("memory", "search", "boiler", *at, home=home, check=True)
    assert "'bm25' is not installed (on offer: " in searched.out
    assert "(pip install lamella-bm25-backend" in searched.out
    assert "answered by sqlite" in searched.out
    checked = lamella("plugins", "check", home=home)
    assert checked.code == 1
    assert "pip install lamella-bm25-backend" in checked.err
    examined = lamella("doctor", "--json", *at, home=home)
    assert examined.code == 1
    assert "pip install lamella-bm25-backend" in examined.out
    memory = lamella("status", "--json", *at, home=home, check=True).json[0]["memory"]
    why = {"from": "bm25", "reason": "memory backend 'bm25' is not installed", "since": None, "retryAt": None}
    assert memory == {"slot": "memory-core", "backend": "bm25", "answers": "sqlite", "fallback": why}
    shown = lamella("status", "agent:main:main", *at, home=home, check=True).out
    assert "backend bm25, answers sqlite, fallback memory backend 'bm25' is not installed\n" in shown


def test_without_a_fallback_a_backend_that_is_not_installed_answers_nothing(home: Path, workspace: Path) -> None:
    lamella("config", "set", "memory.backend", "bm25", home=home, check=True)
    lamella("config", "set", "plugins.config.memory-core.fallback", "none", home=home, check=True)
    at = ("--workspace", workspace)
    asked = lamella("ask", "hello", *OFFLINE, *at, home=home, check=True)
    assert "pip install lamella-bm25-backend" in asked.err
    searched = lamella("memory", "search", "boiler", *at, home=home)
    assert searched.code == 3
    assert "'bm25' is not installed (on offer: " in searched.err
    assert "pip install lamella-bm25-backend" in searched.err
    assert lamella("plugins", "check", home=home).code == 1
    memory = lamella("status", "--json", *at, home=home, check=True).json[0]["memory"]
    assert memory == {"slot": "memory-core", "backend": "bm25", "answers": None, "fallback": None}


def test_status_says_who_answers_searches(home: Path, workspace: Path) -> None:
    lamella("ask", "hello", *OFFLINE, "--workspace", workspace, home=home, check=True)
    for plugin, answers in (("embedders", "sqlite"), ("memory-core", None)):
        for command in ("status", "sessions list"):
            (found,) = lamella(*command.split(), "--json", "--no-plugin", plugin, home=home, check=True).json
            assert found["memory"] == {"slot": "memory-core", "backend": "sqlite", "answers": answers, "fallback": None}
    shown = lamella("status", "agent:main:main", home=home, check=True).out
    assert "memory: slot memory-core, backend sqlite, answers sqlite" in shown
    assert re.search(r"updatedAt: \d{4}-\d\d-\d\d \d\d:\d\d\n", shown)


def test_what_status_cannot_show_is_told(home: Path, workspace: Path) -> None:
    folder = home / "agents/main/sessions"
    folder.mkdir(parents=True)
    shutil.copy(CASES / "K06/before.jsonl", folder / "sess_gauge.jsonl")
    entries = {
        "agent:main:main": {"sessionId": "sess_gauge", "updatedAt": 1, "totalTokens": 61150},
        "agent:main:away": {"sessionId": "x", "sessionFile": "../outside.jsonl", "updatedAt": 1},
        "agent:main:odd": 3,
    }
    (folder / "sessions.json").write_text(json.dumps(entries))
    for command in (["status"], ["sessions", "list"]):
        shown = lamella(*command, "--json", home=home, check=True)
        assert [row["key"] for row in shown.json] == ["agent:main:main"]
        assert "agent:main:away is left out: sessionFile '../outside.jsonl' leads outside" in shown.err
        assert "entry 'agent:main:odd' is not an object" in shown.err
    lamella("ask", "hello", *OFFLINE, "--workspace", workspace, home=home, check=True)
    (row,) = lamella("status", "agent:main:main", "--json", home=home, check=True).json
    lines = (folder / "sess_gauge.jsonl").read_text().splitlines()
    assert row["transcriptEntries"] == len(lines) - 1  # those of before are counted too


def test_a_verbose_turn_is_logged_without_its_texts(home: Path, workspace: Path) -> None:
    asked = lamella(
        "ask", "Where is the boiler?", *OFFLINE, "-v", "-q", "--workspace", workspace, home=home, check=True
    )
    logged = (home / "logs/lamella.log").read_text()
    for text in (asked.err, logged):
        assert "agent:main:main: tool memory_search is done" in text
        assert "agent:main:main: reply of offline/rules: stop" in text
    assert "Where is the boiler" not in logged


def test_completion_for_a_shell(home: Path) -> None:
    script = spawned(home=home, _LAMELLA_COMPLETE="bash_source")
    assert "complete" in script.out
    offered = spawned(home=home, _LAMELLA_COMPLETE="bash_complete", COMP_WORDS="lamella sessions ", COMP_CWORD="2")
    assert "plain,tree" in offered.out.split()


def test_init_never_overwrites(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "new"
    target.mkdir()
    (target / "SOUL.md").write_text("mine")
    made = lamella("init", target, "--json", home=home, check=True).json
    assert made["kept"] == ["SOUL.md"]
    assert "AGENTS.md" in made["made"]
    assert (target / "SOUL.md").read_text() == "mine"


# --- memory ----------------------------------------------------------------------------------------------


def test_index_says_what_happened(home: Path, tmp_path: Path) -> None:
    missing = lamella("memory", "index", "--workspace", tmp_path / "none", home=home)
    assert missing.code == 2
    assert str(tmp_path / "none") in missing.err
    empty = Path(shutil.copytree(CASES / "K137/empty", tmp_path / "empty"))
    nothing = lamella("memory", "index", "--workspace", empty, home=home, check=True)
    assert "nothing to index" in nothing.out
    assert str(empty) in nothing.out
    assert not (empty / "memory").exists()
    three = Path(shutil.copytree(CASES / "K137/three", tmp_path / "three"))
    (three / "memory/bad.md").unlink()
    (three / "memory/bad.md").mkdir()
    partial = lamella("memory", "index", "--workspace", three, "--agent", "other", home=home)
    assert partial.code == 1
    assert "2 indexed" in partial.out
    assert "bad.md" in partial.err
    again = lamella("memory", "index", "--workspace", three, "--agent", "other", "--json", home=home).json
    assert (again["added"], again["updated"], again["unchanged"]) == (0, 0, 2)


def test_memory_add_get_search(home: Path, workspace: Path) -> None:
    at = ("--workspace", workspace)
    added = spawned("memory", "add", "The spare fuse box key is with Amira.", "--json", *at, home=home, check=True).json
    got = spawned("memory", "get", added["path"], "--json", *at, home=home, check=True).json
    assert "spare fuse box key" in got["text"]
    found = spawned("memory", "search", "spare fuse box", "--json", *at, home=home, check=True).json
    assert found["results"][0]["path"] == added["path"]
    batch = spawned("memory", "search", "--batch", *at, home=home, stdin="boiler\n榛子\n", check=True)
    rows = [json.loads(line) for line in batch.out.splitlines()]
    assert [r["query"] for r in rows] == ["boiler", "榛子"]
    assert all(r["results"] for r in rows)
    for odd in (["--batch", "boiler"], ["--min-score", "nan", "boiler"], [" "]):
        assert spawned("memory", "search", *odd, *at, home=home, stdin="boiler\n").code == 2
    assert spawned("memory", "get", "memory/none.md", *at, home=home).code == 4
    outside = spawned("memory", "get", "../secret.md", *at, home=home)
    assert outside.code == 1
    assert outside.out == ""


def test_the_default_workspace_is_made_and_another_must_exist(home: Path, tmp_path: Path) -> None:
    lamella("ask", "Remember that the key is under the mat.", *OFFLINE, home=home, check=True)
    found = lamella("ask", "Where is the key?", *OFFLINE, "--new", home=home, check=True)
    assert "under the mat" in found.out
    assert list((home / "workspace/memory").glob("*.md"))
    wrong = lamella("ask", "hi", *OFFLINE, "--workspace", tmp_path / "none", home=home)
    assert wrong.code == 2
    assert str(tmp_path / "none") in wrong.err
    assert not (tmp_path / "none").exists()


def test_without_a_memory_plugin_a_turn_works_and_says_so(home: Path, workspace: Path) -> None:
    asked = lamella("ask", "hello", *OFFLINE, "--workspace", workspace, home=home, LAMELLA_PLUGINS="")
    assert asked.code == 0
    assert "pip install lamella-memory-core" in asked.err
    searched = lamella("memory", "search", "x", "--workspace", workspace, home=home, LAMELLA_PLUGINS="")
    assert searched.code == 3


# --- manners ---------------------------------------------------------------------------------------------


def test_help_and_version_import_nothing_heavy(home: Path) -> None:
    code = (
        "import sys\nfrom lamella.cli.main import main\n"
        "for a in (['--help'], ['--version']):\n    main(a)\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")
    assert "Commands:" in done.stdout


@pytest.mark.parametrize(
    "command", ["ask", "chat", "config show", "context", "init", "memory search", "plugins list", "sessions context"]
)
def test_every_command_has_help(command: str, home: Path) -> None:
    shown = lamella(*command.split(), "--help", home=home, check=True)
    assert "Usage: lamella" in shown.out


def test_noise_of_plugins_stays_off_stdout(home: Path, tmp_path: Path) -> None:
    package = tmp_path / "site"
    (package / "noisy-1.0.dist-info").mkdir(parents=True)
    (package / "noisy-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 1.0\n")
    (package / "noisy-1.0.dist-info/entry_points.txt").write_text("[lamella.plugins]\nnoisy = noisy_plugin\n")
    shutil.copy(CASES / "K134/noisy_plugin.py", package / "noisy_plugin.py")
    at = ("--workspace", CASES / "K134/ws")
    path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    plain = {"PYTHONPATH": path, "LC_ALL": "C", "PYTHONUTF8": "0"}
    for command in (["memory", "index"], ["memory", "search", "花房"], ["memory", "status"], ["plugins", "list"]):
        ran = spawned(*command, "--json", *at, home=home, check=True, **plain)
        json.loads(ran.out)
    listed = spawned("plugins", "list", "--json", home=home, check=True, **plain)
    assert "noisy" in [p["name"] for p in listed.json["plugins"]]
    assert "hello from import" in listed.err


def test_a_reader_that_goes_away_is_no_error(home: Path, workspace: Path) -> None:
    code = f"{sys.executable} -m lamella memory search boiler --workspace {workspace} | head -c 1"
    done = subprocess.run(
        ["bash", "-c", code], capture_output=True, text=True, env={**os.environ, "LAMELLA_HOME": str(home)}
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["ask", "hi", "--model", "nonsense/x"], 2),
        (["ask", "  "], 2),
        (["ask", "hi", "--key", "not a key"], 2),
        (["ask", "hi", "--key", "agent:other:main"], 2),
        (["ask", "hi", "--agent", "No Good"], 2),
        (["ask", "hi", "--image", "nothing.txt"], 2),
        (["sessions", "show", "agent:main:none"], 4),
        (["sessions", "show", "nothing.jsonl"], 4),
        (["status", "agent:main:none"], 4),
        (["memory", "search"], 2),
        (["memory", "search", "-x"], 2),
        (["config", "show", "--config", "/nonexistent/c.toml"], 2),
        (["nonsense"], 2),
    ],
)
def test_mistakes_are_said_in_a_line(arguments: list[str], code: int, home: Path, workspace: Path) -> None:
    extra = ["--workspace", str(workspace)] if arguments[0] in ("ask", "memory") else []
    ran = lamella(*arguments, *extra, home=home)
    assert ran.code == code, ran.err
    assert ran.err.strip()
    assert ran.out == ""


def test_a_query_with_a_dash_works_behind_two_dashes(home: Path, workspace: Path) -> None:
    ran = lamella("memory", "search", "--workspace", workspace, "--json", "--", "-boiler", home=home, check=True)
    assert ran.json["results"]


def test_a_failing_model_has_its_exit_code(home: Path, workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"error": "invalid api key"})
    ran = lamella("ask", "hi", "--model", model, "--workspace", workspace, home=home)
    assert ran.code == 6
    assert "invalid api key" in ran.err


def test_a_time_limit_interrupts(home: Path, workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "late", "delayMs": 20_000})
    ran = lamella("ask", "hi", "--model", model, "--timeout", "0.3", "--workspace", workspace, home=home)
    assert ran.code == 130


# --- the next request, for other programs ------------------------------------------------------------------


def test_context_build_tells_what_became_of_each_message(home: Path) -> None:
    files = [DATA / "sessions" / f"{n}.jsonl" for n in ("o11_compaction_single", "o27_errors_and_aborts")]
    ran = lamella(
        *("context", "build", *files, "--provider", "openai-chat", "--model", "m", "--window", "100000"),
        *("--prompt", "and now?", "--estimator", "pi", "--json"),
        home=home,
        check=True,
    )
    compacted, failed = (json.loads(line) for line in ran.out.splitlines())
    assert compacted["error"] is None
    assert compacted["messages"][-1]["content"] == [{"type": "text", "text": "and now?"}]
    assert [a["action"] for a in compacted["actions"]] == ["kept"] * 6
    assert compacted["actions"][-1]["entryId"] is None
    rules = {a["rule"] for a in failed["actions"] if a["action"] == "dropped"}
    assert rules == {"failed_reply"}
    assert failed["tokens"] == sum(a["tokensAfter"] for a in failed["actions"])


def test_context_build_reports_each_file_and_the_window(home: Path, tmp_path: Path) -> None:
    good = write_lines(tmp_path / "s.jsonl", transcript(["x" * 400]))
    ran = lamella(
        *("context", "build", good, tmp_path / "none.jsonl", "--provider", "lenient", "--model", "m"),
        *("--window", "10", "--json"),
        home=home,
    )
    assert ran.code == 1
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [r["error"]["code"] for r in rows] == ["context_overflow", "not_found"]
    wrong = lamella("context", "build", good, "--provider", "x", "--model", "m", "--window", "10", home=home)
    assert wrong.code == 2


def test_context_repair_mends_bare_messages(home: Path, tmp_path: Path) -> None:
    ran = lamella(
        "context", "repair", CASES / "K26/messages.json", "--provider", "strict", "--json", home=home, check=True
    )
    (message,) = ran.json["messages"]
    text = "\n".join(b["text"] for b in message["content"] if b["type"] == "text")
    order = [text.index(part) for part in ("compare the three quotes", "\n?", "\nphoto of quote two:")]
    assert order == sorted(order)
    assert [b["type"] for b in message["content"]] == ["text", "image"]
    (tmp_path / "x.json").write_text("{}")
    assert lamella("context", "repair", tmp_path / "x.json", "--provider", "strict", home=home).code == 2
