"""pairs.jsonl of a run, a pair a line."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgen.core.errors import RunError
from edgen.core.pair import Pair
from edgen.store.run_folder import RunFolder

_pair = msgspec.json.Decoder(Pair).decode


def read_pairs(run: RunFolder) -> Iterator[Pair]:
    """Every line, in order. Raises RunError if there is no such file, or a line that is no pair."""
    path = run.pairs
    if not path.exists():
        raise RunError(f"{path}: there is no such file; `edgen pairs {run.path} --by oracle` makes it.")
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                pair = _pair(line)
                if not 0 <= pair.scenario < 2**40:
                    raise ValueError("no scenario has such a number")
            except (ValueError, RecursionError, msgspec.MsgspecError) as problem:
                raise RunError(
                    f"{path}, line {number}: this is no pair ({problem}). Make the file again with "
                    f"`edgen pairs {run.path} --by …`; what was judged is kept."
                ) from None
            yield pair
