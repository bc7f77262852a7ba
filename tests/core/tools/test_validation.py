from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pi_units import cases, newest

from lamella.errors import ToolError
from lamella.tools.validation import validate_arguments
from lamella.types.tools import Tool

# Where lamella differs from Pi 1.6: null for a required string is an empty one, as in Pi before
# 1.6, rather than the word "null"; and every problem is told, also beside a missing field.
OWN_RESULTS = {
    '{"s": null}': {"s": ""},
    '{"b": 1.5}': {"error": "  - a: missing\n  - b: expected integer, got number"},
}


def tool(schema):
    return Tool("demo", "", schema, run=lambda arguments, context: "")


@pytest.mark.parametrize("case", cases("validate_tool_arguments"), ids=lambda c: json.dumps(c["args"]))
def test_validation_equals_pi(case):
    before = copy.deepcopy(case["args"])
    expected = OWN_RESULTS.get(json.dumps(case["args"]), newest(case["result"]))
    if "error" in expected:
        with pytest.raises(ToolError) as caught:
            validate_arguments(tool(case["schema"]), case["args"])
        assert expected["error"].removeprefix("Error: ") in str(caught.value)
        assert str(caught.value).startswith('Validation failed for tool "demo":\n')
    else:
        result = validate_arguments(tool(case["schema"]), case["args"])
        assert result == expected
        assert [type(v) for v in result.values()] == [type(v) for v in expected.values()]
    assert case["args"] == before


def schema(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("part", "value", "converted"),
    [
        ({"type": "integer"}, "12", 12),
        ({"type": "integer"}, "12.0", 12),
        ({"type": "number"}, " -1.5e3 ", -1500),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, 5.0, "5"),
        ({"type": "string"}, True, "true"),
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, "false", False),
        ({"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
        ({"type": "array", "items": {"type": "string"}}, '["a", "b"]', ["a", "b"]),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, '{"n": "3"}', {"n": 3}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "7", 7),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "7", "7"),
        ({"type": ["integer", "null"]}, None, None),
        ({"$ref": "#/$defs/count"}, "4", 4),
        ({"allOf": [{"type": "integer"}]}, "4", 4),
    ],
)
def test_values_are_converted_where_the_schema_leaves_no_doubt(part, value, converted):
    whole = {**schema(x=part), "$defs": {"count": {"type": "integer"}}}
    result = validate_arguments(tool(whole), {"x": value})
    assert result == {"x": converted}
    assert type(result["x"]) is type(converted)


def test_null_for_an_optional_field_means_not_given():
    assert validate_arguments(tool(schema(limit={"type": "integer"})), {"limit": None}) == {}


@pytest.mark.parametrize("value", ["twelve", "1,5", "0x10", "", True, [1]])
def test_doubtful_numbers_are_reported(value):
    with pytest.raises(ToolError, match="x: expected integer"):
        validate_arguments(tool(schema(x={"type": "integer"})), {"x": value})


def test_every_problem_is_listed_with_its_place():
    nested = schema(
        edits={"type": "array", "items": {**schema(old={"type": "string"}), "required": ["old"]}},
        size={"type": "integer", "minimum": 1},
    )
    with pytest.raises(ToolError) as caught:
        validate_arguments(tool({**nested, "additionalProperties": False}), {"edits": [{}, {}], "size": 0, "odd": 1})
    assert str(caught.value).split("\n\n")[0].split("\n")[1:] == [
        "  - edits.0.old: missing",
        "  - edits.1.old: missing",
        "  - odd: unknown field",
        "  - size: expected at least 1",
    ]


def test_long_arguments_are_not_echoed_whole():
    with pytest.raises(ToolError) as caught:
        validate_arguments(tool(schema(n={"type": "integer"})), {"n": "x" * 100_000})
    assert len(str(caught.value)) < 1000
    assert "100000 characters" in str(caught.value)


@pytest.mark.parametrize(
    ("part", "sent", "expected"),
    [
        ({"type": "string", "maxLength": 3}, {"n": "长" * 100_000}, "n: expected at most 3 characters, got 100000"),
        ({"type": "string", "pattern": "^a"}, {"n": "x" * 100_000}, 'n: does not keep to pattern "^a"'),
        ({}, {"k" * 100_000: 1}, "(100000 characters): unknown field"),
        ({}, {f"field {i}": "v" for i in range(5_000)}, "  - and 4980 more"),
    ],
)
def test_a_report_is_short_whatever_was_sent(part, sent, expected):
    with pytest.raises(ToolError) as caught:
        validate_arguments(tool({**schema(n=part), "additionalProperties": False}), sent)
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 6_000


def test_null_is_not_asked_for_when_something_was_given():
    part = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]}
    with pytest.raises(ToolError) as caught:
        validate_arguments(tool(schema(n=part)), {"n": ""})
    assert "expected null" not in str(caught.value)


def test_a_broken_schema_is_the_tools_fault():
    with pytest.raises(ToolError, match='Tool "demo" has an invalid parameter schema'):
        validate_arguments(tool({"type": "object", "properties": {"a": {"type": "nonsense"}}}), {"a": 1})


@given(st.dictionaries(st.sampled_from("abc"), st.none() | st.booleans() | st.integers() | st.text(max_size=4)))
def test_accepted_arguments_always_fit_the_schema(arguments):
    from jsonschema import Draft202012Validator

    whole = schema(a={"type": "integer"}, b={"type": "boolean"}, c={"type": "array", "items": {"type": "string"}})
    try:
        result = validate_arguments(tool(whole), arguments)
    except ToolError:
        return
    Draft202012Validator(whole).validate(result)
    assert validate_arguments(tool(whole), result) == result
