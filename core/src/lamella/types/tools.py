"""Tools: what a model may call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from lamella.types.memory import Provenance
from lamella.types.model import ToolSpec

if TYPE_CHECKING:
    import asyncio

    from lamella.types.host import ChatType, Host
    from lamella.types.messages import JsonObject
    from lamella.types.results import ToolResult

UpdateCallback: TypeAlias = "Callable[[ToolResult], None]"


def _event() -> asyncio.Event:
    import asyncio  # a table of tools needs no event loop

    return asyncio.Event()


@frozen(slots=True)
class ToolContext:
    """Where a call runs. `update` reports partial results; `cancelled` is set on abort.

    `entry_id` is the transcript entry that holds the call; `chat_type` tells who else reads the answer.
    """

    call_id: str
    workspace: Path
    session_key: str
    session_id: str = ""
    entry_id: str = ""
    host: Host | None = None
    update: UpdateCallback = lambda _partial: None
    cancelled: asyncio.Event = field(factory=_event, eq=False)
    trigger: str = "user"
    chat_type: ChatType = "direct"

    def provenance(self, actor: str) -> Provenance:
        """Who writes to memory when this call does; `actor` is the tool's name."""
        return Provenance(actor, self.session_key, self.session_id, self.entry_id, self.trigger)


class ToolFunction(Protocol):
    """A tool's code: `def` or `async def`. A plain `def` runs in a worker thread.

    Return a string or a `ToolResult`; raise `ToolError` for a message meant for the model.
    """

    def __call__(
        self, arguments: Mapping[str, Any], context: ToolContext, /
    ) -> ToolResult | str | Awaitable[ToolResult | str]: ...


@frozen(slots=True)
class Tool:
    """A tool: its name, what the model is told, a JSON schema for its arguments, and its code.

    `writes` tells whether it changes anything outside the conversation: `chat` asks before such a
    call, and read-only turns leave it out. `sequential` keeps it from running beside other calls. An
    `optional` tool of a plugin is offered only where `tools.optional` names it.
    """

    name: str
    description: str
    parameters: JsonObject
    run: ToolFunction = field(repr=False)
    label: str = ""
    writes: bool = False
    sequential: bool = False
    owner: Literal["core", "plugin", "user"] | str = "user"
    optional: bool = False

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, self.parameters)
