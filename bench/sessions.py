"""Figures for sessions: opening, resuming, appending; beside the real Pi where it is installed.

    python bench/sessions.py [--pi DIR] [--node NODE] [--large] [--repeat N]

`--pi` names a folder in which `npm install @earendil-works/pi-coding-agent@1.6.0` was run (Node 24).
Each measurement runs in a process of its own; CPU milliseconds, minimum and median of the runs.
Ratios below 1 mean that lamella is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def generate(path: Path, entries: int, *, bytes_each: int = 400, compact_at: int | None = None) -> Path:
    """A linear transcript: user, call, result, reply; optionally one compaction that keeps 8 entries."""
    text = " ".join(f"word{i * 31 % 977}" for i in range(200))[:bytes_each]
    parent = None
    with path.open("w", encoding="utf-8") as file:

        def line(value: dict[str, Any]) -> None:
            file.write(json.dumps(value, separators=(",", ":")) + "\n")

        line({"type": "session", "version": 3, "id": "bench", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"})
        for i in range(entries):
            head: dict[str, Any] = {"id": f"{i:08x}", "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z"}
            if i == compact_at:
                kept = f"{i - 8:08x}"
                line({"type": "compaction", **head, "summary": text, "firstKeptEntryId": kept, "tokensBefore": 1})
                line(
                    {
                        "type": "model_change",
                        "id": "mc",
                        "parentId": head["id"],
                        "timestamp": "",
                        "provider": "p",
                        "modelId": "m",
                    }
                )
                line(
                    {
                        "type": "thinking_level_change",
                        "id": "tl",
                        "parentId": "mc",
                        "timestamp": "",
                        "thinkingLevel": "off",
                    }
                )
                parent = "tl"
                continue
            line({"type": "message", **head, "message": message(i, text)})
            parent = head["id"]
    return path


def message(i: int, text: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": text}]
    usage = {"input": 1000, "output": 50, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 1050, "cost": {}}
    reply = {"api": "a", "provider": "p", "model": "m", "usage": usage, "timestamp": 1}
    match i % 4:
        case 0:
            return {"role": "user", "content": blocks, "timestamp": 1}
        case 1:
            call = {"type": "toolCall", "id": f"c{i}", "name": "read", "arguments": {"path": f"src/f{i}.py"}}
            return {"role": "assistant", "content": [*blocks, call], "stopReason": "toolUse", **reply}
        case 2:
            return {
                "role": "toolResult",
                "toolCallId": f"c{i - 1}",
                "toolName": "read",
                "content": blocks * 2,
                "isError": False,
                "timestamp": 1,
            }
        case _:
            return {"role": "assistant", "content": blocks, "stopReason": "stop", **reply}


def measure(what: str, file: Path) -> dict[str, float]:
    """Run one measurement in a fresh process."""
    done = subprocess.run([sys.executable, __file__, "--one", what, str(file)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return dict(json.loads(done.stdout))


def one(what: str, file: Path) -> dict[str, float]:
    """The measurement itself; imports are done before the clock starts."""
    import resource

    from lamella.sessions.transcript import SessionFile
    from lamella.types.messages import TextBlock, UserMessage

    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cpu, wall = time.process_time(), time.perf_counter()
    if what == "append":
        return appends(SessionFile, UserMessage((TextBlock("question " * 40),), 1), file)
    session = SessionFile.open(file)
    context = session.context()
    if what == "bodies":
        assert context.messages
    used = (time.process_time() - cpu) * 1000
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu_ms": used, "wall_ms": (time.perf_counter() - wall) * 1000, "memory_mb": peak - base}


def appends(session_file: Any, text: Any, folder: Path) -> dict[str, float]:
    """Appends and plain fdatasync of the same bytes, in turn, on the same disk."""
    session = session_file.create(folder / "append.jsonl")
    session.append_message(text)
    line = json.dumps({"x": "y" * 600}).encode() + b"\n"
    fd = os.open(folder / "plain", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    ours, plain = [], []
    for _ in range(300):
        start = time.perf_counter()
        session.append_message(text)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        os.write(fd, line)
        os.fdatasync(fd)
        plain.append(time.perf_counter() - start)
    above = statistics.median(a - b for a, b in zip(ours, plain, strict=True))
    return {
        "append_p50_ms": statistics.median(ours) * 1000,
        "fdatasync_p50_ms": statistics.median(plain) * 1000,
        "above_ms": above * 1000,
    }


def pi_open(node: str, pi: Path, file: Path) -> dict[str, float]:
    done = subprocess.run([node, str(HERE / "pi_open.mjs"), str(pi), str(file)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"Pi could not be run: {done.stderr or done.stdout}")
    return dict(json.loads(done.stdout))


def row(name: str, runs: list[dict[str, float]]) -> str:
    parts = [
        f"{key} min {min(r[key] for r in runs):.2f} median {statistics.median(r[key] for r in runs):.2f}"
        for key in runs[0]
    ]
    return f"{name:<44} " + "; ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pi", type=Path, help="folder with the real Pi installed")
    parser.add_argument("--node", default="node", help="Node.js 24")
    parser.add_argument("--large", action="store_true", help="also resume a file of 2 GB")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one[0], Path(options.one[1]))))
        return
    with tempfile.TemporaryDirectory() as name:
        run(Path(name), options)


def run(folder: Path, options: argparse.Namespace) -> None:
    repeat = range(options.repeat)
    plain = generate(folder / "plain.jsonl", 50_000)
    ours, theirs = [], []
    for _ in repeat:  # side by side, so that a slow moment hits both
        ours.append(measure("open", plain))
        if options.pi:
            theirs.append(pi_open(options.node, options.pi, plain))
    print(row("open + context, 50,000 entries", ours))
    print(row("  the same, every message decoded", [measure("bodies", plain) for _ in repeat]))
    if theirs:
        print(row("  real Pi: open + buildSessionContext", theirs))
        ratio = statistics.median(a["cpu_ms"] / b["cpu_ms"] for a, b in zip(ours, theirs, strict=True))
        print(f"  ratio lamella / Pi: {ratio:.2f}")
    sizes = [("200 MB", 250_000)] + ([("2 GB", 2_500_000)] if options.large else [])
    for label, entries in sizes:
        big = generate(folder / "big.jsonl", entries, compact_at=entries - 50)
        print(
            row(
                f"resume, {label} ({big.stat().st_size / 1e6:.0f} MB), compaction near the end",
                [measure("bodies", big) for _ in repeat],
            )
        )
        big.unlink()
    print(row("append", [measure("append", folder_for(folder, i)) for i in repeat]))


def folder_for(folder: Path, run_number: int) -> Path:
    made = folder / f"append{run_number}"
    made.mkdir()
    return made


if __name__ == "__main__":
    main()
