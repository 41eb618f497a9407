"""Job files as typed Jobs: unknown keys are refused, and every problem is named with its path.

API keys are named by environment variable and never stored. A backend at a provider's own host has the list
price unless the job gives one. `shaping` separates settings that shape answers from others, so that limits,
shards and logging may change on a resume.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from edgen.config.backends import BackendConfig, Price
from edgen.config.checks import budget_problems, problems, role_problems, role_word_problems
from edgen.config.inputs import require_inputs
from edgen.config.job import (
    ANNOTATOR,
    MOST_ANNOTATORS,
    Batch,
    Branch,
    CallSettings,
    Job,
    LabelsAsked,
    Limits,
    Pairs,
    Shards,
    Split,
    TooLong,
    backend_name,
    backend_of,
    conversation_protocols,
    find_protocol,
    own_words,
    protocol_of,
    roles_asked,
    settings_of,
    templates_of,
)
from edgen.config.overrides import apply_override, texts_of
from edgen.core.errors import JobError, Problem
from edgen.core.registry import PluginError, find, names
from edgen.core.resources import shipped
from edgen.core.values import Role
from edgen.core.yaml_values import convert, nearest, read_text, read_yaml, shortened, suggest_file

# Job keys that shape no answer: they may differ between two starts of one run.
KNOBS = (
    "name", "conversations", "top_up", "replicates", "limits", "batch", "split", "shards", "pairs", "arms", "resolved", "stop_when_useless",
)  # fmt: skip
# Keys that an arm cannot change: its scenarios or files would differ from the others'. Its own space may use
# other weights for the same values; readers of the files check that the values are the same.
_NOT_IN_ARMS = (*KNOBS, "seed", "design", "strength")
_KEYS = tuple(key for key in Job.__struct_fields__ if key not in ("protocol_settings", "speakers"))


def load_job(path: Path, overrides: Iterable[str] = ()) -> Job:
    """Return the job in the file at `path`, with `key.path=value` overrides applied. Raises JobError with
    every problem found, UsageError for an invalid override. Raises DamagedError if the job is a run's own
    copy and the run's inputs are not as edgen wrote them."""
    source = str(path)
    if not path.exists():
        raise JobError(source, f"there is no such file.{_instead_of(path)}")
    if (inside := path / "job.yaml").is_file():
        raise JobError(source, f"this is a folder, not a file. Did you mean {inside}?")
    if path.is_file():
        require_inputs(path.parent)
    value = read_yaml(read_text(path, JobError), source, JobError)
    job = _located(parse_job(value, source, overrides), source, path.parent)
    if job.limits.budget is None:
        return job
    # Relative to the job's folder, like the other files that it names; a run's copy of the job is elsewhere.
    budget = str((path.parent / Path(job.limits.budget).expanduser()).absolute())
    return msgspec.structs.replace(job, limits=msgspec.structs.replace(job.limits, budget=budget))


def _located(job: Job, source: str, folder: Path) -> Job:
    """Return the job with the files of its backends, and of its arms' backends, named from anywhere."""
    job = msgspec.structs.replace(
        job, backends={name: backend.located(folder) for name, backend in job.backends.items()}
    )
    for arm, held in arm_jobs(job, source).items() if job.arms else ():
        for name, changes in (job.arms[arm].get("backends") or {}).items():
            backend = held.backends[name]
            for key in changes.keys() & {*backend.__struct_fields__}:
                if (there := getattr(backend.located(folder), key)) != getattr(backend, key):
                    changes[key] = there
    return job


def _instead_of(path: Path) -> str:
    """Suggest what to do about a missing job file."""
    if (shipped_job := path.name.removesuffix(".yaml")) in shipped("jobs"):
        return (
            f" `edgen init my-project{_init_option(shipped_job)}` makes a folder with a job of one's own, in place of the "
            f"shipped {path.stem}; then: edgen generate my-project/job.yaml"
        )
    return suggest_file(path)


def _init_option(shipped_job: str) -> str:
    """Return the option of `edgen init` for a shipped job: its starter's protocol, if not the default."""
    usual = msgspec.structs.fields(Job)[Job.__struct_fields__.index("protocol")].default
    for name in conversation_protocols():
        starter = find_protocol(name).starter
        if name != usual and starter is not None and starter.job == shipped_job:
            return f" --protocol {name}"
    return ""


