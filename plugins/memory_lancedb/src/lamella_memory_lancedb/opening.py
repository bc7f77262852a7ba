"""The memories of an agent for the command line, whether or not the slot `memory` is given to this plugin."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from lamella.cli.common import warn
from lamella.config.structure import structure
from lamella.errors import ConfigError, LamellaError
from lamella.types.hooks import MemoryContext
from lamella_memory_lancedb.config import SECTION, Config
from lamella_memory_lancedb.service import Memories
from lamella_memory_lancedb.store.memory import Reader, Selection

if TYPE_CHECKING:
    from lamella.runtime import Runtime

PLUGIN = "memory-lancedb"


class NoTable(LamellaError, LookupError):
    """An agent that does not use this plugin has no table of it either."""

    exit_code = 4


@frozen(slots=True)
class Opened:
    """An agent's memories, open. `timezone`: the user's."""

    memories: Memories
    agent: str
    timezone: str

    @property
    def place(self) -> str:
        """Whose memories they are, and where, for people."""
        return f"agent {self.agent}, {self.memories.location.shown}"

    def named(self) -> dict[str, Any]:
        """The same as JSON."""
        return {"agent": self.agent, "store": self.memories.location.shown}

    def reader(self, selection: Selection) -> Reader:
        return evolve(self.memories.reader(), only=selection)

    def facts(self, selection: Selection) -> dict[str, Any]:
        """Numbers on the selected memories, and on the table that they are in."""
        status = self.memories.status()
        table = {name: status[name] for name in ("scope", "embedder", "model", "storedBy", "dimensions", "version")}
        counted = self.memories.stats(self.reader(selection)).to_json()
        folder = self.memories.location.folder
        return {
            **counted,
            **table,
            "tableVersion": status.get("tableVersion"),
            "bytes": None if folder is None else _bytes_below(folder),
            "problem": status["problem"],
        }

    def told(self, facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Facts for people, with their labels; what is not known is left out."""
        from lamella.text.truncate import format_size

        yield "memories", f"{facts['total']}{_parts(facts['byCategory'])}"
        yield "from", ", ".join(f"{name} {count}" for name, count in facts["bySource"].items()) or "nowhere"
        yield "of", f"{self.place}; scope {facts['scope']}"
        yield "forgotten", f"{facts['forgotten']} (tombstones)"
        yield "embedder", f"{facts['embedder']}{_after(facts['model'])}"
        if facts["storedBy"]:
            yield "vectors", f"{facts['storedBy']}, {facts['dimensions']} numbers each"
        if facts["withoutVector"]:
            yield "without vector", str(facts["withoutVector"])
        if facts["version"] is not None:
            yield "columns", f"version {facts['version']}; version {facts['tableVersion']} of the table"
        if facts["bytes"] is not None:
            yield "on disk", format_size(facts["bytes"])
        if facts["problem"]:
            yield "problem", facts["problem"]


@contextlib.contextmanager
def open_table(runtime: Runtime, *, reads: bool = True) -> Iterator[Opened]:
    """The memories of a runtime's agent for a block, by the plugin's settings.

    Raises `ConfigError` for wrong settings; with `reads`, `NoTable` when there is no table and the agent does
    not use this plugin.
    """
    plugins = runtime.settings.plugins
    config = _config(plugins.config.get(PLUGIN, {}))
    context = MemoryContext(
        runtime.agent_id, runtime.workspace, runtime.state_dir, runtime.agent.timezone, "", {}, runtime.embedders
    )
    memories = Memories(context, config)
    slot = plugins.slots.memory
    if slot != PLUGIN:
        if reads and not memories.store.is_there():
            raise NoTable(
                f"agent {runtime.agent_id} has no memories in {memories.location.shown}",
                hint=f"lamella config set plugins.slots.memory {PLUGIN}   (the slot is given to {slot!r})",
            )
        warn(f"note: plugins.slots.memory is {slot!r}, so agent {runtime.agent_id} does not use these memories")
    try:
        yield Opened(memories, runtime.agent_id, runtime.agent.timezone)
    finally:
        memories.close()


def _config(section: Mapping[str, Any]) -> Config:
    config, problems = structure(Config, section, path=SECTION)
    if config is None:
        raise ConfigError([p for p in problems if p.level == "error"])
    return config


def _parts(counts: Mapping[str, int]) -> str:
    shown = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f" ({shown})" if shown else ""


def _bytes_below(folder: Path) -> int:
    """The size of all files below a folder; those that vanish meanwhile count nothing."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _after(text: str | None) -> str:
    return f", {text}" if text else ""
