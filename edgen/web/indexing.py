"""Entries of runs and files, and the process that builds an index: `python -m edgen.web.indexing`.

The separate process keeps the server fast and small. It prints lines of JSON: the number of indexed
conversations and of all, and at the end the problem, if any.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from edgen.core.errors import EdgenError
from edgen.core.plugins.faults import find_fault
from edgen.core.text import escape_for_terminal
from edgen.core.values import Scenario
from edgen.evaluation.data_sets.files import read_files
from edgen.evaluation.measure import Measure, read_columns
from edgen.evaluation.measuring import find_measures_of_other_families, list_measures
from edgen.evaluation.sample import Sample, Words, cut
from edgen.families.base import make_record_id
from edgen.families.reader import DataSetReader
from edgen.runtime.processes import keep_output
from edgen.space import Space
from edgen.store.conversation_index import IndexEntry
from edgen.store.conversation_index.writer import Indexed, write_index
from edgen.store.ledger import LedgerReader
from edgen.store.run_parts import AcceptedConversation
from edgen.store.run_reader import RunReader

_PREVIEW = 160  # characters of a conversation's preview in lists
_LONGEST = 200_000  # most characters of a conversation that a search covers
_LONGEST_VALUE = 200  # most characters of a facet's value
_MOST_ITEMS = 50  # most items of a list that become values of a facet
_SIZES = ("turns", "words")  # sizes of a conversation, which entries have in any case
_OWN_SIZES = frozenset(f"lengths.{name}" for name in _SIZES)


class IndexingReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the process: its progress, or its problem."""

    done: int = 0
    planned: int = 0
    problem: str | None = None


class Columns:
    """The figures of measures for one conversation, as numbers and facets, without measures that raise."""

    def __init__(self, family: DataSetReader | None, space: Space | None) -> None:
        others = find_measures_of_other_families(family)
        self._measures: list[Measure[Any]] = [
            one for one in list_measures() if one.figures and one.name not in others
        ]
        self._space = space

    def of(self, sample: Sample, words: Words) -> tuple[dict[str, float], dict[str, list[str]]]:
        """Return the numbers and the facets of a conversation."""
        numbers: dict[str, float] = {}
        facets: dict[str, list[str]] = {}
        for measure in [*self._measures]:
            try:
                columns = read_columns(measure, sample, words, self._space)
            except Exception:  # noqa: BLE001 - a plugin's measure may raise anything
                self._measures.remove(measure)
                continue
            for figure in measure.figures:
                name = f"{measure.name}.{figure}" if figure and figure != measure.name else measure.name
                if name not in _OWN_SIZES:
                    _sort_in(name, columns.get(figure or measure.name), numbers, facets)
        return numbers, facets


def _shorten_preview(text: str) -> str:
    """Return the beginning of a text on one line."""
    return f"{' '.join(text[:_PREVIEW].split())}{'…' if len(text) > _PREVIEW else ''}"


def _sort_in(name: str, value: Any, numbers: dict[str, float], facets: dict[str, list[str]]) -> None:
    """Add a value to the numbers or to the facets; ignore values of other types."""
    match value:
        case bool():
            facets[name] = ["yes" if value else "no"]
        case int() | float():
            with contextlib.suppress(OverflowError):
                if (number := float(value)) == number and abs(number) != float("inf"):
                    numbers[name] = number
        case str():
            facets[name] = [value[:_LONGEST_VALUE]]
        case list() | tuple() | set() | frozenset():
            texts = [one[:_LONGEST_VALUE] for one in value if isinstance(one, str)]
            if texts:
                facets[name] = sorted(set(texts))[:_MOST_ITEMS]


def iterate_entries_of_run(path: Path, plan: list[int]) -> Iterator[Indexed]:
    """Yield the conversations of a run, accepted ones first. `plan` gets the number of planned ones."""
    with RunReader(path) as reader:
        plan.append(sum(view.status.planned for view in reader.views.values()))
        columns = Columns(reader.family, reader.space)
        for one in reader.conversations():
            yield _index_accepted(one, columns)
        for arm, view in reader.views.items():
            yield from _index_refused(reader, arm, view)


def _index_accepted(one: AcceptedConversation, columns: Columns) -> Indexed:
    made, said = one.provenance, one.candidate
    sample = Sample(
        id=said.id,
        source="",
        split=one.split,
        scenario=one.scenario,
        turns=said.turns,
        entries=len(one.turns),
        ended_by=said.ended_by,
        probability=said.probability,
        simulated=said.simulated,
        repairs=tuple(made.get("repairs", ())),
        outcome=said.outcome,
        labels=one.labels,
    )
    more = {
        "outcome": ["accepted"],
        "arm": [said.arm] if said.arm else [],
        "flag": made.get("flags", ()),
        "branch": [] if said.branch is None else [f"left at turn {said.branch + 1}"],
        "model": [*(made.get("models") or {"": made.get("model", "")}).values()],
    }
    return index_sample(sample, columns, "accepted", more)


