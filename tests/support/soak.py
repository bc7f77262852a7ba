"""A workspace under load: a process that uses its memory, and one that edits it.

soak.py use WORKSPACE NAME      indexes and searches until "end" comes in; answers each "find TOKEN"
soak.py edit WORKSPACE SEED     edits files until anything comes in
"""

from __future__ import annotations

import random
import select
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from notes import memory_context
from vector_words import WordVectors

from lamella.types.hooks import MemoryContext
from lamella.types.memory import BackendRegistration, SearchQuery
from lamella_memory_core import Config
from lamella_memory_core.backend import open_sqlite
from lamella_memory_core.service import Memory

# On a busy machine an index may take its time; here it is to be right, not quick.
CONFIG = Config(watch_debounce_ms=50, search_wait_seconds=120)


def open_memory(workspace: Path, state: str = "state") -> Memory:
    """A memory as a program opens it, with vectors, that follows its files."""
    context = memory_context(workspace, state=state)
    backends = {"sqlite": BackendRegistration("sqlite", lambda given: open_sqlite(given, CONFIG))}
    return Memory(_with(context, backends), CONFIG)


def _with(context: MemoryContext, backends: dict[str, BackendRegistration]) -> MemoryContext:
    from attrs import evolve

    return evolve(context, backends=backends, embedders=WordVectors(dimensions=8).registered())


def lines() -> Iterator[str]:
    """Lines from standard input as they come; an empty one whenever there is none."""
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], 0)
        yield sys.stdin.readline().strip() if ready else ""


def use(workspace: Path, name: str) -> None:
    memory = open_memory(workspace)
    chance = random.Random(name)
    for line in lines():
        if line == "end":
            memory.close()
            return
        if line.startswith("find "):
            found = memory.search(SearchQuery(line.removeprefix("find "), 20))
            paths = sorted(hit.path for hit in found.hits if line.split()[1] in hit.snippet)
            sys.stdout.write(" ".join(paths) + "\n")
            sys.stdout.flush()
        elif chance.random() < 0.1:
            failed = memory.sync(force=chance.random() < 0.2).failed
            assert not failed, failed
        else:
            found = memory.search(SearchQuery(f"note {chance.randrange(60)}"))
            problem = found.degraded.reason if found.degraded else ""
            assert not problem or "vector" in problem, problem


def edit(workspace: Path, seed: str) -> None:
    chance = random.Random(seed)
    for number, line in enumerate(lines()):
        if line:
            return
        _edit_once(workspace, chance, number)


def _edit_once(workspace: Path, chance: random.Random, number: int) -> None:
    folder = workspace / "memory" / chance.choice(["", "", "deep", "deep/er"])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"n{chance.randrange(30)}.md"
    text = f"note {number} of many\n" * chance.randrange(1, 60)
    match chance.randrange(7):
        case 0:
            path.unlink(missing_ok=True)
        case 1:
            aside = workspace / "aside"
            aside.write_text(text)
            aside.replace(path)
        case 2 if path.exists():
            path.rename(folder / f"m{number % 30}.md")
        case 3 if number % 50 == 0:
            shutil.rmtree(workspace / "memory" / "deep", ignore_errors=True)
        case 4:
            with path.open("a") as file:
                file.write(f"- and {number} more\n")
        case _:
            path.write_text(text)


if __name__ == "__main__":
    {"use": use, "edit": edit}[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
