"""Settings of the plugin: `[plugins.config.memory-lancedb]`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import Attribute, Factory, field, frozen

from lamella.config.schema import between, not_empty, one_of, setting

SECTION = "plugins.config.memory-lancedb"
AGENT, SESSION, SHARED = SCOPES = ("agent", "session", "shared")
REMOTE_SCHEMES = ("s3", "gs", "az")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def expanded(text: str) -> str:
    """The text with each `${NAME}` replaced by that environment variable. Raises `ValueError` for one that
    is not set."""

    def value(found: re.Match[str]) -> str:
        known = os.environ.get(found[1])
        if not known:
            raise ValueError(f"{found[0]}: expected the environment variable {found[1]} to be set")
        return known

    return _VARIABLE.sub(value, text)


def _uri(_instance: Any, _attribute: Attribute[Any], value: str) -> None:
    text = expanded(value).strip()
    found = _SCHEME.match(text)
    if found and found[1].lower() not in REMOTE_SCHEMES:
        raise ValueError("expected a folder, or a URI that begins with s3://, gs:// or az://")
    if "\0" in value:
        raise ValueError("expected a path without NUL characters")
    try:
        Path(text).expanduser()
    except RuntimeError:
        raise ValueError("expected a folder; there is no user of the name behind ~") from None


def _options(_instance: Any, _attribute: Attribute[Any], value: Mapping[str, str]) -> None:
    for name, text in value.items():
        try:
            expanded(text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def _words(_instance: Any, _attribute: Attribute[Any], value: tuple[str, ...]) -> None:
    if not all(word.strip() for word in value):
        raise ValueError("expected words that are not empty")


@frozen(slots=True)
class Config:
    """Settings of memory-lancedb, with their defaults. Likeness is the cosine of two vectors."""

    embedder: str = setting(
        "static", "What compares meanings: the name of an embedder, or none for words alone.", check=not_empty
    )
    uri: str = setting(
        "",
        "Where memories are: a folder, or s3://, gs://, az://; empty: the agent's own state. ${NAME} is a variable.",
        check=_uri,
    )
    storage_options: Mapping[str, str] = field(
        default=Factory(dict),
        repr=False,
        validator=_options,
        metadata={"help": "Options of the object store, such as region or keys; ${NAME} is a variable."},
    )
    scope: str = setting(
        AGENT,
        "Whose memories are seen: agent (its own), session (of this session), or shared (all in the table).",
        check=one_of(*SCOPES),
    )
    owners: tuple[str, ...] = setting((), "With scope shared: only memories of these agents; empty: of all.")
    auto_recall: bool = setting(True, "Search memories for each prompt, and put what is found before it.")
    auto_capture: bool = setting(False, "Keep what users say of lasting interest, after each turn.")
    capture_in_groups: bool = setting(
        False, "With auto_capture: keep also what is said in group and channel chats, whoever says it."
    )
    recall_limit: int = setting(3, "Most memories that are recalled for a prompt.", check=between(1, 20))
    recall_threshold: float = setting(
        0.33, "Memories below it are not recalled: likeness, and up to 0.4 for common words.", check=between(0, 1.4)
    )
    recall_chars: int = setting(2400, "Most characters of all recalled memories.", check=between(200, 40_000))
    recall_timeout_ms: int = setting(
        5000, "How long a turn waits for what is recalled; what comes later is dropped.", check=between(10, 15_000)
    )
    search_limit: int = setting(
        5, "Results of memory_recall, unless the call asks for another number.", check=between(1, 50)
    )
    search_threshold: float = setting(
        0.2, "Memories below it are not found by memory_recall; measured as recall_threshold.", check=between(0, 1.4)
    )
    duplicate_threshold: float = setting(
        0.95, "Likeness from which a new memory counts as said before.", check=between(0.5, 1)
    )
    forget_threshold: float = setting(
        0.9, "Likeness from which memory_forget deletes the one memory that a query means.", check=between(0.5, 1)
    )
    candidate_threshold: float = setting(
        0.7, "Likeness from which a memory keeps memory_forget from deleting another one.", check=between(0, 1)
    )
    capture_max_chars: int = setting(
        500, "Longer messages are not captured, in characters.", check=between(100, 10_000)
    )
    capture_triggers: tuple[str, ...] = setting((), "More words that make a message worth keeping.", check=_words)
    private_in_groups: bool = setting(False, "Let group and channel chats see memories of private chats.")
    lock_seconds: float = setting(
        10.0, "How long a write waits for another process that writes.", check=between(0.1, 600)
    )
    optimize_writes: int = setting(100, "Tidy the table after so many writes.", check=between(1, 100_000))
    optimize_hours: float = setting(
        24.0, "Tidy the table when its oldest version has this age.", check=between(0.1, 8760)
    )
    index_rows: int = setting(
        200_000,
        "From this number of memories on, an approximate index answers instead of all vectors in memory.",
        check=between(1000),
    )
