"""The table of passages. pyarrow and numpy are loaded when this module is; lancedb at the first use."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from lamella.errors import MemoryUnavailable
from lamella.text.segment import query_terms
from lamella_memory_lancedb.notes.passages import Passage
from lamella_memory_lancedb.notes.schema import LIGHT, WORDS, Label, arrow_of, label_of
from lamella_memory_lancedb.store.database import MISSING_IS_NULL, Database, tidy
from lamella_memory_lancedb.store.location import Location
from lamella_memory_lancedb.store.lock import WriteLock
from lamella_memory_lancedb.store.memory import quoted
from lamella_memory_lancedb.store.queries import groups, rows
from lamella_memory_lancedb.store.schema import VECTOR, vectors_of

if TYPE_CHECKING:
    from lamella_memory_lancedb.arrays import Singles

NAME = "passages"
# Readers of other processes finish with an old version well within this time.
_KEPT = timedelta(minutes=10)
_TIDY_EVERY = 50  # versions
_LEAST_TRAINING = 256  # vectors that the approximate index needs to be made
# How many parts of that index are looked at, and how many candidates for each result are compared exactly.
_PROBES, _REFINE = 40, 20
log = logging.getLogger(__name__)


@frozen(slots=True, eq=False)
class Candidate:
    """A passage that may answer, with its vector (None: it has none)."""

    passage: Passage
    vector: Singles | None = field(default=None, repr=False)


class Table:
    """Blocking; may be used by several threads and processes at once. All raise `MemoryUnavailable`.

    A change is one commit, so that no reader finds a file half changed. Writes happen within `writing`.
    """

    def __init__(self, folder: Path, lock_seconds: float, index_rows: int) -> None:
        self.location = Location(str(folder), folder, str(folder))
        self._folder = folder
        self._database = Database(self.location)
        self._lock = WriteLock(self.location, lock_seconds)
        self._index_rows = index_rows
        self._known: tuple[int, dict[str, Any]] = (-1, {})

    # --- reading ------------------------------------------------------------------------------------------

    def label(self) -> Label | None:
        """None when there is no table."""
        return self._database.read(NAME, lambda table: label_of(table.schema), None)

    def version(self) -> int:
        """Another one after each change; 0 without a table."""
        return int(self._database.read(NAME, lambda table: table.version, 0))

    def files(self) -> dict[str, Passage]:
        """The rows of the files themselves, by path."""
        found: dict[str, Passage] = self._once("files", self._files)
        return found

    def count(self) -> int:
        return int(self._once("count", lambda: self._count("number > 0")))

    def count_without_vector(self) -> int:
        return int(self._once("missing", lambda: self._count("number > 0 AND vector IS NULL")))

    def without_vector(self) -> list[Passage]:
        return [Passage(**row) for row in self._rows("number > 0 AND vector IS NULL")]

    def vectors(self, hashes: Sequence[str]) -> dict[str, Singles]:
        """The vectors that texts with these hashes have already."""
        found: dict[str, Singles] = {}
        for group in groups(list(dict.fromkeys(hashes))):
            condition = f"number > 0 AND vector IS NOT NULL AND hash IN ({', '.join(map(quoted, group))})"
            table = self._database.read(NAME, partial(_hashed, condition=condition), None)
            if table is not None and table.num_rows:
                found |= zip(table["hash"].to_pylist(), vectors_of(table[VECTOR])[0], strict=True)
        return found

    def with_words(self, question: str, condition: str, most: int) -> list[Candidate]:
        """Passages with words of a question, best first by LanceDB's own index."""
        terms = query_terms(question)
        words = " ".join(dict.fromkeys(word for term in terms if term.kind != "prefix" for word in term.text.split()))
        found: list[Candidate] = []
        if words:
            try:
                found = self._candidates(lambda table: _with_words(table, words, condition, most))
            except MemoryUnavailable:
                self._index_words_once()  # a program may be making the table anew, or was killed when it did
                found = self._candidates(lambda table: _with_words(table, words, condition, most))
        for start in (term.text for term in terms if term.kind == "prefix"):  # one character of an unspaced script
            whole = _both(f"contains(text, {quoted(start)})", condition)
            found += self._candidates(lambda table, c=whole: _where(table, c, most))
        return found

    def near(self, vector: Singles, condition: str, most: int) -> list[Candidate]:
        """Passages most like a vector of unit length, best first."""
        return self._candidates(lambda table: _near(table, vector, condition, most))

    # --- writing: within `writing` ------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        with self._lock.held():
            yield

    def rebuild(self, label: Label, passages: Sequence[Passage], vectors: Mapping[str, Singles]) -> None:
        """Make the table anew; a reader sees the old rows or the new ones. `vectors`: by the texts' hashes."""
        whole = arrow_of(passages, vectors, label)
        try:
            table = self._database.write(NAME, whole)
            self._index_words(table)
        except MemoryUnavailable:
            log.warning("the index at %s is made anew from nothing", self._folder, exc_info=True)
            self._wipe()
            table = self._database.write(NAME, whole)
            self._index_words(table)
        self._tidy(table)

    def tidy(self) -> None:
        """Merge small files, drop old versions, and make the index of vectors when there are enough."""
        table = self._database.table(NAME)
        if table is not None:
            self._tidy(table)

    def change(self, passages: Sequence[Passage], gone: Sequence[str], vectors: Mapping[str, Singles]) -> None:
        """Put these rows in place of all that their files had, and drop the files that are `gone`."""
        paths = {passage.path for passage in passages}.union(gone)
        replaced = f"path IN ({', '.join(map(quoted, sorted(paths)))})"
        self._merge(
            passages,
            vectors,
            lambda merging: (
                merging.when_matched_update_all()
                .when_not_matched_insert_all()
                .when_not_matched_by_source_delete(replaced)
            ),
        )

    def update(self, passages: Sequence[Passage], vectors: Mapping[str, Singles]) -> None:
        """Put these rows in place of those with the same place and hash; where there are none, nothing changes."""
        same = "target.hash = source.hash"
        self._merge(passages, vectors, lambda merging: merging.when_matched_update_all(where=same))

    def close(self) -> None:
        self._database.close()

    # --- within -------------------------------------------------------------------------------------------

    def _merge(self, passages: Sequence[Passage], vectors: Mapping[str, Singles], how: Callable[[Any], Any]) -> None:
        label, table = self.label(), self._database.table(NAME)
        if label is None or table is None:
            raise MemoryUnavailable(f"the index at {self._folder} has gone")
        data = arrow_of(passages, vectors, label)
        self._database.guarded(
            lambda: how(table.merge_insert(["path", "number"])).execute(data, on_bad_vectors=MISSING_IS_NULL)
        )
        if self.version() % _TIDY_EVERY == 0:
            self._tidy(table)

    def _tidy(self, table: Any) -> None:
        def tidied() -> None:
            if table.count_rows("vector IS NOT NULL") >= max(self._index_rows, _LEAST_TRAINING) and not _has_index(
                table, VECTOR
            ):
                from lancedb.index import IvfPq

                table.create_index(VECTOR, config=IvfPq(distance_type="dot"), replace=True)
            tidy(table, _KEPT)

        self._database.guarded(tidied)

    def _index_words(self, table: Any) -> None:
        """The words are lamella's own, one a blank: pairs of characters where a script has no spaces."""
        from lancedb.index import FTS

        config = FTS(base_tokenizer="whitespace", with_position=False, remove_stop_words=False, max_token_length=None)
        self._database.guarded(lambda: table.create_index(WORDS, config=config, replace=True))

    def _index_words_once(self) -> None:
        with self.writing():
            self._database.close()
            table = self._database.table(NAME)
            if table is not None and not self._database.guarded(lambda: _has_index(table, WORDS)):
                self._index_words(table)

    def _wipe(self) -> None:
        self._database.close()
        try:
            shutil.rmtree(self._folder / f"{NAME}.lance", ignore_errors=False)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise MemoryUnavailable(f"{self._folder} cannot be written: {error.strerror or error}") from error

    def _candidates(self, query: Any) -> list[Candidate]:
        found = self._database.read(NAME, lambda table: query(table).to_arrow(), None)
        if found is None:
            return []
        vectors, has = vectors_of(found[VECTOR])
        light = found.select(list(LIGHT)).to_pylist()
        return [Candidate(Passage(**row), vectors[i] if has[i] else None) for i, row in enumerate(light)]

    def _once(self, what: str, find: Callable[[], Any]) -> Any:
        """What was found for this version of the table, or is found now."""
        version = self.version()
        if self._known[0] != version:
            self._known = (version, {})
        known = self._known[1]
        if what not in known:
            known[what] = find()
        return known[what]

    def _files(self) -> dict[str, Passage]:
        return {row["path"]: Passage(**row) for row in self._rows("number = 0")}

    def _rows(self, condition: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._database.read(NAME, lambda table: rows(table, condition, LIGHT), [])
        return found

    def _count(self, condition: str) -> int:
        return int(self._database.read(NAME, lambda table: table.count_rows(condition), 0))


def _with_words(table: Any, words: str, condition: str, most: int) -> Any:
    from lancedb.query import MatchQuery

    query = table.search(MatchQuery(words, WORDS), query_type="fts").limit(most)
    query = query.select([*LIGHT, VECTOR, "_score"])
    return query.where(condition, prefilter=True) if condition else query


def _hashed(table: Any, condition: str) -> Any:
    return table.search().select(["hash", VECTOR]).where(condition).limit(None).to_arrow()


def _where(table: Any, condition: str, most: int) -> Any:
    return table.search().where(condition).select([*LIGHT, VECTOR]).limit(most)


def _near(table: Any, vector: Singles, condition: str, most: int) -> Any:
    query = table.search(vector, vector_column_name=VECTOR).distance_type("dot").limit(most)
    query = query.nprobes(_PROBES).refine_factor(_REFINE).select([*LIGHT, VECTOR, "_distance"])
    return query.where(condition, prefilter=True) if condition else query


def _both(*conditions: str) -> str:
    return " AND ".join(filter(None, conditions))


def _has_index(table: Any, column: str) -> bool:
    return any(column in index.columns for index in table.list_indices())
