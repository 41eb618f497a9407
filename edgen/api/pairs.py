"""Preference pairs of a run: judged, labelled and split; and the report about their bias."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from edgen.api.judging import (
    find_backend,
    find_function,
    job_with,
    judge_ledger,
    load_judged_job,
    open_for_reading,
    open_for_work,
    run_judge,
)
from edgen.api.rollouts import Asked, RolloutMaking
from edgen.api.status import JudgeStatus, RolloutStatus, judge_status, rollout_status
from edgen.api.supervision.backends import Via, open_backends, open_scheduler
from edgen.api.supervision.control import Control
from edgen.api.supervision.snapshot import Title
from edgen.config import Job
from edgen.core.errors import EdgenError, Problem, RunError, ShortError, TemplateError, UsageError
from edgen.core.figures import describe_counts
from edgen.core.pair import OF_RESPONSES, Compare, Source
from edgen.core.values import Turn
from edgen.execution.scheduler import SchedulerFactory
from edgen.planning.allowed_files import Reach, unlimited
from edgen.planning.load import load_template
from edgen.planning.logprobs import check_logprobs
from edgen.preferences.bias import bias_report
from edgen.preferences.choice import PairChoice
from edgen.preferences.comparisons import GUARDED_TEMPLATE, Comparisons, published_before
from edgen.preferences.credit import Credit, credited
from edgen.preferences.judge import Judge
from edgen.preferences.labels import LabelRules
from edgen.preferences.pairs import PairCounts, write_pairs
from edgen.preferences.response_pairs import write_response_pairs
from edgen.preferences.rollouts import PlayedRollouts, RolloutComparisons
from edgen.prompting import Prompt
from edgen.protocols.oracle import ORACLE, usual_template
from edgen.providers import Backend
from edgen.store.run_reader import Compared, RunReader
from edgen.store.votes import stored_votes, take_votes

_OF_PAIRS = ("min_margin", "max_per_scenario", "min_turns_left")  # options that stand for a key of `pairs`
_SETTABLE = ("pairs", "backends", "limits", "batch", "asks", "prompts")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOptions:
    """`by`: whose verdict makes the labels; `judge`: `[JOB:]ROLE` of the backend that judges; `prompt`: its template;
    `human`: a file of votes; `credit`: what a label of one turn rests on, None as the job has it; `rollouts`: how often
    it is played on from each response; `overrides` are as `--set` takes them."""

    by: Source
    credit: Credit | None = None
    rollouts: int | None = None
    judge: str | None = None
    prompt: str | None = None
    human: Path | None = None
    min_margin: float | None = None
    max_per_scenario: int | None = None
    min_turns_left: int | None = None
    overrides: tuple[str, ...] = ()
    allow_outside: bool = False
    via: Via = "online"


@dataclass(frozen=True, slots=True)
class PairedRun:
    """What was made. `made` is None where the judge was stopped by `ended`: then no pairs are written. `judged` says
    how the judge stands, where one was asked. `rollouts`: how those of each arm stand, `k` of each response, where labels
    rest on them."""

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
    """Label pairs of a run's conversations of one scenario, after a judge was asked what it was not asked before.

    `report`: with what is told of their bias. Raises UsageError, RunError and LockedError.
    """
    if options.by != "oracle" and (options.judge or options.prompt):
        option = "--judge" if options.judge else "--prompt"
        raise UsageError(f"{option} goes with --by oracle: nobody else asks a model.")
    if options.min_margin is not None and math.isnan(options.min_margin):
        raise UsageError("--min-margin: expected a number from 0 to 1.")
    if options.min_turns_left is not None and options.min_turns_left < 0:
        raise UsageError("--min-turns-left: expected how many turns, 0 or more.")
    with open_for_work(run, control, "pairs") as reader:
        return PairMaking(reader, options, control).make(report=report)


def report_bias(run: Path, *, asked: bool = True) -> dict[str, Any]:
    """Position and length bias, agreement and calibration of the pairs that a run has. Raises UsageError where neither
    this nor pairs were `asked` for."""
    if not asked:
        raise UsageError(
            f"say what makes the labels (--by {', '.join(get_args(Source))}), or ask for --report alone."
        )
    with open_for_reading(run) as reader:
        return _bias_of(reader)


class PairMaking:
    """One start of `make_pairs`, while the run is held."""

    def __init__(self, reader: RunReader, options: PairOptions, control: Control) -> None:
        self.reader, self.run, self.options, self._control = reader, reader.rundir, options, control
        job = load_judged_job(
            self.run, options.overrides, _SETTABLE, "pairs, which are made of what the run holds"
        )
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
                f"{options.human or self.run.path}: there are no votes. A votes file has one a line, like "
                '{"a": "ID", "b": "ID", "choice": "a", "rater": "r1"}; name it with --human FILE.'
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
            facts |= {"made": made, "bias": _bias_of(reader) if report else None}
        about = (self.run.path, options.by, scenarios, self.run.pairs, pairs.compare, pairs.votes)
        rollouts = tuple(map(rollout_status, ledgers.values()))
        return PairedRun(*about, k=pairs.rollouts, rollouts=rollouts, **facts)

    def _make_of_responses(self, *, report: bool) -> PairedRun:
        """Pairs of responses to one turn, by what the run says itself of them."""
        reader = self.reader
        scenarios = sum(1 for _ in reader.scenarios())
        if not scenarios:
            raise self._nothing_accepted()
        made = write_response_pairs(reader, self._rules())
        made.simulated |= reader.simulated
        bias = _bias_of(reader) if report else None
        return PairedRun(
            self.run.path, self.options.by, scenarios, self.run.pairs, "response", 0, made=made, bias=bias
        )

    def _rules(self, judge: str | None = None) -> LabelRules:
        """How labels follow; `judge`: the one whose verdicts count."""
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
        """How many scenarios have conversations to compare. Raises RunError if none has, and UsageError where rollouts are
        asked for that cannot be played."""
        reader, path = self.reader, self.run.path
        count = sum(len(numbers) > 1 for _, numbers in reader.scenarios())
        if count:
            if self.rollouts is not None:
                self.rollouts.check(self.options.by)
            if reader.pending:
                self._control.note(
                    f"{reader.pending} conversations of this run are still to be made; the pairs are of those "
                    "that are there. `edgen generate` with its job goes on with it."
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
            f"see `edgen status {path}` for what became of the others."
        )

    def _judge_job(self) -> tuple[Job, Prompt, dict[str, Any]]:
        """The job with the judge as `judge`, its template, and it itself where it is a function."""
        config = find_backend(self.job, self.options.judge or "", "judge")
        prompt = self._find_template()
        job = job_with(self.job, "judge", config, prompt, self.run.job)
        check_logprobs(job, config, str(self.run.job))
        return job, prompt, {"judge": find_function(self.job, config, self._control)}

    async def judge_id(self) -> str:
        """Who would judge. Nothing can be sent by the backend that tells."""
        job, prompt, functions = self._judge_job()
        configs = {"judge": job.backends["judge"]}
        async with open_backends(configs, job.limits, None, functions=functions) as backends:
            return Judge.of(backends["judge"], prompt, job.pairs.compare).id

    async def _ask_judge(self) -> dict[str, Any]:
        """Ask the judge what was not asked before: how all of it stands, and what stopped it."""
        job, prompt, functions = self._judge_job()
        configs, trust = {"judge": job.backends["judge"]}, self._control.trust
        async with (
            open_backends(configs, job.limits, trust, functions=functions) as backends,
            open_scheduler(job, backends, self.options.via) as scheduler,
        ):
            judge = Judge.of(backends["judge"], prompt, job.pairs.compare)
            return await self._judge(job, judge, backends, scheduler)

    async def _judge(
        self, job: Job, judge: Judge, backends: Mapping[str, Backend], scheduler: SchedulerFactory
    ) -> dict[str, Any]:
        """What `_ask_judge` returns, once the judge is there: rollouts are played before it is asked about them."""
        reader, folder, facts = self.reader, self.run.judged, await self._play_rollouts()
        if "ended" in facts:
            return {"model": judge.model, **facts}
        with PlayedRollouts(self.choice, facts.get("ledgers", {})) as played:
            rollouts = self.rollouts is not None
            tasks = RolloutComparisons(played, job, judge) if rollouts else Comparisons(reader, job, judge)
            title = Title(f"{reader.name} pairs", outcomes=("judged", "without verdict"))
            try:
                await run_judge(tasks, folder, backends, title, self._control, scheduler)
            except EdgenError as error:
                facts["ended"] = error
        judged = judge_status(judge_ledger(tasks, folder))
        return {"model": judge.model, "judged": judged, **facts}

    async def _play_rollouts(self) -> dict[str, Any]:
        """Play the rollouts that are wanted: their `ledgers`, or what `ended` it."""
        if self.rollouts is None:
            return {}
        try:
            return {"ledgers": await self.rollouts.play()}
        except EdgenError as error:
            return {"ended": error}

    def _find_template(self) -> Prompt:
        """The judge's template: the one named here, else the job's, else the one this run was judged with, else
        the guarded one."""
        job, named, space = self.job, self.options.prompt, self.reader.space
        compare = job.pairs.compare
        if named is not None:
            return load_template(ORACLE.template(named, compare, space), unlimited(), space)
        reach = Reach.of(self.run.job, self.options.overrides, outside=self.options.allow_outside)
        if "oracle" not in job.prompts:
            before = published_before(self.run, compare)
            if before is not None:
                self._control.note(
                    f"this run was judged with the published template {before}, and is gone on with so; "
                    f"--prompt {GUARDED_TEMPLATE} asks a judge that no conversation can speak to."
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


def _bias_of(reader: RunReader) -> dict[str, Any]:
    return bias_report((compared.pair, _count_words(compared)) for compared in reader.compared())


def _count_words(compared: Compared) -> Mapping[Compare, tuple[int, int]]:
    """The words that a judge was shown of each side, by what it compared."""
    a, b, prefix = compared.a.turns, compared.b.turns, compared.pair.prefix_turns
    part = slice(prefix, prefix + 1)

    def words(turns: tuple[Turn, ...]) -> int:
        return sum(len(turn.text.split()) for turn in turns)

    return {"conversation": (words(a), words(b)), "response": (words(a[part]), words(b[part]))}


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
        back = "Labels by another source come back, without a call, with `edgen pairs` --by that source."
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
