"""Preference pairs of a run: judged, labelled and split; and the report about their bias."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from edgen.asking.answering import Answerer, Answering, find_backend, load_run_job, open_answerer
from edgen.asking.comparisons import Comparisons, RolloutComparisons
from edgen.asking.options import PairOptions
from edgen.asking.places import Place, open_for_reading, open_for_work
from edgen.asking.rollout_making import Asked, RolloutMaking
from edgen.asking.work import AtWork, ask_until_ended
from edgen.config import Job
from edgen.core.errors import EdgenError, Problem, RunError, ShortError, TemplateError, UsageError
from edgen.core.pair import OF_RESPONSES, Source
from edgen.core.text import describe_counts
from edgen.planning.allowed_files import Reach, unlimited
from edgen.planning.load import load_template
from edgen.planning.logprobs import check_logprobs
from edgen.preferences.bias import bias_of_compared
from edgen.preferences.choice import PairChoice
from edgen.preferences.comparisons import GUARDED_TEMPLATE, published_before
from edgen.preferences.credit import credited
from edgen.preferences.labels import LabelRules
from edgen.preferences.pairs import PairCounts, write_pairs
from edgen.preferences.response_pairs import write_response_pairs
from edgen.preferences.rollouts import PlayedRollouts
from edgen.prompting import Prompt
from edgen.protocols.oracle import ORACLE, usual_template
from edgen.runtime.control import Control
from edgen.runtime.status import JudgeStatus, RolloutStatus
from edgen.store.run_reader import RunReader
from edgen.store.votes import stored_votes, take_votes

_OF_PAIRS = ("min_margin", "max_per_scenario", "min_turns_left")  # options that stand for a key of `pairs`
_SETTABLE = ("pairs", "backends", "limits", "batch", "asks", "forms", "prompts")


@dataclass(frozen=True, slots=True)
class PairedRun:
    """The result. `made` is None if the judge was stopped by `ended`: then no pairs are written.

    `judged` is the status of the judge, if one was asked. `rollouts`: the status of those of each arm, `k` of
    each response, if labels depend on them.
    """

    run: Path
    by: Source
    scenarios: int
    file: Path
    compare: str
    votes: int
    model: str | None = None
    judged: JudgeStatus | None = None
    made: PairCounts | None = None
    bias: dict[str, Any] | None = None
    ended: EdgenError | None = None
    k: int | None = None
    rollouts: tuple[RolloutStatus, ...] = ()


def make_pairs(run: Path, options: PairOptions, control: Control, *, report: bool = False) -> PairedRun:
    """Label pairs of a run's conversations of one scenario, after the judge's missing verdicts were
    requested.

    `report`: with the report on their bias. Raises UsageError, RunError and LockedError.
    """
    if options.by != "oracle" and (options.judge or options.prompt):
        option = "--backend" if options.judge else "--prompt"
        raise UsageError(f"{option} goes with --signal oracle: other signals call no model.")
    if options.min_margin is not None and math.isnan(options.min_margin):
        raise UsageError("--min-margin: give a number from 0 to 1.")
    if options.min_turns_left is not None and options.min_turns_left < 0:
        raise UsageError("--min-turns-left: give the number of turns, 0 or more.")
    with open_for_work(run, control, "pairs") as reader:
        return PairMaking(reader, options, control).make(report=report)


def report_bias(run: Path, *, asked: bool = True) -> dict[str, Any]:
    """Position and length bias, agreement and calibration of the pairs that a run has. Raises UsageError
    where neither this nor pairs were `asked` for."""
    if not asked:
        raise UsageError(
            f"--signal is missing: name the evidence, as in --signal oracle ({', '.join(get_args(Source))}), or use --report alone."
        )
    with open_for_reading(run) as reader:
        return bias_of_compared(reader.compared())


class PairMaking:
    """One start of `make_pairs`, while the run is held."""

    def __init__(self, reader: RunReader, options: PairOptions, control: Control) -> None:
        self.reader, self.run, self.options, self._control = reader, reader.rundir, options, control
        job = load_run_job(self.run, options.overrides, _SETTABLE, "pairs of an existing run")
        named = {key: getattr(options, key) for key in _OF_PAIRS if getattr(options, key) is not None}
        pairs = credited(
            msgspec.structs.replace(job.pairs, **named), options.by, options.credit, options.rollouts
        )
        self.job = msgspec.structs.replace(job, pairs=pairs)
        self.choice = PairChoice(reader, pairs, every=options.by == "probability")
        self.rollouts: RolloutMaking | None = None
        if pairs.rollouts is not None:
            asked = Asked(options.overrides, options.allow_outside, options.via)
            self.rollouts = RolloutMaking(self.choice, asked, control)

    def make(self, *, report: bool) -> PairedRun:
        if self.options.by in OF_RESPONSES:
            return self._make_of_responses(report=report)
        reader, options, pairs = self.reader, self.options, self.job.pairs
        scenarios = self.require_comparable()
        if options.human is not None:
            take_votes(reader, options.human)
        votes = stored_votes(reader.rundir)
        if options.by == "human" and not votes:
            raise UsageError(
                f"{options.human or self.run.path}: there are no votes. Name a file with --people FILE, with one vote a line, as in "
                '{"a": "ID", "b": "ID", "choice": "a", "rater": "r1"}.'
            )
        facts: dict[str, Any] = {}
        if options.by == "oracle" or self.rollouts is not None:
            facts = asyncio.run(self._ask_judge() if options.by == "oracle" else self._play_rollouts())
        ledgers: dict[str, Path] = facts.pop("ledgers", {})
        if facts.get("ended") is None:
            judged: JudgeStatus | None = facts.get("judged")
            rules = self._rules(None if judged is None else judged.judge)
            with PlayedRollouts(self.choice, ledgers) as played:
                made = write_pairs(self.choice, rules, votes, played if ledgers else None)
            made.simulated |= reader.simulated
            facts |= {"made": made, "bias": bias_of_compared(reader.compared()) if report else None}
        about = (self.run.path, options.by, scenarios, self.run.pairs, pairs.compare, pairs.votes)
        rollouts = tuple(map(RolloutStatus.at, ledgers.values()))
        return PairedRun(*about, k=pairs.rollouts, rollouts=rollouts, **facts)

    def _make_of_responses(self, *, report: bool) -> PairedRun:
        """Pairs of responses to one turn, by what the run says itself of them."""
        reader = self.reader
        scenarios = sum(1 for _ in reader.scenarios())
        if not scenarios:
            raise self._nothing_accepted()
        made = write_response_pairs(reader, self._rules())
        made.simulated |= reader.simulated
        bias = bias_of_compared(reader.compared()) if report else None
        return PairedRun(
            self.run.path, self.options.by, scenarios, self.run.pairs, "response", 0, made=made, bias=bias
        )

    def _rules(self, judge: str | None = None) -> LabelRules:
        """Return the rules of labels; `judge`: the one whose verdicts count."""
        pairs = self.job.pairs
        return LabelRules(
            by=self.options.by,
            judge=judge,
            min_margin=pairs.min_margin,
            max_per_scenario=pairs.max_per_scenario,
            judge_directed=pairs.judge_directed,
            rollouts=pairs.rollouts is not None,
        )

    def _nothing_accepted(self) -> RunError:
        path = self.run.path
        return RunError(
            f"{path}: no conversation was accepted in this run, so there is nothing to compare; see `edgen status {path}`."
        )

    def require_comparable(self) -> int:
        """Return the number of scenarios with conversations to compare.

        Raises RunError if none has, and UsageError for requested rollouts that cannot be played.
        """
        reader, path = self.reader, self.run.path
        count = sum(len(numbers) > 1 for _, numbers in reader.scenarios())
        if count:
            if self.rollouts is not None:
                self.rollouts.check(self.options.by)
            if reader.pending:
                self._control.note(
                    f"{reader.pending:,} conversations of this run are pending; pairs are made of the finished ones only. "
                    "`edgen generate` with its job makes the others."
                )
            return count
        if not reader.accepted:
            raise self._nothing_accepted()
        if reader.origin == "replicates" and reader.job.replicates == 1:
            raise RunError(
                f"{path}: this run has one conversation of each scenario, and a pair needs two. Generate with "
                "`replicates: 4` (add `branch: {at: sampled}` under selfplay), or with `arms`."
            )
        raise RunError(
            f"{path}: no scenario of this run has two accepted conversations, and a pair needs two; "
            f"see `edgen status {path}` for the reasons."
        )

    @contextlib.asynccontextmanager
    async def _open_judge(self, *, send: bool) -> AsyncIterator[tuple[Job, Answerer, Answering]]:
        """Open the judge, which sends nothing unless it is to `send`: the job that has it as `judge`, and the
        judge."""
        named, via = self.options.judge or "", self.options.via
        check_logprobs(self.job, find_backend(self.job, named, "judge"), str(self.run.job))
        prompt = self._find_template()
        async with open_answerer(
            self.run, self.job, "judge", named, prompt, self._control, via, send=send
        ) as (job, answering):
            asked = answering.prompt or prompt
            judge = Answerer.of(answering.backends["judge"], asked, compare=job.pairs.compare)
            yield job, judge, answering

    async def judge_id(self) -> str:
        """Return who would judge."""
        async with self._open_judge(send=False) as (_, judge, _):
            return judge.id

    async def _ask_judge(self) -> dict[str, Any]:
        """Ask the judge what was not asked before: how all of it stands, and what stopped it. Rollouts are
        played before the judge is asked about them."""
        async with self._open_judge(send=True) as (job, judge, answering):
            facts = await self._play_rollouts()
            if "ended" in facts:
                return {"model": judge.model, **facts}
            with PlayedRollouts(self.choice, facts.get("ledgers", {})) as played:
                asker = self._comparisons(job, judge, played)
                place = Place(self.run.judged, self.run)
                ended = await ask_until_ended([AtWork(asker, answering)], place, self._control)
            if ended is not None:
                facts["ended"] = ended
            return {"model": judge.model, "judged": JudgeStatus.at(place.ledger(asker)), **facts}

    def _comparisons(self, job: Job, judge: Answerer, played: PlayedRollouts) -> Comparisons:
        if self.rollouts is not None:
            return RolloutComparisons(played, job, judge)
        return Comparisons(self.reader, job, judge)

    async def _play_rollouts(self) -> dict[str, Any]:
        """Play the rollouts that are wanted: their `ledgers`, or what `ended` it."""
        if self.rollouts is None:
            return {}
        try:
            return {"ledgers": await self.rollouts.play()}
        except EdgenError as error:
            return {"ended": error}

    def _find_template(self) -> Prompt:
        """Return the judge's template: the one named here, else the job's, else the one this run was judged
        with, else the guarded one."""
        job, named, space = self.job, self.options.prompt, self.reader.space
        compare = job.pairs.compare
        if named is not None:
            return load_template(ORACLE.template(named, compare, space), unlimited(), space)
        reach = Reach.of(self.run.job, self.options.overrides, outside=self.options.allow_outside)
        if "oracle" not in job.prompts:
            before = published_before(self.run, compare)
            if before is not None:
                self._control.note(
                    f"this run was judged with the published template {before}, which is used again; --prompt "
                    f"{GUARDED_TEMPLATE} guards the judge against instructions in conversations."
                )
            template = ORACLE.template(before or usual_template(space), compare, space)
            return load_template(template, reach, space)
        try:
            return load_template(ORACLE.template(job.prompts["oracle"], compare, space), reach, space)
        except TemplateError as error:
            hint = Problem(
                "try",
                f"--prompt {GUARDED_TEMPLATE}, which is for both kinds, or --prompt oracle_{compare}, the "
                f"published one for pairs.compare: {compare}",
            )
            raise TemplateError(error.source, error.summary, (*error.problems, hint)) from None


def require_pairs(paired: PairedRun) -> None:
    """Raise what ended it, and ShortError if something is short."""
    if paired.ended is not None or paired.made is None:
        raise paired.ended or AssertionError("without pairs something ended it")
    left_out = dict(sorted(paired.made.left_out.items()))
    if not paired.made.train + paired.made.test:
        most = max(left_out, key=left_out.__getitem__, default="")
        hint = _HINTS["abstained by"][paired.by] if most == "abstained" else _HINTS["of"].get(most, "")
        if paired.by in OF_RESPONSES and most in ("", "not_judged"):
            hint = _HINTS["no response by"][paired.by]
        said = f"No pair could be labelled by {paired.by}: {describe_counts(left_out)}."
        back = "`edgen pairs --signal` with another signal brings its labels back without a call."
        raise ShortError(" ".join(filter(None, [said, hint, back])))
    for rollouts in paired.rollouts:
        rollouts.require_answers("rollouts")
    if paired.judged is not None:
        paired.judged.require_answers("pairs")


_HINTS = {
    "of": {
        "tie": "The orders disagree: see --report for the judge's biases; more votes (--set pairs.votes=3) or another judge may help.",
        "turns_left": "A lower --min-turns-left keeps pairs that part nearer to the end.",
        "margin": "A lower --min-margin keeps more.",
        "judge_directed": "Their texts speak to a judge; --set pairs.judge_directed=label labels them all the same.",
        "identical": "The conversations of a scenario say the same: give the backend a temperature.",
        "contradicted": "The verdicts go in circles: more votes (--set pairs.votes=3) may help.",
        "not_judged": "Nothing was said about these very conversations by this source.",
    },
    "abstained by": {
        "oracle": "The judge's answers cannot be read: another template or judge may help.",
        "probability": "Probabilities are missing: the protocol has to ask for them (`closing: student` under selfplay).",
        "human": "",
    },
    "no response by": {
        "flag": "No turn of this run has a response that was called nonsense, and another one beside it.",
        "judged": "No turn of this run has responses that a judge found best and worst: let one choose them when it generates.",
    },
}
