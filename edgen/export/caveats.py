"""Outcomes of a run's plan, and known limits of its data: lines of a card.

All lines follow from the run's counts and its job, so they claim nothing unchecked. Facts on job and space
are limited to public ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from edgen.config import Job
from edgen.core.registry import find, part_of
from edgen.core.text import escape_markdown
from edgen.families.base import family_of
from edgen.families.reader import ReportWords
from edgen.protocols.base import SelfDescription
from edgen.space import Space

SETTLED = (
    "planned",
    "accepted",
    "rejected",
    "failed",
    "pending",
)  # facts of a run's description, by arm or run


def tabulate_outcomes(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of planned = accepted + rejected + failed + pending, one row per arm, and the reasons
    below."""
    if not all(key in facts for key in SETTLED):
        return
    yield "| conversations | " + " | ".join(SETTLED) + " |"
    yield "|---" * (len(SETTLED) + 1) + "|"
    for name in facts["planned"]:
        counts = [_read_total(facts[key][name]) for key in SETTLED]
        yield f"| {escape_markdown(name)} | " + " | ".join(map(str, counts)) + " |"
    for name in facts.get("not_begun", ()):
        yield f"| {escape_markdown(name)} | not begun |" + " |" * (len(SETTLED) - 1)
    yield ""
    for key in ("rejected", "failed"):
        reasons: Counter[str] = Counter()
        for found in facts[key].values():
            reasons.update(found)
        if reasons:
            said = ", ".join(f"{escape_markdown(reason)} {count}" for reason, count in reasons.most_common())
            yield f"{key.capitalize()}, by reason: {said}."
            yield ""


def list_caveats(facts: Mapping[str, Any], job: Job, space: Space) -> Iterator[str]:
    """Yield the limits that users of the data should know."""
    if "range" in facts:
        first, _, end = facts["range"].partition(":")
        yield (
            f"This is a part of its job: scenarios {first} to {int(end) - 1}, of {job.conversations}. The "
            "split was made among these scenarios alone."
        )
    words = part_of(family_of(space, job.family), ReportWords)
    yield from _list_losses(facts, words.group_words)
    yield from list_unfinished(facts)
    yield from _list_protocol_caveats(facts, job)
    if words.probability_caveat:
        yield words.probability_caveat
    if job.arms:
        yield (
            "The arms share their scenarios and differ on purpose. Together they are not a sample of one "
            "distribution; use one arm."
        )
    if job.design == "even":
        yield (
            f"The design is even, so frequencies are not those of {words.setting}: among the scenarios that "
            "were planned, every value of a dimension occurs equally often, to within one, or as often as "
            "its weight in the space asks. Conditions and exclusions of the space can shift these counts."
        )
    if job.design == "balanced":
        yield (
            f"The design is balanced, so frequencies are not those of {words.setting}: the scenarios that "
            "were planned have every cell of the space (one value of each dimension) equally often, to "
            "within one. Where there are fewer scenarios than cells, no cell occurs twice, and the counts "
            "of values differ by chance."
        )


