"""Rankings of the candidates of a response-selection set: by chance, by shared words, or by a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from edgen.asking.call_estimates import NeededCalls
from edgen.asking.runner import FileStart
from edgen.domains.retrieval.baseline import BASELINES, Frequencies, rank, read_examples
from edgen.domains.retrieval.baseline_options import BaselineOptions
from edgen.domains.retrieval.ranking_asker import (
    ModelRanking,
    RankingAsker,
    as_list,
    write_ranking,
)
from edgen.domains.retrieval.submissions.entries import Entries
from edgen.plugin.errors import DataError, UsageError
from edgen.plugin.files import suggest_name, write_lines
from edgen.runtime.control import Control

MODEL = "model"
WAYS = (*BASELINES, MODEL)


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """A written ranking: its method, and the number of examples."""

    by: str
    seed: int
    examples: int
    written: str
    asked: ModelRanking | UnsetType = UNSET


def rank_examples(examples: Path, output: Path, options: BaselineOptions, control: Control) -> Baseline:
    """Rank the candidates of every example of a file in DSTC7's layout, and write the ranking. A model's
    answers are kept in a ledger next to the file, so nothing is requested twice.

    Raises UsageError, DataError for a file without such examples, ShortError if a model ranked no example,
    and the errors that stop the requests.
    """
    by, seed = options.by, options.seed
    if by not in WAYS:
        raise UsageError(f"by is {by!r}; expected one of {', '.join(WAYS)}{suggest_name(by, WAYS)}.")
    if by != MODEL and options != BaselineOptions(by=by, seed=seed):
        raise UsageError(
            f"--method {by} asks no model: --backend, --prompt, --with-none, --set and --via go with "
            "--method model."
        )
    entries, source = Entries(examples), str(examples)
    if by == MODEL:
        kept = list(entries)
        _require_examples(len(kept), source)
        asked = _start(kept, source, output, options, control).make(write_ranking)
        return Baseline(by=by, seed=seed, examples=len(kept), written=str(output), asked=asked)
    frequencies, count = Frequencies(), 0
    for example in read_examples(entries, source):
        frequencies.see(example)
        count += 1
    _require_examples(count, source)
    write_lines(
        output, as_list(rank(example, frequencies, by, seed) for example in read_examples(entries, source))
    )
    return Baseline(by=by, seed=seed, examples=count, written=str(output))


def _require_examples(count: int, source: str) -> None:
    if not count:
        raise DataError(source, "it holds no examples.")


def estimate_ranking(examples: Path, output: Path, options: BaselineOptions, control: Control) -> NeededCalls:
    """Return the calls that a model's ranking by `rank_examples` would make. Raises the errors that
    `rank_examples` raises before its first call."""
    kept = list(Entries(examples))
    _require_examples(len(kept), str(examples))
    return _start(kept, str(examples), output, options, control).estimate_calls()


def _start(
    entries: list[msgspec.Raw], source: str, output: Path, options: BaselineOptions, control: Control
) -> FileStart[RankingAsker]:
    """Return the start of a model's ranking. Raises UsageError and the errors of reading files."""
    given: Any = {"entries": entries, "source": source, "seed": options.seed, "none": options.none}
    start = FileStart(RankingAsker, output, control, options, **given)
    if not output.parent.is_dir():
        raise UsageError(f"-o {output}: there is no folder {output.parent}; make it first.")
    return start
