"""Estimate of a job's cost before it starts, without calls. It writes nothing."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from edgen.config import Price
from edgen.core.text import round_usd
from edgen.cost.duration import Duration
from edgen.cost.estimate import (
    CapForecast,
    ExistingResults,
    PlanEstimate,
    estimate,
    list_budgets,
    list_prices,
)
from edgen.cost.options import EstimateOptions
from edgen.cost.usage import UsageRange, add_up
from edgen.execution.progress import Tokens
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import load_plans
from edgen.runtime.backends import count_arms_at_once, do_services_differ
from edgen.store.run_folder import RunFolder


class EstimateInterval(msgspec.Struct, frozen=True):
    """An expected value with its interval. `at_most`: the most for all remaining work if no call is lost;
    only if every backend has max_tokens."""

    low: float
    expected: float
    high: float
    at_most: float | UnsetType = UNSET


class TokenIntervals(msgspec.Struct, frozen=True):
    prompt: EstimateInterval
    completion: EstimateInterval


class BackendPrice(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens, and the source of these prices."""

    backend: str  # its name in the job
    model: str  # name of the model
    prompt: float | None = None  # None if unknown
    completion: float | None = None  # None if unknown
    cache_read: float | UnsetType = UNSET  # only if it has a price of its own
    cache_write: float | UnsetType = UNSET  # only if it has a price of its own
    batch: float | None = None  # batch price as a share of the price; None if unknown
    date: str | None = None  # date of the price list, YYYY-MM-DD
    source: str | None = None  # source of the price


class RunBasis(msgspec.Struct, frozen=True):
    run: str
    scenarios: int


class EstimateBasis(msgspec.Struct, frozen=True):
    """Grounds of an estimate. `answers`: whether sizes of answers are from `runs` or assumed; `said`: the
    grounds in sentences."""

    answers: str
    runs: tuple[RunBasis, ...]
    prompts: str
    said: tuple[str, ...]


class RequestsAtProvider(msgspec.Struct, frozen=True):
    """Requests at the provider, with their largest possible use."""

    calls: int
    tokens: int
    cost_usd: float


class ExistingWork(msgspec.Struct, frozen=True, kw_only=True):
    """Existing conversations of the plan, and the use of the whole run."""

    conversations: int  # finished conversations of the plan
    calls: int  # of the whole run
    tokens: Tokens  # of the whole run
    cost_usd: float | None  # US dollars; None without a price
    out: RequestsAtProvider  # requests at the provider
    other_form: bool  # True if another form of the job made the run of that name


class EstimatedNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """Needs of the conversations that are missing and not at the provider."""

    conversations: int  # wanted conversations
    to_make: int  # expected number of missing ones
    calls: EstimateInterval  # calls for `to_make`
    tokens: TokenIntervals  # of these calls
    cost_usd: EstimateInterval | None  # US dollars; None without a price
    seconds: EstimateInterval | None  # time of online work; None for batches
    basis: EstimateBasis  # grounds of the estimate
    already: ExistingWork  # existing results


class JobEstimate(EstimatedNeeds, frozen=True, kw_only=True):
    """The sums over all arms, on the assumption that their errors agree. `arms`, if the job has any: each
    arm's own estimate."""

    job: str
    via: str
    prices: tuple[BackendPrice, ...]
    budget: tuple[CapForecast, ...]
    arms: dict[str, EstimatedNeeds] | UnsetType = UNSET


def estimate_job(job: Path, options: EstimateOptions) -> JobEstimate:
    """Return calls, tokens, money and time of a job, each as an interval, without those of stored answers."""
    via, part, runs, output = options.via, options.scenarios, options.runs, options.output
    allowed = AllowedFiles.of(job, options.changes, outside=options.allow_outside)
    whole, plans = load_plans(job, list(options.changes), allowed)
    run = RunFolder(output if output is not None else runs / whole.name)
    run.refuse_links()
    each = {
        arm: estimate(plan, allowed, runs, run.arm(arm), via=via, part=part, passing=options.passing)
        for arm, plan in plans.items()
    }
    # Arms that share a service also share its rate limits: at once, they take as long as one after the other.
    at_once = count_arms_at_once(whole, plans) if do_services_differ(plans.values()) else 1
    sums = _describe(list(each.values()), at_once)
    return JobEstimate(
        **msgspec.structs.asdict(sums),
        job=whole.name,
        via=via,
        prices=tuple(
            BackendPrice(backend=backend, model=model, **_find_known_prices(price))
            for backend, model, price in list_prices(each)
        ),
        budget=tuple(list_budgets(whole, each, run, via)),
        arms={arm: _describe([one]) for arm, one in each.items()} if whole.arms else UNSET,
    )


