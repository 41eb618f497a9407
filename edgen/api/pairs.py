"""Preference pairs of a run: judged, labelled and split; and the report on their bias."""

from __future__ import annotations

import asyncio
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from edgen.asking.answering import load_run_job
from edgen.asking.call_estimates import NeededCalls
from edgen.asking.comparisons import JudgeAsker, JudgeStart, JudgeTemplate
from edgen.asking.ledger_paths import open_for_reading, open_for_work
from edgen.asking.options import PairOptions
from edgen.asking.registered import find_asker, list_askers
from edgen.asking.rollouts import RolloutMaking
from edgen.config import Job
from edgen.core.errors import EdgenError, RunError, ShortError, UsageError
from edgen.core.pair import OF_RESPONSES, Source
from edgen.core.registry import part_of
from edgen.core.text import describe_counts, join_list, quantity
from edgen.families.reader import ReportWords
from edgen.planning.allowed_files import AllowedFiles
from edgen.preferences.bias import report_bias_of_run
from edgen.preferences.choice import PairChoice
from edgen.preferences.credit import apply_credit
from edgen.preferences.labels import LabelRules
from edgen.preferences.pair_sets import SetComparison, compare_pair_sets
from edgen.preferences.pairs import PairCounts, write_pairs, write_response_pairs
from edgen.preferences.rollouts import PlayedRollouts
from edgen.preferences.vote_sheet import has_vote_sheet, read_vote_sheet, write_vote_sheet
from edgen.protocols.suggestions import find_probability_setting, list_branching
from edgen.runtime.control import Control, explain_os_errors, run_in_own_loop
from edgen.runtime.status import JudgeStatus, RolloutStatus
from edgen.store.pairs_file import DEFAULT, find_label_source, require_pair_set, use_pair_set
from edgen.store.run_reader import RunReader
from edgen.store.votes import read_stored_votes, take_votes

_OF_PAIRS = ("min_margin", "max_per_scenario", "min_turns_left")  # options that set a key of `pairs`


@dataclass(frozen=True, slots=True)
class PairedRun:
    """The result of making pairs."""

    run: Path  # folder of the run
    by: Source  # source of the labels, or a judge's name
    scenarios: int  # scenarios with candidates
    file: Path  # pairs.jsonl of the pair set
    compare: str  # compared texts, `conversation` or `response`
    votes: int  # judge calls per pair in each order
    model: str | None = None  # name of the judge's model; None without one
    judged: JudgeStatus | None = None  # status of the judge; None if none was asked
    made: PairCounts | None = None
    """Counts of pairs; None if `ended` stopped the judge, so that no pairs were written."""
    bias: dict[str, Any] | None = None  # figures of `preferences.bias`
    ended: EdgenError | None = None  # the error that stopped the judge, if any
    k: int | None = None  # rollouts of each response; None without rollouts
    rollouts: tuple[RolloutStatus, ...] = ()  # status of the rollouts of each arm, if labels depend on them
    name: str | None = None  # name of the pair set; None for the default one


def make_pairs(run: Path, options: PairOptions, control: Control, *, report: bool = False) -> PairedRun:
    """Request the judge's missing verdicts, and label pairs of a run's conversations of one scenario.

    `report`: also report on their bias. Raises UsageError, RunError and LockedError.
    """
    if options.by != "oracle" and (options.judge or options.prompt):
        option = "--backend" if options.judge else "--prompt"
        raise UsageError(f"{option} goes with --signal oracle: other signals call no model.")
    if options.min_margin is not None and math.isnan(options.min_margin):
        raise UsageError("--min-margin: give a number from 0 to 1.")
    if options.min_turns_left is not None and options.min_turns_left < 0:
        raise UsageError("--min-turns-left: give the number of turns, 0 or more.")
    with open_for_work(run, control, "pairs", options.against) as reader:
        return PairMaking(reader, options, control).make(report=report)


def estimate_pairs(run: Path, options: PairOptions, control: Control) -> dict[str, Any]:
    """Return the calls of `make_pairs`: `calls` in all, and those of `rollouts` and `judged`, None if not
    requested. Send and write nothing. Raises its errors before its first call."""
    with open_for_reading(run, options.against) as reader:
        making = PairMaking(reader, options, control)
        making.require_comparable()
        return asyncio.run(making.estimate())


def report_bias(
    run: Path, against: Sequence[Path] = (), *, asked: bool = True, name: str | None = None
) -> dict[str, Any]:
    """Return position and length bias, agreement, calibration and the policy matrix of a run's existing
    pairs, or of those with other runs. `name`: the pair set. Raises UsageError if neither pairs nor this
    report was requested (`asked`)."""
    if not asked:
        raise UsageError(
            "--signal is missing: name the evidence, as in --signal oracle "
            f"({', '.join(list_signals())}), or use --report alone."
        )
    with open_for_reading(run, against) as reader:
        require_pair_set(reader.rundir, name)
        return report_bias_of_run(reader)


