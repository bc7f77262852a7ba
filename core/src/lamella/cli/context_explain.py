"""`lamella context --explain`: what becomes of each message of a session on its way to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamella.cli.common import Out, print_table
from lamella.cli.context_doors import only_shown, session_sources

if TYPE_CHECKING:
    from lamella.runtime import Runtime


async def explanation(runtime: Runtime, key: str) -> dict[str, Any]:
    """`actions` (one for each message, with its `role`) and `remarks` of a session's next request."""
    from lamella.agent.preview import preview
    from lamella.context.profiles import profile_for
    from lamella.context.repairs.thinking import written_by

    model, session_key = runtime.model, runtime.key(key)
    located = runtime.store.locate(session_key)
    if located is None or not located.exists:
        return {"actions": [], "remarks": []}
    session = runtime.store.open(located, cwd="")
    sources = session_sources(session)
    window = runtime.environment.window(model)
    made = await preview(
        sources,
        profile_for(model.provider, model.api),
        same_model=lambda message: written_by(message, model.provider, model.id, model.api),
        estimate=runtime.estimate,
        hooks=runtime.hooks,
        host=only_shown(runtime, session, model.provider, model.id, window, session_key.text),
        window=window,
    )
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
