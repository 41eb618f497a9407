"""`edgen preview`: scenarios and rendered prompts; calls nothing. `--diff` puts two of them side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from edgen.cli.options import JobArgument, JsonOption, OutsideOption, SetOption
from edgen.cli.output import note, print_json, print_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgen.engine.plan import Plan


def command(
    job: JobArgument,
    count: Annotated[int, typer.Option("-n", min=1, max=1000, help="How many scenarios to show.")] = 3,
    diff: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER",
            help="Show what differs: from an arm of the job, another job file, or a template in the place of the job's "
            "([USE=]NAME or .j2 file).",
        ),
    ] = None,
    set_: SetOption = None,
    allow_outside: OutsideOption = False,
    json: JsonOption = False,
) -> None:
    """Show scenarios and the prompts rendered for them. Calls nothing, costs nothing.

    Example: edgen preview jobs/quickstart.yaml -n 1 --diff education_dialogue_json
    """
    from edgen.engine.load import load_plans
    from edgen.engine.reach import Reach

    reach = Reach.of(job, set_ or (), outside=allow_outside)
    _, plans = load_plans(job, set_, reach)
    warnings = warnings_of(plans)
    if diff is not None:
        from edgen.cli.difference import show

        show(job, reach, plans, diff, count, set_, warnings, json=json)
        return
    shown = [
        _shown(arm, plan, index)
        for arm, plan in plans.items()
        for index in range(min(count, plan.job.conversations))
    ]
    plan = next(iter(plans.values()))
    if json:
        facts = {"job": plan.job.name, "cells": plan.space.cells, "previews": shown, "warnings": warnings}
        print_json(facts)
        return
    for preview in shown:
        _print(preview)
    print_line(
        f"{plan.job.conversations} scenarios are planned, of {plan.space.cells} cells in {plan.job.space}."
    )
    for warning in warnings:
        note(f"edgen: {warning}.")


def warnings_of(plans: Mapping[str | None, Plan]) -> list[str]:
    """What the templates of any plan never use of a scenario, each once."""
    from edgen.engine.unused import sentence, unused

    return list(dict.fromkeys(sentence(*missed) for plan in plans.values() for missed in unused(plan)))


def _shown(arm: str | None, plan: Plan, index: int) -> dict[str, Any]:
    """A scenario with its prompts, as plain values."""
    from edgen.engine.rendering import rendered

    facts: dict[str, Any] = {} if arm is None else {"arm": arm}
    facts["scenario"] = msgspec.to_builtins(plan.scenario(index))
    prompts = msgspec.to_builtins(rendered(plan, index))
    if plan.job.protocol == "oneshot":
        return {**facts, "messages": prompts["default"]}
    return {**facts, "prompts": prompts}


def _print(preview: dict[str, Any]) -> None:
    arm = f", arm {preview['arm']}" if "arm" in preview else ""
    print_scenario(preview["scenario"], arm)
    for use, messages in preview.get("prompts", {"": preview.get("messages")}).items():
        for message in messages:
            print_line(f"--- {use + ': ' if use else ''}{message['role']}")
            print_line(message["content"])
    print_line()


def print_scenario(scenario: dict[str, Any], behind: str = "") -> None:
    """A scenario's number and values."""
    print_line(f"scenario {scenario['index']}{behind}")
    for key, value in scenario.items():
        if value is not None and key != "index":
            print_line(f"  {key}: {value}")