def list_unfinished(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence on unsettled parts of the plan for each run or arm that has any."""
    for name, pending in facts.get("pending", {}).items():
        if pending:
            planned = facts["planned"][name]
            yield (
                f"The run was not finished: {pending} of {planned} planned conversations of {name} were "
                "pending."
            )
    for name in facts.get("not_begun", ()):
        yield f"The run was not finished: its arm {name} had not started, and none of it is included."


def _list_protocol_caveats(facts: Mapping[str, Any], job: Job) -> Iterator[str]:
    """Yield a sentence per protocol on the roles' knowledge, with its arms if there are several."""
    protocols: dict[str, list[str]] = {}
    for name, changes in (job.arms or {job.name: {}}).items():
        if name not in facts.get("not_begun", ()):
            protocols.setdefault(changes.get("protocol", job.protocol), []).append(name)
    for protocol, names in protocols.items():
        made = find("protocol", protocol)
        settings = job.protocol_settings.get(protocol) or made.Config()
        said = " ".join(part_of(made, SelfDescription).caveats(settings))
        said = said or f"The conversations were made under the protocol {protocol}."
        arms = f"Arm{'s' if len(names) > 1 else ''} {', '.join(names)}: " if len(protocols) > 1 else ""
        yield f"{arms}{said}"


def _list_losses(facts: Mapping[str, Any], groups: Sequence[str]) -> Iterator[str]:
    if not all(key in facts for key in SETTLED):
        return
    for name, planned in facts["planned"].items():
        lost = _read_total(facts["rejected"][name]) + _read_total(facts["failed"][name])
        if lost and planned:
            yield (
                f"Survivorship: of {planned} planned conversations of {name}, {lost} "
                f"({100 * lost / planned:.1f}%) were rejected or failed and are not included. The losses may "
                f"not be spread evenly over {' and '.join(f'{word}s' for word in groups)}; `edgen stats RUN` "
                "shows where conversations are missing."
            )


def _read_total(found: Any) -> int:
    return sum(found.values()) if isinstance(found, Mapping) else int(found)


# Settings of a job and of a backend that shaped the data.
_OF_JOB = ("name", "seed", "conversations", "replicates", "protocol", "design", "branch", "asks", "split",
    "pairs")  # fmt: skip
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


def select_public_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts without a job's private and irrelevant settings: limits, addresses, names of keys."""
    job = facts.get("job")
    if not isinstance(job, Mapping):
        return dict(facts)
    keys = [*_OF_JOB]
    keys.insert(keys.index("design") + 1, job.get("protocol", ""))  # the protocol's own settings
    if "split" in facts.get("selection", ()):  # the selection's split replaces the job's
        keys.remove("split")
    shown = {key: job[key] for key in keys if job.get(key) not in (None, {}, [])}
    backends = job.get("backends", {})
    shown["backends"] = {role: select_backend_facts(backend) for role, backend in backends.items()}
    shown |= _find_inputs(job, job.get("resolved") or {})
    arms = facts.get("arms") or {}
    changes = job.get("arms") or {}
    made = {
        name: {"changes": _describe_changes(changes[name]), **_find_inputs({}, arms.get(name) or {})}
        for name in changes
    }
    return {**facts, "job": shown, "arms": made}


def select_backend_facts(backend: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a backend that shape its answers, without addresses and names of keys."""
    return {key: backend[key] for key in _OF_BACKEND if backend.get(key) is not None}


def _find_inputs(job: Mapping[str, Any], resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the space and templates, as noted at creation, else as the job names them."""
    space = resolved.get("space") or (None if job.get("arms") else job.get("space"))
    prompts = (
        resolved.get("prompts") or job.get("prompts") or {"": resolved.get("prompt") or job.get("prompt")}
    )
    names = sorted({_strip_folder(prompt) for prompt in prompts.values() if prompt})
    shown = {"space": _strip_folder(space) or None, "prompts": ", ".join(names) or None}
    return shown | {key: resolved.get(key) for key in _OF_RESOLVED} | _find_templates(resolved)


def _find_templates(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sha256 of each template by its use if there are several: the job's own digest covers all of
    them together."""
    each = resolved.get("templates") or {}
    return {"template_sha256": each} if each and resolved["template_sha256"] not in each.values() else {}


def _describe_changes(changes: Mapping[str, Any]) -> str:
    """Return an arm's changes of the job, without settings irrelevant to the data."""
    prompts = {
        key: _strip_folder(changes[key]) for key in ("prompt", "space") if isinstance(changes.get(key), str)
    }
    if isinstance(changes.get("prompts"), Mapping):
        prompts["prompts"] = ", ".join(
            sorted({_strip_folder(str(name)) for name in changes["prompts"].values()})
        )
    own = {key: changes[key] for key in _OF_JOB if key in changes}
    backends = changes.get("backends")
    for role, backend in backends.items() if isinstance(backends, Mapping) else ():
        if isinstance(backend, Mapping):
            own |= {f"{role}.{key}": backend[key] for key in (*_OF_BACKEND, "faults") if key in backend}
    return ", ".join(f"{key}={value}" for key, value in (prompts | own).items()) or "the job unchanged"


def _strip_folder(file: str | None) -> str:
    """Return a template's or space's name without its folder, which is private."""
    return PurePath(file or "").stem


def flatten_facts(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested facts as flat (dotted name, value) pairs, without None."""
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield from flatten_facts(value, f"{above}{key}.")
        elif value is not None:
            yield f"{above}{key}", value
