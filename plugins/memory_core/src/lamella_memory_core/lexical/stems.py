"""The tokens that FTS5 makes of words: its own tokeniser is asked, so that both always agree."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

# Marks count as letters, since many scripts write vowels with them.
TOKENIZE = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'"


class Stems:
    """A tokeniser. One thread at a time."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._db.execute(f'CREATE VIRTUAL TABLE words USING fts5(word, content="", tokenize="{TOKENIZE}")')
        self._db.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab(words, instance)")

    def of(self, words: Iterable[str]) -> list[list[str]]:
        """The tokens of each word, in order: mostly one; none or several for what has other characters in it."""
        wanted = list(words)
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(wanted))
        found: list[list[str]] = [[] for _ in wanted]
        for number, token in self._db.execute("SELECT doc, term FROM tokens ORDER BY doc, offset"):
            found[number].append(token)
        self._db.execute("INSERT INTO words (words) VALUES ('delete-all')")
        self._db.execute("COMMIT")
        return found

    def close(self) -> None:
        self._db.close()
