"""Commands that plugins add to `lamella`."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli import Ran, lamella

MODULE = '''
import click

@click.group()
def notes():
    """Keep notes."""

@notes.command()
@click.argument("name")
def greet(name):
    click.echo(f"你好 {name}")

def nothing():
    pass
'''


def installed(folder: Path, distribution: str, commands: str, module: str = MODULE) -> None:
    """A distribution as an installer leaves it, in a folder that is put on the path."""
    name = distribution.replace("-", "_")
    (folder / f"{name}.py").write_text(module, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lamella.commands]\n{commands}\n")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


def run(site: Path, *arguments: str) -> Ran:
    return lamella(*arguments, home=site.parent / "home", PYTHONPATH=str(site))


def test_a_plugins_command_runs_and_is_listed_without_being_imported(site: Path) -> None:
    installed(site, "acme-notes", "notes = acme_notes:notes")
    assert run(site, "notes", "greet", "世界").out.strip() == "你好 世界"
    assert "Keep notes." in run(site, "notes", "--help").out

    (site / "acme_notes.py").write_text("raise RuntimeError('imported')")
    help_page = run(site, "--help")
    assert help_page.code == 0
    assert "\n  notes  From acme-notes.\n" in help_page.out.partition("Commands of plugins:")[2]


@pytest.mark.parametrize(
    ("module", "target", "reason"),
    [
        ("raise RuntimeError('no disk')", "acme_notes:notes", "cannot be imported: RuntimeError: no disk"),
        ("import sys; sys.exit(0)", "acme_notes:notes", "cannot be imported: SystemExit: 0"),
        (MODULE, "acme_notes:gone", "cannot be imported: AttributeError"),
        (MODULE, "acme_notes:nothing", "acme_notes:nothing is function, expected a click command"),
    ],
)
def test_a_broken_command_is_named_and_the_rest_works(site: Path, module: str, target: str, reason: str) -> None:
    installed(site, "acme-notes", f"notes = {target}", module)
    failed = run(site, "notes")
    assert failed.code == 1
    assert "command 'notes' of acme-notes" in failed.err
    assert reason in failed.err
    assert run(site, "config", "check").code == 0


def test_a_plugin_cannot_take_a_name_of_the_core(site: Path) -> None:
    installed(site, "acme-notes", "plugins = acme_notes:notes")
    assert "memory-core" in run(site, "plugins", "list").out
    assert "acme-notes" not in run(site, "--help").out


def test_the_first_of_two_plugins_keeps_a_name(site: Path) -> None:
    installed(site, "acme-notes", "notes = acme_notes:notes")
    installed(site, "zeta-notes", "notes = zeta_notes:notes", MODULE.replace("你好", "later"))
    assert run(site, "notes", "greet", "A").out.strip() == "你好 A"
    assert run(site, "--help").out.count("\n  notes") == 1


def test_a_command_that_nobody_has_is_a_wrong_usage(site: Path) -> None:
    unknown = run(site, "notes")
    assert unknown.code == 2
    assert "No such command 'notes'" in unknown.err
