from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.models.offline import OfflineModel
from lamella.models.offline_phrases import asked_to_remember, phrases
from lamella.models.offline_recall import answer, parse_passages
from lamella.text.conversation import serialize_conversation
from lamella.text.summary_format import COMPACT_HEADINGS
from lamella.types.messages import (
    AssistantMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from lamella.types.model import Done, Model, ModelRequest, ToolSpec


def spec(name, required, *optional):
    fields = (required, *optional)
    return ToolSpec(name, f"{name}.", {"type": "object", "properties": {f: {} for f in fields}, "required": [required]})


SEARCH = spec("memory_search", "query", "max_results")
GET = spec("memory_get", "path", "from", "lines")
APPEND = spec("memory_append", "text", "path")
TOOLS = (SEARCH, GET, APPEND)


class FakeMemory:
    """Answers calls of the memory tools in their own words, from notes held here."""

    def __init__(self, notes=None, snippet_lines=50):
        self.notes = {path: text.split("\n") for path, text in (notes or {}).items()}
        self.snippet_lines = snippet_lines
        self.calls = []

    def run(self, call: ToolCall) -> str:
        self.calls.append((call.name, dict(call.arguments)))
        return getattr(self, call.name)(**{k.replace("from", "start"): v for k, v in call.arguments.items()})

    def memory_search(self, query):
        parts = []
        for path, lines in self.notes.items():
            shown = lines[: self.snippet_lines]
            if len(shown) < len(lines):
                shown[-1] = shown[-1][:20] + "…"
            parts.append(f"{path}#L1-L{len(lines)} (score 0.50)\n" + "\n".join(shown))
        return "\n\n".join(parts) or f"Nothing in memory matches {query!r}."

    def memory_get(self, path, start=1, lines=200):
        found = self.notes[path][start - 1 : start - 1 + lines]
        return f"{path}#L{start}-L{start + len(found) - 1} of {len(self.notes[path])} lines\n" + "\n".join(found)

    def memory_append(self, text, path="memory/2026-03-01.md"):
        self.notes.setdefault(path, []).extend(text.split("\n"))
        return f"Saved to {path}#L{len(self.notes[path])}."


class Conversation:
    """Drives the model as an engine does, until it says something."""

    def __init__(self, memory=None, tools=TOOLS):
        self.memory = memory or FakeMemory()
        self.tools = tools
        self.messages = []

    async def say(self, text: str) -> str:
        self.messages.append(UserMessage(text))
        for _ in range(8):
            reply = await self.reply()
            self.messages.append(reply)
            if not reply.tool_calls:
                return "".join(b.text for b in reply.content if isinstance(b, TextBlock))
            assert reply.stop_reason == "toolUse"
            for call in reply.tool_calls:
                assert call.name in {tool.name for tool in self.tools}
                result = self.memory.run(call)
                self.messages.append(ToolResultMessage(call.id, call.name, result))
        raise AssertionError("the model does not come to an end")

    async def reply(self) -> AssistantMessage:
        request = ModelRequest(tuple(self.messages), "You are helpful.", self.tools)
        events = [event async for event in OfflineModel().stream(request)]
        assert isinstance(events[-1], Done)
        assert events[-1].error is None
        assert events[0].type == "start"
        return events[-1].message


NOTES = {
    "MEMORY.md": "# Facts\n\n- The dog is called Rex.\n- Rex was born on 3 May 2019.\n- The car is blue.",
    "memory/2026-02-10.md": "# 2026-02-10\n\n- Paid the rent: 900 euros.\n- 小明的生日是5月3日。",
}


async def test_a_question_is_looked_up_and_answered_with_quotes():
    talk = Conversation(FakeMemory(NOTES))
    reply = await talk.say("When was Rex the dog born?")
    assert talk.memory.calls == [("memory_search", {"query": "When was Rex the dog born?"})]
    assert reply.startswith("Your notes say:\n\n")
    assert "> - The dog is called Rex.\n> - Rex was born on 3 May 2019.\nMEMORY.md#L3-L4" in reply
    assert "car" not in reply
    assert "rent" not in reply


@pytest.mark.parametrize("name", ["recalled-memory", "relevant-memories"])
async def test_what_memory_put_before_a_question_is_not_part_of_it(name):
    talk = Conversation(FakeMemory(NOTES))
    await talk.say(f"<{name}>\nOld notes.\n1. Remember that the car is red.\n</{name}>\n\nWhen was Rex born?")
    assert talk.memory.calls == [("memory_search", {"query": "When was Rex born?"})]


async def test_a_chinese_question_gets_a_chinese_answer():
    talk = Conversation(FakeMemory(NOTES))
    reply = await talk.say("小明的生日是哪天？")
    assert reply.startswith("你的笔记里写着：\n\n> - 小明的生日是5月3日。\nmemory/2026-02-10.md#L4")
    assert "不是语言模型" in reply


async def test_what_was_shown_in_part_is_read_whole_before_it_is_quoted():
    notes = {"memory/trip.md": "# Trip\nThe hotel is called Aurora and lies near the fair.\nBreakfast at seven."}
    talk = Conversation(FakeMemory(notes, snippet_lines=2))
    reply = await talk.say("What is the hotel called?")
    assert [name for name, _ in talk.memory.calls] == ["memory_search", "memory_get"]
    assert talk.memory.calls[1][1] == {"path": "memory/trip.md", "from": 1, "lines": 3}
    assert "> The hotel is called Aurora and lies near the fair.\nmemory/trip.md#L2" in reply


async def test_without_the_reading_tool_a_part_is_quoted_with_its_range():
    notes = {"memory/trip.md": "# Trip\nThe hotel is called Aurora.\nBreakfast at seven."}
    reply = await Conversation(FakeMemory(notes, snippet_lines=2), tools=(SEARCH,)).say("What is the hotel?")
    assert "memory/trip.md#L1-L3" in reply


async def test_a_note_in_other_words_is_named_as_the_nearest():
    reply = await Conversation(FakeMemory({"MEMORY.md": "- Rex barks."})).say("Which pet do we have?")
    assert reply.startswith("No note uses these words. The nearest one I found:\n\n> - Rex barks.\nMEMORY.md#L1")


async def test_nothing_found_is_said():
    reply = await Conversation().say("What is the wifi password?")
    assert reply.startswith("I found nothing about that in memory.")


async def test_a_failed_search_is_said():
    class Broken(FakeMemory):
        def memory_search(self, query):
            return "index is locked\ndetails"

    talk = Conversation(Broken())
    talk.messages.append(UserMessage("What is the code?"))
    call = (await talk.reply()).tool_calls[0]
    talk.messages += [AssistantMessage((call,)), ToolResultMessage(call.id, call.name, "index is locked\nmore", True)]
    (block,) = (await talk.reply()).content
    assert block.text.startswith("Memory could not be searched: index is locked\n\n")


@pytest.mark.parametrize(
    ("text", "note", "confirmation"),
    [
        ("Remember that my dog is called Rex.", "- my dog is called Rex.", "Saved to memory/2026-03-01.md#L1."),
        ("Can you please remember that I like tea?", "- I like tea", "Saved to"),
        ("I moved. Please note down: the address is Elm St 5.", "- the address is Elm St 5.", "Saved to"),
        ("请记住我的生日是5月3日", "- 我的生日是5月3日", "已保存到 memory/2026-03-01.md#L1。"),
        ("我喜欢喝茶，请记住。", "- 我喜欢喝茶", "已保存到"),
        ("猫の名前はタマだと覚えておいて", "- 猫の名前はタマだ", "memory/2026-03-01.md#L1 に保存しました。"),
        ("내 생일은 5월 3일이야, 기억해 줘", "- 내 생일은 5월 3일이야", "memory/2026-03-01.md#L1에 저장했습니다."),
        ("Recuerda que mi perro se llama Rex", "- mi perro se llama Rex", "Guardado en memory/2026-03-01.md#L1."),
        ("Merk dir, dass der Code 12 ist", "- der Code 12 ist", "Gespeichert in memory/2026-03-01.md#L1."),
        ("Retiens que le code est 12", "- le code est 12", "Enregistré dans memory/2026-03-01.md#L1."),
    ],
)
async def test_what_is_asked_to_be_remembered_is_saved_and_confirmed(text, note, confirmation):
    talk = Conversation()
    reply = await talk.say(text)
    assert talk.memory.calls == [("memory_append", {"text": note})]
    assert reply.startswith(confirmation)


@pytest.mark.parametrize(
    "text",
    [
        "Do you remember my dog?",
        "Remember when we went to Rome?",
        "What did I ask you to remember?",
        "记得我的生日吗",
        "你记得我住哪里",
        "私の誕生日を覚えていますか",
        "Notes about the offsite",
    ],
)
def test_questions_about_memory_are_not_requests_to_remember(text):
    assert asked_to_remember(text) is None


async def test_an_empty_request_to_remember_is_asked_back():
    talk = Conversation()
    assert (await talk.say("remember this")).startswith("What should I remember?")
    assert talk.memory.calls == []


async def test_a_refused_write_is_said():
    talk = Conversation()
    talk.messages.append(UserMessage("Remember that the code is 12"))
    call = (await talk.reply()).tool_calls[0]
    talk.messages += [AssistantMessage((call,)), ToolResultMessage(call.id, call.name, "disk is full", True)]
    (block,) = (await talk.reply()).content
    assert block.text.startswith("It could not be saved: disk is full")


async def test_it_says_once_what_it_is():
    talk = Conversation(FakeMemory(NOTES))
    replies = [await talk.say(text) for text in ("Hello!", "What is the dog called?", "狗叫什么？", "thanks")]
    said = [any(phrases(lang).not_a_model in reply for lang in ("en", "zh")) for reply in replies]
    assert said == [True, False, False, False]
    assert replies[3] == phrases("en").hello


@pytest.mark.parametrize("text", ["What is the code?", "Remember that the code is 12", "密码是什么？"])
async def test_without_memory_it_names_the_command_that_installs_it(text):
    reply = await Conversation(tools=()).say(text)
    assert "pip install lamella-memory-core" in reply


async def test_call_ids_are_never_used_twice():
    talk = Conversation(FakeMemory(NOTES))
    await talk.say("What is the dog called?")
    talk.messages = talk.messages[1:]  # history was cut
    await talk.say("Remember that the car is red now")
    await talk.say("What colour has the car?")
    ids = [call.id for m in talk.messages if isinstance(m, AssistantMessage) for call in m.tool_calls]
    assert len(ids) == len(set(ids)) == 3


async def test_the_same_request_gets_the_same_reply():
    one, two = Conversation(FakeMemory(NOTES)), Conversation(FakeMemory(NOTES))
    assert await one.say("When was Rex born?") == await two.say("When was Rex born?")
    assert one.messages == two.messages


async def test_usage_is_estimated():
    talk = Conversation(tools=())
    await talk.say("hello")
    short = talk.messages[-1].usage
    await talk.say("x" * 4000)
    long = talk.messages[-1].usage
    assert short.total_tokens == short.input + short.output > 0
    assert long.input >= short.input + 1000


# --- before a compaction -----------------------------------------------------------------------------


FLUSH = (
    "Pre-compaction memory flush. Store durable memories now with memory_append in memory/2026-03-05.md. "
    "Append only. If there is nothing to store, reply with NO_REPLY."
)


async def test_a_flush_saves_lasting_facts_and_says_nothing():
    talk = Conversation()
    talk.messages = [
        UserMessage("Hi! I live in Porto. Never book flights before 9. What is 2+2?"),
        AssistantMessage((TextBlock("Four. We decided to meet on Monday. The sky is blue."),)),
        UserMessage("我叫小明。一定要用中文回复。今天天气真好啊！"),
    ]
    assert await talk.say(FLUSH) == "NO_REPLY"
    ((name, arguments),) = talk.memory.calls
    assert name == "memory_append"
    assert arguments["path"] == "memory/2026-03-05.md"
    assert arguments["text"].split("\n") == [
        "- I live in Porto.",
        "- Never book flights before 9.",
        "- We decided to meet on Monday.",
        "- 我叫小明。",
        "- 一定要用中文回复。",
    ]


async def test_a_flush_does_not_save_twice_what_was_remembered():
    talk = Conversation()
    await talk.say("Remember that I live in Porto.")
    await talk.say("I live in Porto. My cat is Tom Sawyer.")
    talk.memory.calls.clear()
    await talk.say(FLUSH)
    assert [arguments["text"] for _, arguments in talk.memory.calls] == ["- My cat is Tom Sawyer."]


@pytest.mark.parametrize("tools", [TOOLS, (), (SEARCH,)])
async def test_a_flush_without_facts_or_tools_stays_silent(tools):
    talk = Conversation(tools=tools)
    talk.messages = [UserMessage("What is 2+2?"), AssistantMessage((TextBlock("Four."),))]
    if tools != TOOLS:
        talk.messages.append(UserMessage("I live in Porto."))
    assert await talk.say(FLUSH) == "NO_REPLY"
    assert talk.memory.calls == []


async def test_a_summary_request_gets_an_extractive_summary():
    history = [
        UserMessage("请帮我安排上海之行。预算是8000元。"),
        AssistantMessage((TextBlock("已经预订了3月12日的高铁G7。"),)),
    ]
    prompt = (
        f"<conversation>\n{serialize_conversation(history)}\n</conversation>\n\n"
        "<previous-summary>\n## Goal\n- Learn to sail\n</previous-summary>\n\nMerge them. NO_REPLY is no answer here."
    )
    summary = await Conversation().say(prompt)
    assert "- Learn to sail\n- User: 请帮我安排上海之行。" in summary
    assert "- [x] Assistant: 已经预订了3月12日的高铁G7。" in summary
    assert re.findall(r"^## .*$", summary, re.MULTILINE)[-1] == "## Critical Context"
    wanted = await Conversation().say(prompt + "\n" + "\n".join(COMPACT_HEADINGS))
    assert re.findall(r"^## .*$", wanted, re.MULTILINE) == list(COMPACT_HEADINGS)
    assert "- Learn to sail\n- User: 请帮我安排上海之行。" in wanted


# --- its parts ---------------------------------------------------------------------------------------


def test_it_is_a_model():
    model = OfflineModel()
    assert isinstance(model, Model)
    assert (model.provider, model.id, model.api, model.context_window) == ("offline", "rules", "offline", 128_000)


def test_tools_that_answer_in_json_are_understood():
    text = '{"results": [{"path": "MEMORY.md", "startLine": 4, "endLine": 5, "snippet": "a b\\nthe code is 12"}]}'
    found = answer("Which code?", parse_passages(text))
    assert found is not None
    assert found.text == "> the code is 12\nMEMORY.md#L5"


def test_what_a_model_said_in_a_quoted_talk_is_no_answer():
    found = parse_passages(
        "memory/2026-12-01-boiler.md#L3-L4\n"
        "> - user: Which day is the boiler serviced?\n"
        "> - assistant: The boiler is serviced on the day of the boiler, Friday.\n\n"
        "memory/2026-10-12.md#L3\n- The boiler is serviced on Tuesday."
    )
    answered = answer("Which day is the boiler serviced?", found)
    assert answered is not None
    assert "Tuesday" in answered.text
    assert "2026-12-01" not in answered.text


def test_snippets_with_blank_lines_and_notes_keep_their_line_numbers():
    text = "memory/a.md#L2-L4 (score 0.31)\none\n\nthree code\n\nNote: embedder is missing. Answered by sqlite."
    (passage,) = parse_passages(text)
    assert passage.lines == ("one", "", "three code")
    assert passage.whole
    assert answer("code", [passage]).text == "> three code\nmemory/a.md#L4"


@given(st.text(max_size=200), st.text(max_size=60))
def test_any_answer_of_a_tool_can_be_read(text, question):
    passages = parse_passages(text)
    answer(question, passages)


@given(st.lists(st.text(max_size=40), max_size=5))
async def test_any_conversation_gets_a_reply(texts):
    talk = Conversation(FakeMemory(NOTES))
    for text in texts:
        assert await talk.say(text)
