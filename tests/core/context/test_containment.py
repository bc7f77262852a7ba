"""I11: whatever lies in a workspace under the names that lamella reads, nothing from outside gets into a prompt,
a note, a skill or the result of a file tool."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from hypothesis import given, settings
from hypothesis import strategies as st

from lamella.context.assembly import PromptFor
from lamella.sessions.keys import parse_key
from lamella.text.days import human_day

SECRET = "what lies outside"
OWN = "what lies inside"
SKILL = "---\nname: {name}\ndescription: {text}\n---\n{text}\n"

Lay = Callable[[Path, Path], None]


def call(tool: str, **arguments: str) -> dict[str, Any]:
    return {"type": "toolCall", "id": f"{tool} {arguments}", "name": tool, "arguments": arguments}


def plain(place: Path, _outside: Path) -> None:
    name = place.parent.name
    place.write_text(SKILL.format(name=name, text=OWN) if place.name == "SKILL.md" else OWN)


def link(place: Path, outside: Path) -> None:
    place.symlink_to(outside)


def relative_link(place: Path, outside: Path) -> None:
    place.symlink_to(os.path.relpath(outside, place.parent))


def chain(place: Path, outside: Path) -> None:
    step = place.with_name(place.name + ".step")
    step.symlink_to(outside)
    place.symlink_to(step.name)


def second_name(place: Path, outside: Path) -> None:
    os.link(outside, place)


def folder_link(place: Path, outside: Path) -> None:
    """The folder itself is a link; the workspace's own folder stays."""
    if place.parent.name != "ws":
        shutil.rmtree(place.parent)
        place.parent.symlink_to(outside.parent, target_is_directory=True)


def link_to_folder(place: Path, outside: Path) -> None:
    place.symlink_to(outside.parent, target_is_directory=True)


def link_to_itself(place: Path, _outside: Path) -> None:
    place.symlink_to(place.name)


def pipe(place: Path, _outside: Path) -> None:
    os.mkfifo(place)


WAYS: list[Lay] = [plain, link, relative_link, chain, second_name, folder_link, link_to_folder, link_to_itself, pipe]
TODAY = f"memory/{human_day()}.md"
PLACES = (
    "AGENTS.md",
    "SOUL.md",
    "MEMORY.md",
    TODAY,
    "skills/a/SKILL.md",
    "skills/b/SKILL.md",
    ".agents/skills/c/SKILL.md",
)
LAYOUTS = st.dictionaries(st.sampled_from(PLACES), st.sampled_from(WAYS), min_size=1)
NUMBER = itertools.count()

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


def lay_out(home: Path, layout: Mapping[str, Lay]) -> Path:
    """A workspace with these files, beside a folder with one of each that nobody may read."""
    workspace, outside = home / "ws", home / "outside"
    outside.mkdir(parents=True)
    for name in ("note.md", "SKILL.md", Path(TODAY).name):
        text = SKILL.format(name="outside", text=SECRET) if name == "SKILL.md" else SECRET
        (outside / name).write_text(text)
    for place, way in layout.items():
        path = workspace / place
        path.parent.mkdir(parents=True, exist_ok=True)
        way(path, outside / (path.name if path.name in ("SKILL.md", Path(TODAY).name) else "note.md"))
    return workspace


async def seen(home: Path, layout: Mapping[str, Lay]) -> str:
    """All that a model can see of the workspace: its prompt, the notes of a new session, and what tools read."""
    lay_out(home, layout)
    calls = [call("read_skill", name=name) for name in ("a", "b", "c", "outside")]
    if second_name not in layout.values():  # its real path is in the workspace: enough for tools, not for prompts
        calls += [call("grep", pattern="lies"), *(call("read", path=place) for place in layout)]
    model = scripted([{"content": calls}, "done"])
    async with open_agent(home, model, settings={"tools.deny": []}, environ={"HOME": str(home / "nobody")}) as runtime:
        async with runtime.session("agent:main:main") as session:
            session.reset(bare=True)
            await session.prompt("hello")
        sections = runtime.prompts.sections(PromptFor(parse_key("agent:main:main"), preview=True))
    requests: list[Any] = [(r.system_prompt, r.messages) for r in model.requests]
    return repr(requests) + "".join(s.text for s in sections)


@settings(max_examples=25, deadline=None)
@given(layout=LAYOUTS)
async def test_nothing_from_outside_is_seen(tmp_path_factory: pytest.TempPathFactory, layout: dict[str, Lay]) -> None:
    home = tmp_path_factory.getbasetemp() / f"contained{next(NUMBER)}"
    found = await seen(home, layout)
    assert SECRET not in found
    own = [place for place, way in layout.items() if way is plain and (home / "ws" / place).exists()]
    assert OWN in found or not own
