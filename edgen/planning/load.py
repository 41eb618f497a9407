"""Plans from job files, with their templates and space; `Reach` limits the files that they may name."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.config import (
    Job,
    find_backend,
    find_backend_name,
    find_job_protocol,
    list_arm_jobs,
    list_templates,
    load_job,
    resolve_values,
    with_speakers,
)
from edgen.config.backends import find_features
from edgen.config.job import RolesAndSettings
from edgen.core import registry
from edgen.core.errors import FileError, JobError, Problem, TemplateError
from edgen.core.pictures import pictures_in
from edgen.core.registry import part_of
from edgen.core.yaml_values import read_text
from edgen.planning.allowed_files import Reach
from edgen.planning.answer_schemas import check_schema, check_schemas, with_forms
from edgen.planning.backend_files import keep_backend_files, read_backend_files
from edgen.planning.gates import find_annotator_templates, with_label_sets
from edgen.planning.plan import Plan
from edgen.prompting import Prompt, load_prompt, scenario_variables
from edgen.prompting.prompt import PICTURE, SUFFIX, read_answer_schema, render_schema
from edgen.protocols.base import ConversationProtocol, Template
from edgen.space import Entry, Space, load_space, render_space_files
from edgen.space.model import iterate_sections, list_template_fields, list_usual_variables
from edgen.space.splits import explain_split_problem


class JobSource(NamedTuple):
    """A job, what error messages call it, and which files it may name."""

    job: Job
    name: str
    reach: Reach

    @classmethod
    def of(cls, path: Path, overrides: tuple[str, ...] = (), *, allow_outside: bool = False) -> JobSource:
        """Return the source of a job file; `overrides` are in the form of `--set`. Raises JobError."""
        reach = Reach.of(path, overrides, outside=allow_outside)
        return cls(load_job(path, overrides), str(path), reach)


def load_plan(path: Path, overrides: Sequence[str] = (), reach: Reach | None = None) -> Plan:
    """Return the plan of a job file. `reach`: the files that it may name, None for those of its project."""
    return make_plan(load_job(path, overrides), reach or Reach.of(path, overrides))


def load_plans(
    path: Path, overrides: Sequence[str] = (), reach: Reach | None = None
) -> tuple[Job, dict[str, Plan]]:
    """Return a job file's job, and the plan of each of its arms by name."""
    job = load_job(path, overrides)
    return job, make_plans(job, str(path), reach or Reach.of(path, overrides))


def make_plans(job: Job, source: str, reach: Reach) -> dict[str, Plan]:
    """Return the plan of each arm of a job, by the arm's name. Error messages call the job `source`."""
    jobs = list_arm_jobs(job, source)
    plans = {}
    for arm, arm_job in jobs.items():
        try:
            plans[arm] = make_plan(arm_job, reach)
        except FileError as error:
            if not arm:
                raise
            needed = Problem("needed by", f"arm {arm}")
            raise type(error)(error.source, error.summary, (*error.problems, needed)) from None
    own = [arm for arm, arm_job in jobs.items() if arm_job.space != job.space]
    if problems := _find_value_differences(plans, own, load_job_space(job, reach)) if own else []:
        raise JobError.of(source, problems)
    return plans


_COMMON = ("names", "exclude", "sections", "knowledge")  # equal in the spaces of a job's arms


def _find_value_differences(plans: Mapping[str, Plan], arms: Iterable[str], space: Space) -> list[Problem]:
    """Return the differences between the values of an arm's space and the job's: only weights and order may
    differ."""
    problems = []
    for arm in arms:
        theirs = plans[arm].space
        where = f"$.arms.{arm}.space"
        if any(getattr(theirs, key) != getattr(space, key) for key in _COMMON):
            message = (
                "its dimensions, exclusions, sections or knowledge file are not those of the job's space"
            )
            problems.append(Problem(where, message))
            continue
        for ours, other in zip(space.dimensions, theirs.dimensions, strict=True):
            known, there = ({*map(_identify_entry, one.entries)} for one in (ours, other))
            odd = next(
                (e.value for e in (*other.entries, *ours.entries) if _identify_entry(e) not in known & there),
                None,
            )
            if odd is not None:
                problems.append(
                    Problem(
                        where,
                        f"its values of {ours.name} are not those of the job's space ({odd!r} is in one of "
                        "them only, "
                        "or says something else of itself), so its scenarios would be others; an arm may "
                        "weigh the same values otherwise",
                    )
                )
    return problems


def _identify_entry(entry: Entry) -> tuple[str, bytes]:
    """Return an entry's identity across spaces: everything but its weight."""
    return entry.value, msgspec.json.encode((entry.fields, entry.when), order="deterministic")


