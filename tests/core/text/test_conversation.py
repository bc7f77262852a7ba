from __future__ import annotations

import pytest
from pi_units import cases, newest

from lamella.text.conversation import (
    BRANCH_PREFIX,
    COMPACTION_PREFIX,
    FileLists,
    FileOps,
    convert_to_model_messages,
    file_lists,
    file_operations,
    file_tags,
    serialize_conversation,
)
from lamella.types.message_json import dump_message, parse_message
from lamella.types.messages import (
    AssistantMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
)


def parse_all(raw):
    return [parse_message(m) for m in raw]


def with_our_prefixes(value):
    if isinstance(value, str):
        return value.replace("{{COMPACTION_PREFIX}}", COMPACTION_PREFIX).replace("{{BRANCH_PREFIX}}", BRANCH_PREFIX)
    if isinstance(value, list):
        return [with_our_prefixes(v) for v in value]
    if isinstance(value, dict):
        return {k: with_our_prefixes(v) for k, v in value.items()}
    return value


@pytest.mark.parametrize("case", cases("convert_to_llm"))
def test_conversion_equals_pi(case):
    converted = convert_to_model_messages(parse_all(case["messages"]))
    assert [dump_message(m) for m in converted] == with_our_prefixes(newest(case["llm"]))


@pytest.mark.parametrize("case", cases("serialize_conversation"))
def test_serialisation_equals_pi(case):
    text = serialize_conversation(convert_to_model_messages(parse_all(case["messages"])))
    assert text == with_our_prefixes(newest(case["text"]))


def test_a_long_result_is_never_cut_inside_a_character():
    text = serialize_conversation([ToolResultMessage("1", "read", "r" * 1999 + "🎉🎉")])
    assert text == "[Tool result]: " + "r" * 1999 + "\n\n[... 4 more characters truncated]"


@pytest.mark.parametrize("case", cases("file_lists"))
def test_file_lists_equal_pi(case):
    lists = file_lists(file_operations(parse_all(case["messages"])))
    expected = newest(case["result"])
    assert lists.to_details() == {k: expected[k] for k in ("readFiles", "modifiedFiles")}
    assert file_tags(lists) == expected["tags"]


def test_file_operations_accumulate_over_compactions():
    earlier = FileOps.from_details({"readFiles": ["a.py", "b.py"], "modifiedFiles": ["c.py"]})
    now = file_operations([AssistantMessage((ToolCall("1", "write", {"path": "a.py"}), TextBlock("done")))])
    assert file_lists(earlier | now) == FileLists(read=("b.py",), modified=("a.py", "c.py"))


@pytest.mark.parametrize("details", [None, [], {"readFiles": "a"}, {"readFiles": [1]}, "text"])
def test_malformed_details_hold_no_files(details):
    assert FileOps.from_details(details) == FileOps()
