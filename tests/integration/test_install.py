"""Real wheels in fresh environments: the core alone, with each plugin, with all, with plugins from outside."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest
from cli import EXAMPLE
from venvs import CORE, EXAMPLES, MEMBERS, PLUGINS, Environment, Member, build, wheel_of, with_needs

from lamella.scaffold import KINDS

pytestmark = pytest.mark.slow

QUESTION = "Which day is the boiler serviced?"
# What fills the slot `memory`, by distribution.
MEMORIES = {"lamella-memory-core": "memory-core", "lamella-memory-lancedb": "memory-lancedb"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    for member in MEMBERS:
        build(member.folder, out)
    return out


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "ws"))


def check(environment: Environment, installed: set[str], workspace: Path) -> None:
    """Everything that must hold with these distributions: the list, the check, a turn, a search."""
    plugins = {p: m.name for m in PLUGINS for p in m.plugins if m.name in installed}
    states = environment.states()
    assert plugins.keys() <= states.keys()
    assert "failed" not in states.values()
    checked = environment.lamella("plugins", "check")
    assert checked.returncode == 0, checked.stderr
    asked = environment.lamella("ask", QUESTION, "--model", "offline", "--workspace", workspace, "--new")
    assert asked.returncode == 0, asked.stderr
    search(environment, installed, workspace)


def search(environment: Environment, installed: set[str], workspace: Path) -> None:
    """A search in each memory there is; without one, the message that names the package."""
    for name, slot in MEMORIES.items():
        config = environment.folder / f"{slot}.toml"
        config.write_text(f'[plugins.slots]\nmemory = "{slot}"\n')
        found = environment.lamella(
            "memory", "search", "boiler", "--workspace", workspace, "--json", "--config", config
        )
        if name in installed:
            assert found.returncode == 0, found.stderr
            assert '"results"' in found.stdout
            assert slot != "memory-core" or "memory/2026-10-20.md" in found.stdout
        else:
            assert found.returncode == 3
            assert f"pip install {name}" in found.stderr


def install(environment: Environment, members: tuple[Member, ...], wheels: Path) -> set[str]:
    wanted = with_needs((CORE, *members))
    environment.install(*(wheel_of(m.name, wheels) for m in wanted))
    return {m.name for m in wanted}


def test_every_wheel_is_complete(wheels: Path) -> None:
    built = sorted(wheels.glob("*.whl"))
    assert len(built) == len(MEMBERS)
    for wheel in built:
        names = zipfile.ZipFile(wheel).namelist()
        assert any(n.endswith("/py.typed") for n in names), wheel.name
        if not wheel.name.startswith("lamella-"):
            entry_points = next(n for n in names if n.endswith("entry_points.txt"))
            assert "[lamella.plugins]" in zipfile.ZipFile(wheel).read(entry_points).decode()
        else:
            assert "lamella/templates/AGENTS.md" in names
            assert "lamella/scaffold/kinds/common/pyproject.toml.tmpl" in names


def test_the_core_alone(wheels: Path, tmp_path: Path, workspace: Path) -> None:
    environment = Environment(tmp_path)
    check(environment, install(environment, (), wheels), workspace)
    alone = environment.lamella("ask", QUESTION, "--model", "offline", "--workspace", workspace)
    assert "pip install lamella-memory-core" in alone.stderr
    environment.home.mkdir(parents=True, exist_ok=True)
    (environment.home / "config.toml").write_text('[models.providers.anthropic]\napi_key = "x"\n')
    asked = environment.lamella("ask", "hi", "--model", "anthropic/claude-x")
    assert asked.returncode == 3
    assert "pip install 'lamella[anthropic]'" in asked.stderr


@pytest.mark.parametrize("member", PLUGINS, ids=lambda m: m.name)
def test_the_core_with_one_plugin_and_without_it_again(
    member: Member, wheels: Path, tmp_path: Path, workspace: Path
) -> None:
    environment = Environment(tmp_path)
    installed = install(environment, (member,), wheels)
    check(environment, installed, workspace)
    environment.uninstall(member.name)
    check(environment, installed - {member.name}, workspace)


def test_the_core_with_all_plugins_and_without_memory_core(wheels: Path, tmp_path: Path, workspace: Path) -> None:
    environment = Environment(tmp_path)
    installed = install(environment, PLUGINS, wheels)
    assert len(installed) == len(MEMBERS)
    check(environment, installed, workspace)
    answered = environment.lamella("ask", QUESTION, "--model", "offline", "--workspace", workspace, "--new")
    assert "memory/2026-10-" in answered.stdout
    environment.uninstall("lamella-memory-core")
    check(environment, installed - {"lamella-memory-core"}, workspace)


# --- plugins from outside ----------------------------------------------------------------------------------


def test_a_backend_from_outside(wheels: Path, tmp_path: Path, workspace: Path) -> None:
    example = Path(shutil.copytree(EXAMPLES / "lamella-tfidf-backend", tmp_path / "example"))
    build(example, tmp_path)
    environment = Environment(tmp_path)
    memory_core = next(m for m in PLUGINS if m.name == "lamella-memory-core")
    needed = (wheel_of(m.name, wheels) for m in with_needs((CORE, memory_core)))
    environment.install(*needed, wheel_of("lamella-tfidf-backend", tmp_path), "pytest>=8.3")
    assert environment.states()["tfidf-backend"] == "on"
    tested = environment.run("python", "-m", "pytest", "-q", cwd=example)
    assert tested.returncode == 0, tested.stdout + tested.stderr

    assert environment.lamella("config", "set", "memory.backend", "tfidf").returncode == 0
    assert environment.lamella("plugins", "check").returncode == 0
    found = environment.json("memory", "search", "boiler serviced", "--workspace", workspace)
    assert (found["backend"], found["degraded"]) == ("tfidf", None)
    assert "memory/2026-10-20.md" in [result["path"] for result in found["results"]]
    asked = environment.lamella("ask", QUESTION, "--model", "offline", "--workspace", workspace, "--new")
    assert "memory/2026-10-20.md" in asked.stdout

    environment.uninstall("lamella-tfidf-backend")
    checked = environment.lamella("plugins", "check")
    assert checked.returncode == 1
    assert "memory backend 'tfidf' is not installed" in checked.stderr
    asked = environment.lamella("ask", QUESTION, "--model", "offline", "--workspace", workspace, "--new")
    assert asked.returncode == 0, asked.stderr
    assert "tfidf" in asked.stderr


def test_projects_for_new_plugins_install_and_pass_their_tests(wheels: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    install(environment, tuple(m for m in PLUGINS if m.name == "lamella-memory-core"), wheels)
    environment.install("pytest>=8.3")
    folders = {kind: tmp_path / kind for kind in KINDS}
    for kind, folder in folders.items():
        written = environment.lamella("plugins", "new", f"first-{kind[:4]}", "--kind", kind, "--dir", folder)
        assert written.returncode == 0, written.stderr
        build(folder, tmp_path / "new")
    environment.install(*(tmp_path / "new").glob("*.whl"))
    states = environment.states()
    made = ("first-back-backend", "first-hook", "first-tool", "first-mode")
    assert [states[name] for name in made] == ["on"] * 4
    for folder in folders.values():
        tested = environment.run("python", "-m", "pytest", "-q", cwd=folder)
        assert tested.returncode == 0, tested.stdout + tested.stderr
    assert environment.lamella("plugins", "check").returncode == 0
