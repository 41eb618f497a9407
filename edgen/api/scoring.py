"""Rankings and labels by anybody, against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from edgen.core.errors import UsageError
from edgen.core.extras import require_extra

if TYPE_CHECKING:
    from edgen.retrieval.score import LabelScore, RankingScore

CANDIDATES = 100


def score(
    truth: Path | str, predictions: Path | str, candidates: int = CANDIDATES
) -> RankingScore | LabelScore:
    """Score a ranking of candidates, or labels of turns, against the truth; `findings` says what is wrong with it.

    `truth`: lines `example-id TAB id[,id…] TAB utterance` for a ranking, else labelled turns. `predictions`: a JSON list
    of `{example-id, candidate-ranking: [{candidate-id, confidence}, …]}`, or labelled turns (`labels TAB utterance TAB
    User|Agent`, a blank line between dialogs; or JSON `{id, turn, labels}`). `candidates`: how many each ranking has.

    Raises DataError for a truth that cannot be used and for predictions of which nothing can; what is wrong with some
    of them is in the score, and `score.sound` is False.
    """
    if candidates < 1:
        raise UsageError(f"candidates is {candidates}; expected at least 1.")
    require_extra("analysis", "Scores")
    from edgen.retrieval.score import score_files

    return score_files(Path(truth), Path(predictions), candidates)
