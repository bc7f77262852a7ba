"""A summary of a conversation without any model: sentences quoted from it, chosen by rules.

The result has the headings that model-written summaries have, so that one kind can be merged into
the other. The same input always gives the same text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from attrs import evolve, frozen

from lamella.text import cues
from lamella.text.dialogue import Turn, failure_line, parse_conversation, sentences, turns_of
from lamella.text.estimate import estimate_text
from lamella.text.segment import tokens
from lamella.text.summary_format import Layout, Section, Summary, merge, parse_summary, render, same_words
from lamella.types.messages import Message

MARK = "> Extractive summary: sentences quoted from the conversation by rules, not written by a model."


@frozen(slots=True)
class SummaryLimits:
    """Bounds of a summary: tokens that new items may take, tokens in all, characters of one item."""

    new_tokens: int = 1500
    total_tokens: int = 6000
    item_chars: int = 300


_Kind: TypeAlias = Literal["user", "assistant", "tool"]


@frozen(slots=True)
class _Item:
    section: Section
    text: str
    position: int  # of the turn it is from
    weight: float
    order: int = 0  # among all candidates, which come in the order they were said


# How much the place of an item says about its worth; user's words weigh more, see `_weigh`.
_WEIGHTS: Mapping[Section, float] = {
    "goal": 10,
    "constraints": 7,
    "blocked": 6,
    "decisions": 6,
    "in_progress": 8,
    "next": 5,
    "done": 4,
    "context": 2,
}
_USER, _ASSISTANT = "User: ", "Assistant: "
_SMALL_TALK_TOKENS = 4
_LEAST_WEIGHT = 2.5  # below this an item says too little to be quoted


def summarize_messages(
    messages: Iterable[Message],
    *,
    previous: str = "",
    focus: str = "",
    limits: SummaryLimits | None = None,
    layout: Layout = "checkpoint",
) -> str:
    """Summarise messages, merged into an earlier summary. `focus` prefers sentences that share its words."""
    return _summarize(turns_of(messages), previous, focus, limits or SummaryLimits(), layout)


def summarize_text(
    conversation: str,
    *,
    previous: str = "",
    focus: str = "",
    limits: SummaryLimits | None = None,
    layout: Layout = "checkpoint",
) -> str:
    """As `summarize_messages`, for a conversation that has been serialised already."""
    return _summarize(parse_conversation(conversation), previous, focus, limits or SummaryLimits(), layout)


def lasting_facts(messages: Iterable[Message], *, limit: int = 12) -> list[str]:
    """Sentences of a conversation that are worth keeping beyond it, in the order they were said.

    What users say of themselves, want always or never, and decide, and what assistants say was
    decided; none twice, the weightiest when there are more than `limit`.
    """
    turns = [turn for turn in turns_of(messages) if "<summary>" not in turn.text]
    lasting = [item for item in _said(turns) if _outlasts(item)]
    weighed = sorted(_weigh(lasting, len(turns), frozenset()), key=lambda item: (-item.weight, item.order))
    unique = {same_words(item.text): item for item in reversed(weighed)}
    kept = sorted(unique.values(), key=lambda item: (-item.weight, item.order))[:limit]
    return [_shortened(_unquoted(item.text), 300) for item in sorted(kept, key=lambda item: item.order)]


def _outlasts(item: _Item) -> bool:
    text = _unquoted(item.text)
    if _is_question(text) or not _says_something(text):
        return False
    if item.section == "decisions":
        return True
    if not item.text.startswith(_USER):
        return False
    return item.section == "constraints" or cues.ABOUT_ONESELF.search(text) is not None


def _unquoted(text: str) -> str:
    return text.removeprefix(_USER).removeprefix(_ASSISTANT)


def _summarize(turns: Sequence[Turn], previous: str, focus: str, limits: SummaryLimits, layout: Layout) -> str:
    earlier = parse_summary(previous)
    spoken = []
    for turn in turns:
        if turn.kind == "user" and "<summary>" in turn.text:  # a summary that stands for older history
            earlier = merge(earlier, parse_summary(_inside_tags(turn.text)))
        else:
            spoken.append(turn)
    candidates = [*_goals(spoken), *_said(spoken), *_tool_items(spoken)]
    chosen = _choose(_weigh(candidates, len(spoken), frozenset(tokens(focus))), earlier, limits)
    return render(merge(earlier, chosen).bounded(limits.total_tokens), MARK, layout)


def _inside_tags(text: str) -> str:
    return text.partition("<summary>")[2].rpartition("</summary>")[0]


# --- candidates --------------------------------------------------------------------------------------


def _goals(turns: Sequence[Turn]) -> list[_Item]:
    """What the user asked for first and last; a later request without an answer is in progress."""
    asked = [(i, turn) for i, turn in enumerate(turns) if turn.kind == "user"]
    requests = [(i, s) for i, turn in asked if (s := _first_request(turn.text, or_first=(i == asked[0][0])))]
    if not requests:
        return []
    last_user = asked[-1][0]
    answered = any(turn.kind == "assistant" for turn in turns[last_user + 1 :])
    first, (position, last) = requests[0], requests[-1]
    items = [_item("goal", "user", first[1], first[0])]
    if last != first[1]:
        under_way = position == last_user and not answered
        items.append(_item("in_progress" if under_way else "goal", "user", last, position))
    return items


def _first_request(text: str, *, or_first: bool) -> str:
    """The first question or request in a text, else with `or_first` the first sentence that says something."""
    found = sentences(text)
    asking = [s for s in found if _is_question(s) or (cues.REQUEST.search(s) and _users_section(s) != "constraints")]
    if not asking and or_first:
        asking = [s for s in found if _says_something(s)]
    return next(iter(asking), "")


def _said(turns: Sequence[Turn]) -> list[_Item]:
    items: list[_Item] = []
    last_words = max((i for i, turn in enumerate(turns) if turn.kind in ("user", "assistant")), default=-1)
    for position, turn in enumerate(turns):
        if turn.kind == "user":
            told = filter(_says_something, sentences(turn.text))
            items += [_item(_users_section(s), "user", s, position) for s in told]
        elif turn.kind == "assistant":
            for sentence in sentences(turn.text):
                open_question = position == last_words and _is_question(sentence)
                section: Section = "next" if open_question else _assistants_section(sentence)
                items.append(_item(section, "assistant", sentence, position))
    return items


def _users_section(sentence: str) -> Section:
    if _is_question(sentence):
        return "context"
    if cues.DECISION.search(sentence):
        return "decisions"
    if cues.CONSTRAINT.search(sentence):
        return "constraints"
    if cues.BLOCKED.search(sentence):
        return "blocked"
    return "next" if cues.NEXT.search(sentence) else "context"


def _assistants_section(sentence: str) -> Section:
    order: tuple[tuple[Section, bool], ...] = (
        ("decisions", bool(cues.DECISION.search(sentence))),
        ("blocked", bool(cues.BLOCKED.search(sentence))),
        ("done", bool(cues.DONE.search(sentence))),
        ("in_progress", bool(cues.IN_PROGRESS.search(sentence))),
        ("next", bool(cues.NEXT.search(sentence))),
    )
    return next((section for section, fits in order if fits), "context")


def _says_something(sentence: str) -> bool:
    """False for greetings, thanks and the like: very short, and no fact inside."""
    telling = cues.SPECIFIC.search(sentence) or cues.ABOUT_ONESELF.search(sentence)
    return telling is not None or estimate_text(sentence) > _SMALL_TALK_TOKENS


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("\"')”」』）").endswith(("?", "？", "吗", "呢"))


def _tool_items(turns: Sequence[Turn]) -> list[_Item]:
    """Files that were changed, and failures that no later call of the same kind made good."""
    waiting: list[str] = []
    outcome: dict[str, _Item] = {}
    for position, turn in enumerate(turns):
        if turn.kind == "call":
            waiting.append(turn.text)
        elif turn.kind == "result" and waiting:
            call = waiting.pop(0)
            name, target = _target(call)
            outcome.pop(f"{name} {target}", None)
            if turn.failed:
                text = f"{_named(name, target)} failed: {failure_line(turn.text)}"
                outcome[f"{name} {target}"] = _item("blocked", "tool", text, position)
            elif name in ("write", "edit") and target:
                outcome[f"{name} {target}"] = _item("done", "tool", f"Changed `{target}`", position)
    return list(outcome.values())


def _target(call: str) -> tuple[str, str]:
    """A call's name, and what it was about: its path, command, or first argument."""
    name, _, arguments = call.partition("(")
    for key in ("path", "command", "query", "pattern"):
        _, found, rest = arguments.partition(f'{key}="')
        if found:
            return name, rest.partition('"')[0]
    return name, ""