def parse_job(value: Any, source: str, overrides: Iterable[str] = ()) -> Job:
    """Build a job from plain values. Error messages call it `source`."""
    if not isinstance(value, dict):
        raise JobError(source, "this file is not a mapping; a job is a mapping of keys to values.")
    for override in overrides:
        apply_override(value, override)
    if "name" in value:
        value = {**value, "name": _fill_in_date(value["name"], source)}
    job = _check_job(value, source)
    arm_jobs(job, source)
    return job


def _fill_in_date(name: Any, source: str) -> Any:
    """Return a job's name with `{date}` replaced by today's local date; values that are not text
    unchanged."""
    wrong = None
    if isinstance(name, dict) and list(name) == ["date"]:  # YAML's own reading of the braces
        wrong = "YAML takes braces at the beginning for a mapping; put quotes around: name: '{date}'"
    elif not isinstance(name, str):
        return name
    elif unknown := [field for field in re.findall(r"\{[^{}]*\}?", name) if field != "{date}"]:
        wrong = f"{unknown[0]} is unknown; a name may contain {{date}}, today's date as in 2027-01-31"
    if wrong is not None:
        raise JobError.of(source, [Problem("$.name", wrong)])
    return name.replace("{date}", datetime.now().astimezone().date().isoformat())


def _check_job(value: dict[str, Any], source: str) -> Job:
    found: list[Problem] = []
    settings = {}
    for key in [key for key in value if key not in _KEYS]:
        protocol = find_protocol(str(key))
        if protocol is None:
            found.append(
                Problem(f"$.{shortened(str(key))}", f"unknown key{nearest(str(key), _known_keys())}")
            )
        else:
            settings[key] = convert(value[key], protocol.Config, f"$.{key}", found)
    plain = {key: given for key, given in value.items() if key in _KEYS}
    job = convert(plain, Job, "$", found)
    if isinstance(job, Job):
        if (protocol := find_protocol(job.protocol)) is None:
            found.append(Problem("$.protocol", _unusable_protocol(job.protocol)))
        else:
            settings.setdefault(job.protocol, protocol.Config())
    if found:
        raise JobError.of(source, found)
    job = _with_list_prices(msgspec.structs.replace(job, protocol_settings=settings))
    check(job, source)
    return job


def _known_keys() -> list[str]:
    return [*_KEYS, *conversation_protocols()]


def _unusable_protocol(name: str) -> str:
    """Explain why a job cannot use this protocol."""
    if name in names("protocol"):
        try:
            find("protocol", name)
        except PluginError as error:
            return str(error)
    return f"unknown protocol {shortened(repr(name))}{nearest(name, conversation_protocols())}"


def _with_list_prices(job: Job) -> Job:
    """Return the job with list prices for backends that have no price of their own."""
    priced = {
        name: backend
        if backend.price is not None
        else msgspec.structs.replace(backend, price=_find_list_price(backend))
        for name, backend in job.backends.items()
    }
    return msgspec.structs.replace(job, backends=priced)


def _find_list_price(backend: BackendConfig) -> Price | None:
    """Return the list price of a backend's model at the provider's own host; None elsewhere."""
    price: Price | None = find("provider", backend.provider).list_price(backend)
    return price


def check(job: Job, source: str) -> None:
    """Raise JobError if the job's keys do not fit together."""
    if found := problems(job):
        raise JobError.of(source, found)


def check_budget(backends: Mapping[str, BackendConfig], limits: Limits) -> None:
    """Raise JobError if backends cannot be counted against the shared budget of the limits, BudgetFileError
    for its file."""
    if found := budget_problems(backends, limits):
        raise JobError.of("limits.budget", found)


def with_speakers(job: Job, speakers: Sequence[Role]) -> Job:
    """Return the job for a space with these roles. Raises JobError if it names others."""
    job = msgspec.structs.replace(job, speakers=tuple(speakers))
    if found := role_problems(job):
        raise JobError.of(job.name, found)
    return job


