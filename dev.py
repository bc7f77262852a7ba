#!/usr/bin/env python3
"""Set up and run lamella from a checkout, with nothing but Python >= 3.11 (pip and venv).

    python3 dev.py demo             index the example workspace, answer from it, show the session
    python3 dev.py test [ARGS]      run the tests on all processors (arguments go to pytest)
    python3 dev.py run ARGS         run the `lamella` command
    python3 dev.py check            ruff and mypy
    python3 dev.py exec CMD ARGS    run any command of the environment

The environment lives in .venv (tests: .venv-dev) and is renewed when a pyproject.toml changes.
LAMELLA_PYTHON names another interpreter, which gets an environment of its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
BIN = "Scripts" if os.name == "nt" else "bin"
MEMBERS = ["core", *sorted(f"plugins/{p.parent.name}" for p in ROOT.glob("plugins/*/pyproject.toml"))]
# What the demo needs; members with heavy dependencies are for the tests only.
LIGHT_PLUGINS = ("memory_core", "embedders", "context_pruning", "compaction_safeguard", "session_memory")
LIGHT = [m for m in MEMBERS if m == "core" or m.removeprefix("plugins/") in LIGHT_PLUGINS]
QUESTION = "Which day is the boiler serviced, and what did the technician say?"


def run(*command: str | Path, env: dict[str, str] | None = None) -> None:
    """Run a command; its failure ends this program with its exit code."""
    code = subprocess.call([str(c) for c in command], cwd=ROOT, env=env)
    if code:
        sys.exit(code)


def uv() -> Path:
    """uv: the one on the PATH, or one in a small environment of its own."""
    found = shutil.which("uv")
    if found:
        return Path(found)
    home = ROOT / ".bootstrap"
    program = home / BIN / ("uv.exe" if os.name == "nt" else "uv")
    if not program.exists():
        say("setting up uv ...")
        venv.create(home, with_pip=True, clear=True)
        run(home / BIN / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv>=0.4.27")
    return program


def environment(*, dev: bool) -> Path:
    """The folder of the environment's programs, made or renewed when needed."""
    python = os.environ.get("LAMELLA_PYTHON", "")
    other = "-" + hashlib.sha256(python.encode()).hexdigest()[:6] if python else ""
    target = ROOT / ((".venv-dev" if dev else ".venv") + other)
    members = MEMBERS if dev else LIGHT
    stamp, wanted = target / "lamella.stamp", fingerprint(members)
    if stamp.exists() and stamp.read_text() == wanted:
        return target / BIN
    tool = uv()
    say(f"setting up {target.name} ...")
    run(tool, "venv", "--quiet", "--clear", "--python", python or sys.executable, target)
    install = [tool, "pip", "install", "--quiet", "--python", target / BIN / "python"]
    for member in members:
        install += ["-e", f"./{member}"]
    if dev:
        install += ["--group", "dev"]
    run(*install)
    stamp.write_text(wanted)
    return target / BIN


def fingerprint(members: list[str]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for name in (".", *members):
        digest.update((ROOT / name / "pyproject.toml").read_bytes())
    return digest.hexdigest()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def demo() -> None:
    """The main job, as a user would type it."""
    programs = environment(dev=False)
    home, workspace = ROOT / ".demo", ROOT / ".demo" / "workspace"
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / "workspace", workspace)  # notes may be written
    env = {**os.environ, "LAMELLA_HOME": str(home)}
    for name in ("LAMELLA_MODEL", "LAMELLA_PLUGINS", "LAMELLA_WORKSPACE"):
        env.pop(name, None)
    common = ["--workspace", ".demo/workspace"]
    for command in (
        ["memory", "index", *common],
        ["ask", QUESTION, "--model", "offline", *common],
        ["sessions", "show", "agent:main:main", *common],
    ):
        shown = " ".join(f'"{part}"' if " " in part else part for part in command)
        say(f"\n$ lamella {shown}")
        run(programs / "lamella", *command, env=env)


def main() -> None:
    verb, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("help", [])
    if sys.version_info < (3, 11):
        sys.exit("lamella needs Python 3.11 or newer; set LAMELLA_PYTHON or run dev.py with another python")
    if verb == "demo":
        demo()
    elif verb == "run":
        replace(environment(dev=False) / "lamella", *arguments)
    elif verb == "test":
        # All processors, unless the arguments say otherwise.
        # Tests start hundreds of processes, and each would compile all modules for itself.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        workers = [] if any(a.startswith(("-n", "--numprocesses")) for a in arguments) else ["-n", "auto"]
        replace(environment(dev=True) / "python", "-m", "pytest", *workers, *arguments)
    elif verb == "exec" and arguments:
        programs = environment(dev=True)
        replace(programs / arguments[0], *arguments[1:])
    elif verb == "check":
        programs = environment(dev=True)
        run(programs / "ruff", "check", ".")
        run(programs / "ruff", "format", "--check", ".")
        run(programs / "mypy", *(f"{m}/src" for m in MEMBERS))
    else:
        sys.exit(__doc__)


def replace(program: Path, *arguments: str) -> None:
    """Become another program."""
    if os.name == "nt":
        sys.exit(subprocess.call([str(program), *arguments], cwd=ROOT))
    os.chdir(ROOT)
    os.execv(program, [str(program), *arguments])


if __name__ == "__main__":
    main()
