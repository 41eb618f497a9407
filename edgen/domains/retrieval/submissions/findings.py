"""Findings about a submission. Errors make it unsound; warnings explain how it was read."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgen.plugin.texts import join_first, shorten

# Kind: severity and title.
KINDS = {
    "not_a_ranking": ("error", "entries that are not rankings; they are left out"),
    "other_example": ("error", "examples that the truth does not have; they are left out"),
    "doubled_example": ("error", "examples ranked more than once; the last ranking counts"),
    "missing_example": ("error", "examples without a ranking; they count as not found"),
    "no_candidate_id": ("error", "candidates without an id; they keep their places"),
    "doubled_candidate": ("error", "candidates ranked more than once; the first place counts"),
    "other_candidate": ("error", "candidates that their example does not offer; they keep their places"),
    "too_few": ("error", "rankings of too few candidates"),
    "too_many": ("error", "rankings of too many candidates"),
    "no_confidence": ("error", "confidences that are not numbers"),
    "not_a_turn": ("error", "lines that are not labelled turns; they are left out"),
    "other_turn": ("error", "turns that the truth does not have; they are left out"),
    "doubled_turn": ("error", "turns labelled more than once; the last labels count"),
    "missing_turn": ("error", "turns without a prediction; they count as without labels"),
    "other_utterance": ("error", "turns that say something else than in the truth; they are counted"),
    "rising_confidence": ("warning", "confidences that rise; what counts is the order of the list"),
    "integer_id": (
        "warning",
        "ids that are whole numbers: read as text, where DSTC7's metrics.py finds nothing",
    ),
    "lower_case": ("warning", "ids in lower case: read as in upper, where DSTC7's metrics.py finds nothing"),
    "doubled_answer": ("warning", "right answers that the truth lists more than once; each counts once"),
}


class ExampleFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One problem. `where` is the example's id, or the number of an entry without one."""

    kind: str
    severity: str
    where: str
    problem: str


def make_finding(kind: str, where: str, problem: str) -> ExampleFinding:
    """Return a finding of this kind."""
    return ExampleFinding(kind=kind, severity=KINDS[kind][0], where=where, problem=problem)


def quote(value: object) -> str:
    """Return a short quotation of a value in a file."""
    return shorten(str(value) if isinstance(value, str | int | float) else type(value).__name__, 40)


def quote_first(values: Sequence[str]) -> str:
    """Return the first three values in quotes, and the number of the others."""
    return join_first([*map(quote, values)], 3)
