"""Estimates of a job before it is started: calls, tokens and money, each with an interval. No request is
made.

The use of a scenario is taken from earlier runs of the same templates (`history`), with a prediction interval
for the sum over new scenarios (`usage.predict`). Without earlier runs, prompts are rendered and counted, and
answers assumed (`assumptions`). Stored answers are not paid again. Prices are the list's or the job's own.
Effects of a prompt cache are as in earlier runs; without these, the interval covers both full use and no use.
Judges of pairs are not included.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from edgen.config import Job, Price, find_backend_name, list_asked_roles, load_job
from edgen.core.errors import UsageError
from edgen.core.options import Via
from edgen.core.text import join_first, quantity
from edgen.cost.assumptions import (
    Prompts,
    assume,
    assume_labelling,
    compute_highest_use,
    count_prompts,
    list_thinking_models,
)
from edgen.cost.duration import Duration, estimate_duration
from edgen.cost.gating import pass_rate
from edgen.cost.history import EarlierRun, find_earlier_runs, has_same_form
from edgen.cost.usage import CallUse, RolePrices, UsageRange, add_up, find_asked_backends, predict
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.plan import Plan
from edgen.stats.quantiles import Z95, wilson
from edgen.store.budget_book import PICO, BudgetBook
from edgen.store.ledger import LedgerReader, sum_charges_at
from edgen.store.run_folder import RunFolder

OTHER_MODEL = 2.0  # another model's use is assumed within this factor
OTHERWISE = 1.25  # the same for other settings of the model, or another space
_TOP_UP = 1.1  # maximum scenarios per wanted one with an unknown rejection rate
_BATCH_TIME = (
    "time: by batch, up to a day for each round; oneshot takes one round, self-play one for each turn"
)
_HOPELESS = 0.02  # share of accepted conversations below which planning stops


class ExistingResults(msgspec.Struct, frozen=True):
    """Existing results of the run."""

    conversations: int = 0  # settled conversations of the plan
    accepted: int = 0  # settled conversations that were accepted
    used: CallUse = CallUse()  # use of all the run's calls, of this plan or not
    cost_usd: float | None = None  # cost of these; None without a price
    partly: CallUse = CallUse()  # use of begun conversations
    out: CallUse = CallUse()  # requests of the plan at the provider, at their maximum
    other_form: bool = False  # the run exists, made by another form of the job


class PlanEstimate(msgspec.Struct, frozen=True):
    """The remaining use of a plan."""

    job: Job  # job of the plan
    conversations: int
    """Wanted conversations."""
    to_make: float
    """Expected conversations still to be made."""
    uses: UsageRange
    """Use of the conversations to make, without `out`."""
    out: UsageRange
    """Use of requests that are already at the provider."""
    most: CallUse | None
    """The maximum use of the conversations to make; None without max_tokens."""
    priced: bool  # every backend that answers has a price
    prompts: Prompts  # sizes of the prompts
    runs: tuple[EarlierRun, ...]  # earlier runs that the estimate rests on
    basis: tuple[str, ...]
    """The basis of the estimate in words."""
    already: ExistingResults  # results that exist
    duration: Duration | None
    """The duration by single calls; None by batch."""


def estimate(
    plan: Plan, allowed: AllowedFiles, folder: Path, run: RunFolder, *, via: Via, part: range | None,
    passing: float | None = None,
) -> PlanEstimate:  # fmt: skip
    """Estimate one plan. `allowed`: the files that its job may name. `folder`: the folder of earlier runs.
    `run`: the plan's own run. `part`: the scenarios to make, None for all. `passing`: the share that passes
    the job's gates; None for the share in earlier runs.

    Raises UsageError for an empty range or an unusable tokenizer, TemplateError, and RunError for an
    unreadable ledger of the run.
    """
    job = plan.job
    units = _select_units(job, part)
    rates = RolePrices(job, via)
    prompts = count_prompts(plan, units, allowed)
    already = _count_already(plan, run, units, rates)
    found, damaged = find_earlier_runs(plan, folder, rates)
    runs = tuple(found)
    wanted = len(units) * job.replicates
    to_make, said = _to_make(job, wanted, already, runs)
    rate = pass_rate(plan, runs, passing)
    if rate is not None and job.top_up:
        to_make = rate.estimate_attempts(to_make)
    uses = _estimate_uses(job, prompts, rates, runs, [amount / job.replicates for amount in to_make])
    if rate is not None:
        uses = rate.add_retries(uses)
    fewest = max(uses.low.calls, to_make[0])  # a call for each conversation, however wide the range is
    uses = uses._replace(low=uses.low._replace(calls=fewest))
    most = compute_highest_use(job, prompts, rates)
    if most is not None:
        most = most.times(to_make[2])
        uses = UsageRange(*(CallUse(*map(min, level, most)) for level in uses))
    left = UsageRange(*(level.less(already.partly) for level in uses))
    out, new = left.split(already.out.calls)
    time = estimate_duration(job, new, to_make[1], runs) if via == "online" else None
    return PlanEstimate(
        job=job,
        conversations=wanted,
        to_make=to_make[1],
        uses=new,
        out=out,
        most=most,
        priced=rates.priced,
        prompts=prompts,
        runs=runs,
        basis=(
            *_describe_basis(job, prompts, runs),
            *said,
            *([] if rate is None else [rate.basis]),
            time.basis if time is not None else _BATCH_TIME,
            *([_describe_rounds(plan)] if plan.rounds.total > 1 else []),
            *(
                f"the ledger of {path} is damaged, so that run is not counted; see `edgen status {path}`"
                for path in damaged
            ),
            *([_describe_most(job)] if most is not None and most.calls else []),
        ),
        already=already,
        duration=time,
    )


def _estimate_uses(
    job: Job, prompts: Prompts, rates: RolePrices, runs: tuple[EarlierRun, ...], scenarios: list[float]
) -> UsageRange:
    """Return the use of this many scenarios (low, expected, high), from earlier runs or assumptions."""
    seen = [used for one in runs for used in one.scenarios]
    assumed = assume(job, prompts, rates)
    each = [predict(seen, n) if seen else assumed.times(n) for n in scenarios]
    if runs and not runs[0].labelled:
        labelling = assume_labelling(job, prompts, rates)
        each = [one.plus(labelling.times(n)) for one, n in zip(each, scenarios, strict=True)]
    factor = max(map(_compute_widening, runs), default=1.0)
    return UsageRange(each[0].low, each[1].expected, each[2].high).with_cache().widen(factor)


def _select_units(job: Job, part: range | None) -> range:
    planned = range(job.conversations)
    units = planned if part is None else planned[part.start : part.stop]
    if part is not None and not units:
        raise UsageError(
            f"--range {part.start}:{part.stop}: the job plans {len(planned):,} scenarios, and none of these."
        )
    return units


def _compute_widening(run: EarlierRun) -> float:
    settings = OTHER_MODEL if run.other_model else OTHERWISE if run.other_settings else 1.0
    return settings * (OTHERWISE if run.other_space else 1.0)


def _to_make(
    job: Job, wanted: int, already: ExistingResults, runs: tuple[EarlierRun, ...]
) -> tuple[tuple[float, float, float], tuple[str, ...]]:
    """Return the conversations still to make (low, expected, high), and the basis. With `top_up`, rejected
    ones are replaced."""
    if not job.top_up:
        left = float(wanted - already.conversations)
        return (left, left, left), ()
    missing = float(max(wanted - already.accepted, 0))
    ended = sum(run.ended for run in runs)
    if not ended:
        return (missing, missing, missing * _TOP_UP), (
            (
                f"top_up: up to {_TOP_UP - 1:.0%} more conversations for rejected ones; assumed, because no "
                "earlier run shows the share"
            ),
        )
    share = sum(run.accepted for run in runs) / ended
    low, high = wilson(share, ended, Z95)
    low, seen, high = (max(p, _HOPELESS) for p in (low, share, high))
    said = (
        f"top_up: {seen:.0%} of {ended:,} conversations were accepted in those runs; more are planned to "
        "replace the others"
    )
    return (missing / high, missing / seen, missing / low), (said,)


def _describe_rounds(plan: Plan) -> str:
    total, size = plan.rounds
    return (
        f"made in {total} rounds of {size:,} scenarios, the last with the rest; each begins when the one "
        "before it has ended"
    )


def _describe_basis(job: Job, prompts: Prompts, runs: tuple[EarlierRun, ...]) -> tuple[str, ...]:
    """Return the basis of an estimate, one sentence each."""
    how = f"{prompts.how}, within {prompts.error:.0%}"
    if not runs:
        cached = [
            backend for backend in find_asked_backends(job).values() if backend.price and backend.price.cached
        ]
        said = [
            f"prompts: those of {quantity(prompts.rendered, 'scenario')} rendered and counted ({how})",
            (
                "answers: assumed, because no earlier run used this template and type of model; so the "
                "interval is wide"
            ),
        ]
        if cached:
            said.append(
                "prompt cache: from all prompts read (low) to all written (high), where prompts are long "
                "enough"
            )
        if models := list_thinking_models(job):
            said.append(f"{', '.join(models)} may charge for reasoning before the answer: high end times 4")
        return (*said, *prompts.hints)
    count = sum(len(run.scenarios) for run in runs)
    names = join_first([str(run.path) for run in runs], 3)
    said = [f"prompts and answers: as {quantity(count, 'scenario')} of this template used in {names}"]
    said.append(
        "the interval contains the total for new scenarios with 95% probability, if they are like the "
        "earlier ones"
    )
    others = dict.fromkeys(run.other_model for run in runs if run.other_model)
    if others:
        said.append(
            f"another model answered in those runs ({', '.join(others)}): assumed within a factor of "
            f"{OTHER_MODEL:g}"
        )
    elif any(run.other_settings for run in runs):
        said.append(f"the model had other settings in those runs: assumed within a factor of {OTHERWISE:g}")
    if any(run.other_space for run in runs):
        said.append(
            f"scenarios came from another space in those runs: assumed within a factor of {OTHERWISE:g}"
        )
    return tuple(said)


def _describe_most(job: Job) -> str:
    """Explain the maximum use of all, and what it excludes."""
    asks = f"{job.asks} requests for each answer" if job.asks > 1 else "one request for each answer"
    larger = any(backend.retry_max_tokens for backend in find_asked_backends(job).values()) and job.asks > 1
    retried = " (retry_max_tokens after a cut-off answer)" if larger else ""
    planned = " (of those planned at the high end)" if job.top_up else ""
    return (
        f"at most{planned}: {asks}, each as long as max_tokens allows{retried}; not included are calls that "
        f"are lost (a timeout, a kill), charged at the maximum and tried up to {job.limits.attempts} times, "
        "and answers whose tokens the service does not count"
    )


def _count_already(plan: Plan, run: RunFolder, units: range, rates: RolePrices) -> ExistingResults:
    """Return the existing results of a plan in its run's folder."""
    if not run.job.exists() or not run.ledger.exists():
        return ExistingResults()
    theirs = load_job(run.job)
    with LedgerReader(run.ledger) as view:
        counts = view.status.counts
        used = CallUse(counts.made, counts.prompt_tokens, counts.completion_tokens, counts.cost_usd or 0.0)
        if not has_same_form(plan, theirs):
            return ExistingResults(used=used, cost_usd=counts.cost_usd, other_form=True)
        if plan.job.top_up:  # more were planned than the job requests
            units = range(max(units.stop, view.plan.scenarios))
        stands = Counter(accepted for *_, accepted in _iterate_settled(view, plan, units))
        partly = add_up(_list_begun_uses(view, plan, units, rates))
        out = add_up(
            CallUse(calls, tokens, usd=usd)
            for index, replicate, calls, tokens, usd in view.list_outstanding_tasks()
            if index in units and replicate < plan.job.replicates
        )
    return ExistingResults(stands.total(), stands[True], used, counts.cost_usd, partly, out)


