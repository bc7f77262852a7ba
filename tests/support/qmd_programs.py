"""Stand-ins of qmd, backends on them, and notes to search."""

from __future__ import annotations

import ast
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import define, evolve

from lamella.types.memory import BackendContext, MemoryResults, SearchQuery
from lamella_qmd_backend.backend import QmdBackend
from lamella_qmd_backend.config import Config, Limits, Update

_PROGRAM = """#!{python} -ES
import sys

sys.path.insert(0, {folder!r})
from stand_in_qmd import main

main()
"""

# Names of files that are hard on shells, URLs and QMD's own forms of paths.
ODD_NAMES = ["a b", "a#b", "a?b", "100%", "a%20b", "it's", 'say "hi"', "🦊 fox", "项目/发布 计划", "-rf", "[x]"]


@define
class StandIn:
    """A `qmd` in a folder of its own; see `stand_in_qmd`."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> StandIn:
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / "qmd"
        program.write_text(_PROGRAM.format(python=sys.executable, folder=str(Path(__file__).parent)), "utf-8")
        program.chmod(0o755)
        return cls(folder)

    @property
    def command(self) -> str:
        return str(self.folder / "qmd")

    def play(self, mode: str, sub: str = "") -> None:
        """Fail in this way from now on; an empty mode ends it."""
        path = self.folder / (f"mode.{sub}" if sub else "mode")
        if mode:
            path.write_text(mode)
        else:
            path.unlink(missing_ok=True)

    def be(self, version: str) -> None:
        (self.folder / "version").write_text(version)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return _lines(self.folder / "calls", ast.literal_eval)

    def calls_of(self, sub: str) -> list[dict[str, Any]]:
        return [call for call in self.calls if sub in call["argv"]]

    @property
    def worker(self) -> int:
        """The process that it has started last, in the modes with a worker."""
        return int((self.folder / "worker.pid").read_text())

    @property
    def queries(self) -> list[dict[str, Any]]:
        """What the server was asked."""
        return _lines(self.folder / "queries.jsonl", json.loads)


def _lines(path: Path, read: Callable[[str], Any]) -> list[dict[str, Any]]:
    return [read(line) for line in path.read_text().splitlines()] if path.exists() else []


@define
class Scene:
    """A workspace, a stand-in and a backend on them."""

    workspace: Path
    state: Path
    qmd: StandIn
    config: Config
    context: BackendContext
    backends: list[QmdBackend]

    @classmethod
    def make(cls, folder: Path, **settings: Any) -> Scene:
        (folder / "ws" / "memory").mkdir(parents=True)
        StandIn.make(folder / "bin")
        return cls.on(folder, **settings)

    @classmethod
    def on(cls, folder: Path, **settings: Any) -> Scene:
        """The scene of a folder that has been made."""
        workspace, state, qmd = folder / "ws", folder / "state", StandIn(folder / "bin")
        # Searches are by the command line unless a test wants the server; nothing is put off.
        usual: dict[str, Any] = {
            "command": qmd.command,
            "mcp": False,
            "limits": Limits(timeout_seconds=20.0),
            "update": Update(debounce_seconds=0.0, busy_seconds=1.0),
        }
        config = Config(**{**usual, **settings})
        return cls(workspace, state, qmd, config, BackendContext("main", workspace, state), [])

    @property
    def backend(self) -> QmdBackend:
        """The one backend; made when it is first asked for."""
        return self.backends[0] if self.backends else self.another()

    def another(self, **settings: Any) -> QmdBackend:
        """One more backend on the same state, as another process would have."""
        made = QmdBackend(self.context, evolve(self.config, **settings))
        self.backends.append(made)
        return made

    def write(self, name: str, text: str) -> Path:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def search(self, text: str, **fields: Any) -> MemoryResults:
        return self.backend.search(SearchQuery(text, **fields))

    def paths(self, text: str, **fields: Any) -> list[str]:
        return [hit.path for hit in self.search(text, **fields).hits]

    def close(self) -> None:
        for backend in self.backends:
            backend.close()


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)
