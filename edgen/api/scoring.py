"""Rankings and labels by anybody, against the truth; and rankings that a model has to be better than."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edgen.core.errors import DataError, UsageError
from edgen.core.extras import require_extra
from edgen.core.files import write_lines
from edgen.core.yaml_values import nearest
from edgen.retrieval.baseline import BASELINES, Frequencies, rank, read_examples
from edgen.validation.reading import cut, read_data

if TYPE_CHECKING:
    from edgen.retrieval.score import LabelScore, RankingScore

CANDIDATES = 100


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """A ranking that was written, and of how many examples."""

    by: str
    seed: int
    examples: int
    written: str


def score(
    truth: Path | str,
    predictions: Path | str,
    candidates: int = CANDIDATES,
    examples: Path | str | None = None,
) -> RankingScore | LabelScore:
    """Score a ranking of candidates, or labels of turns, against the truth; `findings` says what is wrong with it.

    `truth`: lines `example-id TAB id[,id…] TAB utterance` for a ranking, else labelled turns. `predictions`: a JSON list
    of `{example-id, candidate-ranking: [{candidate-id, confidence}, …]}`, or labelled turns (`labels TAB utterance TAB
    User|Agent`, a blank line between dialogs; or JSON `{id, turn, labels}`). `candidates`: how many each ranking has.
    `examples`: a file in DSTC7's layout, to check that what is ranked is among its example's candidates.

    Raises DataError for a truth that cannot be used and for predictions of which nothing can; what is wrong with some
    of them is in the score, and `score.sound` is False.
    """
    if candidates < 1:
        raise UsageError(f"candidates is {candidates}; expected at least 1.")
    require_extra("analysis", "Scores")
    from edgen.retrieval.score import score_files

    return score_files(
        Path(truth), Path(predictions), candidates, None if examples is None else Path(examples)
    )


def baseline(examples: Path | str, output: Path | str, by: str = "bm25", seed: int = 0) -> Baseline:
    """Rank the candidates of every example of a file in DSTC7's layout, and write the ranking: by `chance`, `tfidf` or
    `bm25`. Raises DataError for a file that holds no such examples."""
    if by not in BASELINES:
        raise UsageError(f"by is {by!r}; expected one of {', '.join(BASELINES)}{nearest(by, BASELINES)}.")
    source = str(examples)
    entries = cut(read_data(Path(examples)), source)
    if not entries:
        raise DataError(source, "it holds no examples.")
    frequencies = Frequencies()
    for example in read_examples(entries, source):
        frequencies.see(example)
    rankings = (rank(example, frequencies, by, seed) for example in read_examples(entries, source))
    write_lines(Path(output), _as_list(rankings))
    return Baseline(by=by, seed=seed, examples=len(entries), written=str(output))


def _as_list(entries: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a JSON list, one an entry, of which there is at least one."""
    before = b"["
    for entry in entries:
        yield before
        before = entry + b","
    yield before.removesuffix(b",")
    yield b"]"
