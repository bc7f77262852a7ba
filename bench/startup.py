"""CPU time of one-shot commands, beside what Python and the libraries that they cannot do without take.

    python bench/startup.py [--repeat N]

Each run is a process of its own: user and system time, minimum and median, in milliseconds, on a
workspace of thirty notes that is indexed before. All modules are compiled before the clock starts, whatever
the environment says of bytecode. `ratio` is to `import numpy, click, attrs`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

NOTES = 30
LIBRARIES = "import numpy, click, attrs"
COMMANDS = (
    "--help",
    "config show",
    "sessions list",
    "status",
    "plugins list",
    "memory get memory/2026-01-01.md",
    "memory status",
    "memory search boiler",
)
_WITHOUT_WORKSPACE = ("--help", "config show", "plugins list")


def workspace(folder: Path) -> Path:
    """A workspace with a note a day."""
    (folder / "memory").mkdir(parents=True)
    for day in range(1, NOTES + 1):
        text = f"# Notes\n\nThe boiler was serviced on day {day}; we chose model B{day}.\n\nNumber {day}: gardens.\n"
        (folder / "memory" / f"2026-01-{day:02}.md").write_text(text, encoding="utf-8")
    return folder


def cpu_times(command: Sequence[str], environ: Mapping[str, str], repeat: int) -> list[float]:
    """Milliseconds of user and system time of each run."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    times = []
    for _ in range(repeat):
        process = os.posix_spawn(command[0], list(command), dict(environ), file_actions=quiet)
        _, status, used = os.wait4(process, 0)
        if status:
            raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
        times.append((used.ru_utime + used.ru_stime) * 1000)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        notes = workspace(folder / "workspace")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("LAMELLA_", "PYTHON")) or k == "PYTHONPATH"}
        environ = {**clean, "LAMELLA_HOME": str(folder / "home"), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        lamella = [sys.executable, "-m", "lamella"]
        subprocess.run(
            [*lamella, "memory", "index", "--workspace", notes], env=environ, check=True, capture_output=True
        )
        rows = {"python -c pass": [sys.executable, "-c", "pass"], LIBRARIES: [sys.executable, "-c", LIBRARIES]}
        for command in COMMANDS:
            at = () if command in _WITHOUT_WORKSPACE else ("--workspace", str(notes))
            rows[command] = [*lamella, *command.split(), *at]
        for row in rows.values():
            cpu_times(row, environ, 2)
        figures = {name: cpu_times(row, environ, options.repeat) for name, row in rows.items()}
    floor = min(figures[LIBRARIES])
    print(f"{'':34} {'min':>6} {'median':>6} {'ratio':>6}")
    for name, times in figures.items():
        print(f"{name:34} {min(times):6.0f} {median(times):6.0f} {min(times) / floor:6.2f}")


if __name__ == "__main__":
    main()
