"""Records of any files as samples, read by the family or reader that has their layout.

The first recognised record determines the reader. A file's name determines its side of the split.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.digest import DigestTable, hash64
from edgen.core.errors import DataError
from edgen.core.registry import part_of
from edgen.core.text import join_list, quantity
from edgen.evaluation.sample import SCENARIOS_A_PATH, DataSet, Sample, Split, make_sample
from edgen.families.reader import DataSetReader, KindDefaults
from edgen.families.record_files import ADVICE, RecordFile, make_unknown_layout_error, open_records
from edgen.space import load_space
from edgen.validation.checker import decode
from edgen.validation.layout import LayoutChecks
from edgen.validation.reading import Inputs, find_inputs, make_printable

_SIDE = re.compile(r"(?:^|[^a-z])(?:(train)|(?:test|eval|evaluation|valid|validation|dev))(?:$|[^a-z])")
_MOST_IDS = 4_000_000  # maximum of remembered ids, 50 MB of digests
_MOST_CLUSTERS = 500_000


def read_files(path: Path, number: int) -> DataSet:
    """Return the records of a file, or of all files in a folder, as a data set. `number`: the path's number,
    which keeps its scenarios apart.

    Raises DataError if files cannot be read, or no reader recognises a record.
    """
    inputs = find_inputs(path)
    files, reader, notes = _choose_layout(path, inputs)
    unread: Counter[str] = Counter()
    repeated = IdRepeats()
    folder = path.resolve()
    space = None if inputs.space is None else load_space(inputs.space)
    offset = number * SCENARIOS_A_PATH
    return DataSet(
        name=make_printable(folder.parent.name if folder.name == "shards" else folder.name),
        sources=tuple(make_printable(file.path) for file in files),
        samples=partial(_read, path, files, reader, unread, repeated, offset),
        family=reader,
        roles=space.roles if space else part_of(reader, KindDefaults).roles,
        find_space=lambda: space,
        unread=unread,
        describe_repeats=repeated.describe,
        notes=notes,
    )


def _choose_layout(path: Path, inputs: Inputs) -> tuple[list[RecordFile], DataSetReader, tuple[str, ...]]:
    """Return the files with the most frequent layout, their reader, and a note on files with other layouts.
    Files without records fit any layout."""
    every = [open_records(file) for file in inputs.files]
    known = [file for file in every if file.reader is not None]
    if not known:
        if every and all(file.is_empty for file in every):
            raise DataError(str(path), "it holds no records.")
        raise make_unknown_layout_error(every[0].path if len(every) == 1 else path)
    titles = Counter(file.reader.title for file in known if file.reader)
    title = max(titles, key=lambda one: titles[one])
    chosen = [file for file in known if file.reader and file.reader.title == title]
    reader = chosen[0].reader
    assert reader is not None
    others = [file for file in every if file not in chosen and not file.is_empty]
    if others and inputs.manifest is not None:
        raise make_unknown_layout_error(others[0].path)
    names = [make_printable(file.path.relative_to(path)) for file in others[:3]] + ["…"] * (len(others) > 3)
    left_out = (
        f"Not read: {join_list(names)}: {'it has' if len(others) == 1 else 'they have'} another layout than "
        f"{title}."
    )
    return chosen, reader, (left_out,) if others else ()


class IdRepeats:
    """Repeated ids of one data set. The first four million are remembered, by digests."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._known = DigestTable(numbered=False)
        self.count, self.first = 0, ""

    def see(self, source: str, number: int, identifier: str, *, within: str = "") -> None:
        """Note the id of a record. `within`: the file in which the id must be unique; empty: in all files."""
        digest = hash64(f"{within}\0{identifier}")
        is_full = len(self._known) >= _MOST_IDS
        if (self._known.get(digest) if is_full else self._known.setdefault(digest)) is not None:
            self.count += 1
            self.first = self.first or f"record {number} of {source} ({identifier:.60})"

    def describe(self) -> str | None:
        """Return a sentence on repeated ids; None without any."""
        if not self.count:
            return None
        one = self.count == 1
        return (
            f"{quantity(self.count, 'record')} {'has' if one else 'have'} the id of an earlier record, and "
            f"{'it is' if one else 'all are'} still counted; the first is {self.first}."
            + (f" Only the first {_MOST_IDS:,} ids were compared." if len(self._known) >= _MOST_IDS else "")
        )


class _Clusters:
    """The indices of clusters: each has the index of its first record. After half a million clusters, new
    ones share half a million indices."""

    def __init__(self) -> None:
        self._known = DigestTable()

    def find_index(self, key: str, count: int) -> int:
        """Return the index of a cluster; `count`: the place of a record in it."""
        digest = hash64(key)
        if len(self._known) < _MOST_CLUSTERS:
            known = self._known.setdefault(digest, count)
            return count if known is None else known
        known = self._known.get(digest)
        return SCENARIOS_A_PATH // 2 + digest % _MOST_CLUSTERS if known is None else known


def _read(
    path: Path,
    files: Sequence[RecordFile],
    reader: DataSetReader,
    unread: Counter[str],
    repeated: IdRepeats,
    offset: int,
) -> Iterator[Sample]:
    """Yield the samples in files. Unreadable records are counted in `unread`, repeated ids in `repeated`;
    both are cleared first. Raises DataError if no record is readable, or a file mixes layouts."""
    unread.clear()
    repeated.clear()
    clusters = _Clusters()
    count = 0
    for file in files:
        source, split = make_printable(file.path), split_of(file.path.name)
        own = file.reader or reader
        checks = part_of(own, LayoutChecks)
        for number, piece in enumerate(file.iterate_pieces()):
            try:
                value = _decode(piece.raw)
            except ValueError as problem:
                unread[str(problem)] += 1
                continue
            try:
                record = own.read_file(value)
            except ValueError as problem:
                file.refuse_other(value, number)
                unread[str(problem)] += 1
                continue
            known = record.id if record.id is not None else piece.key
            if (own_id := checks.identifier(value)) is not None:
                repeated.see(source, number, own_id)
            elif known is not None:
                repeated.see(source, number, known, within=source)
            identifier = known if known is not None else f"{make_printable(file.path.name)}[{number}]"
            index = count
            if record.scenario.index >= 0:  # of a run: records of one scenario are a cluster
                run = re.sub(r"-\d+-r\d+$", "", identifier)
                index = clusters.find_index(f"{run}\0{record.scenario.index}", count)
            elif record.cluster is not None:
                index = clusters.find_index(record.cluster, count)
            scenario = msgspec.structs.replace(record.scenario, index=offset + index)
            yield make_sample(record, identifier, scenario, source, split)
            count += 1
    if not count:
        reasons = ", ".join(f"{number} × {reason}" for reason, number in unread.most_common(3))
        raise DataError(str(path), f"no record of {reader.title} in it can be read ({reasons}). {ADVICE}")


def split_of(name: str) -> Split | None:
    """Return the side of the split by a file's name: train, or test (also for eval, validation and dev); None
    if the name does not say."""
    found = _SIDE.search(name.lower())
    if found is None:
        return None
    return "train" if found[1] else "test"


def _decode(raw: msgspec.Raw) -> Any:
    try:
        return decode(raw)
    except ValueError:
        raise ValueError("it cannot be decoded") from None
