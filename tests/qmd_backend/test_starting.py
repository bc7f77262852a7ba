"""The program: found or not, on the right Node or not, in an environment of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from qmd_programs import Scene

from lamella.errors import MemoryUnavailable

NOTE = "the okapi eats figs\n"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("no-such-qmd", "the program 'no-such-qmd' is not found"),
        ("{}/nowhere/qmd", "nowhere/qmd' is not found"),
        ("{}/folder", "folder' is a folder"),
        ("{}/plain", "plain' is not executable"),
        ("{}/odd", "odd cannot be started"),
        ("{}/no_interpreter", "no_interpreter cannot be started"),
    ],
)
def test_a_program_that_cannot_be_started_is_named(
    make: Callable[..., Scene], tmp_path: Path, command: str, reason: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain").write_text("x")
    for name, text in (("odd", b"\x00\x01"), ("no_interpreter", b"#!/no/such/program\n")):
        (tmp_path / name).write_bytes(text)
        (tmp_path / name).chmod(0o755)
    scene = make(command=command.format(tmp_path))
    scene.write("memory/a.md", NOTE)
    for action in (lambda: scene.search("okapi"), scene.backend.probe, scene.backend.sync):
        with pytest.raises(MemoryUnavailable, match=reason) as caught:
            action()
        assert "npm install -g @tobilu/qmd" in caught.value.hint and "Node 22" in caught.value.hint
    assert reason in scene.backend.status()["problem"]


def test_a_missing_node_is_told(make: Callable[..., Scene]) -> None:
    scene = make()
    scene.qmd.play("exit127")
    with pytest.raises(MemoryUnavailable, match=r"No such file or directory") as caught:
        scene.search("okapi")
    assert "Node 22" in caught.value.hint


def test_a_node_too_old_is_told_though_the_version_can_be_read(scene: Scene) -> None:
    scene.qmd.play("sigsegv")
    with pytest.raises(MemoryUnavailable, match=r"killed by signal 11, SIGSEGV \(Node too old\?\)") as caught:
        scene.search("pool")
    assert "Node 22" in caught.value.hint
    with pytest.raises(MemoryUnavailable, match="signal 11"):
        scene.backend.probe()
    assert "signal 11" in scene.backend.status()["problem"]


def test_the_probe_opens_the_index(scene: Scene) -> None:
    before = len(scene.qmd.calls)
    scene.backend.probe()
    assert [call["argv"] for call in scene.qmd.calls[before:]] == [["--index", "index", "status"]]


def test_the_probe_of_an_old_version_is_a_search(make: Callable[..., Scene]) -> None:
    scene = make()
    scene.qmd.be("2.1.0")
    scene.backend.probe()
    assert scene.qmd.calls_of("search") and not scene.qmd.calls_of("status")
    scene.qmd.play("stack")
    with pytest.raises(MemoryUnavailable, match="no such table"):
        scene.backend.probe()


def test_an_empty_environment_is_enough(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("HOME", raising=False)
    assert scene.paths("pool") == ["memory/2026-03-02.md"]


def test_the_child_is_kept_from_the_users_qmd_and_from_ci(
    make: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "INDEX_PATH", "QMD_CONFIG_DIR", "QMD_EMBED_MODEL", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, "/somewhere/else")
    scene = make()
    scene.write("memory/a.md", NOTE)
    (scene.workspace / ".qmd").mkdir()
    (scene.workspace / ".qmd" / "index.yml").write_text('{"collections": {}}')
    assert scene.paths("okapi") == ["memory/a.md"]
    for call in scene.qmd.calls:
        environment = call["env"]
        private = str(scene.state / "qmd")
        assert not {"CI", "INDEX_PATH", "QMD_EMBED_MODEL"} & environment.keys()
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "QMD_CONFIG_DIR"):
            assert environment[name].startswith(private), name
        assert call["cwd"] == os.path.realpath(scene.state / "qmd" / "run")
        assert environment["NO_COLOR"] == "1" and environment["QMD_SQLITE_BUSY_TIMEOUT"] == "1000"
        assert environment["PATH"].split(os.pathsep)[0] == str(scene.qmd.folder)
        assert call["argv"] == ["--version"] or call["argv"][:2] == ["--index", "index"]


def test_the_version_is_read_once_for_all_processes(scene: Scene) -> None:
    other = scene.another()
    other.status()
    other.probe()
    assert len(scene.qmd.calls_of("--version")) == 1


def test_another_program_is_asked_for_its_version(scene: Scene) -> None:
    os.utime(scene.qmd.command, ns=(1, 1))
    assert scene.another().status()["version"] == "2.8.3"
    assert len(scene.qmd.calls_of("--version")) == 2


def test_a_program_that_is_no_qmd_is_told(make: Callable[..., Scene]) -> None:
    scene = make(command=f"{sys.executable} -c pass")
    with pytest.raises(MemoryUnavailable, match=r"qmd --version gave no answer"):
        scene.search("okapi")


def test_the_command_may_have_arguments(make: Callable[..., Scene]) -> None:
    scene = make()
    other = make(command=f"{sys.executable} -ES '{scene.qmd.command}'")
    other.write("memory/a.md", NOTE)
    assert other.paths("okapi") == ["memory/a.md"]


@pytest.mark.parametrize(
    ("version", "argv"),
    [
        ("2.8.3", ["query", "--json", "-n", "20", "--no-rerank"]),
        ("2.1.0", ["query", "--json", "-n", "20", "--no-rerank"]),
        ("2.0.1", ["search", "--json", "-n", "20"]),
        ("1.1.6", ["search", "--json", "-n", "20"]),
    ],
)
def test_a_question_is_put_as_the_version_understands_it(
    make: Callable[..., Scene], version: str, argv: list[str]
) -> None:
    scene = make()
    scene.qmd.be(version)
    scene.write("memory/a.md", NOTE)
    assert scene.paths("which figs does the okapi eat?") == ["memory/a.md"]
    (asked,) = {tuple(call["argv"][2 : 2 + len(argv)]) for call in scene.qmd.calls if "--" in call["argv"]}
    assert list(asked) == argv
