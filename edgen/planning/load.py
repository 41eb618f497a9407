"""Plans from job files, with their templates and space; `AllowedFiles` limits the files that they may name.

A schema next to a template is always sent. The protocol's own form of an answer is sent as a schema only if
the backend supports it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgen.config import (
    BackendConfig,
    Job,
    find_backend,
    find_backend_name,
    find_job_protocol,
    list_arm_jobs,
    list_templates,
    load_job,
    with_speakers,
)
from edgen.config.backends import find_features
from edgen.config.job import RolesAndSettings
from edgen.core import registry, resources
from edgen.core.errors import FileError, JobError, Problem, TemplateError
from edgen.core.pictures import pictures_in
from edgen.core.registry import part_of
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.backend_files import read_backend_files
from edgen.planning.gates import find_annotator_templates, with_label_sets
from edgen.planning.plan import Plan
from edgen.planning.request_check import require_templates
from edgen.prompting import Prompt, load_prompt, scenario_variables
from edgen.prompting.prompt import PICTURE, SUFFIX, find_schema_file, render_schema
from edgen.protocols.base import AnswerForms, ConversationProtocol, Template
from edgen.space import Entry, Space, load_space
from edgen.space.model import iterate_sections, list_template_fields, list_usual_variables
from edgen.space.splits import explain_split_problem


class JobSource(NamedTuple):
    """A job, its name in error messages, and the files that it may name."""

    job: Job
    name: str
    allowed: AllowedFiles

    @classmethod
    def of(cls, path: Path, overrides: tuple[str, ...] = (), *, allow_outside: bool = False) -> JobSource:
        """Load a job file. `overrides`: in the form of `--set`. Raises JobError."""
        allowed = AllowedFiles.of(path, overrides, outside=allow_outside)
        return cls(load_job(path, overrides), str(path), allowed)


def load_plan(path: Path, overrides: Sequence[str] = (), allowed: AllowedFiles | None = None) -> Plan:
    """Return the plan of a job file. `allowed`: the files that it may name; None: its project's files."""
    job = load_job(path, overrides)
    try:
        return make_plan(job, allowed or AllowedFiles.of(path, overrides))
    except JobError as error:
        raise _name_file(error, job, str(path)) from None


def load_plans(
    path: Path, overrides: Sequence[str] = (), allowed: AllowedFiles | None = None
) -> tuple[Job, dict[str, Plan]]:
    """Return the job of a job file, and the plans of its arms by name."""
    job = load_job(path, overrides)
    return job, make_plans(job, str(path), allowed or AllowedFiles.of(path, overrides))


def make_plans(job: Job, source: str, allowed: AllowedFiles) -> dict[str, Plan]:
    """Return the plan of each arm of a job, by the arm's name. Error messages call the job `source`."""
    jobs = list_arm_jobs(job, source)
    plans = {}
    for arm, arm_job in jobs.items():
        try:
            plans[arm] = make_plan(arm_job, allowed)
        except FileError as error:
            named = _name_file(error, arm_job, source)
            if not arm:
                raise named from None
            needed = Problem("needed by", f"arm {arm}")
            raise type(error)(named.source, error.summary, (*error.problems, needed)) from None
    own = [arm for arm, arm_job in jobs.items() if arm_job.space != job.space]
    if problems := _find_value_differences(plans, own, load_job_space(job, allowed)) if own else []:
        raise JobError.of(source, problems)
    return plans


def _name_file(error: FileError, job: Job, source: str) -> FileError:
    """Return an error about the job with `source`, the name of its file, in place of the job's own name."""
    about_job = isinstance(error, JobError) and error.source == job.name
    return JobError(source, error.summary, error.problems) if about_job else error


_COMMON = ("names", "exclude", "sections", "knowledge")  # attributes that the spaces of all arms must share


def _find_value_differences(plans: Mapping[str, Plan], arms: Iterable[str], space: Space) -> list[Problem]:
    """Return problems for arms whose space has other values than the job's; only weights and order may
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
                        f"its values of {ours.name} are not those of the job's space ({odd!r} is "
                        "in one of them only, or has other fields), so its scenarios would "
                        "differ; an arm may give the same values other weights",
                    )
                )
    return problems


def _identify_entry(entry: Entry) -> tuple[str, bytes]:
    """Return an entry's identity across spaces: everything except its weight."""
    return entry.value, msgspec.json.encode((entry.fields, entry.when), order="deterministic")


