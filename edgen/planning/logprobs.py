"""Checks whether a judge's backend supports log probabilities."""

from __future__ import annotations

from edgen.config import BackendConfig, Job, backend_name
from edgen.config.plugin_parts import features_of
from edgen.core.errors import JobError, Problem


def check_logprobs(job: Job, config: BackendConfig, source: str) -> None:
    """Raise JobError if a job wants log probabilities of a judge whose backend does not support them."""
    if job.pairs.logprobs is None:
        return
    if (wrong := features_of(config).logprobs_problem(config)) is not None:
        what = f"the judge must return log probabilities, and it cannot be asked for them: {wrong}"
        raise JobError.of(
            source, [Problem("$.pairs.logprobs", f"{what}. Choose another judge, or leave the key out")]
        )


def wants_logprobs(job: Job, config: BackendConfig) -> bool:
    """Return whether a job requests log probabilities of a backend, as its judge."""
    return job.pairs.logprobs is not None and job.backends.get(backend_name(job, "judge")) == config
