"""Settings of the plugin: `[plugins.config.memory-core]`."""

from __future__ import annotations

from attrs import frozen
from attrs.validators import optional

from lamella.config.schema import between, file_names, not_empty, one_of, setting
from lamella_memory_core.choices import CHUNK_RULES, FALLBACKS, FUSIONS, KEYWORDS, LINES, STANDARDISED


@frozen(slots=True)
class Config:
    """Settings of memory-core, with their defaults."""

    embedder: str = setting(
        "static", "What compares meanings: the name of an embedder, or none for words alone.", check=not_empty
    )
    dense_share: float | None = setting(
        None,
        "Part of the order that meaning has (0 to 1), words have the rest; unset: what suits the embedder.",
        check=optional(between(0, 1)),
    )
    fusion: str = setting(
        STANDARDISED,
        "How words and meaning become one order: standardised, or weighted as in OpenClaw.",
        check=one_of(*FUSIONS),
    )
    candidate_multiplier: int = setting(
        4,
        "With weighted fusion: how many hits by words, and by meaning, are looked at for each result.",
        check=between(1, 20),
    )
    mmr_lambda: float = setting(
        1.0, "Below 1, results that repeat others come later (maximal marginal relevance); 1: off.", check=between(0, 1)
    )
    half_life_days: int = setting(
        0, "Days after which a dated note counts half in the order; 0: age does not count.", check=between(0, 36_500)
    )
    chunk_rule: str = setting(
        LINES, "How notes are cut: lines, or openclaw, which counts every character alike.", check=one_of(*CHUNK_RULES)
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
    search_wait_seconds: float = setting(
        10.0, "How long a search waits for the index to catch up with the files.", check=between(0, 600)
    )
    fallback: str = setting(
        KEYWORDS,
        "What sqlite keeps, to answer for another backend that fails: keywords, full (meaning too), or none: "
        "then nobody answers.",
        check=one_of(*FALLBACKS),
    )
    backend_timeout_seconds: float = setting(
        10.0,
        "How long a search by another backend than sqlite may take, before sqlite answers it.",
        check=between(0.1, 600),
    )
    backend_retry_seconds: float = setting(
        60.0,
        "How long a backend that failed is left alone; doubled with each failure, up to 10 minutes.",
        check=between(0.1, 86_400),
    )
    sync_on_session_start: bool = setting(True, "Bring the index up to date in the background of a new session.")
    sync_on_search: bool = setting(True, "Bring the index up to date before each search.")
    sync_interval_minutes: float = setting(
        0.0, "Bring the index up to date this often while a program runs; 0: never.", check=between(0, 10_080)
    )
    watch: bool = setting(True, "Follow the files while a program runs, so that a search need not look at all of them.")
    watch_debounce_ms: int = setting(
        1500, "Quiet time after a change until the index is brought up to date.", check=between(50, 600_000)
    )
    auto_recall: bool = setting(False, "Search memory for each prompt, and put what is found before it.")
    recall_results: int = setting(3, "Most passages that are recalled for a prompt.", check=between(1, 20))
    recall_chars: int = setting(2400, "Most characters of all recalled passages.", check=between(200, 40_000))
    recall_min_score: float = setting(
        0.75,
        "Passages below this score (0 to 1) are not recalled; by words alone, two thirds of it.",
        check=between(0, 1),
    )
    recall_timeout_ms: int = setting(
        300, "How long a turn waits for what is recalled; what comes later is dropped.", check=between(10, 10_000)
    )
    extra_paths: tuple[str, ...] = setting(
        (), "More Markdown files and folders to search, absolute or relative to the workspace.", check=file_names
    )
    session_memory: bool = setting(False, "Search what was said in sessions too, from their transcripts.")
    session_delta_bytes: int = setting(
        100_000, "A search reads a transcript in use again after so many new bytes; 0: any.", check=between(0)
    )
    session_delta_messages: int = setting(
        50, "A search reads a transcript in use again after so many new lines; 0: any.", check=between(0)
    )
    redact_notes: bool = setting(
        False, "Mask keys and passwords of notes in the index, so that no result shows them and no embedder gets them."
    )
    curated_in_groups: bool = setting(False, "Let group and channel chats search and read MEMORY.md.")
    sessions_in_groups: bool = setting(
        False, "Let group and channel chats search transcripts, and notes of private sessions."
    )
    citations: str = setting(
        "auto",
        "Add sources to results: on, off, or auto (where one person reads).",
        check=one_of("auto", "on", "off"),
    )
    flush: bool = setting(True, "Save what matters to today's note in a silent turn before history is compacted.")
    flush_prompt: str = setting(
        "", "Replaces the prompt of a flush; YYYY-MM-DD becomes the day, and rules that it lacks are added."
    )
    flush_system_prompt: str = setting("", "Replaces what a flush adds to the system prompt, likewise.")
    flush_timeout_seconds: float = setting(120.0, "Time limit of a flush.", check=between(1, 170))
    read_lines: int = setting(
        120, "Lines that memory_get returns, unless the call asks for another number.", check=between(1, 10_000)
    )
    read_chars: int = setting(12_000, "Most characters that memory_get returns at once.", check=between(200, 200_000))
