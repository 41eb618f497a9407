"""Checks of combinations of job keys that are valid by themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.config.backends import OPTIONAL, BackendConfig, Price, find_features, find_prices
from edgen.config.budget_file import read_budget_file
from edgen.config.job import (
    ANNOTATOR,
    MAX_ARMS,
    Job,
    Limits,
    RolesAndSettings,
    find_backend_name,
    find_job_protocol,
    list_asked_roles,
    list_templates,
)
from edgen.config.job_parts import MOST_LAYERS
from edgen.config.label_set import LabelSet, set_problems
from edgen.config.served import ServedConfig
from edgen.core.errors import JobError, Problem
from edgen.core.registry import Kind, find, find_all, find_plugin, part_of
from edgen.core.text import compile_later
from edgen.core.values import ROLES, Role
from edgen.core.yaml_values import shorten_word

# Request fields that allow longer or additional answers, which the budget would not count.
_ROOM_KEYS = {
    "max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of", "maxOutputTokens",
    "candidateCount", "n_predict",
}  # fmt: skip

_GATE = compile_later(r"[a-z][a-z0-9_]{0,39}")
_LAYER = compile_later(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
_NO_BACKEND = "this key is missing; `default` answers where no other role does"
_LEAST_PRICE = 0.002  # US dollars per million tokens; the cheapest on the list costs 25 times as much


def _list_keys(body: dict[str, Any]) -> set[str]:
    """Return the keys of a body and of the mappings directly inside it."""
    inner = [value for value in body.values() if isinstance(value, dict)]
    return set(body).union(*inner)


def check(job: Job, source: str) -> None:
    """Raise JobError if the job's keys do not fit together."""
    found = [
        *_find_protocol_problems(job),
        *_find_arm_problems(job),
        *_find_backend_problems(job),
        *_find_gate_problems(job),
    ]
    if found:
        raise JobError.of(source, found)


def check_budget(backends: Mapping[str, BackendConfig], limits: Limits) -> None:
    """Raise JobError if the calls of backends cannot be counted against the limits' shared budget;
    BudgetFileError for an invalid budget file."""
    if limits.budget is None:
        return
    money = read_budget_file(Path(limits.budget)).counts_money
    found = [
        Problem(f"$.backends.{role}.{problem.path}", problem.message)
        for role, backend in backends.items()
        for problem in _list_missing_settings(backend, "limits.budget", money=money)
    ]
    if found:
        raise JobError.of("limits.budget", found)


def with_speakers(job: Job, speakers: Sequence[Role]) -> Job:
    """Return the job for a space with these roles. Raises JobError if it names others."""
    job = msgspec.structs.replace(job, speakers=tuple(speakers))
    if found := _find_role_problems(job):
        raise JobError.of(job.name, found)
    return job


def _find_role_problems(job: Job) -> list[Problem]:
    """Return problems with the roles of the space, which the job's file alone does not show."""
    asked, templates = list_asked_roles(job), list_templates(job, None)
    speakers = list(map(str.lower, job.speakers))
    backends = dict.fromkeys(("default", *speakers, *asked, "judge", ANNOTATOR))
    prompts = dict.fromkeys((*speakers, *templates, "closing", "oracle", ANNOTATOR))
    missing = [role for role in asked if find_backend_name(job, role) not in job.backends]
    found = [
        *_find_unknown_names("backends", job.backends, "role", backends),
        *_find_unknown_names("prompts", job.prompts, "prompt", prompts),
        *_find_unknown_names("role_words", job.role_words, "role", job.speakers),
    ]
    if missing:
        found.append(
            Problem(f"$.backends.{missing[0] if len(missing) < len(asked) else 'default'}", _NO_BACKEND)
        )
    found += [
        Problem(f"$.role_words.{path}", message)
        for path, message in find_role_word_problems(job.role_words, job.speakers)
    ]
    more = part_of(find_job_protocol(job), RolesAndSettings).role_problems(job)
    return [*found, *_require_problems("protocol", job.protocol, more)]


def _find_gate_problems(job: Job) -> list[Problem]:
    """Return problems of gates' names, which must be valid reasons. The space decides about their
    expressions."""
    message = "a gate is named by small letters, digits and _, at most 40 of them, the first a letter"
    found = [Problem(f"$.gates.{name}", message) for name in job.gates if not _GATE.fullmatch(name)]
    if len(job.gates) > 50:
        found.append(Problem("$.gates", "there are more than 50"))
    return [*found, *_find_label_problems(job)]


