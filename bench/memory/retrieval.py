"""Memory search through its own door, with several settings side by side; see README.md."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

COLUMNS = ("recall@1", "recall@5", "ndcg@10", "r@4000c")
COMPARED = "recall@5"
HEAD = ("set", "questions", "setting", *COLUMNS, f"{COMPARED} vs first", "p50 ms")

Row = Mapping[str, Any]


@frozen(slots=True)
class Setting:
    """An embedder and its share of the order; None: the share that it has by default."""

    embedder: str
    share: float | None

    @property
    def label(self) -> str:
        if self.embedder == "none":
            return "words only"
        return self.embedder if self.share is None else f"{self.embedder} {self.share:g}"

    def toml(self) -> str:
        share = "" if self.share is None else f"dense_share = {self.share}\n"
        return f'[plugins.config.memory-core]\nembedder = "{self.embedder}"\n{share}'


def settings(embedders: list[str], shares: list[float]) -> Iterator[Setting]:
    for embedder in embedders:
        for share in shares if shares and embedder != "none" else [None]:
            yield Setting(embedder, share)


def measure(data: Path, setting: Setting) -> dict[str, Row]:
    """What `lamella memory eval --json` says: the figures of the whole set under its name, then of each type."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.toml"
        config.write_text(setting.toml())
        command = [sys.executable, "-m", "lamella", "memory", "eval", str(data), "--config", str(config), "--json"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    report = json.loads(done.stdout)
    return {data.stem: report["overall"], **report["by_type"]}


def table_row(name: str, setting: Setting, row: Row, first: Row) -> str:
    """A line of the table. The difference is that to the first setting, in questions of that type."""
    figures = [f"{row[column]:.3f}" for column in COLUMNS]
    difference = "" if row is first else f"{(row[COMPARED] - first[COMPARED]) * row['n']:+.1f} questions"
    return " | ".join([name, str(row["n"]), setting.label, *figures, difference, f"{row['p50_ms']:.1f}"])


def report(data: Path, chosen: list[Setting], *, types: bool) -> Iterator[str]:
    """Lines of the table for one file, as they become known."""
    first: dict[str, Row] = {}
    for setting in chosen:
        rows = measure(data, setting)
        first = first or rows
        for name in rows if types else [data.stem]:
            yield f"| {table_row(name, setting, rows[name], first[name])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="+", help="files of judged questions")
    parser.add_argument("--embedder", nargs="+", default=["none", "static"])
    parser.add_argument("--share", type=float, nargs="+", default=[], help="shares of meaning; else the embedder's own")
    parser.add_argument("--types", action="store_true", help="a row for each type of question too")
    arguments = parser.parse_args()
    chosen = list(settings(arguments.embedder, arguments.share))
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for data in arguments.data:
        for line in report(data, chosen, types=arguments.types):
            print(line, flush=True)


if __name__ == "__main__":
    main()
