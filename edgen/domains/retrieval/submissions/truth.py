"""The right answers of a response-selection set: lines `example-id TAB id[,id…] TAB utterance`.

Ids of candidates are compared in upper case, as in DSTC7's own program; ids of examples exactly. `NONE` is
the answer if no candidate is right (sub-task 4). Text after the second tab is not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgen.domains.retrieval.submissions.findings import ExampleFinding, make_finding, quote, quote_first
from edgen.plugin.errors import DataError, Problem
from edgen.plugin.files import lines_of, read_data

NONE = "NONE"


@dataclass(frozen=True, slots=True)
class Truth:
    """The right answers: for each example their ids, each once, in the order of the file."""

    answers: Mapping[str, tuple[str, ...]]
    findings: tuple[ExampleFinding, ...]


def read_truth(path: Path) -> Truth:
    """Read a truth file. Raises DataError with every invalid line."""
    answers: dict[str, tuple[str, ...]] = {}
    findings: list[ExampleFinding] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines_of(read_data(path), str(path)), 1):
        if not line.strip():
            continue
        example, *rest = line.split("\t", 2)
        ids = [one.strip().upper() for one in rest[0].split(",")] if rest else []
        if problem := _find_problem(example, ids, answers):
            problems.append(Problem(f"line {number}", problem))
            continue
        answers[example] = tuple(dict.fromkeys(ids))
        if len(answers[example]) < len(ids):
            doubled = [one for one, count in Counter(ids).items() if count > 1]
            findings.append(make_finding("doubled_answer", example, quote_first(doubled)))
    if problems:
        raise DataError.of(str(path), problems)
    if not answers:
        raise DataError(str(path), "it is empty; expected lines 'example-id TAB id[,id…] TAB utterance'.")
    return Truth(answers, tuple(findings))


def _find_problem(example: str, ids: list[str], known: Mapping[str, tuple[str, ...]]) -> str | None:
    """Return the problem of a line; None if it is valid."""
    if not ids:
        return "expected 'example-id TAB id[,id…] TAB utterance', and there is no tab"
    if not example.strip():
        return "the example has no id"
    if not all(ids):
        return f"an id of a right answer is empty; where no candidate is right, write {NONE}"
    return f"example {quote(example)} is also in an earlier line" if example in known else None
