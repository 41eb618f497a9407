"""All measures over one data set: one pass over its samples, their words cut once, and one over its fates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, get_args

from edgen.quality.adherence import ByKeywords
from edgen.quality.answers import AnswersMeasure
from edgen.quality.balance import BalanceMeasure
from edgen.quality.corpus import Corpus
from edgen.quality.coverage import CoverageMeasure, accepted_fate
from edgen.quality.diversity import DiversityMeasure
from edgen.quality.duplicates import DuplicatesMeasure
from edgen.quality.leakage import LeakageMeasure
from edgen.quality.leaks import LeaksMeasure
from edgen.quality.lengths import LengthsMeasure
from edgen.quality.model import Fate, Listener, Sample
from edgen.quality.overview import OverviewMeasure
from edgen.quality.probability import ProbabilityMeasure
from edgen.quality.results import MeasureName, Quality
from edgen.quality.words import cut
from edgen.space import Space

NAMES: tuple[MeasureName, ...] = get_args(MeasureName)
_TOLD_EVERY = 500

DEFINITIONS: dict[MeasureName, str] = {
    "overview": "Records by split and by where the end marker stands; records with each kind of debris, as `edgen "
    "validate` names it, and with each repair that the reader made. edgen's own counts.",
    "lengths": "Turns as the file has them, an end marker that stands by itself among them; words without debris "
    "and end marker. Words are runs of letters and digits; in scripts without spaces each character "
    "is one: edgen's own rule. Quantiles are values of the data (type 1 of Hyndman and Fan 1996, "
    "American Statistician 50), the deviation is the sample's, with n - 1.",
    "balance": "The teacher's share of a conversation's words and of its turns, and who speaks first. edgen's own "
    "definition; words and quantiles are those of lengths.",
    "diversity": "distinct-n: different n-grams over n-grams within conversations (Li et al. 2016, arXiv "
    "1510.03055), of the whole (above two million different ones estimated by adaptive sampling, Flajolet 1990, Computing 43: "
    "`distinct_error`) and as the mean over blocks of 1,000 words (after Johnson's 1944 mean "
    "segmental type-token ratio). Growth: types among the first tokens, with Heaps' law (1978) by "
    "least squares of the logarithms. Self-BLEU: mean BLEU-4 of up to 200 sampled conversations, each "
    "against the others (their first 5,000 words; Zhu et al. 2018, arXiv 1802.01886; smoothing 1 of Chen and Cherry 2014).",
    "duplicates": "Near: the sets of word 3-grams (Broder 1997) have a Jaccard index of at least 0.8 (the number at "
    "which Lee et al. 2022, arXiv 2107.06499, draw the line too, on edit similarity); candidates by MinHash in "
    "20 bands of 6, decided by the true index. Exact: the same roles say the same, to the letter. The "
    "share has no interval: whether a conversation has a near-duplicate hangs on all the others.",
    "leakage": "Test conversations whose topic, whose persona (both sides' preferences and reactions), or whose "
    "topic and persona together are in train too, and those with a near-duplicate there. edgen's own "
    "definition, with the groups that `split` in a job keeps together.",
    "coverage": "Cells (one value of each dimension) of the space against the plan. Survivors: accepted of "
    "settled, with Wilson's interval (1927) for the effective number of scenarios (Franco et al. 2019) and "
    "Student's t for its quantile (Korn and Graubard 1998), so wider with few scenarios; p by Fisher's exact test (1935) over "
    "scenarios that lost a conversation, Holm-adjusted (1979) for all values. Evenness: entropy over "
    "its greatest value (Pielou 1966).",
    "adherence": "By keywords: whether the student asks for the way it prefers, whether stated reactions show, "
    "whether the teacher keeps to its preferred way in the last third or goes over to the student's. "
    "edgen's own baseline; a judge model reads better.",
    "leaks": "Conversations in which a side says word for word a preference or reaction that only the other "
    "side's description holds, before the other said it. edgen's own definition. Where one prompt plays both "
    "sides (`protocol: oneshot`) the one writer knows everything, and these are its slips; only where each "
    "side has its own (`protocol: selfplay`) could nobody know, and there self-play asks again.",
    "answers": "Student's turns that ask to be told the answer, and those whose next turn of the teacher tells "
    "without asking back; telling: the teacher's turns without a question. edgen's own, by keywords; "
    "related to the telling rate of MathDial (Macina et al. 2023, arXiv 2305.14536).",
    "probability": "The probability that the student understood, as the conversation's own model gave it, where "
    "preferences match, where they do not, and where no keyword tells: edgen's own kinds. Means have "
    "intervals as shares in coverage have; their difference has Student's t with the degrees of freedom of "
    "Welch (1947) and Satterthwaite (1946) over scenarios. None for a kind of fewer than 5 scenarios.",
    "calibration": "Whether pairs that the probabilities favour with p are judged so in a share p: ten bins, "
    "expected calibration error (Naeini et al. 2015) and Brier score (1950), as in `edgen pairs "
    "--report`.",
}  # fmt: skip


class _All:
    """Every measure once, over one data set."""

    def __init__(self, space: Space | None, unread: Mapping[str, int] | None, *, planned: bool) -> None:
        self.corpus = Corpus()
        self.overview = OverviewMeasure(unread)
        self.lengths = LengthsMeasure()
        self.balance = BalanceMeasure()
        self.diversity = DiversityMeasure(self.corpus)
        self.duplicates = DuplicatesMeasure(self.corpus)
        self.leakage = LeakageMeasure()
        self.coverage = CoverageMeasure(space, planned=planned)
        self.adherence = ByKeywords()
        self.leaks = LeaksMeasure()
        self.answers = AnswersMeasure()
        self.probability = ProbabilityMeasure()

    def listening(self, wanted: Collection[str]) -> list[Listener]:
        """Those that are to be told of samples."""
        listeners: dict[str, Listener] = {
            "overview": self.overview, "lengths": self.lengths, "balance": self.balance, "diversity": self.diversity,
            "duplicates": self.duplicates, "leakage": self.leakage, "adherence": self.adherence, "leaks": self.leaks,
            "answers": self.answers, "probability": self.probability,
        }  # fmt: skip
        return [listener for name, listener in listeners.items() if name in wanted]


def measure(
    name: str,
    sources: Sequence[str],
    samples: Iterable[Sample],
    fates: Iterable[Fate] | None = None,
    space: Space | None = None,
    calibration: dict[str, Any] | None = None,
    tell: Callable[[int], None] = lambda _: None,
    *,
    unread: Mapping[str, int] | None = None,
    notes: Sequence[str] = (),
    only: Collection[MeasureName] | None = None,
    beside: Sequence[Listener] = (),
) -> Quality:
    """What all measures find. Without `fates` every sample counts as planned and accepted.

    `tell` is told from time to time how many samples are done; `unread` is looked at when all are. Measures
    that are not in `only`, but for the overview, are told nothing, and their results are those of an empty
    data set. `beside` are told of every sample too; what they find is the caller's to ask for.
    """
    wanted = {"overview", *(NAMES if only is None else only)}
    if "leakage" in wanted:
        wanted.add("duplicates")  # which tells how many of test are nearly in train
    every = _All(space, unread, planned=fates is not None)
    add = [listener.add for listener in (*every.listening(wanted), *beside)]
    kept, covered = bool(wanted & {"diversity", "duplicates"}), "coverage" in wanted
    done = 0
    for done, sample in enumerate(samples, 1):
        words = cut(sample.turns)
        for one in add:
            one(sample, words)
        if kept:
            every.corpus.add(words)
        if covered and fates is None:
            every.coverage.add(accepted_fate(sample.scenario))
        if done % _TOLD_EVERY == 0:
            tell(done)
    tell(done)
    for fate in (fates or ()) if covered else ():
        every.coverage.add(fate)
    alike = every.duplicates.result()
    return Quality(
        name=name,
        sources=tuple(sources),
        overview=every.overview.result(),
        lengths=every.lengths.result(),
        balance=every.balance.result(),
        diversity=every.diversity.result(),
        duplicates=alike,
        leakage=every.leakage.result(alike.across),
        coverage=every.coverage.result(),
        adherence=(every.adherence.result(),),
        leaks=every.leaks.result(),
        answers=every.answers.result(),
        probability=every.probability.result(),
        calibration=calibration,
        definitions={key: text for key, text in DEFINITIONS.items() if only is None or key in only},
        notes=tuple(notes),
    )
