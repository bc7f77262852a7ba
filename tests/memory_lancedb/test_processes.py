"""Several processes on one table: nothing is lost, nothing is there twice."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from memories import memories_in, texts_on_disk

# Stores shared and own texts, searches, forgets some, and writes down what it was told.
WORKER = """
import sys
from pathlib import Path
sys.path.insert(0, {support!r})
from memories import memories_in
from lamella_memory_lancedb.store.memory import Origin

folder, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
memories = memories_in(folder, optimize_writes=7, lock_seconds=60)
for number in range(rounds):
    for text in (f"Shared thing {{number}} is in box {{number}}", f"Own thing {{number}} of {{name}}"):
        kept = memories.keeper.keep(text, Origin("main", name))
        print(kept.action, text, flush=True)
    assert memories.find(f"Shared thing {{number}}", 3).hits
    if number % 5 == 4:
        own = [m for m in memories.page(0, 500) if m.text == f"Own thing {{number - 1}} of {{name}}"]
        memories.forget(own)
"""


@pytest.mark.slow
def test_two_processes_store_search_forget_and_tidy_at_once(tmp_path: Path) -> None:
    support = str(Path(__file__).parents[1] / "support")
    rounds, names = 20, ["one", "two", "three"]
    code = WORKER.format(support=support)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), name, str(rounds)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    said = [worker.communicate(timeout=300) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], [err[-2000:] for _out, err in said]
    memories = memories_in(tmp_path)
    texts = Counter(m.text for m in memories.page(0, 1000))
    forgotten = {number for number in range(rounds) if number % 5 == 3}
    expected = {f"Shared thing {n} is in box {n}" for n in range(rounds)}
    expected |= {f"Own thing {n} of {name}" for name in names for n in range(rounds) if n not in forgotten}
    assert set(texts) == expected and set(texts.values()) == {1}
    created = Counter(line for out, _err in said for line in out.splitlines() if line.startswith("created"))
    assert set(created.values()) == {1} and len(created) == rounds * (1 + len(names))
    assert memories.stats().forgotten == len(forgotten) * len(names)
    assert memories.stats().without_vector == 0
    memories.forget_all()
    assert not texts_on_disk(tmp_path, "Own thing 1 of")


@pytest.mark.slow
def test_a_killed_writer_leaves_a_table_that_works(tmp_path: Path) -> None:
    support = str(Path(__file__).parents[1] / "support")
    code = WORKER.format(support=support)
    for attempt in range(4):
        worker = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), f"w{attempt}", "200"], stdout=subprocess.PIPE, text=True
        )
        assert worker.stdout is not None
        done = [worker.stdout.readline().strip() for _ in range(3 + 11 * attempt)]
        worker.kill()
        worker.communicate()
        memories = memories_in(tmp_path)
        texts = Counter(m.text for m in memories.page(0, 5000))
        assert set(texts.values()) == {1}
        shared = [line.removeprefix("created ") for line in done if line.startswith("created Shared")]
        assert not [text for text in shared if text not in texts]
        assert memories.find("Shared thing 0", 3).hits and memories.sync().ok