def _find_label_problems(job: Job) -> Iterator[Problem]:
    """Yield problems of layers. The space decides whether they fit its roles."""
    message = (
        "a layer's name has letters, digits, '_' and '-', begins with a letter or a digit, and has at most "
        "60 characters"
    )
    for name, asked in job.labels.items():
        if not _LAYER.fullmatch(name):
            yield Problem(f"$.labels.{shorten_word(name)}", message)
        if isinstance(asked.set, LabelSet):
            yield from set_problems(asked.set, f"$.labels.{name}.set")
        if asked.together and asked.unit == "conversation":
            yield Problem(
                f"$.labels.{name}.together", "it needs `unit: turn`: it sends one request for all turns"
            )
    if len(job.labels) > MOST_LAYERS:
        yield Problem("$.labels", f"there are more than {MOST_LAYERS}")


def _find_unknown_names(key: str, named: Iterable[str], what: str, known: Collection[str]) -> list[Problem]:
    message = f"unknown {what} (known: {', '.join(known)})"
    return [Problem(f"$.{key}.{name}", message) for name in named if name not in known]


def _find_protocol_problems(job: Job) -> list[Problem]:
    settings = part_of(find_job_protocol(job), RolesAndSettings)
    problems = [
        Problem(f"$.{template.key}", f"this key is missing; the {job.protocol} protocol needs this template")
        for template in list_templates(job, None).values()
        if template.name is None and template.file is None
    ]
    if job.branch is not None and not settings.branches:
        others = find_all("protocol")
        able = next((one.name for one in others if part_of(one, RolesAndSettings).branches), None)
        hint = f"; {able} does: `protocol: {able}`" if able else ""
        problems.append(Problem("$.branch", f"the {job.protocol} protocol does not branch{hint}"))
    problems += _require_problems("protocol", job.protocol, settings.problems(job))
    if job.branch is not None and job.replicates < 2:
        problems.append(
            Problem("$.replicates", "a branch needs at least 2: replicate 0 and one that branches off it")
        )
    return problems


def _require_problems(kind: Kind, name: str, found: Iterable[Problem]) -> list[Problem]:
    """Return the problems that an object reported. Raises FaultyPluginError if a plugin returned anything
    else."""
    if find_plugin(kind, name) is None:
        return [*found]
    from edgen.core.plugins.faults import require_items

    return require_items(kind, name, found, Problem, "a Problem")


def find_role_word_problems(
    words: Mapping[str, Sequence[str]], roles: Sequence[str] = ROLES
) -> list[tuple[str, str]]:
    """Return problems of words for the roles, as (place, sentence)."""
    found = []
    taken = {role.lower(): role for role in roles}
    for role in roles:
        for number, word in enumerate(words.get(role, ())):
            path, plain = f"{role}[{number}]", " ".join(word.split()).lower()
            if word != word.strip() or not word[:1].isalnum() or re.search(r"[\n\r:：]", word):
                found.append((path, "a word for a role begins with a letter or a digit, and has no colon"))
            elif taken.setdefault(plain, role) != role:
                found.append((path, f"{word!r} is already a word for the {taken[plain].lower()}"))
    return found


def _find_arm_problems(job: Job) -> list[Problem]:
    problems = [
        Problem(f"$.arms.{name}", "an arm's name is made of letters, digits, - and _, 40 at most")
        for name in job.arms
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name)
    ]
    first = {name.lower(): name for name in reversed(job.arms)}
    problems += [
        Problem(
            f"$.arms.{name}",
            f"it differs from {same} only in case, and some systems treat such folders as one",
        )
        for name in job.arms
        if (same := first[name.lower()]) != name
    ]
    if len(job.arms) > MAX_ARMS:
        problems.append(Problem("$.arms", f"there are {len(job.arms)}; at most {MAX_ARMS} are allowed"))
    if job.arms and job.top_up:
        problems.append(Problem("$.top_up", "arms share their scenarios, so no arm can plan more"))
    return problems


