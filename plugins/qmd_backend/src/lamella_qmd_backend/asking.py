"""Asking QMD: through a running `qmd mcp` where there is one, else by its command line."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from attrs import frozen

from lamella_qmd_backend.collections import Collection
from lamella_qmd_backend.config import QUERY, SEARCH, SECTION, SEMANTIC, Config
from lamella_qmd_backend.faults import Kind, QmdFailed, failure_of
from lamella_qmd_backend.mcp import MOST_SUBS, McpChild, NoServer
from lamella_qmd_backend.output import Result, is_nothing, parse_results
from lamella_qmd_backend.program import Version
from lamella_qmd_backend.questions import Sub, expandable, keyword_subs, meaning_sub, whole_sub
from lamella_qmd_backend.runner import INDEX, Runner

_OLD_TERMS = 6  # searches of one word each, which is what old versions can do; each starts a process
_AT_ONCE = 2
_RANK_CONSTANT = 60
_MODELS = {SEMANTIC: ("embed",), QUERY: ("embed", "generate")}  # that a mode needs
_MOST_STARTS = 3  # of a server that is killed whenever it starts


@frozen(slots=True)
class Question:
    """What is asked, of which collections, for how many files. `deadline` on the monotonic clock.

    `identity` tells the index from another one, so that a server that holds the old one is not asked.
    `expects_documents`: an index without any in these collections is not the right one.
    """

    text: str
    collections: tuple[Collection, ...]
    limit: int
    deadline: float
    identity: str
    expects_documents: bool = False

    @property
    def names(self) -> list[str]:
        return [collection.name for collection in self.collections]

    @property
    def seconds(self) -> float:
        return max(self.deadline - time.monotonic(), 0.05)


class Asker:
    """Asks in the mode that is configured. `query` calls come one at a time."""

    def __init__(self, config: Config, runner: Callable[[], Runner], version: Callable[[], Version]) -> None:
        self._config = config
        self._runner = runner
        self._version = version
        self._child: tuple[str, Runner, McpChild] | None = None
        self._no_server = ""
        self._failed_starts = 0
        self._closing = threading.Lock()

    @property
    def by_meaning(self) -> bool:
        return self._config.mode in (SEMANTIC, QUERY)

    @property
    def server(self) -> str:
        """How QMD is asked, for people."""
        if not self._serves():
            return self._no_server or "off"
        return "running" if self._child is not None and self._child[2].is_alive else "starts with the first search"

    def check_mode(self) -> None:
        """Raises `QmdFailed` when the mode cannot work with this version or without a model."""
        mode, models = self._config.mode, self._config.models
        if mode == SEMANTIC and not self._version().has_structured_queries:
            raise QmdFailed(f"mode semantic needs QMD 2.1 or newer, found {self._version()}", Kind.PROGRAM)
        missing = [name for name in _MODELS.get(mode, ()) if not getattr(models, name)]
        if missing and not self._config.collections:
            keys = " and ".join(f"{SECTION}.models.{name}" for name in missing)
            raise QmdFailed(
                f"mode {mode} needs a model, found none in {keys}", hint=f"Set {keys}, or use mode keywords."
            )

    def ask(self, question: Question) -> list[Result]:
        """The files that QMD finds, best first. Raises `QmdFailed`."""
        mode = self._config.mode
        if mode == QUERY:
            text = expandable(question.text)
            return self._run(question, QUERY, text, rerank=bool(self._config.models.rerank)) if text else []
        if mode == SEARCH:
            subs: tuple[Sub, ...] = (whole_sub(question.text),)
        else:
            subs = keyword_subs(question.text)
            if mode == SEMANTIC:
                subs = (meaning_sub(question.text), *subs)
        if not subs:
            return []
        if self._serves():
            try:
                return self._ask_server(question, subs)
            except NoServer as error:
                self._failed_starts += 1
                if error.for_good or self._failed_starts == _MOST_STARTS:
                    self._no_server = f"not available: {error}"
        if mode == SEARCH:
            return self._run(question, SEARCH, subs[0].text)
        if self._version().has_structured_queries:
            return self._run(question, QUERY, "\n".join(sub.line for sub in subs))
        return self._one_by_one(question, subs)

    def close(self) -> None:
        with self._closing:
            if self._child is not None:
                self._child[2].close()
                self._child = None

    def _serves(self) -> bool:
        possible = os.name != "nt" and self._config.mode != QUERY
        return self._config.mcp and possible and not self._no_server and self._version().has_structured_queries

    def _ask_server(self, question: Question, subs: Sequence[Sub]) -> list[Result]:
        child = self._server(question)
        try:
            batches = [subs[i : i + MOST_SUBS] for i in range(0, len(subs), MOST_SUBS)]
            return fused([child.query(batch, question.names, question.limit, question.deadline) for batch in batches])
        except BaseException:
            self.close()  # whatever it was at, its next answer would not be to the next question
            raise

    def _server(self, question: Question) -> McpChild:
        """The running server, or a new one when it has ended or holds another index."""
        runner = self._runner()
        if self._child is not None:
            identity, its_runner, child = self._child
            if child.is_alive and its_runner is runner and identity == question.identity:
                return child
            self.close()
        child = McpChild(runner, self._config.limits.output_chars, question.deadline)
        self._child, self._failed_starts = (question.identity, runner, child), 0
        try:
            folders = child.folders(question.deadline)
        except BaseException:
            self.close()
            raise
        self._check_index(question, folders)
        return child

    def _check_index(self, question: Question, folders: dict[str, str]) -> None:
        """Whether the server's index is the one that was meant. It does not list collections without documents."""
        listed = [c for c in question.collections if c.name in folders]
        strange = [c for c in listed if os.path.realpath(folders[c.name]) != os.path.realpath(c.path)]
        if question.expects_documents and not listed:
            strange = list(question.collections)
        if strange:
            self.close()
            missing = f"{strange[0].name} at {strange[0].path}"
            raise QmdFailed(f"Collection not found: {missing}", Kind.COLLECTION)

    def _run(self, question: Question, command: str, text: str, *, rerank: bool = False) -> list[Result]:
        """One search by the command line. The text comes last, after `--`, so that it is never an option."""
        arguments = ["--json", "-n", str(question.limit)]
        if command == QUERY and not rerank:
            arguments.append("--no-rerank")
        for name in question.names:
            arguments += ["-c", name]
        cap = self._config.limits.output_chars
        ran = self._runner().run(*INDEX, command, *arguments, "--", text, timeout=question.seconds, cap=cap)
        results = None if ran.overflowed else parse_results(ran.out, ran.err)
        # A crash or a time-out after the whole answer takes nothing from it, nor does an error that is called one
        # because nothing was found.
        if results is None or (ran.code != 0 and not results and not (ran.code == 1 and is_nothing(ran.out))):
            raise failure_of(ran, f"qmd {command}")
        return results

    def _one_by_one(self, question: Question, subs: Sequence[Sub]) -> list[Result]:
        """A search for each of the longest words, for versions that cannot join searches."""
        chosen = sorted(subs, key=lambda sub: -len(sub.text))[:_OLD_TERMS]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return fused(pool.map(lambda sub: self._run(question, SEARCH, sub.text), chosen))


def fused(rankings: Iterable[Sequence[Result]]) -> list[Result]:
    """One ranking of several, by the sum of reciprocal ranks."""
    scores: dict[tuple[str, str], float] = {}
    results: dict[tuple[str, str], Result] = {}
    for ranking in rankings:
        for rank, result in enumerate(ranking, 1):
            key = (result.collection, result.path)
            scores[key] = scores.get(key, 0.0) + 1 / (_RANK_CONSTANT + rank)
            results.setdefault(key, result)
    return [results[key] for key in sorted(scores, key=lambda key: -scores[key])]
