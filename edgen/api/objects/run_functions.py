"""`edgen.select`, `edgen.annotate`, `edgen.candidates` and `edgen.compare`: functions on existing runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from edgen.api.finished import compare_runs, select_run
from edgen.api.objects import signatures
from edgen.api.objects.arguments import AnyRun, Listening, QuestionKeys, fit, read_question, takes
from edgen.api.objects.results import Candidates, Comparison, Layer
from edgen.api.objects.run import Run
from edgen.asking.options import AnnotateOptions, CandidateOptions
from edgen.evaluation.options import CompareOptions
from edgen.runtime.control import Control
from edgen.selection.options import SelectOptions


def _find_folder(run: AnyRun) -> Path:
    return Path(run) if isinstance(run, str | Path) else run.folder


@takes(signatures.select, SelectOptions)
def select(
    run: AnyRun,
    output: str | Path,
    where: str | Iterable[str] = (),
    *,
    cap: Mapping[str, int] | None = None,
    **given: Any,
) -> Run:
    """Make a run, in the folder `output`, of chosen conversations of a run.

    A conversation is chosen if every expression in `where` is true. `cap`: at most `cap[name]` conversations
    for each value of a name. `balance`: for each of these names, as many conversations of each value as of
    the rarest. `draw`: a random choice of this many. These three depend on `seed`. `split_by`: split the
    chosen conversations again, so that no value of this name is on both sides; `test` is the test side's
    share, and `in_order` puts the latest values on the test side. See docs/selecting.md.

    Raises UsageError for unusable options, and ShortError if no conversation is left.
    """
    options = SelectOptions(
        where=(where,) if isinstance(where, str) else tuple(where),
        cap=tuple(f"{name}={count}" for name, count in (cap or {}).items()),
        **fit(signatures.select, SelectOptions, given),
    )
    select_run(_find_folder(run), Path(output), options, Control())
    return Run(output)


@takes(signatures.annotate, AnnotateOptions, Listening, QuestionKeys)
def annotate(run: AnyRun, labels: str | Path | None = None, **given: Any) -> Layer:
    """Make a layer of labels on a run.

    `labels`: a label set, a shipped one's name or a file. The run's backends `by` label turns, or whole
    conversations, each with a number of `annotators`; `people`: files of people's labels. Without `labels`
    and `by`, no model is asked, and the existing `layer` is returned. `made` of the result has the layer's
    `figures`, and figures against `gold`, a file or another layer. `overrides`: keys of the job.

    Raises ShortError if a unit has no answer, and the error that stopped the annotators.
    """
    from edgen.api.annotating import annotate_run, require_labels

    folder = _find_folder(run)
    asked, values = read_question(signatures.annotate, AnnotateOptions, given)
    options = AnnotateOptions(labels=None if labels is None else str(labels), **values)
    made = asked.run(partial(annotate_run, folder, options))
    require_labels(made)
    return Layer(folder, made.layer, made)


@takes(signatures.candidates, CandidateOptions, Listening, QuestionKeys)
def candidates(run: AnyRun, write: str, **given: Any) -> Candidates:
    """Have the run's backend `by` write `count` texts for each turn of its agents: "paraphrases", "wrong"
    replies, or the texts of another package's writer of this name. `overrides`: keys of the job.

    Raises ShortError if a turn has no answer, and the error that stopped the writer.
    """
    from edgen.api.candidates import require_candidates, write_for_run

    folder = _find_folder(run)
    asked, values = read_question(signatures.candidates, CandidateOptions, given)
    made = asked.run(partial(write_for_run, folder, CandidateOptions(write=write, **values)))
    require_candidates(made)
    return Candidates(folder, write, made)


@takes(signatures.compare, CompareOptions)
def compare(*runs: AnyRun, **given: Any) -> Comparison:
    """Compare the arms of a run, or several runs, on the scenarios that they share; the first is the
    baseline. A path without a run is a data set, such as a released one. It is one arm, compared as
    an independent sample.

    `roles`: other names for the roles of data sets, as in `{"Agent": "Tutor"}`. The result is stored in the
    first run's `comparisons/`, or in `output`. Raises UsageError if they cannot be compared, DataError for a
    data set that cannot be read.
    """
    folders = [_find_folder(run) for run in runs]
    options = CompareOptions(**fit(signatures.compare, CompareOptions, given))
    return Comparison(*compare_runs(folders, options, Control()))
