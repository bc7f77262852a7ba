import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from notes import make_workspace, memory_context, open_memory

from lamella.config.schema import PluginsSection
from lamella.errors import MemoryPathError, MemoryUnavailable
from lamella.plugins.catalog import load_plugins
from lamella.types.hooks import MemoryContext, RegistrationContext
from lamella.types.memory import MemoryBackend, MemoryService, Provenance, SearchQuery
from lamella_memory_core import Config, MemoryCore
from lamella_memory_core.service import Memory

WHO = Provenance("test")


class Source:
    name = "memory-core"

    def load(self) -> type[MemoryCore]:
        return MemoryCore


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(
        tmp_path, {"MEMORY.md": "# Facts\n\n- the okapi likes figs\n", "memory/five.md": "l1\nl2\nl3\nl4\nl5\n"}
    )


@pytest.fixture
def memory(workspace: Path) -> Memory:
    return open_memory(workspace)


# --- the plugin ------------------------------------------------------------------------------------------


def test_the_plugin_loads_and_fills_its_slot() -> None:
    settings = PluginsSection(config={"memory-core": {"max_results": 3}})
    catalog = load_plugins(settings, sources=[Source()])
    assert catalog.problems == ()
    (record,) = catalog.active
    assert (record.name, record.slot, record.plugin.config.max_results) == ("memory-core", "memory", 3)
    assert set(record.hooks) >= {"open_memory", "register_memory_backends", "register_tools", "prompt_sections"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_results", 0),
        ("min_score", 1.5),
        ("chunk_tokens", "many"),
        ("snippet_chars", True),
        ("extra_paths", ["notes", "a\0b"]),
    ],
)
def test_a_wrong_setting_is_named(key: str, value: object) -> None:
    catalog = load_plugins(PluginsSection(config={"memory-core": {key: value}}), sources=[Source()])
    assert catalog.active == ()
    assert f"plugins.config.memory-core.{key}" in str(catalog.problems[0])


def test_its_own_backend_opens_through_the_hooks(workspace: Path) -> None:
    plugin = MemoryCore(Config())
    registered = {b.name: b for b in plugin.register_memory_backends(RegistrationContext("main", workspace, Path()))}
    context = MemoryContext("main", workspace, workspace.parent / "state", "UTC", "sqlite", registered, {})
    memory = plugin.open_memory(context)
    assert isinstance(memory, MemoryService)
    assert isinstance(registered["sqlite"].factory(_backend_context(context)), MemoryBackend)
    assert memory.search(SearchQuery("okapi")).hits[0].path == "MEMORY.md"
    memory.close()


def _backend_context(context: MemoryContext) -> object:
    from lamella.types.memory import BackendContext

    return BackendContext(context.agent_id, context.workspace, context.state_dir)


def test_an_unknown_backend_says_what_to_install(workspace: Path) -> None:
    with pytest.raises(MemoryUnavailable, match="'qmd' is not installed") as caught:
        Memory(memory_context(workspace, backend="qmd"), Config(fallback="none"))
    assert "pip install" in caught.value.hint


def test_the_prompt_names_the_tools(memory: Memory) -> None:
    plugin = MemoryCore(Config())
    sections = plugin.prompt_sections(RegistrationContext("main", Path(), Path(), memory=memory))
    for section in sections:
        assert all(name in section.text for name in ("memory_search", "memory_get", "memory_append"))
    without = RegistrationContext("main", Path(), Path())
    assert (tuple(plugin.prompt_sections(without)), tuple(plugin.register_tools(without))) == ((), ())


def test_importing_the_plugin_is_light() -> None:
    program = "import lamella_memory_core, sys; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# --- the service ----------------------------------------------------------------------------------------


def test_what_is_appended_is_found(memory: Memory) -> None:
    written = memory.append("- the staging server is called bluebird", provenance=WHO)
    (hit,) = memory.search(SearchQuery("bluebird")).hits
    assert hit.path == written.path
    assert hit.start_line <= written.start_line <= hit.end_line
    assert memory.read(written.path, start_line=written.start_line).text == "- the staging server is called bluebird"


def test_a_note_is_safe_when_the_index_is_not(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_options: object) -> None:
        raise MemoryUnavailable("broken")

    monkeypatch.setattr(memory.backend, "sync", broken)
    assert memory.append("- x", path="memory/a.md", provenance=WHO).path == "memory/a.md"


def test_reading_what_is_no_memory_is_refused(memory: Memory) -> None:
    with pytest.raises(MemoryPathError):
        memory.read("../secret.md")


async def test_threads_may_use_one_memory(memory: Memory) -> None:
    async def one(i: int) -> None:
        await asyncio.to_thread(memory.append, f"- note of thread {i}", path="memory/t.md", provenance=WHO)
        assert (await asyncio.to_thread(memory.search, SearchQuery(f"thread {i}"))).hits

    await asyncio.gather(*(one(i) for i in range(8)))
    assert memory.read("memory/t.md").total_lines == 8
