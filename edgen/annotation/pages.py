"""Labels that people gave on a run's pages: the units of the labelling task, and its answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from edgen.annotation.label_files import LabelFile, PersonLabels
from edgen.config.label_set import LabelSet
from edgen.core.errors import DataError
from edgen.core.pair import Candidate
from edgen.protocols.labelled_units import LabellingTask, digest_said
from edgen.store.people import People
from edgen.store.run_reader import RunReader

_MARK = b"SQLite format 3\0"
_BETWEEN = "@"  # occurs in no conversation's id


class LabelUnit(NamedTuple):
    """A turn, or a whole conversation (`turn` is None), with the digest of the text up to it."""

    id: str
    turn: int | None
    said: str

    @property
    def unit(self) -> str:
        """The unit's name in the labelling task."""
        return _BETWEEN.join((self.id, "" if self.turn is None else str(self.turn), self.said))


def make_task_name(labels: LabelSet) -> str:
    """Return the name of the task in which people label by this label set."""
    return f"label {labels.name}"


def list_label_units(reader: RunReader, asking: LabellingTask) -> Iterator[LabelUnit]:
    """Yield the units of a run, in its order."""
    for candidate in reader.candidates():
        yield from list_units(candidate, asking)


def list_units(candidate: Candidate, asking: LabellingTask) -> Iterator[LabelUnit]:
    """Yield the units of a conversation."""
    for place in asking.list_units(candidate.turns):
        yield LabelUnit(candidate.id, place, digest_said(candidate.turns, place))


def read_label_unit(unit: str) -> LabelUnit | None:
    """Return the unit of that name; None for an attention check."""
    parts = unit.split(_BETWEEN)
    if len(parts) != 3 or len(parts[2]) != 64 or not (parts[1] == "" or parts[1].isdecimal()):
        return None
    return LabelUnit(parts[0], int(parts[1]) if parts[1] else None, parts[2])


def is_people_file(path: Path) -> bool:
    """Return whether the file is a run's database of people's answers."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MARK)) == _MARK
    except OSError:
        return False


def read_page_labels(path: Path, reader: RunReader, asking: LabellingTask) -> LabelFile:
    """Return the labels that people gave on the run's pages. Raises DataError for another run's file, and if
    it holds no labels."""
    run, task = reader.rundir.path, make_task_name(asking.labels)
    if not path.samefile(run / "people" / "people.db"):
        raise DataError(str(path), f"this is not the run's own file: {run / 'people' / 'people.db'}.")
    with People(run) as people:
        latest = people.read_latest_answers(task)
    given, without = [], 0
    for (unit, person), answer in latest.items():
        place = read_label_unit(unit)
        labels = answer.value.get("labels") if isinstance(answer.value, dict) else None
        if place is None:
            continue
        if not isinstance(labels, list) or not {*labels} <= {*asking.labels.names}:
            without += 1
            continue
        given.append(
            PersonLabels(
                id=place.id, turn=place.turn, labels=tuple(labels), annotator=person, said=place.said
            )
        )
    if not given:
        raise DataError(str(path), f"nobody has given labels of {asking.labels.name} on this run's pages.")
    return LabelFile(labels=tuple(given), without=without)
