"""Measures in several processes: each process reads the whole data set, and computes some of the measures.

So every value is computed as in one process. The measures are timed on a few conversations, and divided so
that the processes take about the same time. Measures added in this process stay in it.

Measures that compare all conversations of a run with each other are divided by ranges instead. The other
processes read ranges and cut them into shingles (`texts.shingles`); this process gathers these in a temporary
file and finds the pairs.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import pickle
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from edgen.core.plugins.faults import FaultyPluginError
from edgen.core.registry import find, is_added, part_of
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measure import OwnCount, make_value_type
from edgen.evaluation.measuring import measure
from edgen.evaluation.sample import DataSet, cut
from edgen.evaluation.shared import Faults, Shared
from edgen.evaluation.texts.corpus import Corpus
from edgen.evaluation.texts.shingles import GatheredShingles, ShinglePart, digest_turns
from edgen.runtime.processes import HERE, Processes, Work

_TRIED = 300  # conversations
_SIZE = 1000  # conversations of a range

Found = tuple[dict[str, Any], Faults]
Gathered = tuple[GatheredShingles, list[bytes]]


class Parts(contextlib.ExitStack):
    """The measures of one arm of a data set, in this process and others; a context that ends the others.
    `gathered` waits for the shingles of all conversations; None if the others do not cut them."""

    def __init__(self, paths: Sequence[Path], arm: str, workers: int, on: str | None) -> None:
        super().__init__()
        self._paths = [path.absolute() for path in paths]
        self._arm, self._workers, self._on = arm, workers, on or HERE
        self._results: Future[Gathered] | None = None
        self.gathered: Callable[[], GatheredShingles] | None = None

    def share(self, names: Sequence[str]) -> list[str]:
        """Distribute these measures over the processes; return the names of this process's measures."""
        data = _open(self._paths, self._arm)
        comparing = [
            name
            for name in names
            if data.divide is not None and part_of(find("measure", name), OwnCount).compares_all
        ]
        mine, *others = _divide(data, names, self._workers, comparing)
        work: list[Work] = [partial(_measure_part, self._paths, self._arm, part) for part in others if part]
        if comparing and data.divide is not None:
            self.gathered = lambda: self._wait()[0]
            cut = (partial(_cut_range, self._paths, self._arm, part) for part in data.divide(_SIZE))
            self._start(len(others), itertools.chain(cut, work))
        elif work:
            self._start(len(work), work)
        return mine

    def _start(self, count: int, work: Iterable[Work]) -> None:
        """Begin work in several processes. A thread takes the results in order, so that ranges follow each
        other."""
        thread = self.enter_context(ThreadPoolExecutor(1))
        results = self.enter_context(Processes(count, self._on)).iterate_results(work)
        self._results = thread.submit(_gather, results)

    def _wait(self) -> Gathered:
        assert self._results is not None, "there is work"
        return self._results.result()

    def collect(self) -> Found:
        """Return the values of the others' measures, and the faults of plugins' measures."""
        values: dict[str, Any] = {}
        faults: Faults = {}
        for pickled in () if self._results is None else self._wait()[1]:
            found, failed = pickle.loads(pickled)  # noqa: S301 - from a process started here
            values |= {name: _join_value(name, value) for name, value in found.items()}
            faults |= {name: FaultyPluginError(said) for name, said in failed.items()}
        return values, faults


def _gather(results: Iterator[ShinglePart | bytes]) -> Gathered:
    shingles, values = GatheredShingles(), []
    for result in results:
        if isinstance(result, bytes):
            values.append(result)
        else:
            shingles.add(result)
    return shingles, values


@functools.lru_cache(1)
def _open_cached(paths: tuple[Path, ...], arm: str) -> DataSet:
    return _open(paths, arm)


def _cut_range(paths: Sequence[Path], arm: str, scenarios: range) -> ShinglePart:
    """Return the shingles of a run's conversations of these scenarios."""
    data = _open_cached(tuple(paths), arm)
    assert data.turns is not None, "it is a run"
    corpus, digests = Corpus(), array("Q")
    for turns in data.turns(scenarios):
        digests.append(digest_turns(turns))
        corpus.add(cut(turns))
    return ShinglePart.of(corpus, digests)


def _open(paths: Sequence[Path], arm: str) -> DataSet:
    return next(one for one in open_data_sets(paths) if one.arm == arm)


def _divide(data: DataSet, names: Sequence[str], parts: int, comparing: Sequence[str]) -> list[list[str]]:
    """Divide measures into parts that take about the same time; the first is this process's. It includes the
    `comparing` ones, for which the others cut shingles."""
    samples = [(sample, cut(sample.turns)) for sample, _ in zip(data.samples(), range(_TRIED), strict=False)]
    took: dict[str, float] = {}
    for name in names:
        shared = Shared(data)
        shared.start([name])
        began = time.process_time()
        for sample, words in samples:
            shared.see(sample, words)
        shared.results([name])
        took[name] = time.process_time() - began
    found: list[list[str]] = [[] for _ in range(parts)]
    spent = [0.0] + [sum(took[name] for name in comparing) / (parts - 1)] * (parts - 1)
    here = {name for name in names if name in comparing or is_added("measure", name)}
    for name in sorted(names, key=lambda one: (one not in here, -took[one])):
        place = 0 if name in here else spent.index(min(spent))
        found[place].append(name)
        spent[place] += 0.0 if name in comparing else took[name]
    return [[name for name in names if name in part] for part in found]


def _measure_part(paths: Sequence[Path], arm: str, names: Collection[str]) -> bytes:
    """Return, pickled, the values of measures and the faults of plugins' measures."""
    quality = measure(_open(paths, arm), names)
    values = {name: _split_value(name, value) for name, value in quality.values.items()}
    return pickle.dumps((values, {name: str(fault) for name, fault in quality.faults.items()}))


def _split_value(name: str, value: Any) -> Any:
    """Return a value for another process: as its fields if its struct was made from the measure's
    aggregates."""
    own = isinstance(find("measure", name), OwnCount)
    return value if own else {field: getattr(value, field) for field in value.__struct_fields__}


def _join_value(name: str, value: Any) -> Any:
    """Return the value of which another process gave what `_split_value` returns."""
    one = find("measure", name)
    return value if isinstance(one, OwnCount) else make_value_type(one)(**value)
