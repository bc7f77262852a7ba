"""What a plugin registers, for tests that want it without a runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lamella.types.memory import BackendRegistration


def registered_backend(plugin: Any, name: str = "", **config: Any) -> BackendRegistration:
    """The memory backend that a plugin (class or object) registers; by name, when it has several.

    `config` are the settings of the plugin's section. Raises `AssertionError` that says what is wrong.
    """
    from lamella.config.schema import PluginsSection, SlotsSection
    from lamella.plugins.catalog import load_plugins, plugin_name
    from lamella.plugins.hooks import Hooks
    from lamella.types.events import PluginFault
    from lamella.types.hooks import RegistrationContext

    own = plugin_name(plugin)
    slot = getattr(plugin, "slot", "") or "none"
    section = PluginsSection(
        config={own: config} if config else {}, slots=SlotsSection(own if slot != "none" else slot)
    )
    faults: list[PluginFault] = []
    hooks = Hooks(load_plugins(section, sources=(), extra=[plugin], slot_chosen=False), on_fault=faults.append)
    problems = [str(p) for p in (*hooks.catalog.problems, *hooks.problems)]
    assert not problems, "\n".join(problems)
    found = {r.name: r for _, r in hooks.register_memory_backends(RegistrationContext("main", Path(), Path()))}
    assert not faults, "\n".join(f"{f.hook}: {f.error}" for f in faults)
    assert found, f"plugin {own} registers no memory backend; implement register_memory_backends"
    if not name:
        assert len(found) == 1, f"plugin {own} registers several backends, name one of them: {', '.join(found)}"
        return next(iter(found.values()))
    assert name in found, f"plugin {own} registers no backend {name!r}; there are: {', '.join(found)}"
    return found[name]
