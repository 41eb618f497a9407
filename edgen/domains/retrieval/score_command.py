"""`edgen score`: scores of a ranking of candidates, or of predicted labels, and problems of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit

from edgen.cli.options import DomainCommand, JsonOption
from edgen.cli.output import align_columns, print_value
from edgen.domains.retrieval.options import ScoreOptions
from edgen.plugin.texts import quantity

if TYPE_CHECKING:
    from edgen.domains.retrieval.score import LabelScore, RankingScore
    from edgen.domains.retrieval.submissions.findings import ExampleFinding
    from edgen.plugin.statistics import Estimate

_PLACES = 3  # findings shown of each kind


def command(
    truth: Annotated[Path, Argument(metavar="TRUTH", help="The right answers (TSV), or the right labels.")],
    ranking: Annotated[
        Path, Argument(metavar="RANKING", help="The ranking (JSON), or predicted labels (TSV or JSON Lines).")
    ],
    *,
    options: ScoreOptions,
    json: JsonOption = False,
) -> None:
    """Score a ranking of replies, or predicted labels of turns.

    A ranking gets R@k, MRR, MAP and DSTC7's official mean of R@10 and MRR, with 95% intervals; labels get
    Jaccard, precision, recall and F1. Problems of the file are listed with examples, and the command exits
    with 3; a missing example counts as not found.

    Example: edgen score truth.tsv submission.json
    """
    from edgen.domains.retrieval.functions import score_ranking

    found = score_ranking(truth, ranking, options)
    print_value(found, _render(found), json=json)
    if not found.sound:
        raise Exit(3)


def _render(found: RankingScore | LabelScore) -> Iterator[str]:
    from edgen.domains.retrieval.score import RankingScore

    yield from _render_ranking(found) if isinstance(found, RankingScore) else _render_labels(found)
    yield from _render_findings(found.findings)


def _render_ranking(found: RankingScore) -> Iterator[str]:
    figures = found.figures
    several = f", {found.several:,} with several right answers" if found.several else ""
    yield f"truth      {quantity(found.examples, 'example')}{several}"
    yield f"ranking    {found.ranked:,} of them ranked"
    for k, estimate in figures.recall.items():
        yield f"{f'R@{k}':10} {_format_estimate(estimate)}"
    yield f"MRR        {_format_estimate(figures.mrr)}"
    yield f"MAP        {_format_estimate(figures.map)}"
    if figures.map != figures.map_in_file_order:
        yield (
            f"           {_format_estimate(figures.map_in_file_order)} by DSTC7's metrics.py, which goes by "
            "the order of the ids"
        )
    yield f"official   {_format_estimate(figures.official)} (the mean of R@10 and MRR)"


def _render_labels(found: LabelScore) -> Iterator[str]:
    figures = found.figures
    yield f"truth      {quantity(found.turns, 'turn')} of {quantity(found.dialogs, 'dialog')}"
    yield f"labels     {found.predicted:,} of them predicted"
    yield f"exact      {_format_estimate(figures.exact)}"
    yield f"Jaccard    {_format_estimate(figures.by_unit)} (the mean over turns)"
    for name, scores in (("micro", figures.micro), ("macro", figures.macro)):
        for what in ("precision", "recall", "f1"):
            yield f"{name:6} {what if what != 'f1' else 'F1':9}  {_format_estimate(getattr(scores, what))}"
    yield ""
    head = ("label", "right", "predicted", "precision", "recall", "F1")
    rows = [
        (label, f"{one.gold:,}", f"{one.given:,}", *map(_format_value, (one.precision, one.recall, one.f1)))
        for label, one in figures.labels.items()
    ]
    yield from align_columns([head, *rows])


def _format_estimate(estimate: Estimate | None) -> str:
    from edgen.plugin.measures import with_interval

    return "–" if estimate is None else with_interval(estimate, ".4f")


def _format_value(estimate: Estimate | None) -> str:
    return "–" if estimate is None else f"{estimate.value:.4f}"


def _render_findings(findings: Sequence[ExampleFinding]) -> Iterator[str]:
    """Yield each kind of finding with its first places."""
    from edgen.domains.retrieval.submissions.findings import KINDS

    for kind, (severity, title) in KINDS.items():
        those = [one for one in findings if one.kind == kind]
        if not those:
            continue
        yield ""
        yield f"{severity}: {title}: {len(those):,}"
        for one in those[:_PLACES]:
            yield f"  {one.where}: {one.problem}"
        if len(those) > _PLACES:
            yield f"  … and {len(those) - _PLACES:,} more; --json lists all"


COMMAND = DomainCommand("score", section="Work with data", command=command)
