"""The fixtures that pytest finds by itself, as the author of a plugin uses them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lamella import Runtime, Tool, hookimpl
from lamella.errors import MemoryUnavailable
from lamella.sessions.transcript import SessionFile
from lamella.testing import HookRecorder, registered_backend
from lamella.types.memory import BackendRegistration

pytest_plugins = ["pytester"]

REPLY = {"content": [{"type": "toolCall", "id": "1", "name": "shout", "arguments": {"text": "hello"}}]}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Shouting:
    name = "shouting"

    @hookimpl
    def register_tools(self) -> list[Tool]:
        return [Tool("shout", "Say it loudly.", SCHEMA, lambda a, _c: str(a["text"]).upper())]


async def test_a_plugin_runs_with_a_prepared_model(
    lamella_runtime: Any, lamella_model: Any, lamella_hooks: Any
) -> None:
    model = lamella_model(REPLY, "Done.")
    runtime = lamella_runtime(Shouting, lamella_hooks, model=model)
    answer = await runtime.ask("Shout hello.")
    assert answer.text == "Done."
    assert model.steps_left == 0
    assert lamella_hooks.last("after_tool_call").content[0].text == "HELLO"
    assert lamella_hooks.events("input")[0].text == "Shout hello."
    assert lamella_hooks.names[0] == "session_start"
    with pytest.raises(AssertionError, match="on_overflow was not called; called were: session_start"):
        lamella_hooks.last("on_overflow")


async def test_a_session_goes_on_from_a_built_history(
    lamella_runtime: Any, lamella_model: Any, lamella_transcript: Any
) -> None:
    built = lamella_transcript().user("Where is the key?").tool("look", "under the mat", place="door")
    built.assistant("Under the mat.").custom("shouting", {"loud": 1}).close()
    model = lamella_model("As I said.")
    await lamella_runtime(model=model).ask("Where?")
    roles = [m.role for m in model.requests[0].messages]
    assert roles == ["user", "assistant", "toolResult", "assistant", "user"]
    assert SessionFile.open(built.path).latest_custom("shouting") == {"loud": 1}


async def test_a_built_history_can_be_compacted(
    lamella_runtime: Any, lamella_model: Any, lamella_transcript: Any
) -> None:
    lamella_transcript().user("old").assistant("older").user("kept").compaction("All of it.", keep=1).close()
    model = lamella_model("Yes.")
    await lamella_runtime(model=model).ask("Now?")
    text = str(model.requests[0].messages)
    assert "All of it." in text and "kept" in text
    assert "'old'" not in text and "older" not in text


def test_nothing_of_the_developer_reaches_a_test(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "SOME_OTHER_API_KEY", "LAMELLA_MODEL", "LAMELLA_PLUGINS"):
        monkeypatch.setenv(name, "mine")
    home = request.getfixturevalue("lamella_home")
    assert os.environ["LAMELLA_HOME"] == str(home) and home.is_relative_to(tmp_path)
    assert [n for n, value in os.environ.items() if value == "mine"] == []
    runtime: Runtime = request.getfixturevalue("lamella_runtime")()
    assert runtime.paths.home == home
    assert [r.name for r in runtime.catalog.active if not r.builtin] == []


def test_an_environment_of_the_tests_own_is_added_to_the_fixtures(lamella_runtime: Any, lamella_home: Path) -> None:
    runtime = lamella_runtime(Shouting, environ={"LAMELLA_MODEL": "scripted/x", "LAMELLA_PLUGINS": "memory-core"})
    assert runtime.paths.home == lamella_home
    assert runtime.environ["LAMELLA_MODEL"] == "scripted/x"
    assert [r.name for r in runtime.catalog.active if not r.builtin] == ["shouting"]


def test_a_history_folds_no_more_than_it_has(lamella_transcript: Any) -> None:
    built = lamella_transcript().user("a").tool("look", "nothing", name="door")
    for keep in (-1, 4):
        with pytest.raises(ValueError, match=f"keep is {keep}, expected 0 to 3"):
            built.compaction("All.", keep=keep)


def test_installed_plugins_are_loaded_when_they_are_named(lamella_runtime: Any) -> None:
    runtime = lamella_runtime(installed=["memory-core"], settings={"plugins.config.memory-core.embedder": "none"})
    assert [r.name for r in runtime.catalog.active if not r.builtin] == ["memory-core"]
    assert runtime.require_memory().status()["backend"] == "sqlite"
    with pytest.raises(AssertionError, match="no plugin 'memory-cor' is installed"):
        lamella_runtime(installed="memory-cor")
    with pytest.raises(MemoryUnavailable):
        lamella_runtime().require_memory()


def test_a_plugin_that_cannot_be_loaded_fails_the_test(lamella_runtime: Any) -> None:
    class Misspelt:
        name = "misspelt"

        @hookimpl
        def agent_ends(self, event: Any) -> None: ...

    with pytest.raises(AssertionError, match="did you mean agent_end"):
        lamella_runtime(Misspelt)
    lamella_runtime(Misspelt, allow_faults=True)


def test_a_fault_during_a_turn_fails_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio
        import pytest
        from lamella import hookimpl

        class Bad:
            name = "bad"

            @hookimpl
            def input(self, event):
                raise RuntimeError("boom")

        @pytest.mark.parametrize("allowed", [False, True])
        def test_turn(lamella_runtime, lamella_model, allowed):
            runtime = lamella_runtime(Bad, model=lamella_model("Hi."), allow_faults=allowed)
            assert asyncio.run(runtime.ask("Hello.")).text == "Hi."
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*plugin bad, hook input: RuntimeError: boom*"])


def test_a_run_without_lamella_imports_the_fixtures_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing():
            print("LOADED", *sorted(m for m in sys.modules if m.partition(".")[0] in ("lamella", "attr", "attrs")))
        """
    )
    result = pytester.runpytest_subprocess("-s", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*LOADED lamella lamella.testing lamella.testing.pytest_plugin"])


def test_the_core_needs_no_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None; import lamella.testing; from lamella.testing import HookRecorder"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- what a backend's registration may be -----------------------------------------------------------------


def test_a_backend_is_taken_from_its_plugin() -> None:
    def factory(context: Any) -> Any:
        raise NotImplementedError

    class Two:
        name = "two"

        @hookimpl
        def register_memory_backends(self) -> list[BackendRegistration]:
            return [BackendRegistration("a", factory), BackendRegistration("b", factory)]

    assert registered_backend(Two, "b").name == "b"
    with pytest.raises(AssertionError, match="several backends, name one of them: a, b"):
        registered_backend(Two)
    with pytest.raises(AssertionError, match="no backend 'c'; there are: a, b"):
        registered_backend(Two, "c")
    with pytest.raises(AssertionError, match="implement register_memory_backends"):
        registered_backend(HookRecorder)
    with pytest.raises(AssertionError, match="this plugin has no settings"):
        registered_backend(Two, "a", colour="red")