def _index_refused(reader: RunReader, arm: str, view: LedgerReader) -> Iterator[Indexed]:
    name = f"{reader.name}.{arm}" if arm else reader.name
    for index, task, status, reason, _, reply in view.list_refused():
        if not isinstance(task, int):
            continue
        scenario = reader.scenario(index)
        text = reply.text if reply is not None else ""
        facets, numbers = list_facets(scenario)
        facets |= {"outcome": [str(status.value)], "reason": [reason or "unknown"]}
        if arm:
            facets["arm"] = [arm]
        entry = IndexEntry(
            id=make_record_id(name, index, task),
            title=make_title(scenario),
            preview=_shorten_preview(text),
            status=f"{status.value}: {reason}" if reason else str(status.value),
        )
        yield Indexed(
            entry=entry, text=f"{text[:_LONGEST]}\n{entry.title}", facets=facets, numbers=numbers, said=text
        )


def iterate_entries_of_files(path: Path, plan: list[int]) -> Iterator[Indexed]:
    """Yield the conversations of a data set in files, each with the content of its page."""
    data = read_files(path, 0)
    plan.append(data.count or 0)
    columns = Columns(data.family, data.space)
    several = len(data.sources) > 1
    known: set[int] = set()
    for number, sample in enumerate(data.samples()):
        if (digest := hash(sample.id)) in known:
            sample = msgspec.structs.replace(sample, id=f"{sample.id} ({number + 1})")
        known.add(digest)
        file = [Path(sample.source).name] if several else []
        made = {"file": file, "defect": sample.defects, "simulated": ["yes"] if sample.simulated else []}
        yield index_sample(sample, columns, "", made, msgspec.json.encode(sample))


def index_sample(
    sample: Sample,
    columns: Columns,
    status: str,
    more: Mapping[str, Iterable[str]],
    body: bytes | None = None,
) -> Indexed:
    """Return a conversation with its facets and numbers."""
    words = cut(sample.turns)
    facets, numbers = list_facets(sample.scenario)
    facets |= {name: [*values] for name, values in more.items() if values}
    if sample.split is not None:
        facets["split"] = [sample.split]
    if sample.ended_by is not None:
        facets["ended_by"] = [sample.ended_by]
    if sample.repairs:
        facets["repair"] = sorted(set(sample.repairs))
    if labels := sorted({label for turn in sample.turns for label in turn.labels}):
        facets["label"] = labels[:_MOST_ITEMS]
    for layer, units in sample.labels.items():
        facets[f"labels.{layer}"] = sorted({label for unit in units for label in unit.labels})
    for name, value in (sample.outcome or {}).items():
        _sort_in(f"outcome.{name}", value, numbers, facets)
    measured, told = columns.of(sample, words)
    size = sum(map(len, words))
    sizes: dict[str, float] = {"turns": len(sample.turns), "words": size}
    if sample.probability is not None:
        sizes["probability"] = sample.probability
    entry = IndexEntry(
        id=sample.id,
        title=make_title(sample.scenario) or sample.id,
        preview=_shorten_preview(sample.turns[0].text) if sample.turns else "",
        status=status,
        turns=len(sample.turns),
        words=size,
        probability=sample.probability,
    )
    said = "\n".join(turn.text for turn in sample.turns)
    text = "\n".join([*sample.scenario.values.values(), said])[:_LONGEST]
    return Indexed(
        entry=entry,
        text=text,
        facets=facets | told,
        numbers={**sizes, **numbers, **measured},
        said=said,
        body=body,
    )


def make_title(scenario: Scenario) -> str:
    """Return the first values of a scenario, for lists."""
    return " · ".join(value[:_LONGEST_VALUE] for value in [*scenario.values.values()][:2])


def list_facets(scenario: Scenario) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Return the values of a scenario by name: texts and booleans as facets, numbers as numbers and
    facets."""
    facets: dict[str, list[str]] = {}
    numbers: dict[str, float] = {}
    for name, value in scenario.as_row().items():
        if name == "index":
            continue
        if isinstance(value, int | float) and not isinstance(value, bool):
            facets[name] = [f"{value:g}"]
        _sort_in(name, value, numbers, facets)
    return facets, numbers


def main(kind: str, path: str, index: str) -> None:
    """Build the index of a run or of files, and print its progress."""
    part = Path(f"{index}.{os.getpid()}.part")
    plan: list[int] = []
    out = keep_output()
    entries = (iterate_entries_of_run if kind == "run" else iterate_entries_of_files)(Path(path), plan)
    try:
        for done in write_index(part, entries):
            _report(out, IndexingReport(done, sum(plan)))
        part.replace(index)
    except BrokenPipeError:  # the server has ended
        pass
    except BaseException as error:
        problem = find_fault(error) or error
        if not isinstance(problem, EdgenError | OSError):
            raise
        _report(out, IndexingReport(problem=escape_for_terminal(str(problem))))
    finally:
        part.unlink(missing_ok=True)


def _report(out: IO[bytes], line: IndexingReport) -> None:
    out.write(msgspec.json.encode(line) + b"\n")
    out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:4])