def make_plan(job: Job, reach: Reach) -> Plan:
    """Return the plan of a job within `reach`."""
    job = with_files(job, reach)
    space = load_job_space(job, reach)
    for section, _ in iterate_sections(space):
        section.check(space)
    if wrong := explain_split_problem(job.split.by, space):
        raise JobError.of(job.name, [Problem("$.split.by", wrong)])
    job = with_speakers(job, [role.name for role in space.roles])
    protocol = find_job_protocol(job)
    check_names(job, space, protocol)
    templates = list_templates(job, space)
    prompts = {use: load_template(template, reach, space) for use, template in templates.items()}
    extra = {}
    for use in [
        one for one in registry.list_names("protocol") if one in job.prompts and one not in templates
    ]:
        # of another protocol: it shapes no conversation, and is used for pairs later
        templates[use] = registry.find("protocol", use).template(job.prompts[use], job.pairs.compare, space)
        extra[use] = load_template(templates[use], reach, space)
    for use, template in find_annotator_templates(job).items() if job.labels else ():
        templates[use], extra[use] = template, load_template(template, reach, space)
        check_schema(extra[use], find_backend(job, use), f"$.backends.{use}")
    check_schemas(job, prompts, templates, protocol)
    prompts, extra = (
        {use: _with_forms(prompt, job, templates[use]) for use, prompt in some.items()}
        for some in (prompts, extra)
    )
    named = any(backend.FILES for backend in job.backends.values())
    plan = Plan(job, space, prompts, extra, read_backend_files(job, reach) if named else {})
    _try_out(plan, templates)
    return plan


def _with_forms(prompt: Prompt, job: Job, template: Template) -> Prompt:
    found, *others = (
        with_forms(prompt, job, find_backend(job, role), f"$.backends.{find_backend_name(job, role)}")
        for role in (template.asked, *template.also)
    )
    forms = {role: one.forms for role, one in zip(template.also, others, strict=True)}
    differ = {role: way for role, way in forms.items() if way != found.forms}
    return dataclasses.replace(found, forms_of=differ)


def check_names(job: Job, space: Space, protocol: ConversationProtocol) -> None:
    """Raise JobError for dimensions whose names have another meaning in the protocol's templates."""
    own = {name for kind in protocol.answers for name in kind.variables} - {*list_usual_variables()}
    problems = tuple(
        Problem(
            "$.space",
            f"{space.name} has a dimension {name}, which means something else to templates of "
            f"{protocol.name}; rename it",
        )
        for name in space.names
        if name in own
    )
    if problems:
        raise JobError.of(job.name, problems)


def with_files(job: Job, reach: Reach) -> Job:
    """Return the job with the contents of files in its protocol's settings instead of their names, and with
    its label sets."""
    held = part_of(find_job_protocol(job), RolesAndSettings).with_files(job, reach.require)
    return with_label_sets(held, reach) if held.gates or held.labels else held


def load_job_space(job: Job, reach: Reach) -> Space:
    """Return the space of a job. Raises SpaceError for an unknown name, and for a file out of reach."""
    return load_space(reach.require("preference_space", job.space, "space"))


def find_template(template: Template, reach: Reach) -> Path:
    """Return the job's file for a use, or the default one of the protocol's package."""
    if template.name is None and template.file is not None:
        return template.file
    return reach.require("prompts", template.name or "", template.key)


def load_template(template: Template, reach: Reach, space: Space) -> Prompt:
    """Return the job's template for a use, checked against its variables."""
    path = find_template(template, reach)
    reach.check_beside(path, template.key)
    prompt = load_prompt(
        path, template.variables, expects=template.expects, fields=list_template_fields(space)
    )
    missing = [[name for name in way if name not in prompt.variables_used] for way in template.shows]
    if fewest := min(missing, key=len, default=[]):
        raise TemplateError(
            str(path),
            f"it does not show what is to be judged: {', '.join(fewest)} is never used ({template.why}).",
        )
    return prompt


def inline_files(job: Job, reach: Reach) -> dict[str, Any]:
    """Return a job as plain values, with the contents of files that it and its arms name instead of the
    names, except templates and spaces."""
    plain = resolve_values(with_files(job, reach))
    for arm, arm_job in list_arm_jobs(job, job.name).items() if job.arms else ():
        held = msgspec.json.decode(msgspec.json.encode(resolve_values(with_files(arm_job, reach))))
        for key, changes in plain["arms"][arm].items():
            if key in (arm_job.protocol, "labels") and isinstance(changes, dict):
                changes |= {name: held[key][name] for name in changes}
    return plain


