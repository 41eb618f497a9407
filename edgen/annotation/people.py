"""People as annotators of a layer. Each person's labels are in a separate, append-only file.

    layers/<layer>/annotators/<person>.jsonl    {"id", "turn", "labels", "said"}

`said` is the digest of the conversation up to the unit. Labels of texts that have changed since do not count.
If a person labels a unit again, the later line counts, and the earlier one stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from edgen.annotation.label_files import PersonLabels
from edgen.core.errors import RunError, UsageError
from edgen.core.files import open_regular
from edgen.core.kept_files import require_kept
from edgen.reading.answers.unit_labels import Labels
from edgen.store.run_folder import RunFolder

Told = dict[tuple[str, int | None, str], Labels]
"""Labels by conversation, turn and digest."""


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of units that a person labelled: `new` ones, ones with `changed` labels, and all
    (`labelled`)."""

    annotator: str
    new: int
    changed: int
    labelled: int


REMEDY = (
    "Only the person can give these labels again: restore the file from a copy. If you changed it on purpose, "
    "move it away together with the run's digests.json, and give it with --people."
)
_line = msgspec.json.Decoder(PersonLabels).decode
_encode = msgspec.json.Encoder().encode


def read_person(path: Path) -> Told:
    """Return a person's last labels of each unit. Raises RunError for an invalid file."""
    return {(line.id, line.turn, line.said): line.labels for line in _list_lines(path)}


def require_names(layer: str, models: Iterable[str], labels: Iterable[PersonLabels]) -> None:
    """Raise UsageError if a person has the name of a model in the layer."""
    models = {*models}
    for name in dict.fromkeys(one.annotator for one in labels):
        if name in models:
            raise UsageError(
                f"--people: '{name}' is a model in the layer {layer}, and its labels are kept. "
                "Give the person another name, by `annotator` in each line, or by the file's "
                "name."
            )


def take_labels(run: RunFolder, folder: Path, labels: Iterable[PersonLabels]) -> tuple[Person, ...]:
    """Append people's labels to their files in the folder of a layer's annotators."""
    by_person: dict[str, list[PersonLabels]] = {}
    for one in labels:
        by_person.setdefault(one.annotator, []).append(one)
    return tuple(_take(run, folder / f"{name}.jsonl", said) for name, said in sorted(by_person.items()))


def _take(run: RunFolder, path: Path, given: Iterable[PersonLabels]) -> Person:
    before = [*_list_lines(path)] if path.exists() else []
    known: Told = {(line.id, line.turn, line.said): line.labels for line in before}
    added, new, changed = [], 0, 0
    for one in given:
        key = (one.id, one.turn, one.said)
        if (earlier := known.get(key)) == one.labels:
            continue
        new += earlier is None
        changed += earlier is not None
        known[key] = one.labels
        added.append(msgspec.structs.replace(one, annotator=""))
    if added:
        path.parent.mkdir(parents=True, exist_ok=True)
        run.write_lines(path, map(_encode, [*before, *added]), grows=True)
    return Person(annotator=path.stem, new=new, changed=changed, labelled=len(known))


def _list_lines(path: Path) -> Iterator[PersonLabels]:
    require_kept(path, REMEDY)
    try:
        with open_regular(path) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield _line(line)
                except (ValueError, RecursionError, msgspec.MsgspecError) as problem:
                    raise RunError(
                        f"{path}, line {number}: this is not a line of labels ({problem})."
                    ) from None
    except OSError as problem:
        raise RunError(f"{path}: it cannot be read ({problem.strerror}).") from None
