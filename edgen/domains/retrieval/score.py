"""Scores of a ranking or of labels against the truth. Predictions are checked, and scored even if some are
invalid.

The ranks (from 1) of an example's right answers describe its ranking; a missing one has rank 0. Recall at k:
the share of examples with a right answer among the first k (R@k in response selection, of 100 candidates;
Lowe, Pow, Serban and Pineau 2015, SIGDIAL). MRR: the mean of 1 / rank of the first right answer, 0 without
one (Voorhees 1999, TREC-8). MAP: the mean of average precision, which is the sum over right answers of the
share of right ones up to their rank, divided by their number (Manning, Raghavan and Schuetze 2008,
Introduction to Information Retrieval, section 8.4). `official` is DSTC7's ranking score: the mean of recall
at 10 and MRR.

DSTC7's own program uses the number of a right answer in the truth file instead of its number among those
found, so its MAP depends on the file's order. `map_in_file_order` is that score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from edgen.domains.retrieval.submissions.entries import Entries
from edgen.domains.retrieval.submissions.findings import ExampleFinding, make_finding, quote, quote_first
from edgen.domains.retrieval.submissions.intents import (
    Key,
    LabelledUtterance,
    name_turn,
    read_labels,
    read_true_labels,
)
from edgen.domains.retrieval.submissions.pools import Pools
from edgen.domains.retrieval.submissions.ranking_file import decode_leniently, read_ranking
from edgen.domains.retrieval.submissions.truth import Truth, read_truth
from edgen.plugin.errors import DataError
from edgen.plugin.files import lines_of, read_data
from edgen.plugin.statistics import Estimate, LabelCounts, LabelFigures, bootstrap, interval, round_number


class _Score(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    truth: str
    predictions: str
    findings: tuple[ExampleFinding, ...]

    @property
    def sound(self) -> bool:
        """True if no finding is an error; warnings are allowed."""
        return all(one.severity != "error" for one in self.findings)


class RankingScore(_Score, frozen=True, kw_only=True, tag="ranking"):
    """The score of a ranking: the number of `examples` in the truth, of those with several right answers, and
    of ranked ones."""

    examples: int
    several: int
    ranked: int
    figures: RankingFigures


class LabelScore(_Score, frozen=True, kw_only=True, tag="labels"):
    """The score of labels: the number of `turns` in the truth, of their `dialogs`, and of predicted turns."""

    dialogs: int
    turns: int
    predicted: int
    figures: LabelFigures


def score_files(
    truth: Path, predictions: Path, candidates: int, examples: Path | None = None
) -> RankingScore | LabelScore:
    """Score a ranking with `candidates` candidates for each example, or labels of turns: the contents of the
    predictions show which. `examples`: a file with the candidates of each example, to check the ranking.

    Raises DataError for an unusable file, and for predictions without a usable entry.
    """
    entries = Entries(predictions)
    if entries.are_json:
        first = next((decode_leniently(raw) for raw in entries), None)
        if not (isinstance(first, dict) and "labels" in first and "candidate-ranking" not in first):
            pools = None if examples is None else Pools(examples)
            return _score_ranking(truth, entries, candidates, pools)
    elif _read_first_line(predictions).count("\t") < 2:
        raise DataError(
            str(predictions),
            "it is neither a ranking (a JSON list of {example-id, candidate-ranking}) nor labels of turns "
            "(lines 'labels TAB utterance TAB User|Agent', or JSON {id, turn, labels}).",
        )
    return _score_labels(truth, predictions)


def _read_first_line(predictions: Path) -> str:
    lines = lines_of(read_data(predictions), str(predictions))
    return next(filter(str.strip, lines), "")


def _score_ranking(path: Path, entries: Entries, candidates: int, pools: Pools | None) -> RankingScore:
    truth, predictions = read_truth(path), entries.path
    places, findings = _find_answers(truth, entries, candidates, pools)
    if not places:
        raise DataError(str(predictions), _explain_no_rankings(truth, path, findings))
    missing = [one for one in truth.answers if one not in places]
    findings += [make_finding("missing_example", one, "there is no ranking of it") for one in missing]
    nowhere = {example: (0,) * len(answers) for example, answers in truth.answers.items()}
    return RankingScore(
        truth=str(path),
        predictions=str(predictions),
        findings=(*truth.findings, *findings),
        examples=len(truth.answers),
        several=sum(len(answers) > 1 for answers in truth.answers.values()),
        ranked=len(places),
        figures=compute_ranking_figures([*(nowhere | places).values()]),
    )


def _explain_no_rankings(truth: Truth, path: Path, findings: Sequence[ExampleFinding]) -> str:
    """Explain why a file ranks none of the truth's examples."""
    if not findings:
        return "it holds no rankings."
    others = [one.where for one in findings if one.kind == "other_example"]
    if len(others) == len(findings):
        return (
            f"it ranks none of the examples of {path}: its ids are {quote_first(others)}, and the truth's "
            f"{quote_first([*truth.answers])}. Is one of the files of another set?"
        )
    return f"none of its entries ranks an example of {path}. {_describe_first(findings)}"


