from __future__ import annotations

import pytest

from lamella.tools.builtin import builtin_tools
from lamella.tools.registry import ToolRegistry
from lamella.types.tools import Tool


def make(name, owner="plugin", writes=False):
    return Tool(name, f"does {name}", {"type": "object"}, run=lambda a, c: "", owner=owner, writes=writes)


def test_the_first_tool_of_a_name_keeps_it_and_the_other_is_reported():
    registry = ToolRegistry([make("read", "core")])
    rejected = registry.register(make("read", "notes-plugin"))
    assert rejected is not None
    assert str(rejected) == "tool 'read' of notes-plugin was skipped: the name is taken by core"
    assert registry.rejected == (rejected,)
    assert registry.get("read").owner == "core"
    assert registry.register(make("write")) is None


def test_names_that_providers_refuse_are_reported():
    registry = ToolRegistry([make("has blank"), make(""), make("x" * 65), make("fine_1-2")])
    assert registry.names == ("fine_1-2",)
    assert [r.name for r in registry.rejected] == ["has blank", "", "x" * 65]


@pytest.mark.parametrize("parameters", [{"x": object()}, {"properties": {"\ud800": {}}}])
def test_parameters_that_no_request_can_carry_are_reported(parameters):
    registry = ToolRegistry()
    rejected = registry.register(Tool("t", "d", parameters, print))
    assert rejected is not None and "not JSON" in rejected.reason
    assert registry.names == ()


def test_subsets_keep_order_and_leave_out_what_is_unknown():
    registry = ToolRegistry([make("a"), make("b", writes=True), make("c")])
    assert registry.subset(["c", "a", "zzz"]).names == ("a", "c")
    assert registry.read_only().names == ("a", "c")
    assert [spec.name for spec in registry.specs()] == ["a", "b", "c"]
    assert "b" in registry and len(registry) == 3 and registry.get("zzz") is None


def test_builtin_tools_tell_which_of_them_change_things(tmp_path):
    with_shell = ToolRegistry(builtin_tools(tmp_path, exec_enabled=True))
    assert with_shell.names == ("read", "write", "edit", "grep", "find", "ls", "exec")
    assert with_shell.read_only().names == ("read", "grep", "find", "ls")
    assert "exec" not in ToolRegistry(builtin_tools(tmp_path, exec_enabled=False))
