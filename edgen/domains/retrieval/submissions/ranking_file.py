"""A submission: `[{"example-id", "candidate-ranking": [{"candidate-id", "confidence"}, …]}, …]`, or one such
object a line.

The order of the list is the ranking. Ids may be text or whole numbers, in upper or lower case; a warning says
if DSTC7's own program would count such an id as wrong. `NONE` may be one of the candidates in the ranking, or
an extra one.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from edgen.domains.retrieval.submissions.findings import ExampleFinding, make_finding, quote, quote_first
from edgen.domains.retrieval.submissions.truth import NONE
from edgen.plugin.texts import replace_surrogates


@dataclass(frozen=True, slots=True)
class SubmittedRanking:
    """A ranking: the ids of candidates, best first; None for a candidate without an id."""

    example: str
    candidates: list[str | None]
    findings: list[ExampleFinding]


def read_ranking(raw: msgspec.Raw, number: int, wanted: int) -> SubmittedRanking | ExampleFinding:
    """Return the `number`th entry (from 1) of a submission, with all its problems. `wanted`: the required
    number of candidates."""
    where, entry = f"entry {number}", decode_leniently(raw)
    if not isinstance(entry, dict):
        return make_finding("not_a_ranking", where, f"expected an object, found {_describe_kind(entry)}")
    example = as_id(entry.get("example-id"))
    if example is None:
        return make_finding("not_a_ranking", where, "it has no 'example-id'")
    ranked = entry.get("candidate-ranking")
    if not isinstance(ranked, list):
        return make_finding(
            "not_a_ranking", example, f"expected a list 'candidate-ranking', found {_describe_kind(ranked)}"
        )
    candidates = [one if isinstance(one, dict) else {} for one in ranked]
    ids = [as_id(one.get("candidate-id")) for one in candidates]
    upper = [one if one is None else one.upper() for one in ids]
    findings = [
        *_check_ids(example, entry, candidates, ids),
        *_check_number(example, upper, wanted),
        *_check_confidences(example, candidates),
    ]
    return SubmittedRanking(example, upper, findings)


def decode_leniently(raw: msgspec.Raw) -> Any:
    """Return a JSON value, None for invalid JSON. NaN and lone surrogates, which Python's json writes, are
    accepted; each surrogate becomes U+FFFD, so that the value can be written again."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        try:
            return replace_surrogates(json.loads(bytes(raw)))
        except (ValueError, RecursionError):
            return None


def as_id(value: Any) -> str | None:
    """Return a text or a whole number as an id; None for anything else."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _check_ids(
    example: str, entry: Mapping[str, Any], candidates: list[dict[str, Any]], ids: list[str | None]
) -> Iterator[ExampleFinding]:
    if missing := [place for place, one in enumerate(ids, 1) if one is None]:
        yield make_finding("no_candidate_id", example, f"at {_describe_places(missing)}")
    counts = Counter(one.upper() for one in ids if one is not None)
    if doubled := [one for one, count in counts.items() if count > 1]:
        yield make_finding("doubled_candidate", example, quote_first(doubled))
    integers = [
        one for one, read in zip(candidates, ids, strict=True) if read and _is_integer(one["candidate-id"])
    ]
    if integers or _is_integer(entry["example-id"]):
        what = ["the example's"] * _is_integer(entry["example-id"])
        what += [f"{len(integers)} of {len(ids)} candidates'"] * bool(integers)
        yield make_finding("integer_id", example, " and ".join(what))
    if lower := [one for one in ids if one is not None and one != one.upper()]:
        yield make_finding("lower_case", example, quote_first(lower))


def _check_number(example: str, ids: list[str | None], wanted: int) -> Iterator[ExampleFinding]:
    most = wanted + (NONE in ids)
    if not wanted <= len(ids) <= most:
        kind = "too_few" if len(ids) < wanted else "too_many"
        yield make_finding(kind, example, f"{len(ids):,} candidates where {wanted:,} are expected")


def _check_confidences(example: str, candidates: list[dict[str, Any]]) -> Iterator[ExampleFinding]:
    values: list[Any] = [one.get("confidence") for one in candidates]
    if wrong := [place for place, one in enumerate(values, 1) if not _is_number(one)]:
        first = values[wrong[0] - 1]
        shown = "there is none" if first is None else f"it is {quote(first)}"
        yield make_finding(
            "no_confidence", example, f"at {_describe_places(wrong)}; at the first of them {shown}"
        )
        return
    if rising := [place for place, one in enumerate(values[1:], 2) if one > values[place - 2]]:
        yield make_finding("rising_confidence", example, f"at {_describe_places(rising)}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _describe_places(places: list[int]) -> str:
    return f"{'place' if len(places) == 1 else 'places'} {quote_first([str(one) for one in places])}"


def _describe_kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", type(None): "nothing", bool: "true or false"}
    return names.get(type(value), "a number")