def list_signals() -> list[str]:
    """Return the names of everything that can label pairs: sources of labels, and judges."""
    return list(dict.fromkeys((*get_args(Source), *list_askers(JudgeAsker))))


def name_probability(run: Path) -> str:
    """Return the words of a run's family after "probability" (`ReportWords.probability_of`)."""
    with open_for_reading(run, ()) as reader:
        return part_of(reader.family, ReportWords).probability_of


def compare_sets(run: Path, names: tuple[str, str], against: Sequence[Path] = ()) -> SetComparison:
    """Compare the labels of two pair sets of a run, or of a run with others: agreement, and the biases of
    each. Raises UsageError and RunError."""
    with open_for_reading(run, against) as reader:
        return compare_pair_sets(reader, names)


def make_vote_sheet(run: Path, path: Path, against: Sequence[Path] = ()) -> int:
    """Write a sheet for people to vote in, and return the number of its pairs. Raises UsageError."""
    with explain_os_errors(run), open_for_reading(run, against) as reader:
        return write_vote_sheet(reader, path)


class PairMaking:
    """One call of `make_pairs`, while the run is locked."""

    def __init__(self, reader: RunReader, options: PairOptions, control: Control) -> None:
        judge = find_asker(options.asker, JudgeAsker, get_args(Source))
        self.reader, self.run, self.options, self._control = reader, reader.rundir, options, control
        job = load_run_job(self.run, options.overrides, judge.settable, judge.of_what)
        self._refuse_between_runs(job)
        allowed = AllowedFiles.of(self.run.job, options.overrides, outside=options.allow_outside)
        template = JudgeTemplate(judge, self.run, job, reader.space, options.prompt, allowed)
        named = {key: getattr(options, key) for key in _OF_PAIRS if getattr(options, key) is not None}
        wanted = msgspec.structs.replace(job.pairs, **named)
        usual = template.choose_compare(policies=reader.origin == "arms")
        pairs = apply_credit(wanted, options.by, options.credit, options.rollouts, usual=usual)
        self.job = msgspec.structs.replace(job, pairs=pairs)
        self.choice = PairChoice(reader, pairs, every=options.by == "probability")
        self.rollouts: RolloutMaking | None = None
        self.name: str | None = None
        self._kept_labels = ""  # the note that people's votes are in a set of their own; "" if they are not
        if pairs.rollouts is not None:
            self.rollouts = RolloutMaking(self.choice, options, control)
        self.judge = JudgeStart(self.job, self.choice, template, self.rollouts, options, control)

    def _refuse_between_runs(self, job: Job) -> None:
        """Raise UsageError for evidence that only conversations of one run can have."""
        options = self.options
        if not options.against:
            return
        if options.by in OF_RESPONSES:
            raise UsageError(
                f"--signal {options.by} is about the responses of one run; between runs, use --signal "
                "oracle or human."
            )
        if options.credit == "rollouts" or options.rollouts is not None or job.pairs.rollouts is not None:
            raise UsageError(
                "rollouts continue conversations of one run; between runs, use --credit whole or --credit "
                "response."
            )

    def _choose_set(self) -> None:
        """Choose the set that the pairs are written to: people's votes never replace another source's
        labels."""
        name, by = self.options.name, self.options.by
        if name is None and by == "human" and find_label_source(self.run) not in (None, by):
            name = by
            others = [word for path in self.options.against for word in ("--against", str(path))]
            runs = " ".join([str(self.run.path), *others])
            self._kept_labels = (
                f"the labels of {self.run.pairs} are not people's and stay; people's are the set {name}. "
                f"`edgen export {runs} --pairs {name}` takes them."
            )
        use_pair_set(self.run, name)
        self.name = None if name == DEFAULT else name

    def make(self, *, report: bool) -> PairedRun:
        self._choose_set()
        if self.options.by in OF_RESPONSES:
            return self._make_of_responses(report=report)
        reader, options, pairs = self.reader, self.options, self.job.pairs
        if options.human is not None:
            self._take_votes(options.human)
        votes = read_stored_votes(reader.rundir)
        on_responses = options.by == "human" and any(a == b for a, b in votes)
        scenarios = self._count_scenarios() if on_responses else self.require_comparable()
        if options.by == "human" and not votes:
            raise UsageError(
                f"{options.human or self.run.path}: there are no votes. Name a file with --people FILE, "
                "with one vote a line, as in "
                '{"a": "ID", "b": "ID", "choice": "a", "rater": "r1"}.'
            )
        facts: dict[str, Any] = {}
        if options.by == "oracle" or self.rollouts is not None:
            facts = run_in_own_loop(self._ask())
        ledgers: dict[str, Path] = facts.pop("ledgers", {})
        if facts.get("ended") is None:
            judged: JudgeStatus | None = facts.get("judged")
            rules = self._make_rules(None if judged is None else judged.judge)
            with PlayedRollouts(self.choice, ledgers) as played:
                made = write_pairs(self.choice, rules, votes, played if ledgers else None)
            made.simulated |= reader.simulated
            if made.stale_votes:
                self._control.note(
                    f"{quantity(made.stale_votes, 'vote')} about texts or pairs that the run no "
                    "longer has: left out, and kept."
                )
            if self._kept_labels:
                self._control.note(self._kept_labels)
            facts |= {"made": made, "bias": report_bias_of_run(reader) if report else None}
        about = (self.run.path, options.by, scenarios, self.run.pairs, pairs.compared, pairs.votes)
        rollouts = tuple(map(RolloutStatus.read_from, ledgers.values()))
        return PairedRun(*about, k=pairs.rollouts, rollouts=rollouts, name=self.name, **facts)

    def _take_votes(self, path: Path) -> None:
        """Store the votes of a file, or of a filled-in sheet."""
        sheet = read_vote_sheet(self.reader, path) if has_vote_sheet(path) else None
        replaced = take_votes(self.reader, path, None if sheet is None else sheet.votes)
        if sheet is not None and sheet.stale:
            self._control.note(
                f"{path}: {quantity(sheet.stale, 'row')} about pairs that this run does not have now; left "
                "out."
            )
        if replaced:
            self._control.note(
                f"{path}: {quantity(replaced.total(), 'vote')} replaced earlier votes by "
                f"{join_list([*replaced])}. If these are different people, give each another name in the "
                "file, and give the earlier file again."
            )

    def _make_of_responses(self, *, report: bool) -> PairedRun:
        """Make pairs of responses to one turn, from the run's own marks."""
        reader, scenarios = self.reader, self._count_scenarios()
        made = write_response_pairs(reader, self._make_rules(), read_stored_votes(reader.rundir))
        made.simulated |= reader.simulated
        bias = report_bias_of_run(reader) if report else None
        about = (self.run.path, self.options.by, scenarios, self.run.pairs, "response", 0)
        return PairedRun(*about, made=made, bias=bias, name=self.name)

    def _count_scenarios(self) -> int:
        """Return the number of scenarios with a conversation. Raises RunError if there is none."""
        if scenarios := sum(1 for _ in self.reader.scenarios()):
            return scenarios
        raise self._make_none_accepted_error()

    def _make_rules(self, judge: str | None = None) -> LabelRules:
        """Return the rules of labels; `judge`: the judge whose verdicts count."""
        pairs = self.job.pairs
        return LabelRules(
            by=self.options.by,
            judge=judge,
            min_margin=pairs.min_margin,
            max_per_scenario=pairs.max_per_scenario,
            judge_directed=pairs.judge_directed,
            rollouts=pairs.rollouts is not None,
        )

    def _make_none_accepted_error(self) -> RunError:
        path = self.run.path
        return RunError(
            f"{path}: no conversation was accepted in this run, so there is nothing to compare; see `edgen "
            f"status {path}`."
        )

    def require_comparable(self) -> int:
        """Return the number of scenarios with conversations to compare.

        Raises RunError if there are none, and UsageError for requested rollouts that cannot be played.
        """
        reader, path = self.reader, self.run.path
        count = sum(len(numbers) > 1 for _, numbers in reader.scenarios())
        if count:
            if self.rollouts is not None:
                self.rollouts.check(self.options.by)
            self.judge.note_pending(
                "pairs are made of the finished ones only. `edgen generate` with its job makes the others."
            )
            return count
        if not reader.accepted:
            raise self._make_none_accepted_error()
        if reader.origin == "replicates" and reader.job.replicates == 1:
            raise RunError(
                f"{path}: this run has one conversation of each scenario, and a pair needs two. Generate "
                f"with `replicates: 4`{_suggest_branch()}, or with `arms`."
            )
        raise RunError(
            f"{path}: no scenario of this run has two accepted conversations, and a pair needs two; "
            f"see `edgen status {path}` for the reasons."
        )

    async def estimate(self) -> dict[str, Any]:
        """Return the necessary calls."""
        rollouts = judged = None
        each: list[NeededCalls] = []
        if self.rollouts is not None:
            askers, needs = await self.rollouts.estimate()
            responses = sum(one.responses for one in askers)
            rollouts = {"responses": responses, "k": askers[0].k, **needs.describe("play")}
            each.append(needs)
        if self.options.by == "oracle":
            ((judge, needs),) = await self.judge.estimate()
            judged = {"judge": judge.id, **needs.describe("judge")}
            each.append(needs)
        calls = functools.reduce(NeededCalls.plus, each).calls if each else {"expected": 0, "at_most": 0}
        return {"run": str(self.run.path), "calls": calls, "rollouts": rollouts, "judged": judged}

    async def _ask(self) -> dict[str, Any]:
        """Play the rollouts, then request the judge's missing verdicts; without a judge, only play. Return
        the status of the work and the error that stopped it."""
        judge = self.judge
        if self.options.by != "oracle":
            return {"ended": await judge.prepare(), "ledgers": judge.ledgers or {}}
        _, judged, ended = await judge.ask()
        facts = {"model": judge.model, "ended": ended, "ledgers": judge.ledgers or {}}
        return {**facts, "judged": JudgeStatus.read_from(judged[0]) if judged else None}


