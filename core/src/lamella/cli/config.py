"""`lamella config`: show, check, set and unset settings."""

from __future__ import annotations

import json
from pathlib import Path

import click
from attrs import evolve

from lamella.cli.common import CommonOptions, Out, agent_options, json_option, open_runtime, print_table
from lamella.errors import Problem


@click.group()
def config() -> None:
    """Show, check and change the configuration."""


@config.command("show")
@click.argument("prefix", default="")
@agent_options
@json_option
def show(common: CommonOptions, prefix: str, as_json: bool) -> None:
    """Show settings with their values and where each comes from. PREFIX limits them to a section."""
    runtime = open_runtime(common)
    leaves = [
        (key, value, origin)
        for key, value, origin in runtime.config.leaves()
        if not prefix or key == prefix or key.startswith(f"{prefix}.")
    ]
    if as_json:
        Out.json([{"key": k, "value": v, "origin": o} for k, v, o in leaves])
        return
    print_table([[k, json.dumps(v, ensure_ascii=False), o] for k, v, o in leaves], ["KEY", "VALUE", "ORIGIN"])


@config.command("check")
@agent_options
@json_option
def check(common: CommonOptions, as_json: bool) -> int:
    """Check the configuration, the sections of plugins included. Exit code 0 only when all is well."""
    problems = check_everything(common)
    if as_json:
        Out.json(
            {
                "ok": not problems,
                "problems": [
                    {"key": p.path, "message": p.message, "origin": p.origin, "level": p.level} for p in problems
                ],
            }
        )
    elif problems:
        for problem in problems:
            click.echo(f"{problem.level}: {problem}", err=True)
    else:
        Out.write("The configuration is fine.")
    return 2 if problems else 0


def check_everything(common: CommonOptions) -> list[Problem]:
    """All problems of config and plugin sections; a key that a run only warns of is an error here."""
    from lamella.doctor.configuration import configuration_problems

    problems = configuration_problems(open_runtime(common, say_problems=False))
    return [evolve(problem, level="error") for problem in problems]


@config.command("set", context_settings={"ignore_unknown_options": True})  # -5 is a value
@click.argument("key")
@click.argument("value")
@agent_options
def set_key(common: CommonOptions, key: str, value: str) -> None:
    """Set KEY to VALUE in config.toml. VALUE is TOML where it is TOML (12, true, ["a"]), else a string."""
    from lamella.config.edit import parse_value, set_value

    file = config_file(common)
    set_value(file, key, parse_value(value))
    click.echo(f"{key} is set in {file}.", err=True)


@config.command("unset")
@click.argument("key")
@agent_options
def unset_key(common: CommonOptions, key: str) -> None:
    """Remove KEY from config.toml, so that its default counts."""
    from lamella.config.edit import unset_value

    file = config_file(common)
    removed = unset_value(file, key)
    click.echo(f"{key} is removed from {file}." if removed else f"{key} was not set in {file}.", err=True)


@config.command("path")
@agent_options
def path(common: CommonOptions) -> None:
    """Print the path of the config file."""
    Out.write(str(config_file(common)))


def config_file(common: CommonOptions) -> Path:
    from lamella.paths import Paths

    return common.config or Paths.from_environment().config_file
