"""How well embedders find notes on their own, side by side.

    python bench/embedders/retrieval.py DATA.json ... [--embedder NAME=module:factory ...]

Prints recall@5 and MRR of the `static` embedder (cosine over chunks of 128 tokens, nothing else),
of keyword search, and of every embedder that is named, with their ratios to `static`. The data is
not part of the repository; `judged.py` says what it looks like.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from engines import Dense, Engine, Keywords, embedder_from
from judged import Figures, score, workspaces

from lamella_embedders.static.embedder import default_embedder

FIRST = "static"


def measure(engine: Engine, path: Path, limit: int | None) -> Figures:
    """One engine on one data file."""
    ranked = [
        pair
        for workspace in workspaces(path, limit)
        for pair in zip(workspace.questions, engine.rank(workspace), strict=True)
    ]
    return score(ranked)


def table(label: str, rows: dict[str, Figures]) -> str:
    """The figures of one data file; ratios are to the first engine."""
    first = rows[FIRST]
    lines = [f"{label} ({first.n} questions)"]
    lines += [
        f"  {name:<12} recall@5 {f.recall_at_5:.3f} ({_ratio(f.recall_at_5, first.recall_at_5)})"
        f"   MRR {f.mrr:.3f} ({_ratio(f.mrr, first.mrr)})"
        for name, f in rows.items()
    ]
    return "\n".join(lines)


def _ratio(value: float, base: float) -> str:
    return f"x{value / base:.2f}" if base else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+", help="data files")
    parser.add_argument("--embedder", action="append", default=[], metavar="NAME=module:factory")
    parser.add_argument("--limit", type=int, help="workspaces of each file at most")
    arguments = parser.parse_args()
    engines: dict[str, Engine] = {FIRST: Dense(default_embedder()), "keywords": Keywords()}
    for named in arguments.embedder:
        name, _, target = named.partition("=")
        engines[name] = Dense(embedder_from(target))
    for path in arguments.data:
        print(table(path.stem, {n: measure(e, path, arguments.limit) for n, e in engines.items()}))


if __name__ == "__main__":
    main()