def arm_jobs(job: Job, source: str) -> dict[str, Job]:
    """Return the job of each arm, by name: the job with the arm's keys applied. Without `arms:`, the job
    itself is the only one, "". Raises JobError as `load_job` does."""
    if not job.arms:
        return {"": job}
    plain = msgspec.json.decode(msgspec.json.encode(resolved_values(job)))
    for name, backend in job.backends.items():
        if backend.price == _find_list_price(backend):  # an arm's model has its own price
            plain["backends"][name]["price"] = None
    arms = plain.pop("arms")
    jobs = {}
    for name, changes in arms.items():
        where = f"{source}, arm {name}"
        if unknown := [
            Problem(f"$.arms.{name}.{key}", _unknown(key))
            for key in changes
            if key not in _KEYS and find_protocol(key) is None
        ]:
            raise JobError.of(source, unknown)
        if refused := _refused(job, changes):
            raise JobError.of(where, [Problem(f"$.arms.{name}.{refused[0]}", refused[1])])
        try:
            jobs[name] = _check_job(
                {**_laid_over(_inherit(plain, changes), changes), "name": f"{job.name}.{name}"}, where
            )
        except JobError as error:
            own = [Problem(f"$.arms.{name}{p.path.removeprefix('$')}", p.message) for p in error.problems]
            raise JobError(source, error.summary, own) from None
    return jobs


def _refused(job: Job, changes: dict[str, Any]) -> tuple[str, str] | None:
    """Return the first change that an arm may not make, with the reason; None if all are allowed."""
    if shared := sorted(set(changes) & set(_NOT_IN_ARMS)):
        return shared[0], "an arm cannot change this: all arms share it"
    if changes.get("space", job.space) != job.space and job.design not in ("random", "even"):
        return "space", (
            "an arm's space may differ in its weights alone, and this design ignores weights; the job needs "
            "`design: even` or `design: random`"
        )
    return None


def _unknown(key: str) -> str:
    """Describe an unknown key of an arm."""
    if any(key in BackendConfig.variant(name).__struct_fields__ for name in BackendConfig.variants()):
        return f"unknown key; it is a backend's: `backends: {{default: {{{key}: …}}}}`"
    return f"unknown key{nearest(str(key), [known for known in _known_keys() if known not in _NOT_IN_ARMS])}"


def _inherit(plain: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the job's values for an arm: without protocol-specific ones if the arm has another protocol."""
    if changes.get("protocol", plain["protocol"]) == plain["protocol"]:
        return plain
    return {key: value for key, value in plain.items() if key not in ("prompt", "branch")}


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge `above` over `below`, mapping by mapping; a backend of another type starts afresh."""
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if (
            isinstance(value, dict)
            and isinstance(under, dict)
            and value.get("type", under.get("type")) == under.get("type")
        ):
            result[key] = _laid_over(under, value)
        else:
            result[key] = value
    if "base_url" in above:  # of one or several servers, in place of those below
        for key in {"more_base_urls", "known_as"} - above.keys():
            result.pop(key, None)
    return result


def resolved_values(job: Job) -> dict[str, Any]:
    """Return the job as plain values, with every default."""
    plain: dict[str, Any] = msgspec.to_builtins(job)
    del plain["resolved"]
    del plain["speakers"]
    settings = plain.pop("protocol_settings")
    return plain | {name: given for name, given in settings.items() if given}


def shaping_values(job: Job) -> dict[str, Any]:
    """Return the part of the job that shapes answers, as plain values."""
    plain = {key: value for key, value in resolved_values(job).items() if key not in KNOBS}
    # Settings that a protocol does not use shape nothing.
    for name in job.protocol_settings:
        if name != job.protocol:
            plain.pop(name, None)
    if job.branch is None:
        del plain["branch"]
    for key in ("gates", "labels", "measures"):
        if not plain[key]:
            del plain[key]
    for key in ("role_words", "forms"):
        if not getattr(job, key):
            del plain[key]
    if job.too_long == "cut":
        del plain["too_long"]
    for name, backend in job.backends.items():
        for key in ("forms", "retry_max_tokens"):
            if getattr(backend, key) is None:
                plain["backends"][name].pop(key, None)
        if (known := getattr(backend, "known_as", None)) is not None:
            plain["backends"][name]["base_url"] = known
        for knob in backend.KNOBS:
            plain["backends"][name].pop(knob, None)
    return plain


__all__ = [
    "ANNOTATOR",
    "KNOBS",
    "MOST_ANNOTATORS",
    "BackendConfig",
    "Batch",
    "Branch",
    "CallSettings",
    "Job",
    "LabelsAsked",
    "Limits",
    "Pairs",
    "Price",
    "Shards",
    "Split",
    "TooLong",
    "arm_jobs",
    "backend_name",
    "backend_of",
    "check",
    "check_budget",
    "load_job",
    "own_words",
    "parse_job",
    "protocol_of",
    "resolved_values",
    "role_word_problems",
    "roles_asked",
    "settings_of",
    "shaping_values",
    "templates_of",
    "texts_of",
    "with_speakers",
]  # fmt: skip
