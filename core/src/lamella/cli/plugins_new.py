"""`lamella plugins new`: the beginning of a plugin."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from lamella.cli.common import Out
from lamella.scaffold import KINDS


@click.command("new")
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), required=True, help="What the plugin adds to lamella.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to make (default: the distribution's name, here).",
)
def new(name: str, kind: str, folder: Path | None) -> None:
    """Write a project for a new plugin: code, tests that pass, and what makes it installable.

    NAME is what the plugin is called in lamella: small letters, digits and hyphens. Nothing is ever
    overwritten.
    """
    from lamella.scaffold.names import names_of
    from lamella.scaffold.project import write_project

    names = names_of(name, kind)
    target = folder if folder is not None else Path(names.distribution)
    for path in write_project(target, kind, names):
        Out.write(str(path))
    click.echo(
        f'Next: cd {shlex.quote(str(target))}; pip install -e ".[test]"; pytest. '
        f"It is called {names.plugin} in `lamella plugins list`.",
        err=True,
    )
