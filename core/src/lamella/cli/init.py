"""`lamella init`: a workspace from templates."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from lamella.cli.common import Out, json_option
from lamella.errors import UsageError


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@json_option
def init(folder: Path | None, as_json: bool) -> None:
    """Make a workspace in FOLDER (default: ~/.lamella/workspace). Files that exist are left as they are."""
    from lamella.paths import Paths, expand
    from lamella.text.files import write_atomic

    target = expand(folder) if folder is not None else Paths.from_environment().workspace("main")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is a file; a workspace is a folder")
    target.mkdir(parents=True, exist_ok=True)
    made, kept = [], []
    for template in sorted(resources.files("lamella").joinpath("templates").iterdir(), key=lambda t: t.name):
        file = target / template.name
        if file.exists():
            kept.append(template.name)
            continue
        write_atomic(file, template.read_bytes())
        made.append(template.name)
    (target / "memory").mkdir(exist_ok=True)
    if as_json:
        Out.json({"workspace": str(target), "made": made, "kept": kept})
        return
    Out.write(f"{target}: made {', '.join(made) or 'nothing'}" + (f"; kept {', '.join(kept)}" if kept else "") + ".")
    Out.write(f"Next: lamella chat --workspace {target}")
