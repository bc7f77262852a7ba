"""Memory search with the backend `qmd`, through `lamella memory eval`.

    python bench/memory/qmd.py --command DIR/node_modules/.bin/qmd SETS/zh/cmrc.open.json SETS/locomo/locomo.open.json

Needs the real qmd, 2.1 or newer (`python tests/support/real_qmd.py` installs one and prints where), and files of
judged questions. SQLite does not answer for it here: a failure of qmd ends the run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

COLUMNS = ("recall@1", "recall@5", "ndcg@10", "r@4000c", "p50_ms", "p95_ms")
# What recall@5 must be at least in the mode keywords, by name of the set.
BOUNDS = {"memorybank-zh": 0.90, "cmrc": 0.93, "locomo": 0.72}


def settings(command: str, mode: str, *, server: bool) -> str:
    return "\n".join(
        (
            '[memory]\nbackend = "qmd"',
            '[plugins.config.memory-core]\nfallback = "none"\nembedder = "none"',
            "[plugins.config.qmd-backend]",
            f"command = {json.dumps(command)}\nmode = {json.dumps(mode)}\nmcp = {json.dumps(server)}",
            "limits.timeout_seconds = 60\nupdate.first_wait_seconds = 60\n",
        )
    )


def measure(data: Path, config: str) -> dict[str, Any]:
    """The figures over all questions of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        path.write_text(config, "utf-8")
        command = [sys.executable, "-m", "lamella", "memory", "eval", str(data), "--config", str(path), "--json"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    overall: dict[str, Any] = json.loads(done.stdout)["overall"]
    return overall


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+", help="files of judged questions")
    parser.add_argument("--command", default="qmd")
    parser.add_argument("--mode", nargs="+", default=["keywords"])
    parser.add_argument("--no-server", action="store_true", help="start qmd for each question")
    arguments = parser.parse_args()
    print(f"| set | questions | mode | {' | '.join(COLUMNS)} |\n|{'---|' * (3 + len(COLUMNS))}")
    missed = 0
    for data in arguments.data:
        name = data.name.partition(".")[0]
        for mode in arguments.mode:
            row = measure(data, settings(arguments.command, mode, server=not arguments.no_server))
            figures = " | ".join(f"{row[column]:.{1 if column.endswith('ms') else 3}f}" for column in COLUMNS)
            print(f"| {name} | {row['n']} | {mode} | {figures} |", flush=True)
            missed += mode == "keywords" and row["recall@5"] < BOUNDS.get(name, 0.0)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
