"""Skills: where they are found, which count, how the prompt lists them, and how the model reads them.

Rows A30 and A31 of the table of edge cases carry their number.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import scripted
from hypothesis import given
from hypothesis import strategies as st

from lamella.context.skills import Skill, list_skills
from lamella.runtime import Runtime
from lamella.types.messages import ToolResultMessage, text_of

SKILLS = "plugins.config.skills"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with nothing in it."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def write(folder: Path, description: str = "Some help.", **fields: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{k.replace('_', '-')}: {v}\n" for k, v in {"description": description, **fields}.items())
    (folder / "SKILL.md").write_text(f"---\n{rows}---\nSteps of {folder.name}.\n", encoding="utf-8")
    return folder


def opened(workspace: Path, model: Any = None, **settings: Any) -> Runtime:
    return Runtime.open(
        workspace=workspace,
        model=model or scripted(["ok"] * 9),
        settings={f"{SKILLS}.{k}": v for k, v in settings.items()},
        environ={"LAMELLA_HOME": str(workspace.parent / "state"), "LAMELLA_PLUGINS": ""},
    )


async def prompt_of(workspace: Path, key: str = "agent:main:main", **settings: Any) -> str:
    async with opened(workspace, **settings) as runtime:
        await runtime.ask("hello", key=key)
        return str(runtime.model.requests[-1].system_prompt)  # type: ignore[attr-defined]


def listed(prompt: str) -> dict[str, tuple[str, str]]:
    """(description, location) by name, as an XML parser reads them."""
    if "<available_skills>" not in prompt:
        return {}
    start, end = prompt.index("<available_skills>"), prompt.index("</available_skills>")
    root = ET.fromstring(prompt[start : end + len("</available_skills>")])
    rows = [[str(s.findtext(tag)) for tag in ("name", "description", "location")] for s in root]
    return {name: (description, location) for name, description, location in rows}


# --- finding -----------------------------------------------------------------------------------------------


async def test_later_sources_count_over_earlier_ones(workspace: Path, tmp_path: Path, home: Path) -> None:
    sources = {
        "extra": tmp_path / "extra",
        "managed": tmp_path / "state" / "skills",
        "home": home / ".agents" / "skills",
        "agents": workspace / ".agents" / "skills",
        "own": workspace / "skills",
    }
    order = list(sources)
    for number, (source, root) in enumerate(sources.items()):
        for name in order[number:]:  # the skill named after the last source is in all of them
            write(root / f"by-{name}", source)
    found = listed(await prompt_of(workspace, extra_dirs=[str(sources["extra"])]))
    assert {name: description for name, (description, _) in found.items()} == {
        "by-extra": "extra",
        "by-managed": "managed",
        "by-home": "home",
        "by-agents": "agents",
        "by-own": "own",
    }
    assert found["by-home"][1] == "~/.agents/skills/by-home/SKILL.md"


async def test_names_come_from_the_front_matter_and_order_from_names(workspace: Path) -> None:
    write(workspace / "skills" / "zz", name="alpha")
    write(workspace / "skills" / "aa", name="omega")
    write(workspace / "skills" / "mm")
    assert list(listed(await prompt_of(workspace))) == ["alpha", "mm", "omega"]


async def test_what_is_no_skill_is_passed_over(
    workspace: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    skills = workspace / "skills"
    write(skills / "good")
    write(skills / ".hidden")
    write(skills / "node_modules")
    write(skills / "private", disable_model_invocation="true")
    write(skills / "silent", description="")
    write(skills / "huge", description="x" * 300_000)
    (skills / "empty").mkdir()
    (skills / "torn").mkdir()
    (skills / "torn" / "SKILL.md").write_text("---\nname: x\n")
    (skills / "outside").symlink_to(write(tmp_path / "elsewhere" / "outside"), target_is_directory=True)
    assert list(listed(await prompt_of(workspace))) == ["good"]
    warned = " ".join(r.getMessage() for r in caplog.records)
    for name in ("silent", "huge", "torn", "outside"):
        assert f"{name}/SKILL.md is left out" in warned


async def test_a_root_with_a_folder_of_skills_in_it(workspace: Path, tmp_path: Path) -> None:
    write(tmp_path / "repo" / "skills" / "deep")
    (tmp_path / "repo" / "docs").mkdir()
    assert list(listed(await prompt_of(workspace, extra_dirs=[str(tmp_path / "repo")]))) == ["deep"]


async def test_limits_of_a_source(workspace: Path) -> None:
    for number in range(12):
        write(workspace / "skills" / f"s{number:02}")
    assert len(listed(await prompt_of(workspace, max_candidates=7))) == 7
    assert len(listed(await prompt_of(workspace, "agent:main:b", max_per_source=5))) == 5


# --- the prompt ----------------------------------------------------------------------------------------------


def many(count: int, description: str = "Help.") -> list[Skill]:
    return [Skill(f"s{n:03}", description, f"/skills/s{n:03}/SKILL.md") for n in range(count)]


def test_A30_the_first_150_and_a_note() -> None:
    found = list_skills(many(200), most=150, max_chars=30_000)
    assert (found.shown, found.total) == (150, 200)
    assert list(listed(found.text)) == [f"s{n:03}" for n in range(150)]
    assert "150 of 200 skills" in found.text


def test_A30_then_what_fits_and_a_note() -> None:
    found = list_skills(many(200, "d" * 900), most=150, max_chars=30_000)
    block = found.text[found.text.index("<available_skills>") :]
    assert len(block) <= 30_000 < len(block) + 1000
    assert f"{found.shown} of 200 skills" in found.text


def test_all_of_them_need_no_note() -> None:
    assert "listed" not in list_skills(many(3), most=150, max_chars=30_000).text
    assert list_skills([], most=150, max_chars=30_000).text == ""


async def test_A31_markup_in_a_skill_is_escaped(workspace: Path) -> None:
    write(workspace / "skills" / "a", "</available_skills> & <b>", name="x<y")
    prompt = await prompt_of(workspace)
    assert prompt.count("</available_skills>") == 1
    assert listed(prompt)["x<y"][0] == "</available_skills> & <b>"


@given(st.lists(st.text(max_size=80), max_size=12), st.integers(0, 12), st.integers(0, 2000))
def test_any_list_is_within_its_limits(descriptions: list[str], most: int, max_chars: int) -> None:
    skills = [Skill(f"s{n}", d, f"/s/{n}/SKILL.md") for n, d in enumerate(descriptions)]
    found = list_skills(skills, most=most, max_chars=max_chars)
    assert found.shown <= most
    assert found == list_skills(skills, most=most, max_chars=max_chars)
    if found.text:
        assert len(found.text[found.text.index("<available_skills>") :]) <= max_chars


async def test_a_long_description_is_cut_and_takes_no_room_of_others(workspace: Path) -> None:
    write(workspace / "skills" / "a", "x" * 100_000)
    write(workspace / "skills" / "b")
    found = listed(await prompt_of(workspace))
    assert list(found) == ["a", "b"]
    assert found["a"][0] == "x" * 1023 + "…"


async def test_a_session_keeps_its_skills(workspace: Path) -> None:
    write(workspace / "skills" / "one")
    before = await prompt_of(workspace)
    write(workspace / "skills" / "two")
    assert await prompt_of(workspace) == before
    assert list(listed(await prompt_of(workspace, "agent:main:other"))) == ["one", "two"]


async def test_sub_agents_see_skills_and_without_any_there_is_no_section(workspace: Path) -> None:
    assert "## Skills" not in await prompt_of(workspace)
    write(workspace / "skills" / "one")
    assert "## Skills" in await prompt_of(workspace, "agent:main:subagent:u1")


# --- reading ---------------------------------------------------------------------------------------------------


@pytest.fixture
def read(workspace: Path, home: Path, tmp_path: Path) -> Callable[..., Any]:
    """Let the model read a skill; its result."""
    folder = write(home / ".agents" / "skills" / "tea")
    (folder / "times.txt").write_text("four minutes")
    (tmp_path / "secret.txt").write_text("secret")

    async def read(**arguments: str) -> ToolResultMessage:
        call = {"type": "toolCall", "id": "c1", "name": "read_skill", "arguments": arguments}
        async with opened(workspace, scripted([{"content": [call]}, "done"])) as runtime:
            result = await runtime.ask("make tea", new=True)
        (found,) = [m for m in result.messages if isinstance(m, ToolResultMessage)]
        return found

    return read


async def test_the_model_reads_a_skill_outside_the_workspace(read: Callable[..., Any]) -> None:
    assert "Steps of tea." in text_of((await read(name="tea")).content)
    assert text_of((await read(name="tea", path="times.txt")).content) == "four minutes"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"name": "coffee"}, "there are: tea"),
        ({"name": "tea", "path": "no.txt"}, "has no file no.txt"),
        ({"name": "tea", "path": "../../../../secret.txt"}, "outside its folder"),
        ({"name": "tea", "path": "/etc/passwd"}, "outside its folder"),
        ({"name": "tea", "path": "a\0b"}, "Cannot read"),
    ],
)
async def test_only_files_of_a_skill_are_read(read: Callable[..., Any], arguments: dict[str, str], says: str) -> None:
    result = await read(**arguments)
    assert result.is_error
    assert says in text_of(result.content)
