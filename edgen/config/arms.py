"""Arms: jobs that differ from the job above them in a few keys."""

from __future__ import annotations

from typing import Any

import msgspec

from edgen.config.backends import BackendConfig
from edgen.config.conversion import KEYS, check_values, find_list_price, list_known_keys
from edgen.config.job import KNOBS, Job, find_protocol, resolve_values
from edgen.core.errors import JobError, Problem
from edgen.core.yaml_values import suggest_name

# Keys that an arm cannot change: its scenarios or files would differ from the others'. Its own space may use
# other weights for the same values; readers of the files check that the values are the same.
NOT_IN_ARMS = (*KNOBS, "seed", "design", "strength")


def arm_jobs(job: Job, source: str) -> dict[str, Job]:
    """Return the job of each arm, by name: the job with the arm's keys applied. Without `arms:`, the job
    itself is the only one, "". Raises JobError as `load_job` does."""
    if not job.arms:
        return {"": job}
    plain = msgspec.json.decode(msgspec.json.encode(resolve_values(job)))
    for name, backend in job.backends.items():
        if backend.price == find_list_price(backend):  # an arm's model has its own price
            plain["backends"][name]["price"] = None
    arms = plain.pop("arms")
    jobs = {}
    for name, changes in arms.items():
        where = f"{source}, arm {name}"
        if unknown := [
            Problem(f"$.arms.{name}.{key}", _describe_unknown_key(key))
            for key in changes
            if key not in KEYS and find_protocol(key) is None
        ]:
            raise JobError.of(source, unknown)
        if refused := _find_refused(job, changes):
            raise JobError.of(where, [Problem(f"$.arms.{name}.{refused[0]}", refused[1])])
        try:
            jobs[name] = check_values(
                {**_merge(_inherit(plain, changes), changes), "name": f"{job.name}.{name}"}, where
            )
        except JobError as error:
            own = [Problem(f"$.arms.{name}{p.path.removeprefix('$')}", p.message) for p in error.problems]
            raise JobError(source, error.summary, own) from None
    return jobs


def _find_refused(job: Job, changes: dict[str, Any]) -> tuple[str, str] | None:
    """Return the first change that an arm may not make, with the reason; None if all are allowed."""
    if shared := sorted(set(changes) & set(NOT_IN_ARMS)):
        return shared[0], "an arm cannot change this: all arms share it"
    if changes.get("space", job.space) != job.space and job.design not in ("random", "even"):
        return "space", (
            "an arm's space may differ in its weights alone, and this design ignores weights; the job needs "
            "`design: even` or `design: random`"
        )
    return None


def _describe_unknown_key(key: str) -> str:
    """Describe an unknown key of an arm."""
    if any(key in BackendConfig.variant(name).__struct_fields__ for name in BackendConfig.variants()):
        return f"unknown key; it is a backend's: `backends: {{default: {{{key}: …}}}}`"
    return f"unknown key{suggest_name(str(key), [known for known in list_known_keys() if known not in NOT_IN_ARMS])}"


def _inherit(plain: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the job's values for an arm: without protocol-specific ones if the arm has another protocol."""
    if changes.get("protocol", plain["protocol"]) == plain["protocol"]:
        return plain
    return {key: value for key, value in plain.items() if key not in ("prompt", "branch")}


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge `above` over `below`, mapping by mapping; a backend of another type starts afresh."""
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if (
            isinstance(value, dict)
            and isinstance(under, dict)
            and value.get("type", under.get("type")) == under.get("type")
        ):
            result[key] = _merge(under, value)
        else:
            result[key] = value
    if "base_url" in above:  # of one or several servers, in place of those below
        for key in {"more_base_urls", "known_as"} - above.keys():
            result.pop(key, None)
    return result
