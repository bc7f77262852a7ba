"""The next request of a session, and `lamella context --explain`: what becomes of each message on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamella.cli.common import Out, print_table
from lamella.cli.context_doors import only_shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamella.agent.preview import Preview, Source
    from lamella.runtime import Runtime
    from lamella.sessions.keys import SessionKey
    from lamella.sessions.transcript import SessionFile


async def next_request(
    runtime: Runtime, key: SessionKey, session: SessionFile | None, sources: Sequence[Source]
) -> Preview:
    """The request that a session's messages would make now, after plugins and repair."""
    from lamella.agent.preview import Preview, preview
    from lamella.context.profiles import profile_for
    from lamella.context.repairs.thinking import written_by

    if session is None:
        return Preview((), (), 0)
    model = runtime.model
    window = runtime.environment.window(model)
    return await preview(
        sources,
        profile_for(model.provider, model.api),
        same_model=lambda message: written_by(message, model.provider, model.id, model.api),
        estimate=runtime.estimate,
        images=model.supports_images,
        hooks=runtime.hooks,
        host=only_shown(runtime, session, model.provider, model.id, window, key.text),
        window=window,
    )


def explanation(made: Preview, sources: Sequence[Source]) -> dict[str, Any]:
    """`actions` (one for each message, with its `role`) and `remarks` of a request."""
    actions = [a.to_json() for a in made.actions]
    for action, source in zip(actions, sources, strict=False):
        action["role"] = source.message.role
    return {"actions": actions, "remarks": [r.to_json() for r in made.remarks]}


def show(found: dict[str, Any]) -> None:
    """Print an explanation."""
    rows = [
        [
            str(action["index"]),
            action.get("role", ""),
            action["action"],
            action["rule"],
            str(action["tokensBefore"]),
            str(action["tokensAfter"]),
        ]
        for action in found["actions"]
    ]
    print_table(rows, ["MESSAGE", "ROLE", "WHAT", "WHY", "TOKENS", "SENT"])
    for remark in found["remarks"]:
        Out.write(f"{remark['plugin']}: {remark['text']} ({remark['rule']})")
