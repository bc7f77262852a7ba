"""Running the installed `lamella` command as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from attrs import frozen

EXAMPLE = Path(__file__).parents[2] / "examples" / "workspace"


@frozen
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def lamella(*arguments: str | Path, home: Path, stdin: str = "", check: bool = False, **environ: str) -> Ran:
    """Run a command on a scratch state folder; without any key in the environment."""
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and not k.startswith("LAMELLA_")}
    env = {**clean, "LAMELLA_HOME": str(home), **environ}
    done = subprocess.run(
        [sys.executable, "-m", "lamella", *map(str, arguments)],
        input=stdin.encode("utf-8", "surrogateescape"),
        capture_output=True,
        env=env,
        timeout=120,
    )
    ran = Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))
    assert "Traceback" not in ran.err, ran.err
    if check:
        assert ran.code == 0, ran.err
    return ran