def _named(name: str, target: str) -> str:
    return f"`{name}` of `{target}`" if target else f"`{name}`"


def _item(section: Section, speaker: _Kind, sentence: str, position: int) -> _Item:
    who = {"user": _USER, "assistant": _ASSISTANT, "tool": ""}[speaker]
    return _Item(section, who + sentence, position, _WEIGHTS[section])


# --- choice ------------------------------------------------------------------------------------------


def _weigh(items: Sequence[_Item], turns: int, focus: frozenset[str]) -> list[_Item]:
    """Items with their full weight: place, speaker, facts inside, newness, and the wanted focus."""
    weighed = []
    for order, item in enumerate(items):
        facts = len(cues.SPECIFIC.findall(item.text))
        weight = item.weight + min(facts, 4) * 0.75 + item.position / max(turns, 1)
        if item.text.startswith(_USER):
            weight += 1.5 if cues.ABOUT_ONESELF.search(item.text) else 0.5
        if focus and focus.intersection(tokens(item.text)):
            weight += 3
        weighed.append(evolve(item, weight=weight, order=order))
    return weighed


def _choose(items: Sequence[_Item], earlier: Summary, limits: SummaryLimits) -> Summary:
    """The weightiest items that fit, in the order in which they were said, none twice."""
    known = [same_words(text) for _, text in earlier.items()]
    left = limits.new_tokens
    chosen: list[_Item] = []
    for item in sorted(items, key=lambda item: (-item.weight, item.order)):
        text = _shortened(item.text, limits.item_chars)
        words, cost = same_words(text), estimate_text(text) + 3
        if item.weight < _LEAST_WEIGHT or cost > left or any(words in other for other in known):
            continue
        known.append(words)
        left -= cost
        chosen.append(evolve(item, text=text))
    summary = Summary()
    for item in sorted(chosen, key=lambda item: (item.position, item.order)):
        summary = summary.with_item(item.section, item.text)
    return summary


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = text[:limit].rstrip()
    at_word, _, _ = head.rpartition(" ")
    return (at_word if len(at_word) > limit * 2 // 3 else head) + " …"