def make_plan(job: Job, allowed: AllowedFiles) -> Plan:
    """Return the plan of a job within `allowed`."""
    job = with_files(job, allowed)
    space = load_job_space(job, allowed)
    for section, _ in iterate_sections(space):
        section.check(space)
    if wrong := explain_split_problem(job.split.by, space):
        raise JobError.of(job.name, [Problem("$.split.by", wrong)])
    job = with_speakers(job, [role.name for role in space.roles])
    protocol = find_job_protocol(job)
    check_names(job, space, protocol)
    templates = list_templates(job, space)
    if registry.find_plugin("protocol", job.protocol) is not None:
        require_templates(protocol, templates)
    prompts = {use: load_template(template, allowed, space) for use, template in templates.items()}
    extra = {}
    for use in [
        one for one in registry.list_names("protocol") if one in job.prompts and one not in templates
    ]:
        # a judge's template: used for pairs later, it shapes no conversation
        judge = registry.find("protocol", use)
        if isinstance(judge, ConversationProtocol):
            continue
        templates[use] = judge.template(job.prompts[use], job.pairs.compare, space)
        extra[use] = load_template(templates[use], allowed, space)
    for use, template in find_annotator_templates(job).items() if job.labels else ():
        templates[use], extra[use] = template, load_template(template, allowed, space)
        check_schema(extra[use], find_backend(job, use), f"$.backends.{use}")
    check_schemas(job, prompts, templates, protocol)
    prompts, extra = (
        {use: _with_forms(prompt, job, templates[use]) for use, prompt in some.items()}
        for some in (prompts, extra)
    )
    named = any(backend.FILES for backend in job.backends.values())
    plan = Plan(job, space, prompts, extra, read_backend_files(job, allowed) if named else {})
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
    """Raise JobError if a dimension's name has another meaning in the protocol's templates."""
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


def with_files(job: Job, allowed: AllowedFiles) -> Job:
    """Return the job with contents in place of names of files in its protocol's settings, and with resolved
    label sets."""
    held = part_of(find_job_protocol(job), RolesAndSettings).with_files(job, allowed.require)
    return with_label_sets(held, allowed) if held.gates or held.labels else held


def load_job_space(job: Job, allowed: AllowedFiles) -> Space:
    """Return the space of a job, with the job's family. Raises SpaceError for an unknown name, or a file that
    the job may not name."""
    space = load_space(allowed.require("preference_space", job.space, "space"))
    return msgspec.structs.replace(space, family=job.family)


def check_schemas(
    job: Job,
    prompts: Mapping[str, Prompt],
    templates: Mapping[str, Template],
    protocol: ConversationProtocol,
) -> None:
    """Raise JobError if a schema next to a template cannot be sent to its backend, or the protocol sends no
    schemas."""
    sends = part_of(protocol, AnswerForms).sends_schemas
    refused = None if sends else f"the protocol {protocol.name} sends none"
    found = []
    for use, prompt in prompts.items():
        roles = (templates[use].asked, *templates[use].also)
        names = dict.fromkeys(find_backend_name(job, role) for role in roles)
        wrong = {name: _explain_unsendable_schema(prompt, job.backends[name], refused) for name in names}
        found += [Problem(f"$.backends.{name}", why) for name, why in wrong.items() if why is not None]
    if found:
        raise JobError.of(job.name, found)


def with_forms(prompt: Prompt, job: Job, config: BackendConfig, key: str) -> Prompt:
    """Return the template with the `forms` in which its backend is asked. `key`: the backend's key in the
    job. Raises JobError if the job requires schemas and the backend supports none."""
    wanted = config.forms or job.forms or ("auto" if _is_shipped(prompt) else "prose")
    features = find_features(config)
    wrong = None if wanted == "prose" else features.schema_problem(config, b"{}")
    if wanted == "schema" and wrong is not None:
        problem = f"`forms: schema` cannot be kept: {wrong}. Choose `auto` or `prose`, or another backend"
        raise JobError.of(job.name, [Problem(key, problem)])
    if wanted == "auto" and (wrong is not None or not features.forms_by_default):
        wanted = "prose"
    return dataclasses.replace(prompt, forms=wanted)


def _is_shipped(prompt: Prompt) -> bool:
    """Return whether a template is a shipped one, or a copy of one, such as a run's."""
    shipped = resources.find("prompts", prompt.name)
    return Path(prompt.source) == shipped or (shipped.exists() and shipped.read_text("utf-8") == prompt.text)


def adapt_template(prompt: Prompt, job: Job) -> Prompt:
    """Return the template with the forms for the job's default backend. Raises JobError if a required schema
    cannot be sent."""
    asked = job.backends["default"], "$.backends.default"
    check_schema(prompt, *asked)
    return with_forms(prompt, job, *asked)


