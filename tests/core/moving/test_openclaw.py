"""`lamella import openclaw`: what is taken over and how, again and again, from folders that are hostile too."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from inside import lamella
from other_programs import OPENCLAW_2026_9, entry, openclaw, say, session, snapshot, write
from pages import page, rows, sections

from lamella.moving.openclaw_rules import RULES
from lamella.moving.openclaw_settings import convert_settings


def moved(home: Path, folder: Path, *more: str) -> dict[str, Any]:
    return dict(lamella("import", "openclaw", folder, "--json", *more, home=home, check=True).json)


def items(report: dict[str, Any], **wanted: str) -> list[dict[str, str]]:
    return [i for i in report["items"] if all(i[name] == value for name, value in wanted.items())]


def config(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))


def index(home: Path, agent: str = "main") -> dict[str, Any]:
    return dict(json.loads((home / "agents" / agent / "sessions" / "sessions.json").read_bytes()))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return openclaw(tmp_path)


def test_a_dry_run_tells_the_same_and_does_nothing(home: Path, folder: Path) -> None:
    told = moved(home, folder, "--dry-run")
    assert not home.exists()
    assert told["dryRun"]
    done = moved(home, folder)
    assert done["items"] == told["items"]


def test_all_of_it_arrives_and_the_source_stays_as_it_was(home: Path, folder: Path) -> None:
    before = snapshot(folder)
    moved(home, folder)
    assert snapshot(folder) == before
    sessions = Path("agents/main/sessions")
    for name in ("one.jsonl", "two.jsonl", "old.jsonl.reset.2026-03-16T09-30-00.000Z"):
        assert (home / sessions / name).read_bytes() == (folder / sessions / name).read_bytes()
    assert "锅炉" in (home / "workspace" / "MEMORY.md").read_text(encoding="utf-8")
    assert not (home / "workspace" / "node_modules").exists()
    assert index(home)["agent:main:main"]["compactionCount"] == 2
    assert index(home)["agent:main:telegram:group:-100"]["chatType"] == "group"
    assert index(home, "work-bot").keys() == {"agent:work-bot:main"}


def test_a_session_goes_on_here(home: Path, folder: Path) -> None:
    moved(home, folder)
    asked = lamella("ask", "And now?", "--model", "offline", "--json", home=home, check=True).json
    assert asked["sessionId"] == "one"
    shown = lamella("sessions", "show", "--json", home=home, check=True).json["messages"]
    assert [m["role"] for m in shown[:4]] == ["user", "user", "user", "assistant"]


def test_a_second_run_changes_nothing(home: Path, folder: Path) -> None:
    moved(home, folder)
    before = snapshot(home)
    again = moved(home, folder)
    assert again["changes"] == 0
    assert snapshot(home) == before


def test_what_has_grown_there_goes_on_here(home: Path, folder: Path) -> None:
    moved(home, folder)
    file = folder / "agents/main/sessions/one.jsonl"
    say(file, "later")
    store = file.with_name("sessions.json")
    entries = json.loads(store.read_text())
    entries["agent:main:main"].update(updatedAt=9_000, compactionCount=3)
    store.write_text(json.dumps(entries))
    write(folder / "workspace/memory/2026-05-10.md", "- tea at four\n- cake at five\n")
    report = moved(home, folder)
    assert {i["kind"] for i in items(report, action="grow")} == {"transcript", "session", "workspace"}
    assert (home / "agents/main/sessions/one.jsonl").read_bytes() == file.read_bytes()
    assert index(home)["agent:main:main"]["compactionCount"] == 3


def test_what_went_on_here_stays(home: Path, folder: Path) -> None:
    moved(home, folder)
    lamella("ask", "And now?", "--model", "offline", home=home, check=True)
    write(home / "workspace/AGENTS.md", "# My rules\n")
    say(folder / "agents/main/sessions/one.jsonl", "there too")
    before = snapshot(home)
    report = moved(home, folder)
    assert report["changes"] == 0
    assert {i["kind"] for i in items(report, action="kept")} == {"transcript", "session", "workspace"}
    assert snapshot(home) == before


def test_a_key_follows_its_session_unless_it_is_taken(home: Path, folder: Path) -> None:
    moved(home, folder)
    sessions = folder / "agents/main/sessions"
    session(sessions, "new", ["after a reset"])
    entries = json.loads((sessions / "sessions.json").read_text())
    entries["agent:main:main"] = entry("new", 9_000)
    (sessions / "sessions.json").write_text(json.dumps(entries))
    moved(home, folder)
    assert index(home)["agent:main:main"]["sessionId"] == "new"

    other = home.with_name("other")
    lamella("ask", "Mine.", "--model", "offline", home=other, check=True)
    (report,) = items(moved(other, folder), source="agent:main:main", kind="session")
    assert report["target"] == "agent:main:openclaw-new"
    assert index(other)["agent:main:main"]["sessionId"] != "new"
    assert moved(other, folder)["changes"] == 0


def test_settings_of_2026_3(home: Path, folder: Path) -> None:
    report = moved(home, folder)
    assert config(home) == {
        "agent": {"model": "anthropic/claude-sonnet-5-5", "timezone": "Europe/Berlin", "name": "Ada"},
        "context": {"window": 120000},
        "compaction": {"reserve_tokens": 12000, "flush_soft_tokens": 3000},
        "plugins": {
            "config": {
                "context-pruning": {"mode": "cache-ttl", "ttl": "5m", "soft_trim": {"max_chars": 5000}},
                "history-limit": {"channels": {"telegram": {"group": 20, "users": {"user.1": 5}}}},
                "memory-core": {"embedder": "openai", "max_results": 8, "mmr_lambda": 0.7},
            }
        },
        "models": {
            "providers": {
                "local": {
                    "base_url": "http://localhost:8080/v1",
                    "api_key_env": "LOCAL_KEY",
                    "api": "openai-chat",
                    "models": {"qwen": {"context_window": 32768, "max_output": 4096}},
                }
            }
        },
    }
    assert {i["source"] for i in items(report, kind="setting", action="left_out")} == {
        "agents.defaults.model.fallbacks",
        "agents.list.work-bot.model",
        "agents.defaults.memorySearch.remote.apiKey",
        "channels.telegram.botToken",
        "gateway.port",
    }
    told = json.dumps(report) + (home / "config.toml").read_text()
    assert "sk-not-to-be-copied" not in told
    assert "123:abc" not in told
    assert lamella("config", "check", home=home).code == 0


def test_g41_minutes_alone_are_a_policy(home: Path, tmp_path: Path) -> None:
    moved(home, openclaw(tmp_path, json.dumps({"session": {"idleMinutes": 30}})))
    assert config(home) == {"session": {"reset": {"mode": "idle", "idle_minutes": 30}}}


def test_settings_of_sessions(home: Path, tmp_path: Path) -> None:
    session_settings = {
        "reset": {"mode": "idle", "idleMinutes": 45},
        "resetByType": {"group": {"mode": "daily", "atHour": 5}},
        "resetByChannel": {"telegram": {"mode": "none"}},
        "dmScope": "per-peer",
        "identityLinks": {"alice": ["telegram:42"]},
        "maintenance": {"pruneAfter": 14, "resetArchiveRetention": False, "maxDiskBytes": "1gb", "rotateBytes": 1000},
        "mainKey": "home",
    }
    folder = openclaw(tmp_path, json.dumps({"session": session_settings}))
    report = moved(home, folder)
    assert config(home) == {
        "session": {
            "reset": {"mode": "idle", "idle_minutes": 45},
            "reset_by_type": {"group": {"mode": "daily", "at_hour": 5}},
            "reset_by_channel": {"telegram": {"mode": "none"}},
            "dm_scope": "per-peer",
            "identity_links": {"alice": ["telegram:42"]},
            "maintenance": {
                "prune_after": "14d",
                "reset_archive_retention": "never",
                "max_disk_bytes": "1gb",
                "rotate_bytes": "1000",
            },
        }
    }
    assert {i["source"] for i in items(report, kind="setting", action="left_out")} == {"session.mainKey"}
    assert lamella("config", "check", home=home).code == 0


def test_settings_of_2026_9(home: Path, tmp_path: Path) -> None:
    folder = openclaw(tmp_path, OPENCLAW_2026_9)
    write(folder / "agents/main/agent/openclaw-agent.sqlite", "")
    report = moved(home, folder)
    assert config(home) == {
        "context": {"window": 90000},
        "memory": {"backend": "sqlite"},
        "plugins": {"config": {"memory-core": {"embedder": "none", "max_results": 4}}},
        "agents": {"helper": {"name": "Helper", "model": "openai/gpt-6.1-terra"}},
    }
    (database,) = items(report, kind="other")
    assert "database" in database["reason"]


def test_what_is_set_here_stays(home: Path, folder: Path) -> None:
    write(home / "config.toml", '# mine\n[agent]\nmodel = "offline"\n')
    report = moved(home, folder)
    assert config(home)["agent"] == {"model": "offline", "timezone": "Europe/Berlin", "name": "Ada"}
    assert (home / "config.toml").read_text().startswith("# mine")
    (kept,) = items(report, kind="setting", action="kept")
    assert kept["reason"] == 'is "offline" here, "anthropic/claude-sonnet-5-5" there'


def test_a_value_that_would_be_wrong_here_is_left_out(home: Path, tmp_path: Path) -> None:
    folder = openclaw(tmp_path, '{agents: {defaults: {userTimezone: "Mars/Olympus", contextTokens: "many"}}}')
    left = items(moved(home, folder), kind="setting", action="left_out")
    assert {i["source"] for i in left} == {"agents.defaults.userTimezone", "agents.defaults.contextTokens"}
    assert not (home / "config.toml").exists()


def test_in_place_works_in_the_folder_itself(home: Path, folder: Path) -> None:
    ran = lamella("import", "openclaw", folder, "--in-place", home=home, check=True)
    assert f"Turns append to the files in {folder}" in ran.err
    asked = lamella("ask", "And now?", "--model", "offline", "--json", home=home, check=True).json
    assert asked["sessionId"] == "one"
    file = folder / "agents/main/sessions/one.jsonl"
    assert "And now?" in file.read_text(encoding="utf-8")
    assert json.loads(file.with_name("sessions.json").read_text())["agent:main:main"]["compactionCount"] == 2
    assert config(home)["agent"]["workspace"] == str(folder / "workspace")
    again = lamella("import", "openclaw", folder, "--in-place", "--json", home=home, check=True).json
    assert again["changes"] == 0
    assert again["inPlace"]


def test_in_place_is_refused_where_sessions_are_set_elsewhere(home: Path, folder: Path) -> None:
    write(home / "config.toml", '[session]\nstore = "/elsewhere"\n')
    ran = lamella("import", "openclaw", folder, "--in-place", home=home)
    assert ran.code == 2
    assert "/elsewhere" in ran.err
    assert "config unset session.store" in ran.err
    assert config(home) == {"session": {"store": "/elsewhere"}}


def test_in_place_does_not_lead_out_of_the_folder_unless_told_so(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere/AGENTS.md", "# Elsewhere\n")
    folder = openclaw(tmp_path, json.dumps({"agents": {"defaults": {"workspace": str(tmp_path / "elsewhere")}}}))
    ran = lamella("import", "openclaw", folder, "--in-place", home=home)
    assert (ran.code, "lies outside" in ran.err, home.exists()) == (2, True, False)
    lamella("import", "openclaw", folder, "--in-place", "--follow", home=home, check=True)
    assert config(home)["agent"]["workspace"] == str(tmp_path / "elsewhere")


# --- hostile folders ------------------------------------------------------------------------------------------


def test_values_and_names_that_toml_has_not(home: Path, tmp_path: Path) -> None:
    channels = {
        "line\nfeed": {"historyLimit": 5},
        "": {"historyLimit": 6},
        "微信": {"historyLimit": 7},
        "a.b": {"historyLimit": 8},
    }
    search = {"extraPaths": ["notes", None], "query": {"maxResults": None}}
    folder = openclaw(tmp_path, json.dumps({"channels": channels, "memory": {"search": search}}))
    left = items(moved(home, folder), kind="setting", action="left_out")
    assert {i["source"] for i in left} == {"memory.search.extraPaths"}  # null means not set
    limits = config(home)["plugins"]["config"]["history-limit"]["channels"]
    assert {name: limit["group"] for name, limit in limits.items()} == {"line\nfeed": 5, "": 6, "微信": 7, "a.b": 8}


def test_large_and_deep_things(home: Path, folder: Path) -> None:
    file = folder / "agents/main/sessions/one.jsonl"
    say(file, "锅" * 2_000_000)
    deep = folder / "workspace" / Path(*["d"] * 400)
    write(deep / "note.md", "deep\n")
    moved(home, folder)
    assert (home / "agents/main/sessions/one.jsonl").read_bytes() == file.read_bytes()
    assert (home / "workspace" / Path(*["d"] * 400) / "note.md").read_text() == "deep\n"
    assert moved(home, folder)["changes"] == 0


def test_two_files_for_one_place(home: Path, folder: Path) -> None:
    """A pointer to another agent's file, whose name is taken in the session's own folder."""
    other = session(folder / "agents/Work Bot/sessions", "one", ["of the other agent"])
    write(
        folder / "agents/main/sessions/sessions.json",
        json.dumps(
            {
                "agent:main:main": entry("one", 1),
                "agent:main:other": {**entry("one", 1), "sessionFile": str(other)},
            }
        ),
    )
    (left,) = items(moved(home, folder), kind="transcript", action="left_out")
    assert (left["source"], "the same place" in left["reason"]) == (str(other), True)
    assert index(home).keys() == {"agent:main:main"}
    own = folder / "agents/main/sessions/one.jsonl"
    assert (home / "agents/main/sessions/one.jsonl").read_bytes() == own.read_bytes()


def test_a_move_that_was_cut_off_goes_on(home: Path, folder: Path) -> None:
    moved(home, folder)
    done = snapshot(home)
    (home / "config.toml").unlink()
    (home / "agents/main/sessions/sessions.json").unlink()
    (home / "agents/main/sessions/sessions.json.bak").unlink()
    half = home / "agents/main/sessions/one.jsonl"
    half.write_bytes(half.read_bytes()[:50])
    (home / "workspace/MEMORY.md").unlink()
    moved(home, folder)
    assert {name: digest for name, (digest, _) in snapshot(home).items()} == {n: d for n, (d, _) in done.items()}


def test_links_and_pipes_are_left_out(home: Path, folder: Path, tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.jsonl", '{"type":"session","id":"s"}\n{"type":"x","id":"1"}\n')
    sessions = folder / "agents/main/sessions"
    (sessions / "link.jsonl").symlink_to(secret)
    (folder / "workspace/link.md").symlink_to(secret)
    (folder / "workspace/outside").symlink_to(tmp_path)
    (folder / "agents/elsewhere").symlink_to(tmp_path)
    os.mkfifo(folder / "workspace/pipe")
    report = moved(home, folder)
    left = {Path(i["source"]).name: i["reason"] for i in items(report, action="left_out") if i["kind"] != "setting"}
    assert left == {
        "link.jsonl": "is a symbolic link",
        "link.md": "is a symbolic link",
        "outside": "is a symbolic link",
        "pipe": "is not a regular file",
    }
    assert not [p for p in home.rglob("*") if p.is_file() and b'"id":"s"' in p.read_bytes()]


def test_pointers_that_lead_elsewhere_are_not_followed(home: Path, folder: Path, tmp_path: Path) -> None:
    sessions = folder / "agents/main/sessions"
    write(tmp_path / "x.jsonl", '{"type":"session","id":"x"}\n')
    entries = {
        "agent:main:escape": {**entry("one", 5), "sessionFile": "../../../../x.jsonl"},
        "agent:main:moved": {**entry("two", 5), "sessionFile": "/old/place/two.jsonl"},
        "agent:main:sibling": {
            **entry("three", 5),
            "sessionFile": str(folder / "agents/Work Bot/sessions/three.jsonl"),
        },
        "agent:main:bad-id": {**entry("../one", 5)},
        "agent:main:nul": {**entry("gone", 5), "sessionFile": "a\0.jsonl"},
        "agent:": entry("one", 5),
    }
    write(sessions / "sessions.json", json.dumps(entries))
    report = moved(home, folder)
    assert {k: v["sessionFile"] for k, v in index(home).items()} == {
        "agent:main:escape": "one.jsonl",
        "agent:main:moved": "two.jsonl",
        "agent:main:sibling": "three.jsonl",
    }
    left = {i["source"] for i in items(report, kind="session", action="left_out")}
    assert left == {"agent:main:bad-id", "agent:main:nul", "agent:"}


def test_damage_is_told_and_costs_nothing_else(home: Path, folder: Path) -> None:
    sessions = folder / "agents/main/sessions"
    (sessions / "one.jsonl").write_bytes(
        (sessions / "one.jsonl").read_bytes() + b'\x00\x00{"broken\n\xff\xfe\n{"type":'
    )
    write(sessions / "prose.jsonl", "not a transcript\n")
    write(sessions / "sessions.json", '{"agent:main:main": {"sessionId"')
    report = moved(home, folder)
    assert (home / "agents/main/sessions/one.jsonl").read_bytes() == (sessions / "one.jsonl").read_bytes()
    reasons = {Path(i["source"]).name: i["reason"] for i in items(report, action="left_out")}
    assert "not valid JSON" in reasons["sessions.json"]
    assert "no line in it is a session entry" in reasons["prose.jsonl"]
    assert {e["sessionId"] for e in index(home).values()} == {"one", "two"}


def test_a_workspace_outside_is_taken_over_when_the_user_says_so(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere/AGENTS.md", "# Elsewhere\n")
    configured = json.dumps({"agents": {"defaults": {"workspace": str(tmp_path / "elsewhere")}}})
    folder = openclaw(tmp_path, configured)
    (left,) = items(moved(home, folder), kind="workspace")
    assert "--follow" in left["reason"]
    moved(home, folder, "--follow")
    assert (home / "workspace/AGENTS.md").read_text() == "# Elsewhere\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{agents: }", "is not valid JSON5: line 1 Unexpected"),
        ("[1]", "expected an object, found list"),
        ("[" * 100_000, "is n"),
        (" " * 2_000_000, "at most 1048576 bytes"),
    ],
)
def test_a_broken_openclaw_json_is_named(home: Path, tmp_path: Path, content: str, told: str) -> None:
    folder = openclaw(tmp_path, content)
    ran = lamella("import", "openclaw", folder, home=home)
    assert ran.code == 2
    assert str(folder / "openclaw.json") in ran.err
    assert told in ran.err
    assert not home.exists()


def test_other_folders_are_refused(home: Path, tmp_path: Path) -> None:
    ran = lamella("import", "openclaw", tmp_path, home=home)
    assert (ran.code, "no state folder of OpenClaw" in ran.err) == (2, True)
    ran = lamella("import", "openclaw", tmp_path / "missing", home=home)
    assert (ran.code, "is no folder" in ran.err) == (2, True)


# Rows that are no rule: the import sees to them itself, or the words mean something else here.
NO_RULE = {"agents.defaults.workspace", "session.store", "plugins.allow", "plugins.deny"}
NO_RULE |= {f"plugins.entries.ID.{key}" for key in ("enabled", "config", "hooks.allowPromptInjection")}


def test_the_documented_keys_are_those_that_are_taken_over() -> None:
    table = rows(sections(page("configuration.md"))["Coming from OpenClaw"]).values()
    documented = {key for cells in table for key in re.findall(r"`([^`]+)`", cells[0])}
    ruled = {as_documented(rule.theirs) for rule in RULES}
    assert documented - NO_RULE == ruled


def as_documented(key: str) -> str:
    for pattern, name in (
        ("channels.*", "channels.P"),
        ("dms.*", "dms.U"),
        ("list.*", "list.ID"),
        ("providers.*", "providers.P"),
        ("models.*", "models.M"),
        ("memory.search.", "agents.defaults.memorySearch."),
    ):
        key = key.replace(pattern, name)
    return key.partition(".*")[0]  # tables of sessions have one row


def test_settings_of_qmd_and_of_memories_in_lancedb_are_taken_over() -> None:
    qmd = {
        "command": "/opt/qmd",
        "searchMode": "vsearch",
        "limits": {"timeoutMs": 2500},
        "update": {"interval": "1h", "embedInterval": 30, "debounceMs": "soon"},
    }
    lancedb = {"autoCapture": True, "embedding": {"apiKey": "sk-1"}}
    config = {
        "memory": {"backend": "qmd", "qmd": qmd},
        "plugins": {"entries": {"memory-lancedb": {"config": lancedb}}},
    }
    settings, left = convert_settings(config, ())
    assert {".".join(s.ours): s.value for s in settings} == {
        "memory.backend": "qmd",
        "plugins.config.qmd-backend.command": "/opt/qmd",
        "plugins.config.qmd-backend.mode": "semantic",
        "plugins.config.qmd-backend.limits.timeout_seconds": 2.5,
        "plugins.config.qmd-backend.update.interval_minutes": 60,
        "plugins.config.qmd-backend.update.embed_interval_minutes": 30,
        "plugins.config.memory-lancedb.auto_capture": True,
    }
    reasons = {item.source: item.reason for item in left}
    assert reasons["memory.qmd.update.debounceMs"] == "expected milliseconds, found 'soon'"
    assert "secret" in reasons["plugins.entries.memory-lancedb.config.embedding.apiKey"]
