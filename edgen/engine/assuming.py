"""What a conversation uses where no earlier run tells: prompts as they are rendered and counted, answers assumed.

The assumptions are bounds for an order of magnitude. The conversations of Education Dialogue that were published
have 12 to 19 turns, and 150 to 310 tokens in o200k_base (a sample of 19); models asked today write more.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from edgen.config import Job, OpenAIConfig, backend_name, roles_asked
from edgen.engine.plan import Plan
from edgen.engine.reach import Reach
from edgen.engine.rendering import rendered, rendered_with
from edgen.engine.usage import Rates, Used, total
from edgen.limits import prompt_token_bound
from edgen.model import Scenario
from edgen.tokens import Counter, counter

RENDERED = 200  # scenarios whose prompts are rendered and counted, at most

# Low, expected and high, of one answer each: tokens.
ONESHOT = (150.0, 400.0, 1200.0)
TURN = (10.0, 40.0, 150.0)
CLOSING = (1.0, 10.0, 60.0)
TURNS = (4, 12)  # of a conversation by selfplay; at most the job's max_turns
ASKS = (1.0, 1.05, 1.3)  # answers that are asked for, for each that is taken; at most the job's asks
THINKING = 4.0  # a model that thinks before it answers is charged for that: so many times the answer, at most

_THINKS = re.compile(r"(models/)?(o\d|gpt-[5-9]|gemini-(2\.5|[3-9]))(?![a-z])")
_MARKERS = 4  # tokens around one message
_MARKERS_AT_MOST = 16


class Prompts(NamedTuple):
    """The prompts of a job's scenarios, by what they are for: mean tokens, the most that one can have,
    and by which share the means may be off."""

    mean: dict[str, float]
    most: dict[str, int]
    error: float
    how: str
    hints: tuple[str, ...]
    rendered: int


class Answers(NamedTuple):
    """The tokens of one answer by a role, those of its text (which others then read), and those of an answer
    to the closing question; turns; asks for each."""

    turns: int
    asks: float
    answer: dict[str, float]
    text: dict[str, float]
    closing: float
    prompts: float  # times what was counted


def prompts_of(plan: Plan, units: range, reach: Reach) -> Prompts:
    """Render a seeded sample of the scenarios in `units`, all if they are few, and count them. `reach`:
    which files the job may name. Raises InputError for a tokenizer that cannot be used, TemplateError."""
    job = plan.job
    counters: dict[str, Counter] = {}
    hints: list[str] = []
    for role in roles_asked(job):
        backend = job.backends[backend_name(job, role)]
        named = backend.tokenizer if isinstance(backend, OpenAIConfig) else None
        key = f"backends.{backend_name(job, role)}.tokenizer"
        path = None if named is None else reach.file("tokenizer", named, key)
        counters[role], hint = counter(str(backend.__struct_config__.tag), backend.model, path)
        if hint is not None and hint not in hints:
            hints.append(hint)
    rng = random.Random(f"{job.seed}/estimate")  # noqa: S311 - reproducible, not secret
    chosen = units if len(units) <= RENDERED else sorted(rng.sample(units, RENDERED))
    sums: dict[str, int] = {}
    most = _largest(plan)
    for index in chosen:
        for use, messages in rendered(plan, index).items():
            asked = (job.selfplay.closing or "student") if use == "closing" else use
            sums[use] = sums.get(use, 0) + counters[asked].prompt(messages)
            most[use] = max(most[use], prompt_token_bound(messages))
    mean = {use: count / len(chosen) for use, count in sums.items()}
    how = "; ".join(dict.fromkeys(one.how for one in counters.values()))
    error = max(one.error for one in counters.values())
    return Prompts(mean, most, error, how, tuple(hints), len(chosen))


def _largest(plan: Plan) -> dict[str, int]:
    """The most tokens that each prompt of any scenario can be, by what it is for: the first scenario's, and what
    every dimension's longest value adds to it. That holds where a template does not show one dimension depending
    on another."""
    first, space = plan.scenario(0), plan.space
    base = _bounds(plan, first)
    most = dict(base)
    varied: list[list[dict[str, Any]]] = [
        [{"index": plan.job.conversations - 1}],
        [{"topic": one.value, "subject": one.subject, "level": one.level} for one in space.topics],
        [{"student_preference": one.value} for one in space.student_preferences],
        [{"student_reaction": one.value} for one in space.student_reactions],
        [{"teacher_preference": one.value} for one in space.teacher_preferences],
        [{"teacher_reaction": one.value} for one in space.teacher_reactions],
    ]
    for choices in varied:
        found = [_bounds(plan, msgspec.structs.replace(first, **values)) for values in choices]
        for use, bound in base.items():
            most[use] += max(0, *(one[use] - bound for one in found))
    return most


def _bounds(plan: Plan, scenario: Scenario) -> dict[str, int]:
    return {use: prompt_token_bound(messages) for use, messages in rendered_with(plan, scenario).items()}


def assumed(job: Job, prompts: Prompts, rates: Rates, replicates: Sequence[int]) -> tuple[Used, Used, Used]:
    """What these replicates of one scenario use: low, expected, high."""
    low, expected, high = (
        total(
            _conversation(job, prompts, rates, _answers(job, level, prompts.error), level, later=r > 0)
            for r in replicates
        )
        for level in range(3)
    )
    return low, expected, high


def thinks(job: Job) -> list[str]:
    """The models of a job that may think before they answer, as far as their names tell."""
    models = [job.backends[backend_name(job, role)].model for role in roles_asked(job)]
    return [model for model in dict.fromkeys(models) if _THINKS.match(model)]


def _answers(job: Job, level: int, error: float) -> Answers:
    """What is assumed at one level: 0 low, 1 expected, 2 high."""
    per_answer = ONESHOT if job.protocol == "oneshot" else TURN
    most = job.selfplay.max_turns
    closing = job.selfplay.closing or "student"
    return Answers(
        turns=most if level == 2 else min(TURNS[level], most),
        asks=min(ASKS[level], float(job.asks)),
        answer={role: _of(job, role, per_answer[level], level) for role in roles_asked(job)},
        text={role: _of(job, role, per_answer[level], 0) for role in roles_asked(job)},
        closing=_of(job, closing, CLOSING[level], level) if job.protocol == "selfplay" else 0.0,
        prompts=1 + (level - 1) * error,
    )


def _of(job: Job, role: str, tokens: float, level: int) -> float:
    """The tokens of an answer by a role: no more than it has room for; at the high level with what it thinks."""
    backend = job.backends[backend_name(job, role)]
    if level == 2 and _THINKS.match(backend.model):
        tokens *= THINKING
    return tokens if backend.max_tokens is None else min(tokens, float(backend.max_tokens))


def _conversation(
    job: Job, prompts: Prompts, rates: Rates, answers: Answers, level: int, *, later: bool
) -> Used:
    """One conversation. `later`: it leaves replicate 0, where the job branches, and asks from there on."""
    asks = answers.asks
    if job.protocol == "oneshot":
        prompt = prompts.mean["default"] * answers.prompts
        return rates.used("default", asks, asks * prompt, asks * answers.answer["default"])
    sides = _sides(job)
    grown = [0.0]  # tokens that were said before each turn
    for number in range(answers.turns):
        grown.append(grown[-1] + answers.text[sides[number % 2]] + _MARKERS)
    turns = [
        rates.used(
            side := sides[number % 2],
            asks,
            asks * (prompts.mean[side] * answers.prompts + grown[number]),
            asks * answers.answer[side],
        )
        for number in range(answers.turns)
    ]
    starts = _starts(job, answers.turns, level) if later and job.branch is not None else [0]
    whole = total(total(turns[start:]) for start in starts).times(1 / len(starts))
    if job.selfplay.closing is None:
        return whole
    prompt = prompts.mean["closing"] * answers.prompts + grown[-1]
    return whole.plus(rates.used(job.selfplay.closing, asks, asks * prompt, asks * answers.closing))


def _sides(job: Job) -> tuple[str, str]:
    return ("teacher", "student") if job.selfplay.first == "teacher" else ("student", "teacher")


def _starts(job: Job, turns: int, level: int) -> list[int]:
    """The turns, from 0, at which a replicate can leave the first one: the last one for what is low, the
    first one for what is high, else all of them."""
    assert job.branch is not None
    first = 0 if job.branch.role == job.selfplay.first else 1
    if job.branch.at != "sampled":
        return [min(first + 2 * (job.branch.at - 1), turns - 1)]
    starts = list(range(first, turns, 2))
    return {0: starts[-1:], 2: starts[:1]}.get(level, starts)


def at_most(job: Job, prompts: Prompts, rates: Rates) -> Used | None:
    """The most that one conversation can use, calls without a counted answer aside: every ask used, every answer as long as it may
    be, and twice as long at each ask, as one that was cut off is asked for again. None without max_tokens."""
    room = {role: job.backends[backend_name(job, role)].max_tokens for role in roles_asked(job)}
    rooms = {role: tokens for role, tokens in room.items() if tokens is not None}
    if len(rooms) < len(room):
        return None

    def asked(role: str, prompt: float) -> Used:
        return rates.used(role, job.asks, job.asks * prompt, rooms[role] * (2**job.asks - 1))

    if job.protocol == "oneshot":
        return asked("default", prompts.most["default"])
    sides, said, parts = _sides(job), 0, []
    for number in range(job.selfplay.max_turns):
        side = sides[number % 2]
        parts.append(asked(side, prompts.most[side] + said))
        said += rooms[side] * 2 ** (job.asks - 1) + _MARKERS_AT_MOST
    if job.selfplay.closing is not None:
        parts.append(asked(job.selfplay.closing, prompts.most["closing"] + said))
    return total(parts)
