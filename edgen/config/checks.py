"""What is wrong with a job whose keys are each well: what does not go together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from edgen.config.backends import BackendConfig, Price
from edgen.config.job import (
    ARM_STRIDE,
    BACKEND_ROLES,
    MAX_ARMS,
    PROMPT_ROLES,
    Job,
    backend_name,
    roles_asked,
)
from edgen.errors import Problem
from edgen.model import ROLES
from edgen.prices import nearest_price

# What would let an answer be longer, or more than one, behind the budget's back.
_ROOM_KEYS = {
    "max_tokens", "max_completion_tokens", "n", "best_of", "maxOutputTokens", "candidateCount", "n_predict",
}  # fmt: skip

_LEAST_PRICE = 0.002  # US dollars per million tokens; the cheapest on the list is 25 times as dear


def _keys(body: dict[str, Any]) -> set[str]:
    """The keys of a body and of the mappings right inside it."""
    inner = [value for value in body.values() if isinstance(value, dict)]
    return set(body).union(*inner)


def problems(job: Job) -> list[Problem]:
    """Every problem, with its path; empty where there is none."""
    return [*_protocol_problems(job), *_word_problems(job), *_arm_problems(job), *_backend_problems(job)]


def _protocol_problems(job: Job) -> list[Problem]:
    problems = [
        Problem(f"$.prompts.{role}", f"unknown prompt (known: {', '.join(PROMPT_ROLES)})")
        for role in job.prompts
        if role not in PROMPT_ROLES
    ]
    if job.protocol == "oneshot" and job.prompt is None:
        problems.append(Problem("$.prompt", "this key is missing; the oneshot protocol asks with it"))
    if job.protocol == "selfplay" and job.prompt is not None:
        problems.append(
            Problem("$.prompt", "selfplay has a prompt for each side: `prompts: {teacher: …, student: …}`")
        )
    if job.branch is not None and job.protocol != "selfplay":
        problems.append(Problem("$.branch", "only selfplay can branch: `protocol: selfplay`"))
    if job.branch is not None and isinstance(job.branch.at, int):
        opens = job.branch.role == job.selfplay.first
        turn = 2 * job.branch.at - (1 if opens else 0)  # counted from 1
        if turn > job.selfplay.max_turns:
            problems.append(
                Problem(
                    "$.branch.at", f"that is turn {turn}, and selfplay.max_turns is {job.selfplay.max_turns}"
                )
            )
    if job.branch is not None and job.replicates < 2:
        problems.append(
            Problem("$.replicates", "a branch needs at least 2: replicate 0 and one that leaves it")
        )
    return problems


def _word_problems(job: Job) -> list[Problem]:
    unknown = [
        Problem(f"$.role_words.{role}", f"unknown role (known: {', '.join(ROLES)})")
        for role in job.role_words
        if role not in ROLES
    ]
    found = role_word_problems(job.role_words)
    return unknown + [Problem(f"$.role_words.{path}", message) for path, message in found]


def role_word_problems(words: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """What is wrong with words for the sides: (which one, a sentence)."""
    found = []
    taken = {role.lower(): role for role in ROLES}
    for role in ROLES:
        for number, word in enumerate(words.get(role, ())):
            path, plain = f"{role}[{number}]", " ".join(word.split()).lower()
            if word != word.strip() or not word[:1].isalnum() or re.search(r"[\n\r:：]", word):
                found.append((path, "a word for a role begins with a letter or a digit, and has no colon"))
            elif taken.setdefault(plain, role) != role:
                found.append((path, f"{word!r} is what the {taken[plain].lower()} is called"))
    return found


def _arm_problems(job: Job) -> list[Problem]:
    problems = [
        Problem(f"$.arms.{name}", "an arm's name is made of letters, digits, - and _, 40 at most")
        for name in job.arms
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name)
    ]
    first = {name.lower(): name for name in reversed(job.arms)}
    problems += [
        Problem(
            f"$.arms.{name}",
            f"it differs from {first[name.lower()]} in case alone, and folders may not tell them apart",
        )
        for name in job.arms
        if first[name.lower()] != name
    ]
    if len(job.arms) > MAX_ARMS:
        problems.append(Problem("$.arms", f"there are {len(job.arms)}; {MAX_ARMS} are the most"))
    if job.arms and job.replicates > ARM_STRIDE:
        problems.append(Problem("$.replicates", f"with arms {ARM_STRIDE} are the most"))
    if job.arms and job.top_up:
        problems.append(Problem("$.top_up", "arms share their scenarios, so none of them can plan more"))
    return problems


def _backend_problems(job: Job) -> list[Problem]:
    problems = []
    missing = [role for role in roles_asked(job) if backend_name(job, role) not in job.backends]
    if missing:
        key = missing[0] if len(missing) < len(roles_asked(job)) else "default"
        problems.append(
            Problem(f"$.backends.{key}", "this key is missing; `default` answers where no other role does")
        )
    for role, backend in job.backends.items():
        if role not in BACKEND_ROLES:
            problems.append(
                Problem(f"$.backends.{role}", f"unknown role (known: {', '.join(BACKEND_ROLES)})")
            )
        capped = job.limits.max_cost is not None or job.limits.max_tokens is not None
        if capped and backend.max_tokens is None:
            problems.append(
                Problem(f"$.backends.{role}.max_tokens", "a run under max_cost or max_tokens needs it set")
            )
        hidden = _ROOM_KEYS & _keys(getattr(backend, "extra_body", {}))
        if capped and hidden:
            problems.append(
                Problem(
                    f"$.backends.{role}.extra_body",
                    f"a run under max_cost or max_tokens cannot let it set {', '.join(sorted(hidden))}; "
                    "use the backend's max_tokens",
                )
            )
        problems += _price_problems(f"$.backends.{role}.price", backend.price)
        if job.limits.max_cost is not None and backend.price is None:
            problems.append(Problem(f"$.backends.{role}.price", _price_needed(backend)))
    return problems


def _price_problems(path: str, price: Price | None) -> list[Problem]:
    """Prices that are none for a million tokens: under them a cap would not bind."""
    given = {} if price is None else {"prompt": price.prompt, "completion": price.completion}
    return [
        Problem(
            f"{path}.{key}",
            f"${dollars:g} for a million tokens is less than any model costs; is it meant for one token, or for "
            "a thousand? Write it for a million (0 where answers cost nothing)",
        )
        for key, dollars in given.items()
        if 0 < dollars < _LEAST_PRICE
    ]


def _price_needed(backend: BackendConfig) -> str:
    """That a price has to be given, with a line to start from."""
    needed = (
        f"a run under max_cost needs the price of {backend.model}, in US dollars per million tokens; add this line to "
        "the backend"
    )
    near = nearest_price(str(backend.__struct_config__.tag), backend.model)
    if near is None:
        # Refused until it is filled in: with a price of 0, the cap would bind nothing.
        return (
            f"{needed}, with its figures for the words in capitals (0 where answers cost nothing; `batch` is the "
            "share of them that a batch job costs, 0.5 at most providers): "
            "price: {prompt: DOLLARS, completion: DOLLARS, batch: 1}"
        )
    line = (
        f"price: {{prompt: {_dollars(near.prompt)}, completion: {_dollars(near.completion)}, "
        f'batch: {near.batch:g}, date: {near.date}, source: "{near.source}"}}'
    )
    what = f"{near.model}, the nearest name on the list"
    if near.model == backend.model:
        what = "its provider; this host may take another price"
    return f"{needed}, with its figures (these are those of {what}): {line}"


def _dollars(amount: float) -> str:
    """With two decimals, or as many as it has."""
    return f"{amount:.2f}" if round(amount, 2) == amount else f"{amount:g}"
