"""A job as its run stores it: without references to files elsewhere."""

from __future__ import annotations

from typing import Any

import msgspec

from edgen.config import Job, list_arm_jobs, resolve_values
from edgen.core.errors import TemplateError
from edgen.core.yaml_values import read_text
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.backend_files import keep_backend_files, read_backend_files
from edgen.planning.load import keep_template, load_job_space, with_files
from edgen.prompting.prompt import read_answer_schema
from edgen.space import render_space_files


def inline_files(job: Job, allowed: AllowedFiles) -> dict[str, Any]:
    """Return a job as plain values, in which contents replace the names of files, also in arms; except
    templates and spaces."""
    plain = resolve_values(with_files(job, allowed))
    for arm, arm_job in list_arm_jobs(job, job.name).items() if job.arms else ():
        held = msgspec.json.decode(msgspec.json.encode(resolve_values(with_files(arm_job, allowed))))
        for key, changes in plain["arms"][arm].items():
            if key in (arm_job.protocol, "labels") and isinstance(changes, dict):
                changes |= {name: held[key][name] for name in changes}
    return plain


def make_job_for_run(job: Job, allowed: AllowedFiles) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a job with arms as its run stores it: (the job's values, the texts of the run's inputs by file
    name). All templates and spaces of the job and its arms become inputs."""
    plain = inline_files(job, allowed)
    texts = render_space_files(load_job_space(job, allowed))

    def keep(name: Any) -> Any:
        if not isinstance(name, str):
            return name
        path = allowed.find_file("prompts", name, "prompt")
        allowed.check_schema_file(path, "prompt")
        text = read_text(path, TemplateError)
        return f"inputs/{keep_template(texts, path.stem, text, read_answer_schema(path))}"

    plain["space"] = "inputs/space.yaml"
    for arm, arm_job in list_arm_jobs(job, job.name).items():
        if arm_job.space != job.space:
            texts |= render_space_files(load_job_space(arm_job, allowed), file := f"space.{arm}.yaml")
            plain["arms"][arm]["space"] = f"inputs/{file}"
        else:
            plain["arms"][arm].pop("space", None)
    held = read_backend_files(job, allowed)
    for arm_job in list_arm_jobs(job, job.name).values():
        held |= read_backend_files(arm_job, allowed)
    for values in (plain, *plain["arms"].values()):
        keep_backend_files(values, held, texts)
        if "prompt" in values:
            values["prompt"] = keep(values["prompt"])
        if isinstance(values.get("prompts"), dict):
            values["prompts"] = {use: keep(name) for use, name in values["prompts"].items()}
    return plain, texts
