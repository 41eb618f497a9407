"""A job file to a plan, its template and space read; `Reach` says which files it may name."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgen import resources
from edgen.backends.simulator.faults import parse
from edgen.config import Job, SimulatorConfig, arm_jobs, load_job, prompt_names, resolved
from edgen.engine.plan import Plan
from edgen.engine.reach import Reach
from edgen.errors import FileError, InputError, JobError, Problem, SpaceError, TemplateError
from edgen.loading import nearest, read_text
from edgen.model import Scenario
from edgen.prompting import SCENARIO_VARIABLES, Expects, Prompt, load_prompt
from edgen.space import DIMENSIONS, Space, dump_space, load_space

# What the answer to a template is read as, by what it is for.
EXPECTS: dict[str, Expects] = {
    "default": "conversation",
    "teacher": "turn",
    "student": "turn",
    "closing": "probability",
    "oracle": "verdict",
}


def load_plan(path: Path, overrides: list[str] | None, reach: Reach | None = None) -> Plan:
    """The plan of a job file. `reach`: which files it may name, None for those of its project."""

    job = load_job(path, overrides or [])
    return plan_of(job, reach or Reach.of(path, overrides or ()))


def load_plans(
    path: Path, overrides: list[str] | None, reach: Reach | None = None
) -> tuple[Job, dict[str | None, Plan]]:
    """A job file's job, and the plan of each of its arms by name; without arms its one plan, under None."""

    job = load_job(path, overrides or [])
    reach = reach or Reach.of(path, overrides or ())
    arms: dict[str | None, Job] = dict(arm_jobs(job, str(path)).items())
    jobs = arms or {None: job}
    plans = {arm: _plan_of_arm(arm, arm_job, path, reach) for arm, arm_job in jobs.items()}
    own = [arm for arm, arm_job in jobs.items() if arm_job.space != job.space]
    if problems := _other_values(plans, own, space_of(job, reach)) if own else []:
        raise JobError(str(path), f"{len(problems)} problem{'s' if len(problems) > 1 else ''}:", problems)
    return job, plans


def _plan_of_arm(arm: str | None, job: Job, path: Path, reach: Reach) -> Plan:
    """The plan of a job of the file `path`; what is wrong with its files is said with the arm that needs them."""
    if arm is None:
        return plan_of(job, reach)
    for role, backend in job.backends.items():
        try:
            parse(backend.faults if isinstance(backend, SimulatorConfig) else "")
        except InputError as error:
            problem = Problem(f"$.arms.{arm}.backends.{role}.faults", str(error).removeprefix("faults: "))
            raise JobError(str(path), "1 problem:", (problem,)) from None
    try:
        return plan_of(job, reach)
    except FileError as error:
        needed = Problem("needed by", f"arm {arm}")
        raise type(error)(error.source, error.summary, (*error.problems, needed)) from None


def _other_values(
    plans: Mapping[str | None, Plan], arms: Iterable[str | None], space: Space
) -> list[Problem]:
    """Where an arm's space holds other values than the job's: weights and order may differ, nothing else."""
    problems = []
    for arm in arms:
        for name, ours, theirs in zip(DIMENSIONS, space.dimensions, plans[arm].space.dimensions, strict=True):
            known, there = ({(e.value, e.subject, e.level) for e in entries} for entries in (ours, theirs))
            if odd := next(
                (e.value for e in (*theirs, *ours) if (e.value, e.subject, e.level) not in known & there),
                None,
            ):
                problems.append(
                    Problem(
                        f"$.arms.{arm}.space",
                        f"its {name.replace('_', ' ')} are not those of the job's space ({odd!r} is in one "
                        "of them only, or "
                        "with another subject or level), so its scenarios would be others; an arm may weigh "
                        "the same values otherwise",
                    )
                )
    return problems


def plan_of(job: Job, reach: Reach) -> Plan:
    """The plan of a job that may name what `reach` lets it."""

    prompts = {use: load_template(job, use, name, reach) for use, name in prompt_names(job).items()}
    extra = {}
    if "oracle" in job.prompts:
        extra["oracle"] = load_template(job, "oracle", job.prompts["oracle"], reach)
    plan = Plan(job, space_of(job, reach), prompts, extra)
    _try_out(plan)
    return plan


def space_of(job: Job, reach: Reach) -> Space:
    """The space that a job names."""
    return load_space(find_space(job.space, reach))


def find_space(name: str, reach: Reach) -> Path:
    """The file of the space that a name or a path means. Raises SpaceError for a name that nothing has, and for a
    file out of reach."""

    path = reach.file("preference_space", name, "space")
    if not path.exists() and "/" not in name:
        raise SpaceError(
            name,
            f"no such space{nearest(name, resources.shipped('preference_space'))}; "
            "a file of your own is named by its path, as in ./my_space.yaml.",
        )
    return path