def _find_known_prices(price: Price | None) -> dict[str, Any]:
    known = {} if price is None else msgspec.structs.asdict(price)
    fields = BackendPrice.__struct_fields__
    return {key: value for key, value in known.items() if key in fields and value is not None}


def _describe(each: Sequence[PlanEstimate], at_once: int = 1) -> EstimatedNeeds:
    """Return the needs of all arms together; `at_once` of them run at the same time."""
    uses, most = each[0].uses, each[0].most
    for one in each[1:]:
        uses = uses.plus(one.uses)
        most = None if most is None or one.most is None else add_up((most, one.most))

    seconds = None
    durations = [one.duration for one in each if one.duration is not None]
    if len(durations) == len(each):
        groups = (durations[first : first + at_once] for first in range(0, len(each), at_once))
        time = functools.reduce(Duration.plus, (max(group, key=lambda one: one.high) for group in groups))
        seconds = EstimateInterval(round(time.low), round(time.expected), round(time.high))
    return EstimatedNeeds(
        conversations=sum(one.conversations for one in each),
        to_make=round(sum(one.to_make for one in each)),
        **make_intervals(
            uses, {} if most is None else most._asdict(), priced=all(one.priced for one in each)
        ),
        seconds=seconds,
        basis=_describe_basis(each),
        already=_add_already([one.already for one in each]),
    )


def make_intervals(uses: UsageRange, most: Mapping[str, float], *, priced: bool) -> dict[str, Any]:
    """Return calls, tokens and cost as intervals, by their keys in an estimate. `most`: the known upper
    limits, by key of `CallUse`."""

    def make_interval(key: str, digits: int | None = None) -> EstimateInterval:
        low, expected, high = (round(getattr(level, key), digits) for level in uses)
        return EstimateInterval(low, expected, high, round(most[key], digits) if key in most else UNSET)

    return {
        "calls": make_interval("calls"),
        "tokens": TokenIntervals(make_interval("prompt"), make_interval("completion")),
        "cost_usd": make_interval("usd", 6) if priced else None,
    }


def _describe_basis(each: Sequence[PlanEstimate]) -> EstimateBasis:
    runs = {str(run.path): len(run.scenarios) for one in each for run in one.runs}
    known = [bool(one.runs) for one in each]
    arms: dict[str, list[str]] = {}
    for one in each:
        for sentence in one.basis:
            arms.setdefault(sentence, []).append(one.job.name.rpartition(".")[2])
    return EstimateBasis(
        "runs" if all(known) else "some assumed" if any(known) else "assumed",
        tuple(RunBasis(*item) for item in runs.items()),
        "; ".join(dict.fromkeys(one.prompts.how for one in each)),
        # Each sentence once, with its arms if it is not about all.
        tuple(
            sentence if len(names) == len(each) else f"{', '.join(names)}: {sentence}"
            for sentence, names in arms.items()
        ),
    )


def _add_already(each: Sequence[ExistingResults]) -> ExistingWork:
    costs = [one.cost_usd for one in each if one.cost_usd is not None]
    used, out = [one.used for one in each], add_up(one.out for one in each)
    return ExistingWork(
        conversations=sum(one.conversations for one in each),
        calls=round(sum(one.calls for one in used)),
        tokens=Tokens(round(sum(one.prompt for one in used)), round(sum(one.completion for one in used))),
        cost_usd=round_usd(sum(costs)) if costs else None,
        out=RequestsAtProvider(round(out.calls), round(out.tokens), round(out.usd, 6)),
        other_form=any(one.other_form for one in each),
    )
