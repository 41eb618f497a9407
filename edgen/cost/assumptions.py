"""Assumed use of a conversation if there are no earlier runs: prompts are rendered and counted, answers
assumed.

The assumptions give an order of magnitude. The published conversations of Education Dialogue have 12 to 19
turns, and 150 to 310 tokens in o200k_base (a sample of 19); recent models write more.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from edgen.config import ANNOTATOR, Job, find_backend, find_backend_name, find_job_protocol
from edgen.core.pictures import Counted
from edgen.core.registry import find_plugin, part_of
from edgen.core.values import Scenario
from edgen.cost.tokens import TokenCounter, make_counter, make_picture_counter
from edgen.cost.usage import CallUse, RolePrices, UsageRange, add_up, find_asked_backends
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.gates import resolve_layers
from edgen.planning.plan import Plan
from edgen.planning.request_check import require_expected
from edgen.prompting.token_bound import count_most_prompt_tokens
from edgen.protocols.base import ExpectedCall, TurnByTurn
from edgen.space import Entry

RENDERED = 200  # maximum scenarios whose prompts are rendered and counted

# Low, expected and high.
ASKS = (1.0, 1.05, 1.3)  # requests per accepted answer; at most the job's `asks`
THINKING = 4.0  # with thoughts, a thinking model's charge is at most this multiple of the answer's

_TURNS = (12.0, 16.0, 19.0)  # labelled turns of a conversation
_LABELS = (4.0, 10.0, 30.0)  # tokens of the labels of one unit

_THINKS = re.compile(r"(models/)?(o\d|gpt-[5-9]|gemini-(2\.5|[3-9]))(?![a-z])")
_MARKERS = 4  # tokens around one message
_MARKERS_AT_MOST = 16
_LEAST_TURN = 4  # minimum tokens of a turn


class Prompts(NamedTuple):
    """The prompts of a job's scenarios, by use."""

    mean: dict[str, float]  # mean tokens of a prompt
    most: dict[str, int]  # maximum tokens of any scenario
    error: float  # possible error of the means, as a share
    how: str  # the counting method, in words
    hints: tuple[str, ...]  # sentences about better counts
    rendered: int  # scenarios that were rendered and counted


def count_prompts(plan: Plan, units: range, allowed: AllowedFiles) -> Prompts:
    """Render a seeded sample of at most RENDERED scenarios in `units`, and count the prompts' tokens.
    `allowed`: the files that the job may name. Raises InputError for an unusable tokenizer, and
    TemplateError."""
    job = plan.job
    counters: dict[str, TokenCounter] = {}
    seen = {role: make_picture_counter(backend) for role, backend in find_asked_backends(job).items()}
    hints: list[str] = []
    for role, backend in find_asked_backends(job).items():
        named = getattr(backend, "tokenizer", None)
        key = f"backends.{find_backend_name(job, role)}.tokenizer"
        path = None if named is None else allowed.find_file("tokenizer", named, key)
        counters[role], hint = make_counter(backend, path)
        if hint is not None and hint not in hints:
            hints.append(hint)
    rng = random.Random(f"{job.seed}/estimate")  # noqa: S311 - reproducible, not secret
    chosen = units if len(units) <= RENDERED else sorted(rng.sample(units, RENDERED))
    sums: dict[str, int] = {}
    most = _find_largest(plan, seen)
    for index in chosen:
        for use, (messages, schema) in plan.list_first_requests(plan.scenario(index)).items():
            asked = plan.templates[use].asked
            counted = seen[asked]
            sums[use] = sums.get(use, 0) + counters[asked].count_prompt(messages, schema, counted)
            most[use] = max(most[use], count_most_prompt_tokens(messages, schema, counted))
    if (labelling := plan.make_labelling_opening()) is not None:
        sums[ANNOTATOR] = counters[ANNOTATOR].count_prompt(*labelling) * len(chosen)
        most[ANNOTATOR] = count_most_prompt_tokens(*labelling)
    mean = {use: count / len(chosen) for use, count in sums.items()}
    how = "; ".join(dict.fromkeys(one.how for one in counters.values()))
    error = max(one.error for one in counters.values())
    return Prompts(mean, most, error, how, tuple(hints), len(chosen))


