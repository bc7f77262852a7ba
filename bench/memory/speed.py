"""Speed of memory search beside two versions of OpenClaw, in one run on the same files; see README.md.

All figures are CPU time of the process, its threads included. Every engine cuts files by its own default.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from attrs import asdict, frozen

from lamella.types.memory import BackendContext, EmbedderRegistration, SearchQuery
from lamella_embedders.static.provider import registrations
from lamella_memory_core import Config
from lamella_memory_core.backend import SqliteBackend, open_sqlite

PEERS = {"2026.3.13": "old", "2026.9.6": "new"}
PORT = 8791
_EDITS = 5


@frozen(slots=True)
class Figures:
    """Milliseconds of CPU time, but for `chunks` and `peak`, in MB of resident memory."""

    engine: str
    chunks: int
    index: float
    edit: float
    search: float
    peak: float


@frozen(slots=True)
class Corpus:
    """A workspace and the questions that go with it, one a line as JSON beside it."""

    workspace: Path

    @property
    def questions(self) -> list[str]:
        lines = (self.workspace.parent / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["query"] for line in lines]


def lamella(corpus: Corpus, mode: str, state: Path) -> Figures:
    """Index, search, and take in edits, in this process."""
    embedders: Mapping[str, EmbedderRegistration] = {r.name: r for r in registrations()}
    config = Config(embedder="static" if mode == "hybrid" else "none")
    backend = open_sqlite(BackendContext("main", corpus.workspace, state, embedders), config)
    reports: list[Any] = []
    index = cpu_ms(lambda: reports.append(backend.sync()))
    warm(backend, corpus.questions[:10])
    # OpenClaw's search, as measured here, does not look at the files either.
    queries = [SearchQuery(text, as_is=True) for text in corpus.questions]
    search = [cpu_ms(partial(backend.search, query)) for query in queries]
    edits = [cpu_ms(backend.sync) for _ in edited(corpus.workspace)]
    backend.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Figures("lamella", reports[0].chunks, index, median(edits), median(search), peak)


def warm(backend: SqliteBackend, questions: list[str]) -> None:
    """Search as a process does that has been running for a while."""
    for question in questions:
        backend.search(SearchQuery(question))
        backend._index._warmer.wait(600)


def edited(workspace: Path) -> Iterator[None]:
    """One file, with another line each time; as it was in the end."""
    victim = sorted((workspace / "memory").glob("*.md"))[3]
    original = victim.read_bytes()
    try:
        for number in range(_EDITS):
            victim.write_bytes(original + f"- incremental edit number {number} zebra{number}\n".encode())
            yield
    finally:
        victim.write_bytes(original)


def cpu_ms(action: Callable[[], object]) -> float:
    before = time.process_time()
    action()
    return (time.process_time() - before) * 1000


def openclaw(version: str, corpus: Corpus, mode: str, scripts: Path, installed: Path, node: str) -> Figures:
    """Run the peers' own benchmark on an installed version."""
    kind = PEERS[version]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [node, str(scripts / "bench.mjs"), "--light", "--impl", kind, "--mode", mode, "--port", str(PORT)]
        command += ["--pkg", str(installed / kind / "node_modules" / "openclaw"), "--ws", str(corpus.workspace)]
        command += ["--queries", str(corpus.workspace.parent / "queries.jsonl")]
        command += ["--state", f"{folder}/state", "--out", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = json.loads(out.read_text())
    return Figures(
        f"OpenClaw {version}",
        found["chunks"],
        found["fullIndexCpuMs"],
        median(found["incrementalCpuMs"]),
        found["search"]["cpuMsPerQuery"],
        found["peakRssMb"],
    )


@contextmanager
def embedding_server(scripts: Path) -> Iterator[None]:
    """The peers' loopback server of vectors. OpenClaw 2026.3.13 cannot index without one."""
    server = subprocess.Popen([sys.executable, str(scripts / "embed_server.py"), "--port", str(PORT)])
    try:
        time.sleep(1.0)
        yield
    finally:
        server.terminate()
        server.wait()


def table(rows: list[Figures]) -> str:
    """Markdown; the last row is how many times the first engine's CPU the cheapest other one took."""
    lines = [
        "| engine | passages | full index, s | an edit, ms | a search, ms | peak, MB |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        figures = f"{row.index / 1000:.1f} | {row.edit:.0f} | {row.search:.1f} | {row.peak:.0f}"
        lines.append(f"| {row.engine} | {row.chunks:,} | {figures} |")
    own, *others = rows
    if others:
        ratios = [min(getattr(o, name) for o in others) / getattr(own, name) for name in ("index", "edit", "search")]
        lines.append(f"| fewer times | | {' | '.join(f'{ratio:.1f}' for ratio in ratios)} | |")
    return "\n".join(lines)


def in_own_process(corpus: Corpus, mode: str) -> Figures:
    """lamella's figures from a new process, so that peaks of memory do not mix."""
    with tempfile.TemporaryDirectory() as state:
        command = [sys.executable, __file__, str(corpus.workspace), "--mode", mode, "--only-lamella", state]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Figures(**json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", type=Path, help="made by the peers' gen_corpus.py")
    parser.add_argument("--mode", choices=("fts", "hybrid"), default="fts")
    parser.add_argument("--scripts", type=Path, help="folder with the peers' bench.mjs and embed_server.py")
    parser.add_argument("--installed", type=Path, help="folder with the peers' packages in old/ and new/")
    parser.add_argument("--node", default=shutil.which("node") or "node", help="Node.js 24")
    parser.add_argument("--only", nargs="*", choices=tuple(PEERS), default=tuple(PEERS), help="versions to run")
    parser.add_argument("--only-lamella", metavar="STATE", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    corpus = Corpus(arguments.workspace.resolve())
    if arguments.only_lamella:
        print(json.dumps(asdict(lamella(corpus, arguments.mode, arguments.only_lamella))))
        return
    rows = [in_own_process(corpus, arguments.mode)]
    if arguments.scripts and arguments.installed:
        with embedding_server(arguments.scripts):
            for version in arguments.only:
                installed = arguments.installed.resolve()
                rows.append(openclaw(version, corpus, arguments.mode, arguments.scripts, installed, arguments.node))
    print(table(rows))


if __name__ == "__main__":
    main()
