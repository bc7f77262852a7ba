"""Fixtures for tests of plugins. pytest finds this module by its entry point.

All names begin with `lamella_`. A run that uses none of them pays for this file alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lamella.models.scripted import ScriptedModel, ScriptEntry
    from lamella.testing.recorder import HookRecorder
    from lamella.testing.runtimes import RuntimeFactory
    from lamella.testing.transcripts import TranscriptBuilder

pytest.register_assert_rewrite("lamella.testing.contract")


@pytest.fixture
def lamella_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own, in LAMELLA_HOME.

    All other variables of lamella, and every key of a model provider, are taken out of the environment.
    """
    from lamella.testing.isolation import private_names

    for name in private_names():
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "lamella-home"
    monkeypatch.setenv("LAMELLA_HOME", str(home))
    return home


@pytest.fixture
def lamella_workspace(tmp_path: Path) -> Path:
    """An empty folder for the agent."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def lamella_model() -> Callable[..., ScriptedModel]:
    """Makes a model that plays prepared replies: `lamella_model("Hello.", {"error": "overloaded"})`.

    Steps and options are those of `lamella.models.scripted.ScriptedModel`.
    """

    def make(*steps: ScriptEntry, **options: Any) -> ScriptedModel:
        from lamella.models.scripted import ScriptedModel

        return ScriptedModel(steps, **options)

    return make


@pytest.fixture
def lamella_hooks() -> HookRecorder:
    """A plugin that notes every call of a run-time hook; give it to a runtime beside your own."""
    from lamella.testing.recorder import HookRecorder

    return HookRecorder()


@pytest.fixture
def lamella_transcript(lamella_home: Path, lamella_workspace: Path) -> Iterator[Callable[..., TranscriptBuilder]]:
    """Makes a session with a history: `lamella_transcript().user("Hi").assistant("Hello.")`.

    Takes a session key; a runtime of `lamella_runtime` goes on in that session.
    """

    built: list[TranscriptBuilder] = []

    def make(key: str = "agent:main:main") -> TranscriptBuilder:
        from lamella.testing.transcripts import TranscriptBuilder

        built.append(TranscriptBuilder(lamella_home, lamella_workspace, key))
        return built[-1]

    yield make
    for builder in built:
        builder.close()


@pytest.fixture
def lamella_runtime(lamella_home: Path, lamella_workspace: Path) -> Iterator[RuntimeFactory]:
    """Opens runtimes on the test's own workspace and state, and closes them.

    Installed plugins are left out unless named. The test fails when a plugin fails, unless the runtime
    was opened with `allow_faults=True`.
    """
    from lamella.testing.runtimes import RuntimeFactory

    factory = RuntimeFactory(lamella_workspace)
    yield factory
    factory.close()
    if factory.faults:
        pytest.fail("plugins failed:\n" + "\n".join(factory.faults), pytrace=False)
