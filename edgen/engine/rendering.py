"""What a scenario's prompts say, rendered as they are sent when the conversation begins."""

from __future__ import annotations

from edgen.engine.plan import Plan
from edgen.model import ROLES, Message, Turn
from edgen.prompting import scenario_variables


def rendered(plan: Plan, index: int) -> dict[str, tuple[Message, ...]]:
    """The messages of each prompt of scenario `index`, by what they are for."""
    if plan.job.protocol == "oneshot":
        return {"default": plan.prompts["default"].messages(scenario_variables(plan.scenario(index)))}
    stage = plan.stage(index)
    prompts = {role.lower(): stage.messages(role, []) for role in ROLES}
    if "closing" in plan.prompts:
        prompts["closing"] = stage.closing([Turn(role, "…") for role in ROLES])
    return prompts
