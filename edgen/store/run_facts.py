"""Facts stored when a run was made: as plain values for cards, and those about its space for readers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import Job
from edgen.core.digest import compute_sha256
from edgen.core.errors import TemplateError
from edgen.core.kept_files import has_digest
from edgen.core.registry import list_names
from edgen.core.version import __version__
from edgen.space.model import SpaceRole
from edgen.store.ledger import LedgerReader, Selection
from edgen.store.ledger.opening import decode_fact
from edgen.store.run_folder import RunFolder

SPACE = "space"  # the name of the fact in the ledger


class SpaceFacts(msgspec.Struct, frozen=True):
    """The facts about a run's space that every reader of the run needs, so that most readers need not parse
    the space."""

    sha256: str
    """The digest of the space's content."""
    family: str
    """The name of the family of the run's conversations."""
    roles: tuple[SpaceRole, ...]
    """The space's roles."""


def has_noted_space(rundir: RunFolder, job: Job) -> bool:
    """Return whether this version of edgen stored the facts about the space in `job`, and the run's copy of
    the space has a digest, so that the facts need not be derived again."""
    noted = job.resolved
    return noted is not None and noted.edgen == __version__ and has_digest(rundir.inputs / "space.yaml")


def read_space_facts(rundir: RunFolder, view: LedgerReader, job: Job) -> SpaceFacts | None:
    """Return the facts about a run's space; None if they are missing, or may be about another space. `job`:
    the run's own copy, which has been checked."""
    noted = job.resolved
    if noted is None or not has_noted_space(rundir, job):
        return None
    facts = decode_fact(view.read_fact(SPACE), SpaceFacts, rundir.ledger, "a note on the space")
    if facts is None or facts.sha256 != noted.space_sha256 or job.family not in (None, facts.family):
        return None
    return facts if facts.family in list_names("family") else None  # the family may have been uninstalled


def describe_selections(found: Mapping[str, Selection | None]) -> dict[str, Any]:
    """Return the source run and the selection of a run, or of each of its arms, if it was selected."""
    told = {arm or "selection": _describe_selection(one) for arm, one in found.items() if one}
    return told if "selection" in told else {"selection": told} if told else {}


def _describe_selection(one: Selection) -> dict[str, Any]:
    """Return a selection as plain values for a card."""
    return {
        "of": one.run,
        "records_sha256": one.sha256,
        "kept": f"{one.kept:,} of {one.accepted:,}",
        "options": shlex.join(one.options),
        **{clause.name: f"{clause.says}: took {clause.took} of {clause.of}" for clause in one.clauses},
        **({} if one.split is None else {"split": one.split.words}),
        **({} if one.before is None else {"before": _describe_selection(one.before)}),
    }


def read_noted_facts(rundir: RunFolder, job: Job) -> dict[str, Any] | None:
    """Return the facts in a run's copy of the job, and the sha256 of each of its templates; None without
    facts."""
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
        if origin := _find_origin(texts.get(use)):
            noted["prompts"][use] = f"{Path(name).stem} (edited from {origin})"
    digests = {use: _digest_template(files[use], text) for use, text in texts.items()}
    return {**noted, "templates": digests}


def _digest_template(file: Path, text: bytes) -> str:
    """Return the digest of a run's own copy of a template; of its text alone if the schema next to it is
    unreadable."""
    from edgen.prompting.prompt import digest_template, read_answer_schema

    try:
        return digest_template(text, read_answer_schema(file))
    except TemplateError:
        return compute_sha256(text)


def _find_origin(template: bytes | None) -> str | None:
    """Return the shipped template that a template's text was modified from; None if unmodified or unknown."""
    from edgen.prompting.front_matter import find_original_template

    try:
        return None if template is None else find_original_template(template.decode("utf-8-sig"))
    except (UnicodeDecodeError, TemplateError):
        return None
