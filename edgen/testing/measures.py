"""Check that a measure meets edgen's expectations."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import load_job, resolve_values
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measure import FIGURE_TYPES, Measure, NeedsDataSet, OwnCount, add_up
from edgen.evaluation.panels import ArmResult
from edgen.evaluation.sample import Words, cut
from edgen.evaluation.shared import Shared
from edgen.evaluation.views import list_blocks, list_examples, list_lines, list_tiles
from edgen.space import Space
from edgen.store.run_folder import RunFolder
from edgen.testing.check import Check, begin_check, make_example_run, register_for_check

_WIDEST = 78  # columns of a measure's lines


def check_measure(measure: Measure[Any], run: str | Path | None = None) -> None:
    """Check a measure on a run's folder, or on files of records; by default, on a small new run about
    Education Dialogue."""
    check = begin_check("measure", measure)
    with register_for_check("measure", measure), make_example_run(run) as folder:
        for number, data in enumerate(open_data_sets([folder])):
            samples = [(sample, cut(sample.turns)) for sample in data.samples()]
            check.that(samples != [], "the run has no conversations")
            before = msgspec.json.encode(samples)
            first, second = (_count(check, measure, data, samples) for _ in range(2))
            check.that(
                first[1] == second[1], "two counts of one data set differ; a new count has to begin anew"
            )
            value = first[0]
            unseen = _find_unseen(measure, samples, data.space)
            changed = msgspec.json.encode(samples) != before
            check.that(not changed, "changes the conversations that it is given, or their words")
            for name in unseen:
                check.fail(
                    f"no conversation has the column {name!r}, which an aggregate or `figures` names; give a `run` that "
                    "has it, or name the column that `of_one` returns"
                )
            if data.space is not None:
                for sample, words in samples:
                    _check_one(check, measure, sample, words, data.space)
            if not isinstance(measure, OwnCount | NeedsDataSet):
                _check_unlike(check, measure, samples, data.space)
            if number == 0:
                check.require_same_elsewhere(
                    "its figures", first[1], _count_again, _strip(measure), folder.resolve()
                )
            roles = tuple(role.name for role in data.roles)
            found = [ArmResult("", data.name, value, _read_job(folder), data.guide, data.family, roles)]
            check.value("its part of the report raises", _list_all, list_blocks, measure, found)
            check.value("`tiles` raises", _list_all, list_tiles, measure, value)
            check.value("`examples` raises", _list_all, list_examples, measure, value)
            nothing, _ = _count(check, measure, data, [])
            check.value("its lines raise where nothing was seen", _list_all, list_lines, measure, nothing)


def _check_unlike(
    check: Check, measure: Measure[Any], samples: Sequence[tuple[Any, Words]], space: Space | None
) -> None:
    """Check that a measure's columns depend on one conversation alone, and do not fail for unlike ones."""
    columns = [measure.of_one(sample, words, space) for sample, words in samples]
    again = [measure.of_one(sample, words, space) for sample, words in reversed(samples)]
    check.that(
        columns == again[::-1], "`of_one` has other columns after other conversations; keep nothing of them"
    )
    sample, words = samples[0]
    check.value(
        "`of_one` raises without a space, as for a file of records", measure.of_one, sample, words, None
    )
    short = msgspec.structs.replace(sample, turns=sample.turns[:2], entries=2)
    check.value("`of_one` raises for two turns", measure.of_one, short, cut(short.turns), space)
    others = tuple(msgspec.structs.replace(turn, role=f"Role {turn.role}") for turn in sample.turns)
    other = msgspec.structs.replace(sample, turns=others)
    check.value("`of_one` raises for roles that it does not know", measure.of_one, other, words, space)


def _strip(measure: Measure[Any]) -> Measure[Any]:
    """Return a copy without cached properties, such as a type made for the measure, which no other process
    can import."""
    made = copy.copy(measure)
    for name in [*vars(made)]:
        if isinstance(getattr(type(made), name, None), cached_property):
            del vars(made)[name]
    return made


def _count_again(measure: Measure[Any], folder: Path) -> bytes:
    with register_for_check("measure", measure):
        for data in open_data_sets([folder]):
            samples = [(sample, cut(sample.turns)) for sample in data.samples()]
            return _count(begin_check("measure", measure), measure, data, samples)[1]
    return b""


def _find_unseen(
    measure: Measure[Any], samples: Sequence[tuple[Any, Words]], space: Space | None
) -> list[str]:
    """Return the columns that an aggregate reads and no conversation has, not even as None. Empty for a
    measure that does not count by its columns alone, or that has no columns for this run."""
    if isinstance(measure, OwnCount | NeedsDataSet):
        return []
    seen: set[str] = set()
    for sample, words in samples:
        seen |= measure.of_one(sample, words, space).keys()
    read = [name for one in measure.aggregates if not one.if_any for name in (one.reads, one.of) if name]
    read += [name for name in measure.figures if name]
    return [name for name in dict.fromkeys(read) if name not in seen] if seen else []


def _read_job(folder: Path) -> Mapping[str, Any]:
    """Return the job of a run's folder, as in a report; an empty mapping for files."""
    job = RunFolder(folder).job
    return resolve_values(load_job(job)) if job.exists() else {}


def _list_all(
    view: Callable[[Measure[Any], Any], Iterable[Any]], measure: Measure[Any], given: Any
) -> list[Any]:
    return [*view(measure, given)]


def _count(
    check: Check, measure: Measure[Any], data: Any, samples: Sequence[tuple[Any, Words]]
) -> tuple[Any, bytes]:
    """Count samples; return the value, and its JSON."""
    shared = Shared(data)
    check.value("`start` raises", lambda: shared.start([measure.name]))
    for sample, words in samples:
        check.value(f"`see` raises for conversation {sample.id}", shared.see, sample, words)
    value = check.value("`result` raises", lambda: shared.result(measure.name))
    plain = check.value("its value is not JSON for msgspec", lambda: msgspec.json.encode(value))
    lines = check.value("its lines raise", lambda: [*list_lines(measure, value)])
    for line in lines:
        check.that(
            isinstance(line, str) and "\n" not in line, f"its lines have {line!r}, which is not a line"
        )
        check.that(
            len(line) <= _WIDEST, f"its lines have one of {len(line)} columns; {_WIDEST} at most: {line!r}"
        )
    return value, plain


def _check_one(check: Check, measure: Measure[Any], sample: Any, words: Words, space: Space) -> None:
    figures = check.value("`of_one` raises", lambda: dict(measure.of_one(sample, words, space)))
    for name, figure in figures.items():
        kind = measure.figures.get(name)
        if kind is None:
            continue  # a column that is unknown to expressions
        right = figure is None or isinstance(figure, FIGURE_TYPES[kind])
        check.that(right, f"`of_one` has {figure!r} for {name!r}, which `figures` says is a {kind}")
    for column, amount in check.value(
        "what `edgen compare` adds up raises", lambda: [*add_up(measure, sample, words, space)]
    ):
        right = isinstance(column, str) and isinstance(amount, int | float)
        check.that(right, f"{amount!r} is added to {column!r}; it has to be a number to a name")
