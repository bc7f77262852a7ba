"""Settings of the plugin: `[plugins.config.memory-core]`."""

from __future__ import annotations

from attrs import frozen

from lamella.config.schema import between, not_empty, setting


@frozen(slots=True)
class Config:
    """Settings of memory-core, with their defaults."""

    embedder: str = setting(
        "static", "What compares meanings: the name of an embedder, or none for words alone.", check=not_empty
    )
    dense_share: float = setting(
        0.5, "Part of the order that meaning has (0 to 1); words have the rest.", check=between(0, 1)
    )
    chunk_tokens: int = setting(128, "Size of an indexed passage, in estimated tokens.", check=between(16, 4000))
    chunk_overlap: int = setting(32, "About how many tokens of a passage the next one repeats.", check=between(0, 2000))
    max_results: int = setting(
        6, "Results of memory_search, unless the call asks for another number.", check=between(1, 50)
    )
    min_score: float = setting(0.2, "Results below this score (0 to 1) are left out.", check=between(0, 1))
    snippet_chars: int = setting(
        1200, "Most characters of one result's text; neighbouring hits are joined up to it.", check=between(80, 20_000)
    )
    read_lines: int = setting(200, "Most lines that memory_get returns at once.", check=between(1, 10_000))
    read_chars: int = setting(12_000, "Most characters that memory_get returns at once.", check=between(200, 200_000))
