"""A move as a plan: everything that is to be done, made by looking only; and carrying it out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from lamella.errors import UsageError
from lamella.moving.entries import Incoming, merged
from lamella.moving.files import Move
from lamella.moving.report import Item, Report
from lamella.moving.settings import Setting, plan_settings, write_settings
from lamella.moving.target import Target
from lamella.sessions.index_file import Sessions


@frozen(slots=True)
class Plan:
    """What a move does. `program` is the other program, `folder` its folder.

    `sessions`: entries by the folder whose sessions.json takes them. `required`: settings (as dotted keys)
    without which the whole makes no sense. `origin` is where sessions come from (empty: the folder), and
    `label` what their keys are called after where their own is taken (empty: the program).
    """

    program: str
    folder: Path
    settings: tuple[Setting, ...] = ()
    moves: tuple[Move, ...] = ()
    sessions: Mapping[Path, tuple[Incoming, ...]] = field(factory=dict)
    told: tuple[Item, ...] = ()
    required: tuple[str, ...] = ()
    in_place: bool = False
    origin: str = ""
    label: str = ""


def carry_out(plan: Plan, target: Target, *, dry_run: bool) -> Report:
    """Do what is planned, or only tell it. It may be cut off at any place and done again.

    Raises `UsageError` when a required setting has another value here; then nothing is done.
    """
    values, settings = plan_settings(target.config_file, plan.settings)
    _require(plan, settings)
    moved = [move.item() if dry_run else move.carry() for move in plan.moves]
    went_on = {Path(item.target).name for item in moved if item.action == "kept"}
    entries: list[Item] = []
    for folder, incoming in plan.sessions.items():
        entries += _take_over(plan, target, folder, incoming, went_on, dry_run=dry_run)
    if not dry_run:
        write_settings(target.config_file, values)
    items = (*settings, *moved, *entries, *plan.told)
    return Report(plan.program, str(plan.folder), items, dry_run=dry_run, in_place=plan.in_place)


def _take_over(
    plan: Plan, target: Target, folder: Path, incoming: tuple[Incoming, ...], went_on: set[str], *, dry_run: bool
) -> list[Item]:
    items: list[Item] = []

    def change(sessions: Sessions) -> None:
        origin, label = plan.origin or str(plan.folder), plan.label or plan.program
        result, found = merged(sessions, incoming, origin=origin, label=label, went_on=went_on)
        sessions.update(result)
        items.extend(found)

    index = target.index(folder)
    if dry_run:
        change(index.load().sessions)
    else:
        index.transact(change)
    return items


def _require(plan: Plan, items: list[Item]) -> None:
    for item in items:
        if item.target in plan.required and item.action == "kept":
            raise UsageError(
                f"{item.target} {item.reason}", hint=f"`lamella config unset {item.target}` first, or import a copy."
            )