def _find_largest(plan: Plan, seen: Mapping[str, Counted]) -> dict[str, int]:
    """Return the maximum tokens of each prompt over all scenarios, by use: the first scenario's tokens, plus
    the largest increase by each dimension's values. This holds if a template shows each dimension
    independently."""
    first = plan.scenario(0)
    base = _count_most_tokens(plan, first, seen)
    most = dict(base)
    varied = [
        [msgspec.structs.replace(first, index=plan.job.conversations - 1)],
        *([_with_entry(first, one.name, entry) for entry in one.entries] for one in plan.space.dimensions),
    ]
    for scenarios in varied:
        found = [_count_most_tokens(plan, scenario, seen) for scenario in scenarios]
        for use, bound in base.items():
            most[use] += max(0, *(one[use] - bound for one in found))
    return most


def _with_entry(scenario: Scenario, dimension: str, entry: Entry) -> Scenario:
    return Scenario(
        scenario.index,
        {**scenario.values, dimension: entry.value},
        {**scenario.fields, dimension: entry.fields},
    )


def _count_most_tokens(plan: Plan, scenario: Scenario, seen: Mapping[str, Counted]) -> dict[str, int]:
    return {
        use: count_most_prompt_tokens(messages, schema, seen[plan.templates[use].asked])
        for use, (messages, schema) in plan.list_first_requests(scenario).items()
    }


def assume(job: Job, prompts: Prompts, rates: RolePrices) -> UsageRange:
    """Return the use of all replicates of one scenario: of the first, and of the later ones, which are
    equal."""
    first, later = (
        UsageRange(
            *(_estimate_conversation(job, prompts, rates, level, later=is_later) for level in range(3))
        )
        for is_later in (False, True)
    )
    return first.plus(later.times(job.replicates - 1))


def list_thinking_models(job: Job) -> list[str]:
    """Return the models of a job that may think before they answer, judged by their names."""
    models = dict.fromkeys(backend.model for backend in find_asked_backends(job).values())
    return [model for model in models if _THINKS.match(model)]


def estimate_answer_tokens(job: Job, role: str, tokens: float, level: int) -> float:
    """Return the tokens of a role's answer, at most its max_tokens; at the high level (2) with thoughts."""
    backend = find_backend(job, role)
    if level == 2 and _THINKS.match(backend.model):
        tokens *= THINKING
    return tokens if backend.max_tokens is None else min(tokens, float(backend.max_tokens))


def _estimate_retried_tokens(job: Job, role: str, answer: float, level: int) -> float:
    """Return the tokens of a retried answer; at the high level, the maximum that retry_max_tokens allows."""
    backend = find_backend(job, role)
    larger = backend.retry_max_tokens is not None and level == 2
    return max(answer, float(backend.most_tokens or 0)) if larger else answer


def _list_expected_calls(job: Job, level: int) -> tuple[ExpectedCall, ...]:
    """Return the calls of one conversation at one level. Raises FaultyPluginError if a plugin's protocol
    returns anything else."""
    protocol = find_job_protocol(job)
    if find_plugin("protocol", job.protocol) is None:
        found: tuple[ExpectedCall, ...] = protocol.expected(job, level)
        return found
    return require_expected(protocol, job, level)


def _estimate_conversation(
    job: Job, prompts: Prompts, rates: RolePrices, level: int, *, later: bool
) -> CallUse:
    """Return the use of one conversation at one level: 0 low, 1 expected, 2 high. `later`: a later replicate,
    which only continues replicate 0 if the job branches."""
    calls = _list_expected_calls(job, level)
    asks = min(ASKS[level], float(job.asks))
    off = 1 + (level - 1) * prompts.error  # factor for errors of counting
    said = 0.0  # tokens of the conversation so far
    used = []
    for call in calls:
        prompt = prompts.mean[call.use] * off + (said if call.hears else 0.0)
        answer = estimate_answer_tokens(job, call.role, call.tokens[level], level)
        again = _estimate_retried_tokens(job, call.role, answer, level)
        used.append(rates.price_calls(call.role, asks, asks * prompt, answer + (asks - 1) * again))
        if call.heard:
            said += estimate_answer_tokens(job, call.role, call.tokens[level], 0) + _MARKERS
    shared = [one for one, call in zip(used, calls, strict=True) if not call.own]
    own = [one for one, call in zip(used, calls, strict=True) if call.own]
    part = part_of(find_job_protocol(job), TurnByTurn)
    starts = part.leaves(job, len(shared), level) if later and job.branch is not None else [0]
    whole = add_up(add_up(shared[start:]) for start in starts).times(1 / len(starts))
    return add_up([whole, *own, _estimate_labelling(job, prompts, rates, level)])


