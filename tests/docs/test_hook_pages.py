"""Every hook has a page of its own: what it is given, what it may return, and an example that `test_examples` runs."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from pages import ROOT, blocks, links, rows

from lamella.plugins import hookspecs
from lamella.plugins.hooks import DEFAULT_TIMEOUT, TIMEOUTS
from lamella.plugins.implementations import KNOWN_HOOKS
from lamella.types import hooks as h
from lamella.types.memory import BackendRegistration, EmbedderRegistration
from lamella.types.model import ModelProvider

PAGES = ROOT / "docs" / "hooks"
RECORDS = (BackendRegistration, EmbedderRegistration, ModelProvider)
every_hook = pytest.mark.parametrize("name", sorted(KNOWN_HOOKS))


def text_of(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


# What is in a record that only this one hands on.
WITHIN: dict[type[Any], type[Any]] = {h.Compacting: h.Preparation, h.ContextEdit: h.ContextNote}


def records(kind: Any) -> Iterator[type[Any]]:
    """The classes of hook records within a type."""
    if isinstance(kind, type) and attrs.has(kind) and (kind.__module__ == h.__name__ or kind in RECORDS):
        yield kind
        if kind in WITHIN:
            yield WITHIN[kind]
    for argument in typing.get_args(kind):
        yield from records(argument)


def test_every_hook_has_a_page_and_every_page_a_hook() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == KNOWN_HOOKS


@every_hook
def test_the_title_has_the_exact_parameters(name: str) -> None:
    parameters = ", ".join(inspect.signature(getattr(hookspecs, name)).parameters)
    assert text_of(name).startswith(f"# `{name}({parameters})`\n")


@every_hook
def test_every_field_is_in_a_table(name: str) -> None:
    text = text_of(name)
    for kind in typing.get_type_hints(getattr(hookspecs, name)).values():
        for record in records(kind):
            assert f"`{record.__name__}`" in text
            missing = {a.name for a in attrs.fields(record)} - rows(text).keys()
            assert not missing, record.__name__


@every_hook
def test_no_field_is_in_a_table_that_does_not_exist(name: str) -> None:
    kinds = typing.get_type_hints(getattr(hookspecs, name)).values()
    known = {a.name for kind in kinds for record in records(kind) for a in attrs.fields(record)}
    assert rows(text_of(name)).keys() <= known


@every_hook
def test_when_merge_and_time_limit_are_told(name: str) -> None:
    text = text_of(name)
    places = [text.index(f"**{part}.**") for part in ("When", "Given", "May return", "Time limit")]
    assert places == sorted(places)
    limit = TIMEOUTS.get(name, DEFAULT_TIMEOUT)
    assert f"**Time limit.** {limit:g} s; `hooks.timeouts.{name}`" in text


@every_hook
def test_the_example_is_a_plugin_with_this_hook_that_checks_its_effect(name: str) -> None:
    (example,) = (block for block in blocks(PAGES / f"{name}.md") if block.language == "python")
    tree = ast.parse(example.text)
    plugins = [node for node in tree.body if isinstance(node, ast.ClassDef) and name in hooks_of(node)]
    assert len(plugins) == 1
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    (hook,) = (method for method in methods_of(plugins[0]) if method.name == name)
    known = inspect.signature(getattr(hookspecs, name)).parameters
    assert {argument.arg for argument in hook.args.args[1:]} <= known.keys()


def methods_of(plugin: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in plugin.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def hooks_of(plugin: ast.ClassDef) -> set[str]:
    """The names of a class's methods with `@hookimpl`."""
    marked = (m for m in methods_of(plugin) if any(getattr(d, "id", "") == "hookimpl" for d in m.decorator_list))
    return {method.name for method in marked}


@every_hook
def test_the_reference_leads_to_the_page(name: str) -> None:
    reference: Path = ROOT / "docs" / "reference" / "hooks.md"
    assert f"../hooks/{name}.md" in set(links(reference))
