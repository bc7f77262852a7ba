"""Opening runtimes for tests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamella.runtime import PLUGINS_VARIABLE, Runtime
from lamella.types.events import PluginFault

if TYPE_CHECKING:
    from lamella.types.model import Model


class RuntimeFactory:
    """Opens runtimes on one workspace; `faults` are the failures of plugins that no test asked for."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.faults: list[str] = []
        self._opened: list[Runtime] = []

    def __call__(
        self,
        *plugins: Any,
        model: str | Model = "offline",
        settings: Mapping[str, Any] | None = None,
        installed: str | Iterable[str] = (),
        allow_faults: bool = False,
        **options: Any,
    ) -> Runtime:
        """Open a runtime with these plugins (classes or objects), and the `installed` ones that are named.

        Other options are those of `Runtime.open`; `environ` is added to the test's own. Raises
        `AssertionError` for a plugin that cannot be loaded, unless `allow_faults`.
        """
        named = (installed,) if isinstance(installed, str) else installed
        environ = {**os.environ, **options.pop("environ", {}), PLUGINS_VARIABLE: ",".join(named)}
        runtime = Runtime.open(
            **{"workspace": self.workspace, **options},
            environ=environ,
            model=model,
            plugins=plugins,
            settings=settings,
        )
        self._opened.append(runtime)
        if not allow_faults:
            runtime.listeners.append(self._listen)
            problems = [str(p) for p in (*runtime.catalog.problems, *runtime.hooks.problems) if p.level == "error"]
            assert not problems, "\n".join(problems)
        return runtime

    def close(self) -> None:
        """Close all runtimes."""
        while self._opened:
            self._opened.pop().close()

    def _listen(self, event: Any) -> None:
        if isinstance(event, PluginFault):
            self.faults.append(f"plugin {event.plugin}, hook {event.hook}: {event.error}")
