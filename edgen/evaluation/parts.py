"""Measures in several processes: each process reads the whole data set, and has a part of the measures.

So every value is made as in one process. How long each takes is tried on a few
conversations, and the parts take about the same time. Measures that were added in this process stay in it.
"""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from edgen.core.plugin_faults import FaultyPluginError
from edgen.core.registry import find, is_added
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measure import Shared
from edgen.evaluation.measuring import measure
from edgen.evaluation.sample import DataSet, cut
from edgen.runtime.processes import HERE, Processes

_TRIED = 300  # conversations

Found = tuple[dict[str, Any], dict[str, FaultyPluginError]]


class Parts:
    """The measures of one arm of a data set in so many processes, this one among them; a context that ends
    the others."""

    def __init__(self, paths: Sequence[Path], arm: str, workers: int, on: str | None) -> None:
        self._paths = [path.absolute() for path in paths]
        self._arm, self._workers, self._on = arm, workers, on or HERE
        self._others: Processes | None = None
        self._results: Iterator[bytes] = iter(())

    def __enter__(self) -> Parts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._others is not None:
            self._others.__exit__(kind, error, at)

    def share(self, names: Sequence[str]) -> list[str]:
        """Let other processes have a part of these measures each. Return those of this process."""
        mine, *others = _divide(_open(self._paths, self._arm), names, self._workers)
        work = [partial(_measure_part, self._paths, self._arm, part) for part in others if part]
        if work:
            self._others = Processes(len(work), self._on)
            self._results = self._others.results(work)
        return mine

    def collect(self) -> Found:
        """Return the values of the others' measures, and the faults of those of plugins."""
        values: dict[str, Any] = {}
        faults: dict[str, FaultyPluginError] = {}
        for pickled in self._results:
            found, failed = pickle.loads(pickled)  # noqa: S301 - from a process that this one started
            values |= found
            faults |= {name: FaultyPluginError(said) for name, said in failed.items()}
        return values, faults


def _open(paths: Sequence[Path], arm: str) -> DataSet:
    return next(one for one in open_data_sets(paths) if one.arm == arm)


def _divide(data: DataSet, names: Sequence[str], parts: int) -> list[list[str]]:
    """Divide measures into parts that take about the same time, this process's first."""
    samples = [(sample, cut(sample.turns)) for sample, _ in zip(data.samples(), range(_TRIED), strict=False)]
    took: dict[str, float] = {}
    for name in names:
        shared = Shared(data, partial(find, "measure"))
        shared.start([name])
        began = time.process_time()
        for sample, words in samples:
            shared.see(sample, words)
        shared.results([name])
        took[name] = time.process_time() - began
    found: list[list[str]] = [[] for _ in range(parts)]
    spent = [0.0] * parts
    for name in sorted(names, key=lambda one: (not is_added("measure", one), -took[one])):
        place = 0 if is_added("measure", name) else spent.index(min(spent))
        found[place].append(name)
        spent[place] += took[name]
    return [[name for name in names if name in part] for part in found]


def _measure_part(paths: Sequence[Path], arm: str, names: Collection[str]) -> bytes:
    """Return the values of measures, pickled with the structs that they make, and the faults of plugins'."""
    quality = measure(_open(paths, arm), names)
    made = {type(value): name for name, value in quality.values.items()}

    class Pickler(pickle.Pickler):
        def reducer_override(self, value: Any) -> Any:
            name = made.get(type(value))
            if name is not None and type(value) is find("measure", name).value_type:
                fields = {field: getattr(value, field) for field in value.__struct_fields__}
                return _make_value, (name, fields)
            return NotImplemented

    out = io.BytesIO()
    Pickler(out).dump((quality.values, {name: str(fault) for name, fault in quality.faults.items()}))
    return out.getvalue()


def _make_value(name: str, fields: dict[str, Any]) -> Any:
    return find("measure", name).value_type(**fields)