def _find_answers(
    truth: Truth, entries: Entries, candidates: int, pools: Pools | None
) -> tuple[dict[str, tuple[int, ...]], list[ExampleFinding]]:
    """Return the ranks (from 1) of each ranked example's right answers, 0 for a missing one, and all
    findings.

    The cost of an entry is proportional to its length, even if an example with many right answers is ranked
    many times.
    """
    ranked: dict[str, dict[str, int]] = {}
    right: dict[str, frozenset[str]] = {}
    findings: list[ExampleFinding] = []
    for number, raw in enumerate(entries, 1):
        ranking = read_ranking(raw, number, candidates)
        if isinstance(ranking, ExampleFinding):
            findings.append(ranking)
            continue
        example = ranking.example
        if example not in truth.answers:
            findings.append(make_finding("other_example", example, f"entry {number}"))
            continue
        if example in ranked:
            findings.append(make_finding("doubled_example", example, f"again in entry {number}"))
        findings += ranking.findings
        if pools is not None and (other := pools.check(ranking)):
            findings.append(other)
        if example not in right:
            right[example] = frozenset(truth.answers[example])
        found = reversed([*enumerate(ranking.candidates, 1)])  # so that the first place of a candidate counts
        ranked[example] = {one: place for place, one in found if one in right[example]}
    places = {
        example: tuple(found.get(one, 0) for one in truth.answers[example])
        for example, found in ranked.items()
    }
    return places, findings


def _score_labels(path: Path, predictions: Path) -> LabelScore:
    truth, found = read_true_labels(path), read_labels(predictions)
    findings = [*found.findings, *_compare_turns(truth, found.turns)]
    predicted = sum(key in found.turns for key in truth)
    if not predicted:
        raise DataError(str(predictions), f"none of its turns is one of {path}. {_describe_first(findings)}")
    dialogs: dict[str, int] = {}
    counts = LabelCounts()
    for key, right in truth.items():
        given = found.turns.get(key)
        dialog = dialogs.setdefault(key[0], len(dialogs))
        counts.add(dialog, right.labels, given.labels if given else ())
    return LabelScore(
        truth=str(path),
        predictions=str(predictions),
        findings=tuple(findings),
        dialogs=len(dialogs),
        turns=len(truth),
        predicted=predicted,
        figures=counts.figures(),
    )


def _compare_turns(
    truth: Mapping[Key, LabelledUtterance], given: Mapping[Key, LabelledUtterance]
) -> list[ExampleFinding]:
    """Return a finding for each turn that only one file has, and for each with different utterances."""
    findings = [
        make_finding("other_turn", name_turn(key), "it is not in the truth")
        for key in given
        if key not in truth
    ]
    for key, right in truth.items():
        if key not in given:
            findings.append(make_finding("missing_turn", name_turn(key), "there is no prediction for it"))
        elif None not in (said := (right.utterance, given[key].utterance)) and said[0] != said[1]:
            problem = f"'{quote(said[1])}' where the truth has '{quote(said[0])}'"
            findings.append(make_finding("other_utterance", name_turn(key), problem))
    return findings


def _describe_first(findings: Sequence[ExampleFinding]) -> str:
    return f"The first problem: {findings[0].where}: {findings[0].problem}." if findings else ""


CUTS = (1, 2, 5, 10, 50, 100)
_OFFICIAL = CUTS.index(10)
_RESAMPLES = 1000


class RankingFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of rankings. `recall` is by k. Every estimate is over all examples; in those without a
    ranking, no answer counts as found."""

    recall: dict[int, Estimate]
    mrr: Estimate
    map: Estimate
    map_in_file_order: Estimate
    official: Estimate


def compute_ranking_figures(places: Sequence[Sequence[int]]) -> RankingFigures:
    """Return the scores of at least one example, from the ranks of their right answers in the order of the
    truth."""
    table = np.array([_compute_row(one) for one in places], dtype=np.float64)
    n = len(table)
    means = table.mean(axis=0)
    drawn = bootstrap(table, np.random.default_rng(0), _RESAMPLES) / n if n > 1 else None
    estimates = []
    for column, mean in enumerate(means):
        low, high = (None if drawn is None else interval(drawn[:, column], n)) or (None, None)
        estimates.append(Estimate(value=round_number(float(mean)), low=low, high=high, n=n, scenarios=n))
    recall = dict(zip(CUTS, estimates, strict=False))
    mrr, mean_precision, in_file_order, official = estimates[len(CUTS) :]
    return RankingFigures(
        recall=recall, mrr=mrr, map=mean_precision, map_in_file_order=in_file_order, official=official
    )


def _compute_row(places: Sequence[int]) -> list[float]:
    """Return an example's part of each score."""
    found = sorted(place for place in places if place)
    hits = [float(bool(found) and found[0] <= k) for k in CUTS]
    reciprocal = 1 / found[0] if found else 0.0
    precision = sum(count / place for count, place in enumerate(found, 1)) / len(places)
    in_file_order = sum(count / place for count, place in enumerate(places, 1) if place) / len(places)
    return [*hits, reciprocal, precision, in_file_order, (hits[_OFFICIAL] + reciprocal) / 2]
