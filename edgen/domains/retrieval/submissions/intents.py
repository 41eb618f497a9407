"""A reader of right or predicted labels of turns: lines `labels TAB utterance TAB User|Agent`, or objects
`{id, turn, labels}`.

In the table, `_` joins the labels of a turn and a blank line ends a dialog, as in MSDialog's intent
prediction; dialogs and turns are numbered from 1. Objects, one a line or in a list, name their dialog (`id`)
and turn; `labels` is a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgen.domains.retrieval.submissions.entries import holds_json
from edgen.domains.retrieval.submissions.findings import ExampleFinding, make_finding, quote
from edgen.domains.retrieval.submissions.ranking_file import as_id, decode_leniently
from edgen.plugin.errors import DataError, Problem
from edgen.plugin.files import cut, lines_of, read_data

Key = tuple[str, str]  # dialog, turn


@dataclass(frozen=True, slots=True)
class LabelledUtterance:
    """A turn's labels; `utterance` is None if the file does not have it."""

    labels: frozenset[str]
    utterance: str | None


@dataclass(frozen=True, slots=True)
class Labels:
    turns: Mapping[Key, LabelledUtterance]
    findings: tuple[ExampleFinding, ...]


def read_labels(path: Path) -> Labels:
    """Read a file of labelled turns. Unusable lines are among the findings. Raises DataError if the file is
    neither text nor JSON, or has no labelled turn."""
    data = read_data(path)
    entries = _read_objects(data, str(path)) if holds_json(data) else _read_table(data, str(path))
    turns: dict[Key, LabelledUtterance] = {}
    findings: list[ExampleFinding] = []
    for where, found in entries:
        if isinstance(found, str):
            findings.append(make_finding("not_a_turn", where, found))
            continue
        key, labelled = found
        if key in turns:
            findings.append(make_finding("doubled_turn", name_turn(key), f"again at {where}"))
        turns[key] = labelled
    if not turns:
        first = f" ({findings[0].where}: {findings[0].problem})" if findings else ""
        raise DataError(
            str(path),
            f"it holds no labelled turn{first}; expected lines 'labels TAB utterance TAB User|Agent', a "
            "blank line between dialogs, or a line of JSON {id, turn, labels} a turn.",
        )
    return Labels(turns, tuple(findings))


def read_true_labels(path: Path) -> Mapping[Key, LabelledUtterance]:
    """Return the right labels. Raises DataError for a file with any problem."""
    found = read_labels(path)
    if found.findings:
        problems = [Problem(one.where, one.problem) for one in found.findings]
        raise DataError.of(str(path), problems)
    return found.turns


def name_turn(key: Key) -> str:
    """Return a description of a turn's place for people."""
    return f"dialog {quote(key[0])}, turn {quote(key[1])}"


# The place of a turn, and its labels or its problem.
_Entries = Iterator[tuple[str, tuple[Key, LabelledUtterance] | str]]


def _read_table(data: bytes, source: str) -> _Entries:
    dialog, turn = 1, 0
    for number, line in enumerate(lines_of(data, source), 1):
        if not line.strip():
            dialog, turn = dialog + bool(turn), 0
            continue
        turn += 1
        labels, *rest = line.split("\t")
        if len(rest) < 2:
            yield f"line {number}", "expected 'labels TAB utterance TAB User|Agent'"
            continue
        key = str(dialog), str(turn)
        yield f"line {number}", (key, LabelledUtterance(_split(labels), "\t".join(rest[:-1]).strip()))


def _read_objects(data: bytes, source: str) -> _Entries:
    for number, raw in enumerate(cut(data, source), 1):
        entry = decode_leniently(raw)
        where = f"entry {number}"
        problem = _find_problem(entry)
        if problem is not None:
            yield where, problem
            continue
        key = str(as_id(entry["id"])), str(as_id(entry["turn"]))
        yield where, (key, LabelledUtterance(frozenset(filter(None, entry["labels"])), None))


def _find_problem(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return "expected an object {id, turn, labels}"
    for name in ("id", "turn"):
        if as_id(entry.get(name)) is None:
            return f"it has no '{name}'"
    labels = entry.get("labels")
    if not isinstance(labels, list) or not all(isinstance(one, str) for one in labels):
        return "expected 'labels', a list of texts"
    return None


def _split(labels: str) -> frozenset[str]:
    return frozenset(filter(None, (one.strip() for one in labels.split("_"))))
