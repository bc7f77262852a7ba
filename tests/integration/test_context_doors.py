"""`lamella context` and its doors with what users get wrong: files that are none, settings that are wrong, and
sessions whose history plugins shorten."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from builders import transcript, write_lines
from inside import lamella

BUILD = ("--provider", "anthropic", "--model", "m", "--window", "9000")
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "s.jsonl", transcript(["one", "two"]))


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [(DEEP, 2, "nested too deeply"), ("{", 2, "is not JSON"), ("{}", 2, "expected a list"), (None, 4, "no such file")],
)
def test_repair_says_what_is_wrong_with_a_file(content: str | None, code: int, says: str, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    if content is not None:
        file.write_text(content)
    ran = lamella("context", "repair", file, "--provider", "strict", home=tmp_path / "home")
    assert (ran.code, ran.err.count("\n")) == (code, 1)
    assert says in ran.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("door", ["build", "repair"])
def test_nothing_waits_for_a_pipe(door: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    options = BUILD if door == "build" else BUILD[:2]
    ran = lamella("context", door, tmp_path / "pipe", *options, "--json", home=tmp_path / "home")
    assert ran.code != 0
    assert "no such" in ran.out + ran.err


@pytest.mark.parametrize(
    ("section", "line", "says"),
    [
        ("history-limit", "group = -1", "history-limit.group: expected 0 or more, found -1"),
        ("history-limit", "channels.irc.users.x = -1", "history-limit.channels.irc.users: expected 0 or more"),
        ("context-pruning", 'ttl = "soon"', "context-pruning.ttl: expected a duration"),
        ("workspace-files", "file_max_char = 5", "unknown key (did you mean file_max_chars?)"),
        ("skills", "max_in_prompt = 1.5", "skills.max_in_prompt: expected a whole number, found 1.5"),
    ],
)
def test_a_wrong_setting_of_a_plugin_is_said(section: str, line: str, says: str, session: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f"[plugins.config.{section}]\n{line}\n")
    built = lamella("context", "build", session, *BUILD, "--config", config, home=tmp_path / "home")
    assert says in built.err
    (tmp_path / "ws").mkdir()
    options = ("--config", config, "--workspace", tmp_path / "ws", "--model", "offline")
    assert says in lamella("context", *options, home=tmp_path / "home").err


def test_build_takes_the_configured_estimator(session: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[context]\nestimator = "none such"\n')
    wrong = lamella("context", "build", session, *BUILD, "--config", config, home=tmp_path / "home")
    assert (wrong.code, wrong.out) == (2, "")
    assert "unknown estimator 'none such'" in wrong.err
    right = ("--config", config, "--estimator", "pi")
    assert lamella("context", "build", session, *BUILD, *right, home=tmp_path / "home").code == 0


def test_context_counts_the_history_as_it_would_be_sent(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "c.toml").write_text("[plugins.config.history-limit]\ngroup = 1\n")
    common = ("--workspace", tmp_path / "ws", "--model", "offline", "--config", tmp_path / "c.toml")
    for key in ("agent:main:irc:group:x", "agent:main:main"):
        for text in ("hello", "hello again"):
            lamella("ask", text, *common, "--key", key, home=tmp_path / "home", check=True)
    group = lamella("context", *common, "--key", "agent:main:irc:group:x", "--json", home=tmp_path / "home").json
    alone = lamella("context", *common, "--key", "agent:main:main", "--json", home=tmp_path / "home").json
    assert group["history"]["messages"][0]["content"][0]["text"] == "hello again"
    assert 0 < group["history"]["tokens"] < alone["history"]["tokens"]
    assert "actions" not in group


def test_context_does_without_a_record_of_prefixes(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    common = ("--workspace", tmp_path / "ws", "--model", "offline")
    lamella("ask", "hello", *common, home=tmp_path / "home", check=True)
    (record,) = (tmp_path / "home").glob("agents/main/prompts/*.turns.jsonl")
    record.unlink()
    record.mkdir()
    ran = lamella("context", *common, "--json", home=tmp_path / "home", check=True)
    assert json.loads(ran.out)["prefix"] is None
    assert "cannot be read" in ran.err
    assert lamella("context", *common, "--diff", "1", "1", home=tmp_path / "home").code == 1
