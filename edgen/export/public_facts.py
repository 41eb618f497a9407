"""Public facts on a run for a card: everything that shaped the data, and nothing private, such as limits,
addresses, folders and names of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

# Settings of a job and of a backend that shaped the data.
_OF_JOB = ("name", "seed", "conversations", "replicates", "protocol", "design", "branch", "asks", "split", "pairs")  # fmt: skip
_OF_RESOLVED = ("edgen", "space_sha256", "template_sha256", "fingerprint")
_OF_BACKEND = (
    "type",
    "model",
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "reasoning_effort",
    "verbosity",
)


def public_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts without a job's private and irrelevant settings: limits, addresses, names of keys."""
    job = facts.get("job")
    if not isinstance(job, Mapping):
        return dict(facts)
    keys = [*_OF_JOB]
    keys.insert(keys.index("design") + 1, job.get("protocol", ""))  # the protocol's own settings
    if "split" in facts.get("selection", ()):  # it replaces the job's
        keys.remove("split")
    shown = {key: job[key] for key in keys if job.get(key) not in (None, {}, [])}
    backends = job.get("backends", {})
    shown["backends"] = {
        role: {key: backend[key] for key in _OF_BACKEND if backend.get(key) is not None}
        for role, backend in backends.items()
    }
    shown |= _inputs(job, job.get("resolved") or {})
    arms = facts.get("arms") or {}
    changes = job.get("arms") or {}
    made = {
        name: {"changes": _changes(changes[name]), **_inputs({}, arms.get(name) or {})} for name in changes
    }
    return {**facts, "job": shown, "arms": made}


def _inputs(job: Mapping[str, Any], resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the space and templates, as noted at creation, else as the job names them."""
    space = resolved.get("space") or (None if job.get("arms") else job.get("space"))
    prompts = (
        resolved.get("prompts") or job.get("prompts") or {"": resolved.get("prompt") or job.get("prompt")}
    )
    names = sorted({_named(prompt) for prompt in prompts.values() if prompt})
    shown = {"space": _named(space) or None, "prompts": ", ".join(names) or None}
    return shown | {key: resolved.get(key) for key in _OF_RESOLVED} | _templates(resolved)


def _templates(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sha256 of each template by its use if there are several: the digest noted for all of them is
    not that of a file."""
    each = resolved.get("templates") or {}
    return {"template_sha256": each} if each and resolved["template_sha256"] not in each.values() else {}


def _changes(changes: Mapping[str, Any]) -> str:
    """Return an arm's changes of the job, without settings irrelevant to the data."""
    prompts = {key: _named(changes[key]) for key in ("prompt", "space") if isinstance(changes.get(key), str)}
    if isinstance(changes.get("prompts"), Mapping):
        prompts["prompts"] = ", ".join(sorted({_named(str(name)) for name in changes["prompts"].values()}))
    own = {key: changes[key] for key in _OF_JOB if key in changes}
    backends = changes.get("backends")
    for role, backend in backends.items() if isinstance(backends, Mapping) else ():
        if isinstance(backend, Mapping):
            own |= {f"{role}.{key}": backend[key] for key in (*_OF_BACKEND, "faults") if key in backend}
    return ", ".join(f"{key}={value}" for key, value in (prompts | own).items()) or "the job as it is"


def _named(file: str | None) -> str:
    """Return a template's or space's name without its folder, which is private."""
    return PurePath(file or "").stem


def flatten_facts(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested facts as a flat sequence with dotted names, without None."""
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield from flatten_facts(value, f"{above}{key}.")
        elif value is not None:
            yield f"{above}{key}", value