def _iterate_settled(view: LedgerReader, plan: Plan, units: range) -> Iterator[tuple[int, int, bool]]:
    """Yield (index, replicate, whether accepted) of the plan's settled conversations, in order; failed ones
    are retried."""
    for index, replicate, status, _ in view.list_settled():
        if index in units and replicate < plan.job.replicates and status != "failed":
            yield index, replicate, status == "accepted"


def _list_begun_uses(view: LedgerReader, plan: Plan, units: range, rates: RolePrices) -> Iterator[CallUse]:
    """Yield the use so far of each begun conversation."""
    standing = _iterate_settled(view, plan, units)
    end = next(standing, None)
    for index, replicate, calls, prompt, completion, usd in view.list_spending():
        while end is not None and end[:2] < (index, replicate):
            end = next(standing, None)
        if index in units and (end is None or end[:2] != (index, replicate)):
            priced = rates.price_calls(plan.roles[0], calls, prompt, completion)
            yield priced if usd is None else priced._replace(usd=usd)


class CapForecast(msgspec.Struct, frozen=True):
    """The conversations that can be made within a cap."""

    key: str  # name of the cap in the job or the budget file
    cap: float  # in US dollars or tokens
    charged: float  # use so far, in the same unit
    out: float  # part of `charged` that is reserved for outstanding requests
    share: float  # expected share of conversations that exist or can be made
    enough: bool  # the rest covers the high end of the estimate
    enough_at_most: bool  # the rest covers the maximum, if no call is lost
    binds: bool  # some counted calls have a cost


