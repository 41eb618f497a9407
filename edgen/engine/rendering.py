"""What a scenario's prompts say, rendered as they are sent when the conversation begins."""

from __future__ import annotations

from edgen.engine.plan import Plan
from edgen.model import ROLES, Message, Scenario, Turn
from edgen.prompting import scenario_variables


def rendered(plan: Plan, index: int) -> dict[str, tuple[Message, ...]]:
    """The messages of each prompt of scenario `index`, by what they are for."""
    return rendered_with(plan, plan.scenario(index))


def rendered_with(plan: Plan, scenario: Scenario) -> dict[str, tuple[Message, ...]]:
    """The same of a scenario that need not be one of the plan's."""
    if plan.job.protocol == "oneshot":
        return {"default": plan.prompts["default"].messages(scenario_variables(scenario))}
    stage = plan.stage(scenario)
    prompts = {role.lower(): stage.messages(role, []) for role in ROLES}
    if "closing" in plan.prompts:
        prompts["closing"] = stage.closing([Turn(role, "…") for role in ROLES])
    return prompts
