"""What plugins add to a turn's request, as far as a window can hold it."""

from __future__ import annotations

from attrs import define, evolve

from lamella.agent.host import SessionHost
from lamella.agent.workbench import Workbench
from lamella.plugins.answers import merge_additions
from lamella.text.estimate import Estimator, estimate_text
from lamella.types import hooks as h
from lamella.types.messages import TextBlock, UserMessage, text_of


@define(slots=True)
class Fitting:
    """Says why an addition cannot be used: with those before it, not even an empty history leaves it room.

    `free` is how many tokens are left for additions; `base` the size of the prompt that one may replace.
    """

    free: int
    base: int
    estimate: Estimator

    def objection(self, addition: h.PromptAddition) -> str:
        """Why an addition is left out; empty when it is taken, and its room with it."""
        tokens = self._size(addition)
        if tokens > self.free:
            return f"adds about {tokens} tokens, the context window has room for {max(self.free, 0)}; left out"
        self.free -= tokens
        return ""

    def _size(self, addition: h.PromptAddition) -> int:
        replaced = max(estimate_text(addition.system_prompt) - self.base, 0) if addition.system_prompt else 0
        around = estimate_text(addition.prepend_system) + estimate_text(addition.append_system)
        if not addition.prepend_context:
            return replaced + around
        return replaced + around + self.estimate(UserMessage((TextBlock(addition.prepend_context),)))


async def additions(bench: Workbench, user: UserMessage, host: SessionHost) -> h.PromptAddition:
    """What the plugins add to the request of a user's message."""
    base = bench.system_prompt()
    limits, said = bench.budget(), bench.environment.estimate(user)
    event = h.BeforePromptBuild(
        text_of(user.content),
        tuple(bench.file.context().messages),
        base,
        room=limits.window - limits.reserve - bench.tokens() - said,
    )
    fitting = Fitting(limits.window - bench.fixed_tokens() - said, estimate_text(base), bench.environment.estimate)
    hooks = bench.environment.hooks
    first = await hooks.before_prompt_build(event, host, objection=fitting.objection)
    second = await hooks.before_agent_start(event, host, objection=fitting.objection)
    merged = merge_additions([first, second])
    # A base prompt from before_prompt_build comes before one from before_agent_start.
    return evolve(merged, system_prompt=first.system_prompt or second.system_prompt)
