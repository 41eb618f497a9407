"""How far sources agree beyond chance: Cohen's kappa and Krippendorff's alpha, by nltk.

Cohen 1960, Educ. Psychol. Meas. 20; Krippendorff 2011, Computing Krippendorff's Alpha-Reliability (nominal data).
Only items that a source labels count for it: what it abstains from or finds tied is missing. Where all
labels are the same there is no chance to correct for, and both are None. Linear in the labels: 10,000
pairs by three sources take 0.1 s.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Triple = tuple[str, int, int]


def agreement(ratings: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """`{"n", "alpha", "between": [{"sources", "n", "observed", "kappa", "alpha"}]}`.

    `ratings` holds a label an item for each source, all equally long, 0 where there is none. The outer
    n counts the items with two labels or more, alpha is over all sources; `between` has every two.
    """
    columns = list(ratings.values())
    shared = [i for i, labels in enumerate(zip(*columns, strict=True)) if sum(map(bool, labels)) >= 2]
    between = []
    for one, other in itertools.combinations(ratings, 2):
        x, y = ratings[one], ratings[other]
        both = [i for i, (a, b) in enumerate(zip(x, y, strict=True)) if a and b]
        between.append({"sources": [one, other], **_between({one: x, other: y}, both)})
    return {"n": len(shared), "alpha": _alpha(ratings, shared), "between": between}


def _between(two: Mapping[str, Sequence[int]], items: Sequence[int]) -> dict[str, Any]:
    x, y = two.values()
    if not items:
        return {"n": 0, "observed": None, "kappa": None, "alpha": None}
    observed = sum(x[i] == y[i] for i in items) / len(items)
    if len({*(x[i] for i in items), *(y[i] for i in items)}) < 2:
        return {"n": len(items), "observed": observed, "kappa": None, "alpha": None}
    kappa = float(_task(two, items).kappa_pairwise(*two))
    return {"n": len(items), "observed": observed, "kappa": kappa, "alpha": _alpha(two, items)}


def _alpha(ratings: Mapping[str, Sequence[int]], items: Sequence[int]) -> float | None:
    if len({label for _, _, label in _triples(ratings, items)}) < 2:
        return None
    return float(_task(ratings, items).alpha())


def _task(ratings: Mapping[str, Sequence[int]], items: Sequence[int]) -> Any:
    from nltk.metrics.agreement import AnnotationTask  # type: ignore[import-untyped]

    return AnnotationTask(data=_triples(ratings, items))


def _triples(ratings: Mapping[str, Sequence[int]], items: Sequence[int]) -> Iterator[Triple]:
    return ((name, i, labels[i]) for name, labels in ratings.items() for i in items if labels[i])
