"""Estimate of labels on a run, by annotator, before any request. It sends and writes nothing.

A seeded sample of the missing requests is rendered and counted. Each answer is assumed to be the required
JSON object with labels of the set.
"""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path

import msgspec

from edgen.api.annotating import Annotating, resolve
from edgen.api.estimating import EstimateInterval, TokenIntervals, make_intervals
from edgen.asking.annotators import AnnotatorAsker
from edgen.asking.answering import AskerBackends
from edgen.asking.ledger_paths import open_for_reading
from edgen.asking.options import AnnotateOptions
from edgen.asking.use_estimates import UseNeeds, estimate_use
from edgen.config import ANNOTATOR
from edgen.core.errors import UsageError
from edgen.cost.tokens import make_counter
from edgen.cost.usage import UsageRange
from edgen.planning.allowed_files import AllowedFiles
from edgen.protocols.labelled_units import UnitKind
from edgen.runtime.control import Control
from edgen.store.run_folder import RunFolder


class AnnotatorNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """An annotator, and the expected use of its remaining requests."""

    annotator: str  # name of the annotator
    model: str  # name of the model
    there: int  # requests of the layer with an answer
    requests: int  # requests of the layer without an answer
    calls: EstimateInterval  # `at_most`: if each request is made as often as the job allows
    tokens: TokenIntervals  # of these calls
    cost_usd: EstimateInterval | None  # US dollars; None without a price


class AnnotateEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Estimate of a layer: of each annotator, and in all. The total's intervals assume that annotators'
    errors agree."""

    run: str  # the run's path
    layer: str  # name of the layer
    labels: str  # name of the label set
    unit: UnitKind  # labelled unit
    together: bool  # one request labels all turns of a conversation
    annotators: tuple[AnnotatorNeeds, ...]  # one for each annotator
    requests: int  # of all annotators, without stored answers
    calls: EstimateInterval  # of all annotators
    tokens: TokenIntervals  # of all annotators
    cost_usd: EstimateInterval | None  # US dollars; None without a price
    basis: tuple[str, ...]  # grounds of the estimate, in sentences


def estimate_annotators(run: Path, options: AnnotateOptions, control: Control) -> AnnotateEstimate:
    """Return the estimate of `annotate_run`. Raises its errors before its first call."""
    rundir = RunFolder(run).require()
    labels, options = resolve(rundir, options)
    if not options.asks:
        raise UsageError("no model would be called; --dry-run goes with --labels or --backend.")
    with open_for_reading(run) as reader:
        making = Annotating(reader, options, labels, control)
        each = asyncio.run(_estimate_each(making))
        parts = [part for part, _, _ in each]
        return AnnotateEstimate(
            run=str(run),
            layer=making.layer.name,
            labels=labels.name,
            unit=options.unit,
            together=options.together,
            annotators=tuple(parts),
            requests=sum(one.requests for one in parts),
            **make_intervals(
                functools.reduce(UsageRange.plus, (one.uses for _, one, _ in each)),
                {"calls": sum(one.needs.at_most for _, one, _ in each)},
                priced=all(one.cost_usd is not None for one in parts),
            ),
            basis=tuple(dict.fromkeys(said for _, _, basis in each for said in basis)),
        )


async def _estimate_each(making: Annotating) -> list[tuple[AnnotatorNeeds, UseNeeds, list[str]]]:
    """Return for each annotator: its part of the estimate, the figures used, and its grounds in
    sentences."""
    making.check()
    async with making.open(send=False) as opened:
        return [_estimate(making, *one) for one in making.askers(opened)]


def _estimate(
    making: Annotating, asker: AnnotatorAsker, answering: AskerBackends
) -> tuple[AnnotatorNeeds, UseNeeds, list[str]]:
    backend, config = answering.backends[ANNOTATOR], answering.job.backends[ANNOTATOR]
    path = None
    if (named := getattr(config, "tokenizer", None)) is not None:
        allowed = AllowedFiles.of(making.reader.rundir.job, making.options.overrides, outside=False)
        path = allowed.find_file("tokenizer", named, f"backends.{ANNOTATOR}.tokenizer")
    count, hint = make_counter(config, path)
    use = estimate_use(asker, making.place, backend, count, making.options.via)
    said = [
        f"prompts: those of {use.rendered:,} requests rendered and counted ({count.how})",
        "answers: the bare object with labels, up to twice its length; a model's thoughts are not included",
    ]
    if use.changed:
        said.append(
            "the run or the prompts have changed since the layer was made; answers that still fit are used "
            "again"
        )
    part = AnnotatorNeeds(
        annotator=asker.id,
        model=backend.model,
        there=use.needs.stored,
        requests=use.needs.missing,
        **make_intervals(use.uses, {"calls": use.needs.at_most}, priced=config.price is not None),
    )
    return part, use, said if hint is None else [*said, hint]
