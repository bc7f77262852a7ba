"""Settings of the plugin: `[plugins.config.qmd-backend]`."""

from __future__ import annotations

import shlex
from typing import Any

from attrs import Attribute, field, frozen

from lamella.config.schema import between, one_of, setting

SECTION = "plugins.config.qmd-backend"
STATUS_SECONDS = 10.0
KEYWORDS, SEARCH, SEMANTIC, QUERY = MODES = ("keywords", "search", "semantic", "query")


def _command(_instance: Any, _attribute: Attribute[Any], value: str) -> None:
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise ValueError(f"expected a program, as in a shell ({error})") from None
    if not words or "\0" in value:
        raise ValueError('expected a program, such as "qmd" or "/opt/qmd/bin/qmd"')


def _collections(_instance: Any, _attribute: Attribute[Any], value: tuple[str, ...]) -> None:
    for name in value:
        if not name.strip() or not name.isprintable() or name.startswith("-"):
            raise ValueError(f"{name!r}: expected names of collections, as `qmd collection list` shows them")


def _model(_instance: Any, _attribute: Attribute[Any], value: str) -> None:
    if value and not value.isprintable():
        raise ValueError('expected the path of a GGUF file, or "hf:..."')


@frozen(slots=True)
class Limits:
    """How long and how much."""

    timeout_seconds: float = setting(
        5.0, "Longest time of a search in the modes keywords, search and semantic.", check=between(0.1, 600)
    )
    query_timeout_seconds: float = setting(
        120.0, "Longest time of a search in the mode query.", check=between(0.1, 3600)
    )
    files: int = setting(20, "Files that QMD is asked for; passages are picked from them.", check=between(1, 100))
    passages_per_file: int = setting(
        3, "Passages of one file that come before those of other files.", check=between(1, 50)
    )
    snippet_chars: int = setting(
        1200,
        "Most characters of one result's text; neighbouring passages are joined up to it.",
        check=between(200, 20_000),
    )
    output_chars: int = setting(
        200_000, "More output of a search than this is taken for a fault.", check=between(10_000, 10_000_000)
    )


@frozen(slots=True)
class Update:
    """When QMD's index is brought up to date, and how long that may take."""

    debounce_seconds: float = setting(
        15.0, "A search begins no update so soon after the last one.", check=between(0, 3600)
    )
    interval_minutes: float = setting(
        5.0,
        "An update is made after this time even if no file seems to have changed; 0: never.",
        check=between(0, 10_080),
    )
    timeout_seconds: float = setting(120.0, "Longest time of an update.", check=between(1, 86_400))
    first_wait_seconds: float = setting(
        10.0, "How long a search waits for the first index to be made.", check=between(0, 600)
    )
    busy_seconds: float = setting(
        10.0, "How long qmd waits for a database that another program writes to.", check=between(0, 600)
    )
    embed_interval_minutes: float = setting(
        60.0, "New texts are given vectors this often, where a model is configured.", check=between(0, 10_080)
    )
    embed_timeout_seconds: float = setting(600.0, "Longest time of that.", check=between(1, 86_400))


@frozen(slots=True)
class Models:
    """Models of QMD, for the modes semantic and query."""

    embed: str = setting("", "Embedding model: a GGUF file, or hf:... (which QMD downloads).", check=_model)
    generate: str = setting("", "Model that rewrites questions in the mode query, likewise.", check=_model)
    rerank: str = setting("", "Model that sorts results in the mode query, likewise; empty: none.", check=_model)
    context_size: int = setting(
        0,
        "Context of the embedding model in tokens, 512 for small ones; 0: QMD's own value.",
        check=between(0, 1 << 20),
    )


@frozen(slots=True)
class Config:
    """Settings of qmd-backend, with their defaults."""

    command: str = setting(
        "qmd", "The program, as in a shell: a name or a path, with arguments if need be.", check=_command
    )
    mode: str = setting(
        KEYWORDS,
        "How QMD is asked: keywords (any of them), search (all words, as in OpenClaw), semantic (keywords and"
        " meaning), or query (QMD rewrites the question).",
        check=one_of(*MODES),
    )
    mcp: bool = setting(True, "Keep one qmd mcp running for the searches of a program; else each search starts qmd.")
    collections: tuple[str, ...] = setting(
        (),
        "Collections of the index that you keep with QMD yourself, to search them instead of an index of lamella's;"
        " nothing is written to yours.",
        check=_collections,
    )
    limits: Limits = field(factory=Limits)
    update: Update = field(factory=Update)
    models: Models = field(factory=Models)
