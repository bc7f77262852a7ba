"""Memory search through its own door, with several settings side by side; see README.md."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

COLUMNS = ("recall@1", "recall@5", "ndcg@10", "r@4000c")


@frozen(slots=True)
class Setting:
    """An embedder and its share of the order."""

    embedder: str
    share: float

    @property
    def label(self) -> str:
        return "words only" if self.embedder == "none" else f"{self.embedder} {self.share:g}"

    def toml(self) -> str:
        return f'[plugins.config.memory-core]\nembedder = "{self.embedder}"\ndense_share = {self.share}\n'


def settings(embedders: list[str], shares: list[float]) -> Iterator[Setting]:
    for embedder in embedders:
        for share in shares if embedder != "none" else shares[:1]:
            yield Setting(embedder, share)


def measure(data: Path, setting: Setting) -> dict[str, Any]:
    """What `lamella memory eval --json` says."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.toml"
        config.write_text(setting.toml())
        command = [sys.executable, "-m", "lamella", "memory", "eval", str(data), "--config", str(config), "--json"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="+", help="files of judged questions")
    parser.add_argument("--embedder", nargs="+", default=["none", "static"])
    parser.add_argument("--share", type=float, nargs="+", default=[0.5])
    parser.add_argument("--types", action="store_true", help="a row for each type of question too")
    arguments = parser.parse_args()
    print(f"| set | questions | setting | {' | '.join(COLUMNS)} | p50 ms |\n|{'---|' * (len(COLUMNS) + 4)}")
    for data in arguments.data:
        for setting in settings(arguments.embedder, arguments.share):
            report = measure(data, setting)
            rows = {data.stem: report["overall"], **(report["by_type"] if arguments.types else {})}
            for name, row in rows.items():
                figures = " | ".join(f"{row[column]:.3f}" for column in COLUMNS)
                print(f"| {name} | {row['n']} | {setting.label} | {figures} | {row['p50_ms']:.1f} |", flush=True)


if __name__ == "__main__":
    main()
