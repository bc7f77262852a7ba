"""Running `lamella` commands inside the test's process: quicker than `cli.lamella`, for many small ones."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from pathlib import Path
from unittest import mock

from cli import Ran

from lamella.cli.common import Out
from lamella.cli.main import main


def lamella(*arguments: str | Path, home: Path, stdin: str = "", check: bool = False, **environ: str) -> Ran:
    """Run a command on a scratch state folder; without any key in the environment."""
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and not k.startswith("LAMELLA_")}
    out, err = io.StringIO(), io.StringIO()
    logger = logging.getLogger()
    before = (logger.handlers[:], logger.level)
    with (
        mock.patch.dict(os.environ, {**clean, "LAMELLA_HOME": str(home), **environ}, clear=True),
        mock.patch.object(Out, "stream", None),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape")))),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = main([str(a) for a in arguments])
    logger.handlers[:] = before[0]
    logger.setLevel(before[1])
    ran = Ran(code, out.getvalue(), err.getvalue())
    assert not check or code == 0, ran.err
    return ran
