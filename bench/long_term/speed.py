"""Searches of a large table, wall and CPU time.

    python bench/long_term/speed.py [--rows 100000] [--queries 60]

Texts are made of words by chance, so that every question has words and meaning in common with many of them. The
embedder is `static`. Imports, the first search (which reads the table) and the filling are timed apart.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import opened

from lamella_memory_lancedb import Config
from lamella_memory_lancedb.service import Memories
from lamella_memory_lancedb.store.memory import Memory, Origin, new_id, text_hash

GROUP = 5000
SUBJECTS = (
    "Anna",
    "Ben",
    "Carla",
    "David",
    "Eva",
    "Finn",
    "Greta",
    "Hugo",
    "Ida",
    "Jonas",
    "Klara",
    "Leo",
    "Mia",
    "Noah",
)
VERBS = ("likes", "hates", "owns", "repairs", "paints", "sells", "studies", "collects", "lost", "found", "bought")
THINGS = (
    *("bicycle", "piano", "kettle", "garden", "engine", "novel", "camera", "carpet", "lantern", "compass", "blanket"),
    *("ladder", "violin", "saddle", "mirror", "anchor", "basket", "candle", "drawer", "feather", "goblet", "hammer"),
    *("island", "jacket", "kitchen", "letter", "magnet", "needle", "orchard", "pencil", "quilt", "ribbon"),
)
PLACES = ("Bonn", "Oslo", "Lyon", "Turin", "Porto", "Delft", "Ghent", "Basel", "Cork", "北京", "上海", "東京", "서울")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--queries", type=int, default=60)
    given = arguments.parse_args()
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        memories = opened(Path(folder), Config())
        timed("load lancedb", memories.warm_up, wait=lambda: memories._warming and memories._warming.wait(60))
        timed(f"fill with {given.rows} memories", lambda: fill(memories, given.rows, chance))
        memories.sync()
        timed("first search", lambda: memories.find("Who collects candles?", 3))
        questions = [f"Does {chance.choice(SUBJECTS)} own a {chance.choice(THINGS)} in {chance.choice(PLACES)}?"
                     for _ in range(given.queries)]  # fmt: skip
        many("search", questions, lambda question: memories.find(question, 3))
        reader = memories.reader("agent:main:x", "group")
        many("search in a group", questions, lambda question: memories.find(question, 3, reader))
        own = Origin("main", "bench")
        many("store", [f"Note {n}: {q}" for n, q in enumerate(questions[:20])], lambda t: memories.keeper.keep(t, own))
        many("forget", list(range(5)), lambda _n: memories.forget(memories.page(0, 1)))
        memories.close()
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def fill(memories: Memories, rows: int, chance: random.Random) -> None:
    embedder = memories.meaning.embedder()
    for start in range(0, rows, GROUP):
        texts = [
            f"{chance.choice(SUBJECTS)} {chance.choice(VERBS)} a {chance.choice(THINGS)} and a {chance.choice(THINGS)} "
            f"in {chance.choice(PLACES)}, number {number}."
            for number in range(start, min(start + GROUP, rows))
        ]
        made = [Memory(new_id(), text, text_hash(text), created_at=1, agent="main", source="bench") for text in texts]
        with memories.store.writing():
            memories.store.insert(made, list(memories.meaning.embed(texts, embedder)), embedder.identity)


def timed(what: str, action: Callable[[], Any], wait: Callable[[], Any] = lambda: None) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    wait()
    print(f"{what}: {time.perf_counter() - wall:.2f} s, {time.process_time() - cpu:.2f} s CPU")


def many(what: str, inputs: list[Any], action: Callable[[Any], Any]) -> None:
    walls, cpus = [], []
    for given in inputs:
        wall, cpu = time.perf_counter(), time.process_time()
        action(given)
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
    p50, p95, spent = np.percentile(walls, 50), np.percentile(walls, 95), np.percentile(cpus, 50)
    print(f"{what}: p50 {p50:.1f} ms, p95 {p95:.1f} ms, CPU p50 {spent:.1f} ms")


if __name__ == "__main__":
    main()
