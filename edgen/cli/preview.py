"""`edgen preview`: scenarios and rendered prompts; calls nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from edgen.cli.options import JobArgument, JsonOption, SetOption
from edgen.cli.output import print_json, print_line

if TYPE_CHECKING:
    from edgen.engine.plan import Plan


def command(
    job: JobArgument,
    count: Annotated[int, typer.Option("-n", min=1, max=1000, help="How many scenarios to show.")] = 3,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Show scenarios and the prompts rendered for them. Calls nothing, costs nothing.

    Example: edgen preview jobs/quickstart.yaml -n 1
    """
    from edgen.engine.load import load_plans

    _, plans = load_plans(job, set_)
    shown = [
        _shown(arm, plan, index)
        for arm, plan in plans.items()
        for index in range(min(count, plan.job.conversations))
    ]
    plan = next(iter(plans.values()))
    if json:
        print_json({"job": plan.job.name, "cells": plan.space.cells, "previews": shown})
        return
    for preview in shown:
        _print(preview)
    print_line(
        f"{plan.job.conversations} scenarios are planned, of {plan.space.cells} cells in {plan.job.space}."
    )


def _shown(arm: str | None, plan: Plan, index: int) -> dict[str, Any]:
    """A scenario, and the messages of each prompt as they are sent when the conversation begins."""
    from edgen.model import ROLES, Turn
    from edgen.prompting import scenario_variables

    scenario = plan.scenario(index)
    facts: dict[str, Any] = {} if arm is None else {"arm": arm}
    facts["scenario"] = msgspec.to_builtins(scenario)
    if plan.job.protocol == "oneshot":
        return {
            **facts,
            "messages": msgspec.to_builtins(plan.prompts["default"].messages(scenario_variables(scenario))),
        }
    stage = plan.stage(index)
    prompts = {role.lower(): stage.messages(role, []) for role in ROLES}
    if "closing" in plan.prompts:
        prompts["closing"] = stage.closing([Turn(role, "…") for role in ROLES])
    return {**facts, "prompts": msgspec.to_builtins(prompts)}


def _print(preview: dict[str, Any]) -> None:
    scenario = preview["scenario"]
    arm = f", arm {preview['arm']}" if "arm" in preview else ""
    print_line(f"scenario {scenario['index']}{arm}")
    for key, value in scenario.items():
        if value is not None and key != "index":
            print_line(f"  {key}: {value}")
    for use, messages in preview.get("prompts", {"": preview.get("messages")}).items():
        for message in messages:
            print_line(f"--- {use + ': ' if use else ''}{message['role']}")
            print_line(message["content"])
    print_line()
