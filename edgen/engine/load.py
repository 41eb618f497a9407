"""A job file to a plan, its template and space read; names in it are relative to the file's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from edgen import resources
from edgen.config import Job, arm_jobs, load_job, prompt_names
from edgen.engine.plan import Plan
from edgen.errors import SpaceError, TemplateError
from edgen.loading import nearest
from edgen.model import Scenario
from edgen.prompting import SCENARIO_VARIABLES, Prompt, load_prompt
from edgen.protocols.oracle import COMPARED
from edgen.protocols.stage import VARIABLES
from edgen.space import load_space


def load_plan(path: Path, overrides: list[str] | None) -> Plan:
    """The plan of a job file; names in it are relative to the file's folder."""

    return plan_of(load_job(path, overrides or []), path.parent)


def load_plans(path: Path, overrides: list[str] | None) -> tuple[Job, dict[str | None, Plan]]:
    """A job file's job, and the plan of each of its arms by name; without arms its one plan, under None."""

    job = load_job(path, overrides or [])
    arms: dict[str | None, Job] = dict(arm_jobs(job, str(path)).items())
    jobs = arms or {None: job}
    return job, {arm: plan_of(arm_job, path.parent) for arm, arm_job in jobs.items()}


def plan_of(job: Job, base: Path) -> Plan:
    """The plan of a job whose relative paths start at `base`."""

    space = resources.find("preference_space", job.space, base)
    if not space.exists() and "/" not in job.space:
        raise SpaceError(
            job.space,
            f"no such space{nearest(job.space, resources.shipped('preference_space'))}; "
            "a file of your own is named by its path, as in ./my_space.yaml.",
        )
    prompts = {use: load_template(job, use, name, base) for use, name in prompt_names(job).items()}
    extra = {}
    if "oracle" in job.prompts:
        extra["oracle"] = load_template(job, "oracle", job.prompts["oracle"], base)
    plan = Plan(job, load_space(space), prompts, extra)
    _try_out(plan)
    return plan


def load_template(job: Job, use: str, name: str, base: Path) -> Prompt:
    """The template that the job names for a use, checked against what it may say there."""

    path = resources.find("prompts", name, base)
    if not path.exists() and "/" not in name:
        raise TemplateError(
            name,
            f"no such template{nearest(name, resources.shipped('prompts'))}; "
            "a file of your own is named by its path, as in ./my_prompt.j2.",
        )
    return load_prompt(path, variables_of(job, use))


def variables_of(job: Job, use: str) -> tuple[str, ...]:
    """What a template may use, by what it is for."""

    if use == "default":
        return SCENARIO_VARIABLES
    if use == "oracle":
        return (*SCENARIO_VARIABLES, *COMPARED[job.pairs.compare])
    return VARIABLES[f"closing_{job.selfplay.closing}" if use == "closing" else use]


def _try_out(plan: Plan) -> None:
    """Render the templates for a topic with and without each of what a topic may lack, before anything
    is paid for. Raises TemplateError, with the line."""
    kinds = {(entry.subject is None, entry.level is None): entry for entry in plan.space.topics}
    for topic in kinds.values():
        tried = msgspec.structs.replace(
            plan.scenario(0), topic=topic.value, subject=topic.subject, level=topic.level
        )
        for use, prompt in plan.prompts.items():
            prompt.messages(sample_variables(plan, use, tried))


def sample_variables(plan: Plan, use: str, scenario: Scenario) -> dict[str, Any]:
    """What a template is rendered with to be tried or shown: what is said later stands for itself."""
    return {name: getattr(scenario, name, _SAID) for name in variables_of(plan.job, use)}


_SAID = "Teacher: Good morning.\nStudent: Good morning."  # stands for what is not known yet
