"""`edgen preview`: scenarios and rendered prompts; calls nothing."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from edgen.cli.load import JobArgument, JsonOption, SetOption, load_plan
from edgen.cli.output import print_json, print_line


def command(
    job: JobArgument,
    count: Annotated[int, typer.Option("-n", min=1, max=1000, help="How many scenarios to show.")] = 3,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Show scenarios and the prompts rendered for them. Calls nothing, costs nothing.

    Example: edgen preview jobs/quickstart.yaml -n 1
    """
    plan = load_plan(job, set_)
    shown = []
    for index in range(min(count, plan.job.conversations)):
        scenario = plan.scenario(index)
        protocol = plan.start(scenario, 0)
        request = next(protocol)
        protocol.close()
        shown.append(
            {"scenario": msgspec.to_builtins(scenario), "messages": msgspec.to_builtins(request.messages)}
        )
    if json:
        print_json({"job": plan.job.name, "cells": plan.space.cells, "previews": shown})
        return
    for preview in shown:
        scenario = preview["scenario"]
        print_line(f"scenario {scenario.pop('index')}")
        for key, value in scenario.items():
            if value is not None:
                print_line(f"  {key}: {value}")
        for message in preview["messages"]:
            print_line(f"--- {message['role']}")
            print_line(message["content"])
        print_line()
    print_line(
        f"{plan.job.conversations} scenarios are planned, of {plan.space.cells} cells in {plan.job.space}."
    )
