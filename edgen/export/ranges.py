"""Rows of an export made by several processes, each with ranges of the run, in the order of one process.

Each process reads a range and makes its rows; this process writes them. So any file layout works, and all
bytes are as from one process.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from edgen.core.errors import UsageError
from edgen.core.registry import find, is_added
from edgen.export.chat import build_chat
from edgen.export.format import Format, iterate_items
from edgen.export.options import OptionValues
from edgen.export.rows import Item, LeftOut, Row
from edgen.export.shared_options import LayerOptions, PairSetOptions
from edgen.runtime.processes import HERE, Processes
from edgen.store.pairs_file import use_pair_set
from edgen.store.run_parts import RunRange
from edgen.store.run_reader import RunReader

_SIZE = 1000  # conversations in a range


def require_ranges(format_: Format, options: OptionValues) -> None:
    """Raise UsageError for a format whose rows cannot be made in ranges."""
    if options.of(PairSetOptions).others:
        raise UsageError("--workers divides one run; leave it out with --against.")
    if not format_.layout.by_range or is_added("format", format_.name):
        why = (
            "was added in this process" if is_added("format", format_.name) else "needs the whole run at once"
        )
        raise UsageError(
            f"--workers: {format_.name} {why}, so one process has to write it; leave --workers out."
        )


def iterate_items_by_workers(
    run: RunReader, format_: Format, options: OptionValues, workers: int, on: str | None
) -> Generator[Item, None, None]:
    """Yield the items of `iterate_items`, made by several processes, of this machine or `on` a cluster whose
    nodes see the run's folder."""
    with Processes(workers, on or HERE) as processes:
        yield from iterate_items_in_ranges(run, format_, options, processes)


def iterate_items_in_ranges(
    run: RunReader, format_: Format, options: OptionValues, processes: Processes, size: int = _SIZE
) -> Generator[Item, None, None]:
    """Yield the items of `iterate_items`, made by processes in ranges of about `size` conversations."""
    read = partial(_read_range, run.rundir.path.absolute(), format_.name, dict(options.given))
    for pickled, stale in processes.iterate_results(partial(read, part) for part in run.divide(size)):
        run.stale_labels.update(stale)
        for given in pickle.loads(pickled):  # noqa: S301 - from a process that this one has started
            yield LeftOut(given) if isinstance(given, str) else Row(*given)


def _read_range(
    path: Path, name: str, given: Mapping[str, Any], part: RunRange
) -> tuple[bytes, Counter[str]]:
    """Return the rows of a range, pickled as plain values, and the counts of labels that were left out."""
    format_ = find("format", name)
    options = format_.read(given)
    with RunReader(path, options.of(LayerOptions).layer, part) as run:
        use_pair_set(run.rundir, options.of(PairSetOptions).pairs)
        chat = build_chat(run, options)
        plain = [_flatten_item(item) for item in iterate_items(run, format_, chat)]
    return pickle.dumps(plain), run.stale_labels


def _flatten_item(item: Item) -> Any:
    if isinstance(item, LeftOut):
        return item.reason
    return (item.split, item.value, item.table, item.evidence, None, dict(item.files))
