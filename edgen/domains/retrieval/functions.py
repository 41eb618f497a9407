"""Scores of rankings and labels against the truth, and baseline rankings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgen.api.objects.arguments import Listening, QuestionKeys, fit, read_question, takes
from edgen.domains.retrieval import signatures
from edgen.domains.retrieval.baseline_options import BaselineOptions
from edgen.domains.retrieval.options import ScoreOptions
from edgen.domains.retrieval.ranking import MODEL, Baseline, rank_examples
from edgen.plugin.errors import UsageError
from edgen.plugin.files import require_extra
from edgen.runtime.control import Control

if TYPE_CHECKING:
    from edgen.domains.retrieval.score import LabelScore, RankingScore


@takes(signatures.score, ScoreOptions)
def score(
    truth: Path | str, predictions: Path | str, candidates: int = 100, examples: Path | str | None = None
) -> RankingScore | LabelScore:
    """Score a ranking of candidates, or labels of turns, against the truth. `findings` are the problems of
    the predictions.

    `truth`: lines `example-id TAB id[,id…] TAB utterance` for a ranking, else labelled turns. `predictions`:
    a JSON list of `{example-id, candidate-ranking: [{candidate-id, confidence}, …]}`, or labelled turns
    (`labels TAB utterance TAB User|Agent`, a blank line between dialogs; or JSON `{id, turn, labels}`).

    Raises DataError for an unusable truth, and for predictions without a usable entry. Problems of some
    entries are in the score, and `score.sound` is False.
    """
    options = ScoreOptions(
        **fit(signatures.score, ScoreOptions, {"candidates": candidates, "examples": examples})
    )
    return score_ranking(Path(truth), Path(predictions), options)


def score_ranking(truth: Path, predictions: Path, options: ScoreOptions) -> RankingScore | LabelScore:
    """Return the score of a ranking or of labels, as `score` does."""
    if options.candidates < 1:
        raise UsageError(f"candidates is {options.candidates}; expected at least 1.")
    require_extra("analysis", "Scores")
    from edgen.domains.retrieval.score import score_files

    return score_files(truth, predictions, options.candidates, options.examples)


@takes(signatures.baseline, BaselineOptions, Listening, QuestionKeys)
def baseline(
    examples: Path | str, output: Path | str, by: str = "bm25", seed: int = 0, **given: Any
) -> Baseline:
    """Rank the candidates of every example of a file in DSTC7's layout, and write the ranking: by `chance`,
    `tfidf`, `bm25`, or a `model`, which is that of `backend` (`JOB[:ROLE]`; without one the simulator; or a
    function, `backends={"default": function}`). The other arguments for a model are the options of `edgen
    baseline`.

    Raises DataError for a file without such examples. For a model: ShortError if some examples have no
    ranking, and the errors that stop it.
    """
    asked, values = read_question(signatures.baseline, BaselineOptions, {**given, "by": by, "seed": seed})
    options = BaselineOptions(**values)

    def work(control: Control) -> Baseline:
        return rank_examples(Path(examples), Path(output), options, control)

    if by != MODEL:
        return work(Control())
    made = asked.run(work)
    if made.asked:
        made.asked.require_all()
    return made