def make_job_for_run(job: Job, reach: Reach) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a job with arms as its run stores it, with every template and space of it or an arm among the
    run's inputs: (the job's values, the texts of its inputs by file name)."""
    plain = inline_files(job, reach)
    texts = render_space_files(load_job_space(job, reach))

    def keep(name: Any) -> Any:
        if not isinstance(name, str):
            return name
        path = reach.find_file("prompts", name, "prompt")
        reach.check_beside(path, "prompt")
        text = read_text(path, TemplateError)
        return f"inputs/{keep_template(texts, path.stem, text, read_answer_schema(path))}"

    plain["space"] = "inputs/space.yaml"
    for arm, arm_job in list_arm_jobs(job, job.name).items():
        if arm_job.space != job.space:
            texts |= render_space_files(load_job_space(arm_job, reach), file := f"space.{arm}.yaml")
            plain["arms"][arm]["space"] = f"inputs/{file}"
        else:
            plain["arms"][arm].pop("space", None)
    held = read_backend_files(job, reach)
    for arm_job in list_arm_jobs(job, job.name).values():
        held |= read_backend_files(arm_job, reach)
    for values in (plain, *plain["arms"].values()):
        keep_backend_files(values, held, texts)
        if "prompt" in values:
            values["prompt"] = keep(values["prompt"])
        if isinstance(values.get("prompts"), dict):
            values["prompts"] = {use: keep(name) for use, name in values["prompts"].items()}
    return plain, texts


def keep_template(texts: dict[str, str], stem: str, text: str, schema: bytes | None) -> str:
    """Add a template's text, and its schema, to the texts of a run's inputs; return the template's file name.
    Templates of one name from different folders get different names."""
    beside = None if schema is None else render_schema(schema)
    stems = (f"{stem}{'' if number == 1 else f'-{number}'}" for number in itertools.count(1))
    free = next(
        name
        for name in stems
        if f"{name}.j2" not in texts or (texts[f"{name}.j2"], texts.get(f"{name}{SUFFIX}")) == (text, beside)
    )
    texts[f"{free}.j2"] = text
    if beside is not None:
        texts[f"{free}{SUFFIX}"] = beside
    return f"{free}.j2"


def _try_out(plan: Plan, templates: Mapping[str, Template]) -> None:
    """Render every template with every value of a scenario, before anything is paid for.

    Raises TemplateError, with the line and the scenario's values.
    """
    for positions in _list_positions_to_try(plan):
        tried = plan.sampler.make_scenario(0, positions)
        known = scenario_variables(tried)
        if not known[PICTURE]:
            del known[PICTURE]
        for use, prompt in {**plan.prompts, **plan.extra_prompts}.items():
            try:
                stand_ins = {
                    **dict.fromkeys(templates[use].variables, _SAID),
                    **templates[use].stand_ins,
                    **known,
                }
                shown = prompt.messages({name: stand_ins[name] for name in templates[use].variables})
            except TemplateError as error:
                told = Problem("with", ", ".join(f"{k}={v!r}" for k, v in tried.values.items()))
                raise TemplateError(error.source, error.summary, (*error.problems, told)) from None
            if plan.space.pictures and any(pictures_in(message.content) for message in shown):
                _check_pictures(plan.job, templates[use].asked)


def _check_pictures(job: Job, role: str) -> None:
    """Raise JobError if the backend of a role cannot be sent a picture."""
    backend = find_backend(job, role)
    if (wrong := find_features(backend).picture_problem(backend)) is not None:
        path = f"$.backends.{find_backend_name(job, role)}"
        message = (
            f"its template shows a picture, and {wrong}; choose another backend, or take the picture out"
        )
        raise JobError.of(job.name, [Problem(path, message)])


def _list_positions_to_try(plan: Plan) -> Iterator[Sequence[int]]:
    """Yield cells that include every entry, allowed ones if conditions rule some out."""
    sizes = [len(dimension.entries) for dimension in plan.space.dimensions]
    if not plan.space.conditional:
        yield from ([number % size for size in sizes] for number in range(max(sizes)))
        return
    cells = plan.sampler.cells
    if (
        cells.count is None
    ):  # the allowed combinations are unknown; scenarios are tried when they are rendered
        return
    missed = {(place, at) for place, size in enumerate(sizes) for at in range(size)}
    while missed:
        place, at = min(missed)
        positions = cells.example({place: at})
        missed -= {*enumerate(positions)}
        yield positions


_SAID = "Teacher: Good morning.\nStudent: Good morning."  # placeholder for later text
