"""Schemas and forms of answers, and log probabilities: which of them the backends of a job can be asked for.

A schema next to a template is always sent. The protocol's own form of an answer is sent as a schema only if
the backend takes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from edgen.config import BackendConfig, Job, find_backend_name
from edgen.config.backends import find_features
from edgen.core.errors import JobError, Problem
from edgen.core.registry import part_of
from edgen.core.resources import find
from edgen.prompting import Prompt
from edgen.prompting.prompt import find_schema_file
from edgen.protocols.base import AnswerForms, ConversationProtocol, Template


def check_schemas(
    job: Job,
    prompts: Mapping[str, Prompt],
    templates: Mapping[str, Template],
    protocol: ConversationProtocol,
) -> None:
    """Raise JobError if a schema next to one of a job's templates cannot be sent, or `protocol` would not
    send it."""
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
    """Return the template with the way in which its backend's answers are requested. Raises JobError if a
    schema is required and the backend takes none; `key` is the job's key of the backend."""
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
    """Return whether a template is a shipped one, or a copy of it such as a run's."""
    shipped = find("prompts", prompt.name)
    return Path(prompt.source) == shipped or (shipped.exists() and shipped.read_text("utf-8") == prompt.text)


def adapt_template(prompt: Prompt, job: Job, name: str) -> Prompt:
    """Return the template as the job's backend of this name is asked with it. Raises JobError if a schema
    that is required cannot be sent."""
    check_schema(prompt, job.backends[name], f"$.backends.{name}")
    return with_forms(prompt, job, job.backends[name], f"$.backends.{name}")


def check_schema(prompt: Prompt, config: BackendConfig, key: str) -> None:
    """Raise JobError if a template has a schema that cannot be sent to the backend of the role `key`."""
    if (wrong := _explain_unsendable_schema(prompt, config)) is not None:
        raise JobError.of(prompt.name, [Problem(key, wrong)])


def _explain_unsendable_schema(
    prompt: Prompt, config: BackendConfig, refused: str | None = None
) -> str | None:
    """Explain why a template's schema, if any, cannot be sent; `refused`: a further reason."""
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
    """Raise JobError if a job wants log probabilities of a judge whose backend does not support them."""
    if job.pairs.logprobs is None:
        return
    if (wrong := find_features(config).logprobs_problem(config)) is not None:
        what = f"the judge must return log probabilities, and it cannot be asked for them: {wrong}"
        raise JobError.of(
            source, [Problem("$.pairs.logprobs", f"{what}. Choose another judge, or leave the key out")]
        )


def wants_logprobs(job: Job, config: BackendConfig) -> bool:
    """Return whether a job requests log probabilities of a backend, as its judge."""
    return job.pairs.logprobs is not None and job.backends.get(find_backend_name(job, "judge")) == config
