"""Estimate of labels on a run, by annotator, before any request; nothing is sent and nothing is written.

Prompts are those of the run's own texts: a seeded sample of the requests still to be made is rendered and
counted. Answers are assumed to be the required JSON object with labels of the set.
"""

from __future__ import annotations

import asyncio
import math
import random
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.annotation.annotator import ROLE
from edgen.api.annotating import Annotating, resolve
from edgen.api.estimating import EstimateInterval, TokenIntervals
from edgen.asking.annotators import AnnotatorAsker
from edgen.asking.call_estimates import find_unanswered
from edgen.asking.ledger_paths import open_for_reading
from edgen.asking.options import AnnotateOptions
from edgen.core.errors import UsageError
from edgen.cost.assumptions import ASKS, RENDERED, answer_tokens
from edgen.cost.tokens import TokenCounter, counter
from edgen.cost.usage import CallUse, RolePrices, UsageRange
from edgen.planning.allowed_files import Reach
from edgen.protocols.labelled_units import LabellingTask, UnitKind
from edgen.providers import Backend
from edgen.runtime.control import Control
from edgen.store.ledger import run_status
from edgen.store.run_folder import RunFolder

# An answer as times the bare object with mean labels: short labels; with spaces, a fence or a remark.
_LONGER = (0.8, 1.0, 2.0)
_LABELS = (1.0, 1.25, 2.0)  # labels of a unit where it can carry several: low, expected, high
_SURE = 1.96  # standard errors of a mean that was drawn


class AnnotatorNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """An annotator, and the use of its remaining requests."""

    annotator: str  # name of the annotator
    model: str  # name of the model
    there: int  # requests of the layer that it has answered
    requests: int  # requests that it still has to answer
    calls: EstimateInterval  # `at_most`: each request as often as the job allows
    tokens: TokenIntervals  # of these calls
    cost_usd: EstimateInterval | None  # US dollars; None without a price


class AnnotateEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Estimate of a layer: of each annotator, and in all, on the assumption that their errors are alike."""

    run: str  # the run's path
    layer: str  # name of the layer
    labels: str  # name of the label set
    unit: UnitKind  # labelled unit
    together: bool  # one request labels all turns of a conversation
    annotators: tuple[AnnotatorNeeds, ...]  # each one's part
    requests: int  # of all annotators, without stored answers
    calls: EstimateInterval  # of all annotators
    tokens: TokenIntervals  # of all annotators
    cost_usd: EstimateInterval | None  # US dollars; None without a price
    basis: tuple[str, ...]  # its grounds, in sentences


class _Needs(NamedTuple):
    told: AnnotatorNeeds
    uses: UsageRange
    most: int  # calls
    basis: tuple[str, ...]


def estimate_annotators(run: Path, options: AnnotateOptions, control: Control) -> AnnotateEstimate:
    """Return the estimate of `annotate_run`. Raises its errors before its first call."""
    rundir = RunFolder(run)
    rundir.require()
    labels, options = resolve(rundir, options)
    if not options.asks:
        raise UsageError("no model would be called; --dry-run goes with --labels or --backend.")
    with open_for_reading(run) as reader:
        making = Annotating(reader, options, labels, control)
        each = asyncio.run(_needs_of_all(making))
        uses = each[0].uses
        for one in each[1:]:
            uses = uses.plus(one.uses)
        priced = all(one.told.cost_usd is not None for one in each)
        return AnnotateEstimate(
            run=str(run),
            layer=making.layer.name,
            labels=labels.name,
            unit=options.unit,
            together=options.together,
            annotators=tuple(one.told for one in each),
            requests=sum(one.told.requests for one in each),
            **_make_intervals(uses, sum(one.most for one in each), priced=priced),
            basis=tuple(dict.fromkeys(said for one in each for said in one.basis)),
        )


async def _needs_of_all(making: Annotating) -> list[_Needs]:
    making.check()
    async with making.open(send=False) as opened:
        return [_needs(making, asker, one.backends[ROLE]) for asker, one in making.askers(opened)]


def _needs(making: Annotating, tasks: AnnotatorAsker, backend: Backend) -> _Needs:
    job, ledger = tasks.job, making.place.ledger(tasks)
    stands = ledger.exists() and run_status(ledger).plan.fingerprint == tasks.fingerprint(
        {ROLE: backend.identity}
    )
    old = ledger if stands else ledger.with_name("none")
    requests = sum(1 for _ in find_unanswered(tasks, old)) if stands else tasks.planned
    count, hints = _counter_of(making, tasks)
    rng = random.Random(f"{job.seed}/annotate")  # noqa: S311 - reproducible, not secret
    chosen = {*rng.sample(range(requests), min(requests, RENDERED))}
    drawn = (unit for number, unit in enumerate(find_unanswered(tasks, old)) if number in chosen)
    seen = [*_count_request_tokens(drawn, tasks, making.asking, count)]
    uses = _uses(tasks, making, seen, requests, count.error)
    said = [f"prompts: those of {len(seen):,} requests rendered and counted ({count.how})"]
    said.append("answers: the bare object with labels, up to twice as long; what a model thinks is more")
    if ledger.exists() and not stands:
        said.append(
            "the run or the prompts have changed since the layer was made; answers that still fit are used "
            "again"
        )
    told = AnnotatorNeeds(
        annotator=tasks.id,
        model=backend.model,
        there=tasks.planned - requests,
        requests=requests,
        **_make_intervals(uses, requests * job.asks, priced=job.backends[ROLE].price is not None),
    )
    return _Needs(told, uses, requests * job.asks, (*said, *hints))


def _counter_of(making: Annotating, tasks: AnnotatorAsker) -> tuple[TokenCounter, tuple[str, ...]]:
    """Return the counter of an annotator's tokens, and a better one that could be installed."""
    backend, path = tasks.job.backends[ROLE], None
    if (named := getattr(backend, "tokenizer", None)) is not None:
        reach = Reach.of(making.reader.rundir.job, making.options.overrides, outside=False)
        path = reach.file("tokenizer", named, f"backends.{ROLE}.tokenizer")
    count, hint = counter(backend, path)
    return count, () if hint is None else (hint,)


