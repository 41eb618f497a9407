"""Reader of a run's pairs.jsonl, one pair per line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgen.core.errors import RunError
from edgen.core.kept_files import require_kept
from edgen.core.pair import Pair
from edgen.store.run_folder import RunFolder

_pair = msgspec.json.Decoder(Pair).decode


def read_pairs(run: RunFolder) -> Iterator[Pair]:
    """Yield every pair, in order. Raises RunError if there is no such file, if it was changed, or a line is
    invalid."""
    path = run.pairs
    if not path.exists():
        raise RunError(f"{path}: there is no such file; `edgen pairs {run.path} --signal oracle` makes it.")
    yield from read_pairs_of(path, run.path)


def read_pairs_of(path: Path, run: Path) -> Iterator[Pair]:
    """Yield every pair of a file in the folder `run`. Raises RunError as `read_pairs`."""
    require_kept(path, f"Write it again with `edgen pairs {run} --signal …`; all verdicts are stored.")
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                pair = _pair(line)
                if not 0 <= pair.scenario < 2**40:
                    raise ValueError("no scenario has such a number")
            except (ValueError, RecursionError, msgspec.MsgspecError) as problem:
                raise RunError(
                    f"{path}, line {number}: this is not a valid pair ({problem}). Make the file again with "
                    f"`edgen pairs {run} --signal …`; all verdicts are stored."
                ) from None
            yield pair
