"""Comparison of two pair sets of a run, such as people's and a judge's: the agreement of their labels, and
the biases of each.

Agreement is computed over the pairs that both sets label: the share of equal choices, Cohen's kappa and
Krippendorff's alpha, with intervals over scenarios (`edgen.stats.agreement`). Bias is the share of a set's
labels that choose the longer side, in words of the texts that were compared, and the share that choose side
a.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from edgen.core.pair import Pair
from edgen.core.text import format_interval, number, percent
from edgen.preferences.bias import count_words, round_values
from edgen.stats.agreement import agreement
from edgen.stats.intervals import Estimate, share
from edgen.store.pairs_file import require_pair_set
from edgen.store.run_reader import RunReader


class SetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A set: its labelled pairs by source, and the share of its choices of the longer side and of side a."""

    name: str
    labelled: dict[str, int]
    longer: Estimate | None
    side_a: Estimate | None


class SetComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of two sets of a run. `both` counts the pairs that both label; `agreement` has `observed`,
    `kappa` and `alpha`, with intervals."""

    run: str
    sets: tuple[SetFacts, SetFacts]
    both: int
    agreement: dict[str, Any]


class _LabelledPair(NamedTuple):
    """A labelled pair, and by how many words side a is longer in the texts that were compared."""

    pair: Pair
    words_ahead: int


def compare_pair_sets(reader: RunReader, names: tuple[str, str]) -> SetComparison:
    """Compare two sets of a run. Raises UsageError for an unknown set, RunError for one that cannot be read,
    or that was made of other texts than the run has."""
    first, second = (_read_labelled_pairs(reader, name) for name in names)
    places = dict.fromkeys((*first, *second))
    ratings = {
        f"{number}: {name}": [_sign(found.get(place)) for place in places]
        for number, (name, found) in enumerate(zip(names, (first, second), strict=True), 1)
    }
    scenarios = [(first.get(place) or second[place]).pair.scenario for place in places]
    between = agreement(ratings, scenarios)["between"][0]
    del between["sources"]
    return SetComparison(
        run=str(reader.rundir.path),
        sets=(_collect_facts(names[0], first), _collect_facts(names[1], second)),
        both=between["n"],
        agreement=round_values(between),
    )


Place = tuple[str, str, str]


def _read_labelled_pairs(reader: RunReader, name: str) -> dict[Place, _LabelledPair]:
    """Return the labelled pairs of a set, by their conversations and texts."""
    require_pair_set(reader.rundir, name)
    found = {}
    for compared in reader.compared():
        pair = compared.pair
        if pair.label is not None:
            a, b = count_words(compared)[pair.label.compare or "conversation"]
            found[pair.a.id, pair.b.id, pair.texts] = _LabelledPair(pair, a - b)
    return found


def _sign(labelled: _LabelledPair | None) -> int:
    if labelled is None or labelled.pair.label is None:
        return 0
    return 1 if labelled.pair.label.chosen == "a" else -1


def _collect_facts(name: str, pairs: Mapping[Place, _LabelledPair]) -> SetFacts:
    labelled: Counter[str] = Counter()
    longer: list[tuple[float, int]] = []
    for one in pairs.values():
        assert one.pair.label is not None
        labelled[one.pair.label.by] += 1
        if one.words_ahead:
            longer.append((float((one.words_ahead > 0) == (_sign(one) > 0)), one.pair.scenario))
    first = [(float(_sign(one) > 0), one.pair.scenario) for one in pairs.values()]
    return SetFacts(
        name=name, labelled=dict(labelled), longer=_estimate_share(longer), side_a=_estimate_share(first)
    )


def _estimate_share(rows: list[tuple[float, int]]) -> Estimate | None:
    return share([value for value, _ in rows], [scenario for _, scenario in rows]) if rows else None


def render_comparison(found: SetComparison) -> Iterator[str]:
    """Yield the comparison as lines of text."""
    yield f"run        {found.run}"
    for one in found.sets:
        by = ", ".join(f"{count:,} by {source}" for source, count in one.labelled.items()) or "none"
        yield f"{one.name}"
        yield f"  labelled             {by}"
        yield f"  longer side wins     {_format_estimate(one.longer)}"
        yield f"  side a wins          {_format_estimate(one.side_a)}"
    between = found.agreement
    yield f"labelled by both       {found.both:,}"
    yield f"  the same side        {percent(between['observed'])}"
    yield f"  Cohen's kappa        {_format_span(between['kappa'], between['kappa_interval'])}"
    yield f"  Krippendorff's alpha {_format_span(between['alpha'], between['alpha_interval'])}"


def _format_estimate(one: Estimate | None) -> str:
    if one is None:
        return "not known"
    return percent(one.value) + format_interval(one.low, one.high, percent)


def _format_span(value: float | None, interval: list[float] | None) -> str:
    low, high = interval or (None, None)
    return number(value, 3) + format_interval(low, high, partial(number, digits=3))
