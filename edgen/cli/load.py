"""What several commands do first: a job file to a plan, its template and space read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from edgen.config import Job
    from edgen.engine.plan import Plan

JobArgument = Annotated[Path, typer.Argument(metavar="JOB", help="The job file (YAML).", show_default=False)]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a job key, as in --set limits.in_flight=8."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def load_plan(path: Path, overrides: list[str] | None) -> Plan:
    """The plan of a job file; names in it are relative to the file's folder."""
    from edgen.config import load_job

    return plan_of(load_job(path, overrides or []), path.parent)


def plan_of(job: Job, base: Path) -> Plan:
    """The plan of a job whose relative paths start at `base`."""
    from edgen import resources
    from edgen.engine.plan import Plan
    from edgen.errors import SpaceError, TemplateError
    from edgen.loading import nearest
    from edgen.prompting import load_prompt
    from edgen.space import load_space

    space = resources.find("preference_space", job.space, base)
    prompt = resources.find("prompts", job.prompt, base)
    if not space.exists() and "/" not in job.space:
        raise SpaceError(
            job.space,
            f"no such space{nearest(job.space, resources.shipped('preference_space'))}; "
            "a file of your own is named by its path, as in ./my_space.yaml.",
        )
    if not prompt.exists() and "/" not in job.prompt:
        raise TemplateError(
            job.prompt,
            f"no such template{nearest(job.prompt, resources.shipped('prompts'))}; "
            "a file of your own is named by its path, as in ./my_prompt.j2.",
        )
    plan = Plan(job, load_space(space), load_prompt(prompt))
    _try_out(plan)
    return plan


def _try_out(plan: Plan) -> None:
    """Render the template for a topic with and without each of what a topic may lack, before anything
    is paid for. Raises TemplateError, with the line."""
    from edgen.prompting import scenario_variables

    scenario = plan.scenario(0)
    kinds = {(entry.subject is None, entry.level is None): entry for entry in plan.space.topics}
    for topic in kinds.values():
        tried = msgspec.structs.replace(scenario, topic=topic.value, subject=topic.subject, level=topic.level)
        plan.prompt.messages(scenario_variables(tried))