def require_pairs(paired: PairedRun) -> None:
    """Raise the error that ended the work, or ShortError if labels or answers are missing."""
    if paired.ended is not None or paired.made is None:
        raise paired.ended or AssertionError("without pairs something ended it")
    for rollouts in paired.rollouts:  # missing answers may be why no pair is labelled
        rollouts.require_answers("rollouts")
    left_out = dict(sorted(paired.made.left_out.items()))
    if not paired.made.train + paired.made.test:
        most = max(left_out, key=left_out.__getitem__, default="")
        hint = _HINTS.get((most, paired.by)) or _HINTS.get((most, None), "")
        if (most, paired.by) == ("abstained", "probability"):
            hint = _explain_missing_probabilities(paired.run)
        counts = f": {describe_counts(left_out)}" if left_out else ""
        said = f"No pair could be labelled by {paired.by}{counts}."
        back = "`edgen pairs --signal` with another signal brings its labels back without a call."
        raise ShortError(" ".join(filter(None, [said, hint, back])))
    if paired.judged is not None:
        paired.judged.require_answers("pairs")


def _suggest_branch() -> str:
    """Return the setting that makes pairs part at a turn, in brackets; empty if no protocol has it."""
    able = " or ".join(list_branching())
    return f" (add `branch: {{at: sampled}}` under {able})" if able else ""


