"""Facts noted when a run was made, as plain values for cards."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import Job
from edgen.core.digest import sha256
from edgen.core.errors import TemplateError
from edgen.store.ledger import Selection
from edgen.store.run_folder import RunFolder


def describe_selection(one: Selection) -> dict[str, Any]:
    """Return a selection as plain values for a card."""
    return {
        "of": one.run,
        "records_sha256": one.sha256,
        "kept": f"{one.kept:,} of {one.accepted:,}",
        "options": shlex.join(one.options),
        **{clause.name: f"{clause.says}: took {clause.took} of {clause.of}" for clause in one.clauses},
        **({} if one.split is None else {"split": one.split.words}),
        **({} if one.before is None else {"before": describe_selection(one.before)}),
    }


def read_noted_facts(rundir: RunFolder, job: Job) -> dict[str, Any] | None:
    """Return the facts in a run's copy of the job, and the sha256 of each of its templates; None if there are
    none."""
    if job.resolved is None:
        return None
    files = {use: rundir.path / name for use, name in {"default": job.prompt, **job.prompts}.items() if name}
    texts = {
        use: file.read_bytes()
        for use, file in files.items()
        if file.parent == rundir.inputs and file.is_file()  # a foreign run may name any file
    }
    noted: dict[str, Any] = msgspec.to_builtins(job.resolved)
    for use, name in noted["prompts"].items():
        if origin := _origin(texts.get(use)):
            noted["prompts"][use] = f"{Path(name).stem} (edited from {origin})"
    digests = {use: _digest(files[use], text) for use, text in texts.items()}
    return {**noted, "templates": digests}


def _digest(file: Path, text: bytes) -> str:
    """Return the digest of a run's own copy of a template; of its text alone if the schema next to it cannot
    be read."""
    from edgen.prompting.prompt import read_answer_schema, template_digest

    try:
        return template_digest(text, read_answer_schema(file))
    except TemplateError:
        return sha256(text)


def _origin(template: bytes | None) -> str | None:
    """Return the shipped template that a template's text was modified from; None if unmodified or unknown."""
    from edgen.prompting.front_matter import find_original_template

    try:
        return None if template is None else find_original_template(template.decode("utf-8-sig"))
    except (UnicodeDecodeError, TemplateError):
        return None
