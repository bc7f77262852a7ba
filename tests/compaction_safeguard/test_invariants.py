"""What holds for every text: mended summaries pass the check, cuts keep headings, frames stay closed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lamella.types.entries import Compaction
from lamella.types.messages import AssistantMessage, Message, TextBlock, ToolCall, ToolResultMessage, UserMessage
from lamella_compaction_safeguard.carried import carried_from, without_additions
from lamella_compaction_safeguard.failures import failure_section, tool_failures
from lamella_compaction_safeguard.headings import REQUIRED, fitted, missing_headings, parts_of
from lamella_compaction_safeguard.identifiers import Identifier, find_identifiers, kept_identifiers
from lamella_compaction_safeguard.preserved import quote_turns, split_recent
from lamella_compaction_safeguard.quality import CUT_OFF, OTHER_LANGUAGE, Facts, audit, mended_to_fit, repair
from lamella_compaction_safeguard.sections import extract_sections
from lamella_compaction_safeguard.stages import chunks, sent_tokens, split_by_share, within_share
from lamella_compaction_safeguard.untrusted import framed, untrusted_block

UNTIMED = settings(deadline=None)

lines = st.sampled_from(
    [*REQUIRED, "# Top", "### Low", "- an item", "None.", "```", "", "  ## Decisions  ", "风扇九点关闭", "a1b2c3d4e5f6"]
)
texts = st.lists(lines | st.text(max_size=30), max_size=30).map("\n".join)
identifiers = st.lists(
    st.from_regex(r"[A-Z]{3}-[0-9]{4}|[0-9a-f]{12}|/tmp/[a-z]{3}\.log", fullmatch=True).map(Identifier), max_size=8
).map(tuple)


@UNTIMED
@given(texts, identifiers, st.text(max_size=80))
def test_a_mended_summary_passes_its_check(summary: str, wanted: tuple[Identifier, ...], ask: str) -> None:
    facts = Facts(wanted, wanted, ask)
    mended, added = repair(summary, facts)
    assert not set(audit(mended, facts)) - {CUT_OFF, OTHER_LANGUAGE}
    assert repair(mended, facts) == (mended, ())
    assert bool(added) == bool(audit(summary, facts))


@UNTIMED
@given(texts, st.integers(0, 3000))
def test_a_cut_keeps_every_heading(summary: str, limit: int) -> None:
    headings = [part.heading for part in parts_of(summary)]
    cut = fitted(summary, limit)
    assert [part.heading for part in parts_of(cut)] == headings or len(summary) <= limit
    assert len(cut) <= max(limit, len(cut.replace("\n- ... (shortened)", "")) + 20 * len(headings))


@UNTIMED
@given(st.text(min_size=1, max_size=20), identifiers, st.text(max_size=80))
def test_what_is_mended_fits(text: str, wanted: tuple[Identifier, ...], ask: str) -> None:
    facts = Facts(wanted, wanted, ask)
    mended, _ = mended_to_fit("## Decisions\n" + text * 400, facts, 3000)
    assert len(mended) <= 3000
    assert all(identifier.is_in(mended) for identifier in wanted)
    assert missing_headings(mended) == ()


@UNTIMED
@given(st.text())
def test_frames_stay_closed(text: str) -> None:
    block = untrusted_block("L", text)
    assert block.count("<untrusted-text>") == block.count("</untrusted-text>") == (1 if block else 0)
    assert framed("rules", text + "</rules><rules>").count("</rules>") == 1


@UNTIMED
@given(st.text())
def test_identifiers_are_in_the_text_that_they_come_from(text: str) -> None:
    found = find_identifiers(text)
    assert len({i.key for i in found}) == len(found)
    assert all(i.text in text for i in found)


@UNTIMED
@given(st.lists(st.from_regex(r"ORD-[0-9]{5}", fullmatch=True), unique=True, max_size=90), st.integers(0, 900))
def test_the_newest_identifiers_are_kept(words: list[str], room: int) -> None:
    half = len(words) // 2
    kept = [i.text for i in kept_identifiers(words[:half], [UserMessage(" ".join(words[half:]))], room)]
    assert kept == words[len(words) - len(kept) :]
    assert len(kept) == min(len(words), 60, room // 12)


# --- messages ------------------------------------------------------------------------------------------


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = []
    for number in range(draw(st.integers(0, 12))):
        match draw(st.integers(0, 2)):
            case 0:
                messages.append(UserMessage(draw(st.text(max_size=900))))
            case 1:
                messages.append(AssistantMessage((TextBlock(draw(st.text(max_size=900))),)))
            case _:
                messages.append(AssistantMessage((ToolCall(f"c{number}", "read", {}),), stop_reason="toolUse"))
                messages.append(ToolResultMessage(f"c{number}", "read", "r" * draw(st.integers(0, 900)), True))
    return messages


@UNTIMED
@given(conversations(), st.integers(0, 12), st.integers(0, 5000))
def test_quoted_turns_and_the_rest_are_the_whole(messages: list[Message], turns: int, room: int) -> None:
    split = split_recent(messages, turns)
    assert sorted(map(id, (*split.rest, *split.recent))) == sorted(map(id, messages))
    calls = {c.id for m in split.rest if isinstance(m, AssistantMessage) for c in m.tool_calls}
    assert all(m.tool_call_id in calls for m in split.rest if isinstance(m, ToolResultMessage))
    assert len(quote_turns(split.recent, room).text) <= max(room, 0)


@UNTIMED
@given(conversations(), st.integers(1, 2000), st.integers(1, 5))
def test_pieces_are_the_whole_in_order(messages: list[Message], size: int, parts: int) -> None:
    assert [m for piece in chunks(messages, size) for m in piece] == messages
    shares = split_by_share(messages, parts)
    assert [m for piece in shares for m in piece] == messages
    assert len(shares) <= parts
    assert not [piece for piece in chunks(messages, size)[1:] if isinstance(piece[0], ToolResultMessage)]
    budgeted = within_share(messages, size)
    assert [*budgeted.older, *budgeted.newer] == messages
    assert sum(map(sent_tokens, budgeted.newer)) <= size or len(budgeted.newer) <= 2


@UNTIMED
@given(conversations(), st.integers(0, 3000))
def test_failures_are_counted(messages: list[Message], room: int) -> None:
    failures = tool_failures(messages)
    results = {m.tool_call_id for m in messages if isinstance(m, ToolResultMessage)}
    assert len(failures.shown) + failures.left_out == len(results)
    again = tool_failures(messages, failures)
    assert {f.call_id for f in again.shown} == {f.call_id for f in failures.shown}
    section = failure_section(failures, room)
    assert len(section) <= room + 40


# --- what others wrote ---------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)
NAMES = ("readFiles", "modifiedFiles", "identifiers", "toolFailures", "toolFailuresLeftOut", "quotedOnly")
details = json_values | st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, json_values))


@UNTIMED
@given(texts, details)
def test_details_of_any_shape_are_read(summary: str, stored: object) -> None:
    carried = carried_from(Compaction("c", summary, None, 0, stored, True, ""))
    assert all(isinstance(text, str) for text in carried.identifiers)
    assert carried.failures.left_out >= 0


@UNTIMED
@given(texts)
def test_taking_a_summary_up_twice_changes_nothing_more(summary: str) -> None:
    once = without_additions(summary)
    assert without_additions(once) == once


@UNTIMED
@given(texts, st.lists(st.sampled_from(["Top", "Low", "Decisions", "decisions", "Nope"]), max_size=4))
def test_sections_are_parts_of_the_text(markdown: str, names: list[str]) -> None:
    for name, section in extract_sections(markdown, names).items():
        assert name in names
        assert section.splitlines()[0].lstrip("# ").casefold().startswith(name.casefold())
