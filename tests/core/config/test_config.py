"""Configuration: layers, origins, every fault at once, edits that lose nothing."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from builders import CASES
from openclaw_vectors import recorded

from lamella.config.edit import parse_value, set_value, unset_value
from lamella.config.load import load_config
from lamella.config.units import parse_duration, parse_size
from lamella.errors import ConfigError, LamellaError, UsageError
from lamella.paths import Paths

SET_MANY = """
import sys
from pathlib import Path
from lamella.config.edit import set_value
for i in range(20):
    set_value(Path(sys.argv[1]), f"plugins.config.{sys.argv[2]}.k{i}", i)
"""


def load(home: Path, text: str = "", **options: object):  # type: ignore[no-untyped-def]
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text, encoding="utf-8")
    return load_config(Paths(home), environ=options.pop("environ", {}), **options)  # type: ignore[arg-type]


def test_defaults_and_origins(tmp_path: Path) -> None:
    config = load(
        tmp_path / "h",
        "[compaction]\nreserve_tokens = 100\n",
        environ={"LAMELLA_MODEL": "openai/x"},
        overrides={"tools.exec": True},
    )
    assert config.settings.compaction.reserve_tokens == 100
    assert config.origin("compaction.reserve_tokens").endswith("config.toml")
    assert config.origin("compaction.enabled") == "default"
    assert config.origin("agent.model") == "environment LAMELLA_MODEL"
    assert config.settings.tools.exec is True
    assert config.origin("tools.exec") == "command line"


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("[compaction]\nreserve_tokens = -5", "compaction.reserve_tokens", "expected 0 or more, found -5"),
        ('[compaction]\nreserve_tokens = "4k"', "compaction.reserve_tokens", 'expected a whole number, found "4k"'),
        ("[compaction]\nenabled = 1", "compaction.enabled", "expected true or false, found 1"),
        ('[agent]\nthinking = "hgh"', "agent.thinking", "expected one of off, minimal"),
        ("[hooks.timeouts]\ninput = nan", "hooks.timeouts.input", "expected a number, found nan"),
        ("compaction = 3", "compaction", "expected a table, found 3"),
        ("[tools]\ndeny = [1]", "tools.deny[0]", "expected a string, found 1"),
        ('[session]\nstore = "a\\u0000b"', "session.store", "expected paths without NUL characters, found"),
    ],
)
def test_wrong_values_name_key_value_and_expectation(text: str, path: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "h", text)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert message in problem.message
    assert problem.origin.endswith("config.toml")


# Case K132 in lamella's own keys; sections of plugins are checked where they are loaded.
K132 = {
    "warn unknown key": ["[agents.main.session]\nprune_after = '1d'\n", "[session.reserve]\ntokens = 1\n"],
    "error": ["[compaction]\nreserve_tokens_floor = -5\n", "[compaction]\nkeep_recent_tokens = '4k'\n", "x = [\n"],
}


@pytest.mark.parametrize(("verdict", "text"), [(v, t) for v, texts in K132.items() for t in texts])
def test_nothing_in_a_wrong_place_or_of_a_wrong_type_is_ignored(verdict: str, text: str, tmp_path: Path) -> None:
    if verdict == "error":
        with pytest.raises(ConfigError):
            load(tmp_path / "h", text)
        return
    assert ["unknown key" in p.message for p in load(tmp_path / "h", text).problems] == [True]


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "h", '[compaction]\nreserve_tokens = "a"\nkeep_recent_tokens = 0\n[retry]\nenabled = "yes"\n')
    assert [p.path for p in caught.value.problems] == [
        "compaction.reserve_tokens",
        "compaction.keep_recent_tokens",
        "retry.enabled",
    ]


def test_unknown_keys_are_warnings_with_a_near_match_and_errors_when_strict(tmp_path: Path) -> None:
    text = "[compaction]\nreserve_token = 1\n"
    config = load(tmp_path / "h", text)
    (problem,) = config.problems
    assert (problem.path, problem.level) == ("compaction.reserve_token", "warning")
    assert "did you mean reserve_tokens?" in problem.message
    with pytest.raises(ConfigError):
        load(tmp_path / "h", text, strict=True)


@pytest.mark.parametrize("name", ["two_objects.json", "truncated.json"])
def test_a_damaged_file_is_an_error_with_its_place_and_stays(name: str, tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir()
    content = (CASES / "K131" / name).read_bytes()
    (home / "config.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"config\.toml: is not valid TOML: .*line"):
        load_config(Paths(home), environ={})
    assert (home / "config.toml").read_bytes() == content


def test_an_empty_file_is_said(tmp_path: Path) -> None:
    (problem,) = load(tmp_path / "h", "").problems
    assert "config.toml: is empty; every setting has its default" in str(problem)
    assert load(tmp_path / "h", "# nothing set\n").problems == ()


def test_bom_and_crlf_are_fine(tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir()
    (home / "config.toml").write_bytes(b"\xef\xbb\xbf[tools]\r\nexec = true\r\n")
    assert load_config(Paths(home), environ={}).settings.tools.exec is True


def test_a_workspace_may_only_name_the_agent_and_ask_for_less(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "lamella.toml").write_text(
        '[agent]\nname = "Ada"\nworkspace = "/etc"\n[tools]\nexec = true\n[context]\nwindow = 5000\n'
    )
    config = load(tmp_path / "h", "[context]\nwindow = 10000\n", workspace=workspace)
    assert config.settings.agent.name == "Ada"
    assert config.settings.context.window == 5000
    assert config.settings.tools.exec is False
    assert config.settings.agent.workspace == ""
    assert sorted(p.path for p in config.problems) == ["agent.workspace", "tools.exec"]
    unlimited = load(tmp_path / "h", "# nothing", workspace=workspace)
    assert unlimited.settings.context.window == 5000
    more = load(tmp_path / "h", "[context]\nwindow = 4000\n", workspace=workspace)
    assert more.settings.context.window == 4000
    assert "may only lower" in next(p.message for p in more.problems if p.path == "context.window")


def test_agents_have_their_own_workspace(tmp_path: Path) -> None:
    config = load(tmp_path / "h", '[agent]\nworkspace = "/a"\nmodel = "offline"\n[agents.bob]\nthinking = "low"\n')
    bob = config.agent("bob")
    assert (bob.workspace, bob.model, bob.thinking) == ("", "offline", "low")
    assert config.agent("main").workspace == "/a"


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    config = load(tmp_path / "h", '[models.providers.x]\napi = "openai-chat"\napi_key = "sk-1"\n')
    shown = {k: v for k, v, _ in config.leaves()}
    assert shown["models.providers.x.api_key"] == "***"


# --- editing -------------------------------------------------------------------------------------------


def test_setting_keeps_comments_and_refuses_nonsense(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("# mine\n[compaction]\n# why\nreserve_tokens = 1 # note\n", encoding="utf-8")
    set_value(file, "compaction.reserve_tokens", parse_value("500"))
    set_value(file, "agent.name", parse_value("Ada"))
    text = file.read_text()
    assert "# mine" in text
    assert "# why\nreserve_tokens = 500 # note" in text
    assert tomllib.loads(text)["agent"] == {"name": "Ada"}
    for key, value in (("compaction.reserve_tokens", -1), ("compaction.nonsense", 1), ("tools.exec", "yes")):
        with pytest.raises(ConfigError):
            set_value(file, key, value)
    with pytest.raises(UsageError):
        set_value(file, "agent..name", 1)
    assert file.read_text() == text
    assert unset_value(file, "agent.name") is True
    assert unset_value(file, "agent.name") is False


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    writers = [subprocess.Popen([sys.executable, "-c", SET_MANY, str(file), name]) for name in ("a", "b")]
    for writer in writers:
        assert writer.wait(60) == 0
    stored = tomllib.loads(file.read_text())["plugins"]["config"]
    assert stored == {n: {f"k{i}": i for i in range(20)} for n in ("a", "b")}


@pytest.mark.parametrize(("call", "code"), [("write", "ENOSPC"), ("fsync", "EIO"), ("replace", "EACCES")])
def test_a_disk_that_fails_leaves_the_old_file(
    call: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    set_value(file, "tools.exec", True)
    before = file.read_bytes()

    def fail(*_arguments: object) -> None:
        raise OSError(getattr(errno, code), os.strerror(getattr(errno, code)))

    with monkeypatch.context() as broken:
        broken.setattr(os, call, fail)
        with pytest.raises((OSError, LamellaError), match=re.escape(os.strerror(getattr(errno, code)))):
            set_value(file, "tools.parallel", False)
    assert file.read_bytes() == before
    set_value(file, "tools.parallel", False)
    assert tomllib.loads(file.read_text())["tools"] == {"exec": True, "parallel": False}
    assert [p.name for p in tmp_path.iterdir() if "lock" not in p.name] == ["config.toml"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("5m", 300), ("1h30m", 5400), ("30d", 2_592_000), ("250ms", 0.25), (7, 7), ("7", 7)]
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "m", "5 m", "5x", True, None, float("nan"), [1]])
def test_wrong_durations(text: object) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(text)


@pytest.mark.parametrize("row", recorded("units.json"), ids=lambda row: f"{row['group']}-{row['name']}")
def test_durations_and_sizes_are_read_as_in_openclaw(row: dict[str, Any]) -> None:
    read = parse_size if row["group"] == "bytes" else lambda raw: parse_duration(raw, unit="m") * 1000
    if "error" in row:
        with pytest.raises(ValueError, match="expected a"):
            read(row["input"]["raw"])
    else:
        assert read(row["input"]["raw"]) == row["output"]


def test_sizes() -> None:
    assert [parse_size(s) for s in ("2mb", "1.5kb", "10b", 12)] == [2_097_152, 1536, 10, 12]
    for wrong in ("1 mb", "mb", -1.5, True):
        with pytest.raises(ValueError, match="expected a size"):
            parse_size(wrong)


@pytest.mark.parametrize("value", ["0", "-1", "true", '"9"'])
def test_a_workspace_cannot_lift_a_limit(value: str, tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "lamella.toml").write_text(f"[context]\nwindow = {value}\n")
    config = load(tmp_path / "h", "[context]\nwindow = 10000\n", workspace=workspace)
    assert config.settings.context.window == 10000
    assert [p.path for p in config.problems] == ["context.window"]


def test_agents_without_a_section_have_their_own_workspace_too(tmp_path: Path) -> None:
    config = load(tmp_path / "h", '[agent]\nworkspace = "/a"\nname = "Ada"\nmodel = "offline"\n')
    other = config.agent("other")
    assert (other.workspace, other.name, other.model) == ("", "", "offline")