def _explain_missing_probabilities(run: Path) -> str:
    """Return a sentence on how to get probabilities for conversations of a run's protocol."""
    with open_for_reading(run, ()) as reader:
        setting = find_probability_setting(reader.job, reader.space.roles)
        protocol = reader.job.protocol
    if setting:
        return f"Probabilities are missing: name the role that states them, as in `{setting}`."
    return (
        f"Probabilities are missing, and the protocol {protocol} has no setting for them (a template may ask for "
        "one); --signal oracle needs none."
    )


_NO_FLAG = "No turn of this run has a response that was called nonsense, and another one next to it."
_NO_JUDGED = "No turn of this run has responses that a judge found best and worst: let one choose them when it generates."
# Hints by the most frequent reason for no label ("": there is no pair) and the source; None: any source.
_HINTS: dict[tuple[str, Source | None], str] = {
    ("tie", "oracle"): "The orders disagree: see --report for the judge's biases; more votes (--set "
    "pairs.votes=3) or another judge may help.",
    ("tie", "human"): "The votes are as many for one side as for the other: an odd number of raters decides.",
    ("tie", "probability"): "The two probabilities are equal; --signal oracle compares the texts.",
    ("turns_left", None): "A lower --min-turns-left keeps pairs that part nearer to the end.",
    ("margin", None): "A lower --min-margin keeps more.",
    (
        "judge_directed",
        None,
    ): "Their texts speak to a judge; --set pairs.judge_directed=label labels them all the same.",
    ("identical", None): "The conversations of a scenario say the same: give the backend a temperature.",
    ("contradicted", None): "The verdicts go in circles: more votes (--set pairs.votes=3) may help.",
    ("not_judged", None): "This source has not rated these conversations in their present form.",
    ("abstained", "oracle"): "The judge's answers cannot be read: another template or judge may help.",
    ("", "human"): "No vote is about texts that the run has now.",
    ("", "flag"): _NO_FLAG,
    ("not_judged", "flag"): _NO_FLAG,
    ("", "judged"): _NO_JUDGED,
    ("not_judged", "judged"): _NO_JUDGED,
}
