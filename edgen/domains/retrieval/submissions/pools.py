"""The candidates that each example of a set offers, or a pool that all examples share.

Memory: eight bytes for each candidate of each example, or the ids of the pool.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from pathlib import Path

from edgen.domains.retrieval.submissions.entries import Entries
from edgen.domains.retrieval.submissions.findings import ExampleFinding, make_finding, quote_first
from edgen.domains.retrieval.submissions.ranking_file import SubmittedRanking, as_id, decode_leniently
from edgen.domains.retrieval.submissions.truth import NONE
from edgen.plugin.errors import DataError, Problem
from edgen.plugin.files import lines_of, read_data


class Pools:
    """A file of examples in DSTC7's layout (`example-id`, `options-for-next`), or of a pool for all examples,
    lines `candidate-id TAB utterance`."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises DataError if it holds no example, or if a line of a pool has no id."""
        self._offered: dict[str, array[int]] = {}
        entries = Entries(path)
        self._shared = None if entries.are_json else _read_pool(path)
        if self._shared is not None:
            return
        for raw in entries:
            entry = decode_leniently(raw)
            example = as_id(entry.get("example-id")) if isinstance(entry, dict) else None
            if example is not None:
                self._offered[example] = array(
                    "q", sorted(map(hash, _list_ids(entry.get("options-for-next"))))
                )
        if not self._offered:
            raise DataError(str(path), "it holds no examples: objects with an 'example-id'.")

    def check(self, ranking: SubmittedRanking) -> ExampleFinding | None:
        """Return a finding if the file lacks the example, or if the ranking holds candidates that the example
        does not offer; else None. `NONE` is always allowed."""
        ranked = [one for one in ranking.candidates if one not in (None, NONE)]
        if self._shared is not None:
            others = [one for one in ranked if one not in self._shared]
        elif ranking.example in self._offered:
            # Binary search instead of a set: there may be many small rankings of one large pool.
            offered = self._offered[ranking.example]
            others = [one for one in ranked if not _holds(offered, hash(one))]
        else:
            return make_finding(
                "other_candidate", ranking.example, "the file of examples does not have this one"
            )
        return (
            make_finding("other_candidate", ranking.example, quote_first([str(one) for one in others]))
            if others
            else None
        )


def _holds(sorted_values: array[int], value: int) -> bool:
    """Return whether a sorted array holds a value."""
    place = bisect_left(sorted_values, value)
    return place < len(sorted_values) and sorted_values[place] == value


def _list_ids(options: object) -> list[str]:
    those = options if isinstance(options, list) else []
    ids = (as_id(one.get("candidate-id")) for one in those if isinstance(one, dict))
    return [one.upper() for one in ids if one is not None]


def _read_pool(path: Path) -> frozenset[str]:
    """Return the ids of a pool."""
    lines = [line for line in lines_of(read_data(path), str(path)) if line.strip()]
    problems = [
        Problem(f"line {number}", "expected 'candidate-id TAB utterance'")
        for number, line in enumerate(lines, 1)
        if not line.partition("\t")[0].strip() or "\t" not in line
    ]
    if problems:
        raise DataError.of(str(path), problems)
    if not lines:
        raise DataError(str(path), "it holds no examples, and no candidates.")
    return frozenset(line.partition("\t")[0].strip().upper() for line in lines)
