"""Records of any files as samples, each read by the family with its layout.

The first record determines the family. The name of a file determines its side of a split.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.errors import DataError
from edgen.evaluation.sample import SCENARIOS_A_PATH, DataSet, Sample, Split, sample_of
from edgen.families.base import Family, family_of_record
from edgen.space import load_space
from edgen.validation.checker import decode
from edgen.validation.reading import find_inputs, printable, read_records

EXPECTED = (
    "expected objects with `background_info` (topic, student_prefrences, teacher_prefrences, student_reactions, "
    "teacher_reactions) and `conversation`, a list of {role: Teacher or Student, text}"
)
_SIDE = re.compile(r"(?:^|[^a-z])(?:(train)|(?:test|eval|evaluation|valid|validation|dev))(?:$|[^a-z])")


def files_at(path: Path, number: int) -> DataSet:
    """Return the records of files: of one, or of all in a folder."""
    inputs = find_inputs(path)
    family = _family_of(inputs.files)
    unread: Counter[str] = Counter()
    folder = path.resolve()
    space = None if inputs.space is None else load_space(inputs.space)
    return DataSet(
        name=printable(folder.parent.name if folder.name == "shards" else folder.name),
        sources=tuple(map(printable, inputs.files)),
        samples=partial(_read, path, inputs.files, family, unread, number * SCENARIOS_A_PATH),
        family=family,
        roles=space.roles if space else family.roles,
        space=space,
        unread=unread,
    )


def _read(
    path: Path, files: Sequence[Path], family: Family, unread: Counter[str], offset: int
) -> Iterator[Sample]:
    """Yield the samples in files; unreadable ones are counted in `unread`, which is cleared first. Raises
    DataError if none of them is readable."""
    unread.clear()
    clusters: dict[tuple[str, int], int] = {}
    count = 0
    for file in files:
        source, split = printable(file), split_of(file.name)
        for number, raw in enumerate(read_records(file)):
            try:
                record = family.read_file(_decode(raw))
            except ValueError as problem:
                unread[str(problem)] += 1
                continue
            identifier = record.id if record.id is not None else f"{printable(file.name)}[{number}]"
            index = count
            if record.scenario.index >= 0:  # a run's: all of its scenario have the index of the first
                run = re.sub(r"-\d+-r\d+$", "", identifier)
                index = clusters.setdefault((run, record.scenario.index), count)
            scenario = msgspec.structs.replace(record.scenario, index=offset + index)
            yield sample_of(record, identifier, scenario, source, split)
            count += 1
    if not count:
        reasons = ", ".join(f"{number} × {reason}" for reason, number in unread.most_common(3))
        raise DataError(
            str(path),
            f"it holds no record of Education Dialogue's form{f' ({reasons})' if reasons else ''}: {EXPECTED}. What "
            "`edgen export` wrote for a trainer or another tool is not read; `--to ed` and `--to hf` with JSON Lines are.",
        )


def split_of(name: str) -> Split | None:
    """Return the side of the split by a file's name: train, or test for eval, validation and the like."""
    found = _SIDE.search(name.lower())
    if found is None:
        return None
    return "train" if found[1] else "test"


def _family_of(files: Sequence[Path]) -> Family:
    """Return the family of the first record that can be decoded."""
    for file in files:
        for raw in read_records(file):
            with contextlib.suppress(ValueError):
                return family_of_record(decode(raw))
    return family_of_record(None)


def _decode(raw: msgspec.Raw) -> Any:
    try:
        return decode(raw)
    except ValueError:
        raise ValueError("it cannot be decoded") from None
