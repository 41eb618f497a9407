"""The pages of people who label: a turn or a conversation, next to the definitions of the labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.annotation.label_files import read_label_file
from edgen.annotation.layer import LayerFolder
from edgen.annotation.pages import LabelUnit, list_label_units, make_task_name
from edgen.config.label_set import LabelSet
from edgen.core.errors import RunError, UsageError
from edgen.core.values import Turn
from edgen.protocols.labelled_units import LabellingTask, digest_said
from edgen.store.run_reader import RunReader
from edgen.web.people.answering import TaskKind
from edgen.web.people.invited_pages import InvitedTask
from edgen.web.people.tasks import RunUnits, Setup
from edgen.web.sources import IndexedRun

__all__ = ["FACE", "make_task_name", "set_up"]
_KEYS = "1234567890abcdefghijklmnopqrtvwxyz"  # keys for labels, without those of skip and undo


def _list_tasks(run: IndexedRun) -> Sequence[str]:
    people = run.open_people()
    known = [] if people is None else people.list_tasks_set()
    return [task for task in known if task.startswith("label ")]


def _read_labels(setup: Setup) -> LabellingTask:
    if setup.labels is None:
        raise UsageError("This task has no label set; start the server with --label again.")
    labels = msgspec.convert(setup.labels, LabelSet)
    return LabellingTask(labels=labels, unit="conversation" if setup.whole else "turn")


def _make_units(runs: Sequence[IndexedRun], setup: Setup) -> RunUnits[LabelUnit, tuple[Turn, ...]]:
    labels = _read_labels(setup)

    def list_units(reader: RunReader) -> Iterator[tuple[str, LabelUnit]]:
        return ((one.unit, one) for one in list_label_units(reader, labels))

    return RunUnits(runs, list_units, _load_turns)


def _load_turns(reader: RunReader, unit: LabelUnit) -> tuple[Turn, ...] | None:
    """Return the turns up to the labelled one; all turns for a whole conversation."""
    try:
        turns = reader.named(unit.id).turns
    except RunError:
        return None
    if digest_said(turns, unit.turn) != unit.said:
        return None
    return turns if unit.turn is None else turns[: unit.turn + 1]


def _show_unit(_unit: str, turns: tuple[Turn, ...], _person: str, setup: Setup) -> Mapping[str, Any]:
    labels = _read_labels(setup).labels
    roles = list(dict.fromkeys(turn.role for turn in turns))
    last = None if setup.whole else len(turns) - 1
    examples = {label.name: label.examples for label in labels.labels}
    return {
        "whole": setup.whole,
        "several": labels.several,
        "set_name": labels.name,
        "turns": [
            {"role": turn.role, "side": roles.index(turn.role) % 4, "text": turn.text, "now": place == last}
            for place, turn in enumerate(turns)
        ],
        "labels": [
            {
                "name": name,
                "definition": definition,
                "examples": examples.get(name, ()),
                "key": _KEYS[place] if place < len(_KEYS) else None,
            }
            for place, (name, definition) in enumerate(labels.definitions.items())
        ],
    }


def _read(
    fields: Mapping[str, Any], _unit: str, _person: str, setup: Setup, several: list[str]
) -> tuple[Any, Any]:
    if fields["skip"]:
        return None, None
    labels = _read_labels(setup).labels
    chosen = [name for name in labels.names if name in several]
    if len(chosen) != len({*several}) or not chosen or (len(chosen) > 1 and not labels.several):
        raise UsageError("Choose one of the labels." if not labels.several else "Choose at least one label.")
    return {"labels": chosen}, None


def set_up(
    reader: RunReader,
    before: Setup,
    labels: LabelSet,
    unit: Literal["turn", "conversation"] | None,
    known: Path | None,
) -> Setup:
    """Return the settings of labelling a run. Raises UsageError if the layer has other units or labels, or if
    no unit can have the labels; DataError for the file of known answers."""
    whole = before.whole if unit is None else unit == "conversation"
    asking = LabellingTask(labels=labels, unit="conversation" if whole else "turn")
    LayerFolder(reader.rundir, labels.name).require_same(
        asking, "Label by a copy of the label set with another name: --label ./my_labels.yaml."
    )
    if next(list_label_units(reader, asking), None) is None:
        raise UsageError(
            f"{reader.rundir.path}: no unit of this run can carry the labels {labels.name}: no conversation "
            "was accepted, or the roles are others."
        )
    right = before.known
    if known is not None:
        given = read_label_file(known, reader, asking, gold=True).labels
        right = {LabelUnit(one.id, one.turn, one.said).unit: {"labels": [*one.labels]} for one in given}
    return msgspec.structs.replace(before, labels=msgspec.to_builtins(labels), whole=whole, known=right)


LABELLING = TaskKind("label", "label.html.j2", _make_units, _show_unit, _read)


def _describe_hint(run: IndexedRun, task: str) -> str:
    labels, kept = task.partition(" ")[2], run.path / "people" / "people.db"
    return f"edgen annotate {run.path} --labels {labels} --people {kept} takes these labels into the layer."


FACE = InvitedTask("label", _list_tasks, LABELLING.routes, _describe_hint)
