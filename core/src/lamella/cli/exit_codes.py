"""Errors as lines on stderr and exit codes."""

from __future__ import annotations

import logging

import click

from lamella.errors import LamellaError
from lamella.text.width import printable

INTERRUPTED = 130
log = logging.getLogger(__name__)
logging.getLogger("lamella").addHandler(logging.NullHandler())  # silent until -v sets it up


def say_error(error: LamellaError) -> None:
    """An error and what to do about it, on stderr."""
    click.echo(printable(f"Error: {error}"), err=True)
    if error.hint:
        click.echo(printable(f"  {error.hint}"), err=True)


def report(error: Exception) -> int:
    """Print an error for a person and return the exit code. Never a traceback for a user's mistake."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, click.Abort):
        click.echo("Aborted.", err=True)
        return INTERRUPTED
    if isinstance(error, LamellaError):
        say_error(error)
        log.debug("command failed", exc_info=error)
        return error.exit_code
    if isinstance(error, PermissionError):
        click.echo(f"Error: {error.filename}: permission denied", err=True)
        return 1
    if isinstance(error, OSError) and error.filename:
        click.echo(f"Error: {error.filename}: {error.strerror}", err=True)
        return 1
    if isinstance(error, OSError) and error.strerror:  # no file: a standard stream, such as a full disk behind it
        click.echo(f"Error: {error.strerror}", err=True)
        return 1
    log.error("unexpected failure", exc_info=error)
    click.echo(f"Error: unexpected {type(error).__name__}: {error}", err=True)
    click.echo("  This is a fault in lamella or a plugin; run it with -v for the details.", err=True)
    return 1