def list_budgets(
    job: Job, estimates: Mapping[str, PlanEstimate], whole: RunFolder, via: Via
) -> list[CapForecast]:
    """Return the forecast for each cap of a job, for all its arms together."""
    each = list(estimates.values())
    if not each:
        return []
    rates = [RolePrices(one.job, via) for one in each]
    whole_uses = [one.uses.plus(one.out) for one in each]
    uses = add_up(one.expected for one in whole_uses), add_up(one.high for one in whole_uses)
    out = add_up(one.already.out for one in each)
    free = all(rate.free for rate in rates)
    most = None if any(one.most is None for one in each) else add_up(one.most for one in each if one.most)
    spent = [
        sum_charges_at(
            path, lambda prompt, completion: max(rate.find_highest_cost(prompt, completion) for rate in rates)
        )
        for path in whole.ledgers()
    ]
    charged = {"tokens": float(sum(tokens for tokens, _ in spent)), "usd": sum(usd for _, usd in spent)}
    there = sum(one.already.conversations for one in each)
    planned = there + sum(one.to_make for one in each)
    found = []
    caps: list[tuple[str, str, float, float, float]] = [
        (key, unit, float(cap), charged[unit], getattr(out, unit))
        for key, unit in (("max_cost", "usd"), ("max_tokens", "tokens"))
        if (cap := getattr(job.limits, key)) is not None
    ]
    for key, unit, cap, used, aside in caps + _list_shared_caps(job):
        of = operator.attrgetter(unit)
        if not planned:
            continue
        # `uses` includes outstanding requests, so do not count them twice.
        left = max(cap - used + aside, 0.0)
        expected = of(uses[0])
        share = min(left / expected, 1.0) if expected else 1.0
        found.append(
            CapForecast(
                key=key,
                cap=cap,
                charged=used,
                out=aside,
                share=(there + share * (planned - there)) / planned,
                enough=left >= of(uses[1]),
                enough_at_most=most is not None and left >= of(most),
                binds=unit != "usd" or not free,
            )
        )
    return found


def _list_shared_caps(job: Job) -> list[tuple[str, str, float, float, float]]:
    """Return (key, unit, cap, use in this day or month, 0 reserved) of each cap of the budget that a job
    shares with others."""
    if job.limits.budget is None:
        return []
    return [
        (f"budget {one.cap}", "usd", one.most / PICO, one.used / PICO, 0.0)
        if one.money
        else (f"budget {one.cap}", "tokens", float(one.most), float(one.used), 0.0)
        for one in BudgetBook(Path(job.limits.budget), create=False).list_current_use()
    ]


def list_prices(estimates: Mapping[str, PlanEstimate]) -> list[tuple[str, str, Price | None]]:
    """Return (backend, model, price) of each used backend."""
    found: dict[tuple[str, str], Price | None] = {}
    for one in estimates.values():
        for role in list_asked_roles(one.job):
            name = find_backend_name(one.job, role)
            found.setdefault((name, one.job.backends[name].model), one.job.backends[name].price)
    return [(name, model, price) for (name, model), price in found.items()]