def assume_labelling(job: Job, prompts: Prompts, rates: RolePrices) -> UsageRange:
    """Return the use of labelling the replicates of one scenario."""
    return UsageRange(*(_estimate_labelling(job, prompts, rates, level) for level in range(3))).times(
        job.replicates
    )


def _estimate_labelling(job: Job, prompts: Prompts, rates: RolePrices, level: int) -> CallUse:
    """Return the use of the job's layers for one conversation at one level."""
    if not job.labels:
        return CallUse()
    asks = min(ASKS[level], float(job.asks))
    each = prompts.mean[ANNOTATOR] * (1 + (level - 1) * prompts.error)
    calls, turns, said = 0.0, 0.0, _estimate_said_tokens(job, level)
    for layer in resolve_layers(job):
        units = (
            1.0
            if layer.asking.unit == "conversation"
            else _TURNS[level] * (sum(map(layer.asking.labels.asks_for, job.speakers)) / len(job.speakers))
        )
        calls += layer.annotators * (1.0 if layer.asking.together else units)
        turns += layer.annotators * units
    answers = estimate_answer_tokens(job, ANNOTATOR, _LABELS[level] * turns / calls, level)
    return rates.price_calls(ANNOTATOR, asks * calls, asks * calls * (each + said), asks * calls * answers)


def _estimate_said_tokens(job: Job, level: int) -> float:
    """Return the tokens of a conversation as shown to an annotator."""
    calls = _list_expected_calls(job, level)
    spoken = [call for call in calls if call.heard] or calls
    return sum(estimate_answer_tokens(job, call.role, call.tokens[level], 0) + _MARKERS for call in spoken)


def compute_highest_use(job: Job, prompts: Prompts, rates: RolePrices) -> CallUse | None:
    """Return the maximum use of one conversation: every ask used, every answer of maximum length. Calls
    without a counted answer are not included. None without max_tokens."""
    backends = find_asked_backends(job)
    rooms = {
        role: (one.max_tokens, most)
        for role, one in backends.items()
        if one.max_tokens and (most := one.most_tokens)
    }
    if len(rooms) < len(backends):
        return None
    said, parts = 0.0, []
    for call in _list_expected_calls(job, 2):
        prompt = prompts.most[call.use] + (said if call.hears else 0.0)
        room, most = rooms[call.role]
        answers = room + most * (job.asks - 1)
        parts.append(rates.price_calls_at_most(call.role, job.asks, job.asks * prompt, answers))
        if call.heard:
            said += _find_longest(job, rooms[call.role]) + _MARKERS_AT_MOST
    if job.labels:
        parts.append(_compute_highest_labelling(job, prompts, rates, rooms))
    return add_up(parts)


def _find_longest(job: Job, room: tuple[int, int]) -> int:
    """Return the maximum tokens of an accepted answer. `room`: of a first answer, and of retries."""
    return max(room) if job.asks > 1 else room[0]


def _compute_highest_labelling(
    job: Job, prompts: Prompts, rates: RolePrices, rooms: Mapping[str, tuple[int, int]]
) -> CallUse:
    """Return the maximum use of a job's layers for one conversation."""
    answers = _list_expected_calls(job, 2)
    room = [_find_longest(job, rooms[call.role]) for call in answers]
    turns = len(room) if len(room) > 1 else max(room[0] // _LEAST_TURN, 1)  # one answer may hold many turns
    calls = job.asks * sum(
        layer.annotators * (1 if layer.asking.unit == "conversation" or layer.asking.together else turns)
        for layer in resolve_layers(job)
    )
    prompt = prompts.most[ANNOTATOR] + sum(room) + turns * _MARKERS_AT_MOST
    return rates.price_calls_at_most(
        ANNOTATOR, calls, calls * prompt, calls * _find_longest(job, rooms[ANNOTATOR])
    )