def check_schema(prompt: Prompt, config: BackendConfig, key: str) -> None:
    """Raise JobError if a template's schema cannot be sent to a backend. `key`: the backend's key in the
    job."""
    if (wrong := _explain_unsendable_schema(prompt, config)) is not None:
        raise JobError.of(prompt.name, [Problem(key, wrong)])


def _explain_unsendable_schema(
    prompt: Prompt, config: BackendConfig, refused: str | None = None
) -> str | None:
    """Explain why a template's schema cannot be sent; None if it can, or there is none. `refused`: a further
    reason."""
    if prompt.schema is None:
        return None
    wrong = find_features(config).schema_problem(config, prompt.schema) or refused
    if wrong is None:
        return None
    path = find_schema_file(Path(prompt.source))
    return (
        f"answers have to fit {path}, the schema next to a template, and it cannot be sent: {wrong}. "
        "Choose another backend or template, or move the schema away"
    )


def check_logprobs(job: Job, config: BackendConfig, source: str) -> None:
    """Raise JobError if a job requests log probabilities of a judge whose backend does not support them."""
    if job.pairs.logprobs is None:
        return
    if (wrong := find_features(config).logprobs_problem(config)) is not None:
        what = f"the judge must return log probabilities, and it cannot be asked for them: {wrong}"
        raise JobError.of(
            source, [Problem("$.pairs.logprobs", f"{what}. Choose another judge, or leave the key out")]
        )


def wants_logprobs(job: Job, config: BackendConfig) -> bool:
    """Return whether a backend is the job's judge and the job requests its log probabilities."""
    return job.pairs.logprobs is not None and job.backends.get(find_backend_name(job, "judge")) == config


def find_template(template: Template, allowed: AllowedFiles) -> Path:
    """Return the file of a template: the job's, or the default in the protocol's package."""
    if template.name is None and template.file is not None:
        return template.file
    return allowed.require("prompts", template.name or "", template.key)


def load_template(template: Template, allowed: AllowedFiles, space: Space) -> Prompt:
    """Load a template, and check its variables and its schema."""
    path = find_template(template, allowed)
    allowed.check_schema_file(path, template.key)
    prompt = load_prompt(
        path, template.variables, expects=template.expects or None, fields=list_template_fields(space)
    )
    missing = [[name for name in way if name not in prompt.variables_used] for way in template.shows]
    if fewest := min(missing, key=len, default=[]):
        raise TemplateError(
            str(path),
            f"it does not show what is to be judged: {', '.join(fewest)} is never used ({template.why}).",
        )
    return prompt


def keep_template(texts: dict[str, str], stem: str, text: str, schema: bytes | None) -> str:
    """Add a template and its schema to the texts of a run's inputs; return the template's file name.
    Different templates with the same name get different names."""
    schema_text = None if schema is None else render_schema(schema)
    stems = (f"{stem}{'' if number == 1 else f'-{number}'}" for number in itertools.count(1))
    free = next(
        name
        for name in stems
        if f"{name}.j2" not in texts
        or (texts[f"{name}.j2"], texts.get(f"{name}{SUFFIX}")) == (text, schema_text)
    )
    texts[f"{free}.j2"] = text
    if schema_text is not None:
        texts[f"{free}{SUFFIX}"] = schema_text
    return f"{free}.j2"


def _try_out(plan: Plan, templates: Mapping[str, Template]) -> None:
    """Render every template with every value of the space, before anything is paid for.

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
    """Raise JobError if a role's backend does not take pictures."""
    backend = find_backend(job, role)
    if (wrong := find_features(backend).picture_problem(backend)) is not None:
        path = f"$.backends.{find_backend_name(job, role)}"
        said = f"its template shows a picture, and {wrong}; choose another backend, or take the picture out"
        raise JobError.of(job.name, [Problem(path, said)])


def _list_positions_to_try(plan: Plan) -> Iterator[Sequence[int]]:
    """Yield cells that together include every entry; only allowed cells if the space has conditions."""
    sizes = [len(dimension.entries) for dimension in plan.space.dimensions]
    if not plan.space.conditional:
        yield from ([number % size for size in sizes] for number in range(max(sizes)))
        return
    cells = plan.sampler.cells
    if cells.count is None:  # unknown cells: scenarios are tried when rendered
        return
    missed = {(place, at) for place, size in enumerate(sizes) for at in range(size)}
    while missed:
        place, at = min(missed)
        positions = cells.example({place: at})
        missed -= {*enumerate(positions)}
        yield positions


_SAID = "Teacher: Good morning.\nStudent: Good morning."  # placeholder for text from earlier turns