def _count_request_tokens(
    units: Iterator[tuple[int, str]], tasks: AnnotatorAsker, asking: LabellingTask, count: TokenCounter
) -> Iterator[tuple[int, float]]:
    """(prompt tokens, tokens of the answer with one label a unit) of requests."""
    names = asking.labels.names
    for index, task in units:
        protocol = tasks.task(index, task).protocol
        request = next(protocol)
        protocol.close()
        numbers = range(1, 1 + len(tasks.find_units(tasks.unit(index, task))))
        answers = (msgspec.json.encode({str(number): name for number in numbers}).decode() for name in names)
        yield (
            count.prompt(request.messages, request.schema),
            statistics.fmean(count.count(answer) for answer in answers),
        )


def _uses(
    tasks: AnnotatorAsker, making: Annotating, seen: Sequence[tuple[int, float]], requests: int, error: float
) -> UsageRange:
    """Return the usage of the requests, from a sample of them."""
    job, several = tasks.job, making.asking.labels.several
    rates = RolePrices(job, making.options.via, {ROLE: job.backends[ROLE]})
    if not seen:
        return UsageRange(CallUse(), CallUse(), CallUse())
    prompt, answer = (statistics.fmean(one) for one in zip(*seen, strict=True))
    spread = statistics.stdev(one for one, _ in seen) if len(seen) > 1 else 0.0
    drawn = _SURE * spread / math.sqrt(len(seen)) if len(seen) < requests else 0.0
    levels = []
    for level, asks in enumerate(ASKS):
        calls = requests * min(asks, float(job.asks))
        size = answer * _LONGER[level] * (_LABELS[level] if several else 1.0)
        shown = prompt * (1 + (level - 1) * error) + (level - 1) * drawn
        levels.append(
            rates.price_calls(ROLE, calls, calls * shown, calls * answer_tokens(job, ROLE, size, level))
        )
    return UsageRange(*levels).with_cache()


def _make_intervals(uses: UsageRange, most: int, *, priced: bool) -> dict[str, Any]:
    """Calls, tokens and cost as intervals."""

    def interval(key: str, digits: int | None = None) -> EstimateInterval:
        return EstimateInterval(*(round(getattr(level, key), digits) for level in uses))

    return {
        "calls": msgspec.structs.replace(interval("calls"), at_most=most),
        "tokens": TokenIntervals(interval("prompt"), interval("completion")),
        "cost_usd": interval("usd", 6) if priced else None,
    }