def load_template(job: Job, use: str, name: str, reach: Reach) -> Prompt:
    """The template that the job names for a use, checked against what it may say there."""

    path = reach.file("prompts", name, key_of(use))
    if not path.exists() and "/" not in name:
        raise TemplateError(
            name,
            f"no such template{nearest(name, resources.shipped('prompts'))}; "
            "a file of your own is named by its path, as in ./my_prompt.j2.",
        )
    prompt = load_prompt(path, variables_of(job, use), expects=EXPECTS[use])
    if missing := _not_shown(job, use, prompt):
        what = "closing: judge" if use == "closing" else f"pairs.compare: {job.pairs.compare}"
        raise TemplateError(
            str(path), f"it does not show what is to be judged: {', '.join(missing)} is never used ({what})."
        )
    return prompt


def key_of(use: str) -> str:
    """The job's key that names the template for a use."""
    return "prompt" if use == "default" else f"prompts.{use}"


def _not_shown(job: Job, use: str, prompt: Prompt) -> list[str]:
    """What a judge's template would have to use and does not: without it, the answer is about nothing."""
    ways: tuple[tuple[str, ...], ...] = ()
    if use == "closing" and job.selfplay.closing == "judge":
        ways = (("conversation",),)
    elif use == "oracle":
        from edgen.protocols.oracle import SHOWN

        ways = SHOWN[job.pairs.compare]
    missing = [[name for name in way if name not in prompt.variables_used] for way in ways]
    return min(missing, key=len, default=[])


def variables_of(job: Job, use: str) -> tuple[str, ...]:
    """What a template may use, by what it is for."""
    if use == "default":
        return SCENARIO_VARIABLES
    if use == "oracle":
        from edgen.protocols.oracle import COMPARED

        return (*SCENARIO_VARIABLES, *COMPARED[job.pairs.compare])
    from edgen.protocols.stage import VARIABLES

    return VARIABLES[f"closing_{job.selfplay.closing}" if use == "closing" else use]


def kept(job: Job, reach: Reach) -> tuple[dict[str, Any], dict[str, str]]:
    """A job with arms as its run keeps it, every template and space that it or an arm names among the run's
    inputs: (the job's values, the texts of its inputs by file name)."""
    plain = resolved(job)
    texts = {"space.yaml": dump_space(space_of(job, reach))}

    def keep(name: Any) -> Any:
        if not isinstance(name, str):
            return name
        path = reach.file("prompts", name, "prompt")
        text = read_text(path, TemplateError)
        texts[file := free_name(texts, path.stem, text)] = text
        return f"inputs/{file}"

    plain["space"] = "inputs/space.yaml"
    for arm, arm_job in arm_jobs(job, job.name).items():
        if arm_job.space != job.space:
            texts[file := f"space.{arm}.yaml"] = dump_space(space_of(arm_job, reach))
            plain["arms"][arm]["space"] = f"inputs/{file}"
        else:
            plain["arms"][arm].pop("space", None)
    for values in (plain, *plain["arms"].values()):
        if "prompt" in values:
            values["prompt"] = keep(values["prompt"])
        if isinstance(values.get("prompts"), dict):
            values["prompts"] = {use: keep(name) for use, name in values["prompts"].items()}
    return plain, texts


def free_name(texts: Mapping[str, str], stem: str, text: str) -> str:
    """A file name for a template's text: templates of one name from different folders keep apart."""
    names = (f"{stem}{'' if number == 1 else f'-{number}'}.j2" for number in itertools.count(1))
    return next(name for name in names if texts.get(name, text) == text)


def _try_out(plan: Plan) -> None:
    """Render every template with every value that a scenario can hold, before anything is paid for.

    Raises TemplateError, with the line and the scenario's values."""
    space = plan.space
    dimensions = {
        "student_preference": space.student_preferences,
        "student_reaction": space.student_reactions,
        "teacher_preference": space.teacher_preferences,
        "teacher_reaction": space.teacher_reactions,
    }
    first = plan.scenario(0)
    for number in range(max(len(space.topics), *(len(entries) for entries in dimensions.values()))):
        topic = space.topics[number % len(space.topics)]
        values = {name: entries[number % len(entries)].value for name, entries in dimensions.items()}
        tried = msgspec.structs.replace(
            first, topic=topic.value, subject=topic.subject, level=topic.level, **values
        )
        for use, prompt in {**plan.prompts, **plan.extra_prompts}.items():
            try:
                prompt.messages(sample_variables(plan, use, tried))
            except TemplateError as error:
                told = Problem(
                    "with", ", ".join(f"{k}={v!r}" for k, v in {"topic": topic.value, **values}.items())
                )
                raise TemplateError(error.source, error.summary, (*error.problems, told)) from None


def sample_variables(plan: Plan, use: str, scenario: Scenario) -> dict[str, Any]:
    """What a template is rendered with to be tried: what is said later stands for itself."""
    return {name: getattr(scenario, name, _SAID) for name in variables_of(plan.job, use)}


_SAID = "Teacher: Good morning.\nStudent: Good morning."  # stands for what is not known yet