def _find_backend_problems(job: Job) -> list[Problem]:
    if not job.backends:
        return [Problem("$.backends.default", _NO_BACKEND)]
    return [
        Problem(f"$.backends.{role}.{problem.path}", problem.message)
        for role, backend in job.backends.items()
        for problem in _find_problems_of_backend(backend, job.limits)
    ]


def _list_missing_settings(backend: BackendConfig, cap: str, *, money: bool) -> Iterator[Problem]:
    """Yield settings that a backend lacks for counting its calls in advance; `money`: in US dollars."""
    if backend.max_tokens is None:
        yield Problem("max_tokens", f"a run under {cap} needs it, as in `max_tokens: 4096`")
    if hidden := _ROOM_KEYS & _list_keys(getattr(backend, "extra_body", {})):
        yield Problem(
            "extra_body",
            f"a run under {cap} cannot let it set {', '.join(sorted(hidden))}; use the backend's max_tokens",
        )
    if money and backend.price is None:
        yield Problem("price", _explain_needed_price(backend, cap))


def _find_problems_of_backend(backend: BackendConfig, limits: Limits) -> Iterator[Problem]:
    """Yield problems of a backend under these limits, with paths relative to the backend."""
    if limits.max_cost is not None or limits.max_tokens is not None:
        cap = "max_cost or max_tokens"
        yield from _list_missing_settings(backend, cap, money=False)
    features = find_features(backend)
    for name in OPTIONAL:
        if getattr(backend, name) is not None and name not in features.sends:
            yield Problem(name, f"a backend of type {backend.provider} has no such setting; remove it")
    if backend.choices is not None and (wrong := features.choices_problem(backend)) is not None:
        yield Problem("choices", wrong)
    if backend.retry_max_tokens is not None and backend.retry_max_tokens < (backend.max_tokens or math.inf):
        yield Problem("retry_max_tokens", "it must be at least `max_tokens`, which this backend needs, too")
    if isinstance(backend, ServedConfig) and (wrong := backend.server_problem) is not None:
        yield Problem("base_url", wrong)
    found = find("provider", backend.provider).problems(backend)
    yield from _require_problems("provider", backend.provider, found)
    if backend.price is not None:
        yield from _find_price_problems(backend.price)
    elif limits.max_cost is not None:
        yield Problem("price", _explain_needed_price(backend, "max_cost"))


def _find_price_problems(price: Price) -> Iterator[Problem]:
    """Yield implausible prices per million tokens, under which a cap would not bind."""
    for key in ("prompt", "completion", "cache_read", "cache_write"):
        dollars = getattr(price, key)
        if dollars is not None and 0 < dollars < _LEAST_PRICE:
            yield Problem(
                f"price.{key}",
                f"${dollars:g} for a million tokens is less than any model costs; is it meant for one "
                "token, or for a thousand? Write it for a million (0 where answers cost nothing)",
            )


def _explain_needed_price(backend: BackendConfig, cap: str) -> str:
    """Explain that a price is required, with a line to start from."""
    needed = (
        f"a run under {cap} needs the price of {backend.model}, in US dollars per million tokens; add this "
        "line to the backend"
    )
    found = find_prices(backend).nearest_price(backend.model)
    if found is None:
        # Refused until it is filled in: with a price of 0, the cap would never bind.
        return (
            f"{needed}, with its figures for the words in capitals (0 where answers cost nothing; `batch` "
            "is the share of them that a batch job costs, 0.5 at most providers): "
            "price: {prompt: DOLLARS, completion: DOLLARS, batch: 1}"
        )
    model, near = found
    date = "" if near.date is None else f"date: {near.date}, "
    cached = "".join(
        f"{key}: {_format_dollars(dollars)}, "
        for key in ("cache_read", "cache_write")
        if (dollars := getattr(near, key)) is not None
    )
    line = (
        f"price: {{prompt: {_format_dollars(near.prompt)}, completion: {_format_dollars(near.completion)}, {cached}"
        f'batch: {near.batch:g}, {date}source: "{near.source}"}}'
    )
    what = f"{model}, the nearest name on the list"
    if model == backend.model:
        what = "its provider; this host may take another price"
    return f"{needed}, with its figures (these are those of {what}): {line}"


def _format_dollars(amount: float) -> str:
    """Format an amount with two decimals, or more if needed."""
    return f"{amount:.2f}" if round(amount, 2) == amount else f"{amount:g}"
