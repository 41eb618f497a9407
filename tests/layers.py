"""Layers put on runs by hand, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from edgen.core.files import write_lines
from edgen.core.pair import Candidate
from edgen.store.layers import UnitLabels, digest_text, find_layer_file
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

LabelsOf = Callable[[Candidate, int | None], Sequence[str] | None]


def put_layer(
    run: Path, name: str, labels_of: LabelsOf, *, whole: bool = False, annotators: Sequence[str] = ("a",)
) -> Path:
    """Write a layer with the labels of `labels_of` for each turn, or each conversation (turn None).

    If `labels_of` returns None, the turn has no labels.
    """
    units = []
    with RunReader(run) as reader:
        for index, names in reader.scenarios():
            for one in (reader.candidate(index, called) for called in names):
                for turn in [None] if whole else range(len(one.turns)):
                    if (labels := labels_of(one, turn)) is not None:
                        given = tuple(labels)
                        units.append(
                            UnitLabels(
                                id=one.id,
                                turn=turn,
                                role=None if turn is None else one.turns[turn].role,
                                labels=given,
                                annotators=dict.fromkeys(annotators, given),
                                tie=not given,
                                agreement=1.0 if len(annotators) > 1 else None,
                                text_sha256=digest_text(one.turns, turn),
                            )
                        )
    file = find_layer_file(RunFolder(run), name)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_lines(file, map(msgspec.json.encode, units))
    return file
