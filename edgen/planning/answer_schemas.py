"""Checks whether a template's JSON Schema can be sent to its backend."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from edgen.config import BackendConfig, Job, backend_name
from edgen.core.errors import JobError, Problem
from edgen.prompting import Prompt
from edgen.prompting.answer_schema import schema_file
from edgen.protocols.base import ConversationProtocol, Template
from edgen.providers import provider_of


def check_schemas(
    job: Job,
    prompts: Mapping[str, Prompt],
    templates: Mapping[str, Template],
    protocol: ConversationProtocol,
) -> None:
    """Raise JobError if a schema next to one of a job's templates cannot be sent, or `protocol` would not
    send it."""
    refused = None if protocol.sends_schemas else f"the protocol {protocol.name} sends none"
    found = []
    for use, prompt in prompts.items():
        name = backend_name(job, templates[use].asked)
        if (wrong := _why_not(prompt, job.backends[name], refused)) is not None:
            found.append(Problem(f"$.backends.{name}", wrong))
    if found:
        raise JobError.of(job.name, found)


def check_schema(prompt: Prompt, config: BackendConfig, key: str) -> None:
    """Raise JobError if a template has a schema that cannot be sent to the backend of the role `key`."""
    if (wrong := _why_not(prompt, config)) is not None:
        raise JobError.of(prompt.name, [Problem(key, wrong)])


def _why_not(prompt: Prompt, config: BackendConfig, refused: str | None = None) -> str | None:
    """Explain why a template's schema, if any, cannot be sent; `refused`: a further reason."""
    if prompt.schema is None:
        return None
    wrong = provider_of(config).schema_problem(config, prompt.schema) or refused
    if wrong is None:
        return None
    path = schema_file(Path(prompt.source))
    return (
        f"answers have to fit {path}, the schema next to a template, and it cannot be sent: {wrong}. "
        "Choose another backend or template, or move the schema away"
    )
