"""Judges, which compare the pairs of a run.

A task is a pair of conversations, or of rollouts: the first rollout of one response against the first of the
other, and so on. The oracle is asked in both orders, once for each vote. Other packages add judges.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import ClassVar

from msgspec import UNSET

from edgen.asking.answering import Answerer, find_backend
from edgen.asking.asker import PromptAsker
from edgen.asking.options import PairOptions
from edgen.asking.rollouts import RolloutMaking
from edgen.asking.runner import Opened, RunStart
from edgen.config import Job
from edgen.core.errors import EdgenError, Problem, RunError, TemplateError
from edgen.core.pair import Compare, Verdict, digest_texts
from edgen.core.values import Rejection, RejectionReason, Reply, Request
from edgen.planning.allowed_files import AllowedFiles, allow_all_files
from edgen.planning.load import check_logprobs, load_template
from edgen.preferences.choice import PairChoice
from edgen.preferences.comparisons import (
    GUARDED_TEMPLATE,
    JudgedComparison,
    find_published_template,
    name_comparison,
    read_comparison,
)
from edgen.preferences.rollouts import PlayedRollouts
from edgen.preferences.signals import make_oracle_signal
from edgen.prompting import Prompt
from edgen.protocols.base import Template
from edgen.protocols.oracle import (
    COMPARED,
    OF_SPACE,
    ORACLE,
    CandidatePair,
    choose_template,
    count_votes,
    judge_pair,
)
from edgen.protocols.parts import Spent
from edgen.providers import Backend
from edgen.runtime.control import Control
from edgen.space import Space
from edgen.store.pairs_file import read_pairs
from edgen.store.run_folder import RunFolder

log = logging.getLogger("edgen")


class JudgeAsker(PromptAsker[CandidatePair, list[Verdict]]):
    """The comparisons that one judge makes: of the conversations of a choice of pairs, or of their rollouts.

    A subclass sets `name` and `template`. It can override `variables`, `ask` (which must return equally many
    verdicts in each order) and `count_calls`.
    """

    variables = tuple(dict.fromkeys((*COMPARED["conversation"], *COMPARED["response"], *OF_SPACE)))
    taken_by = "edgen pairs --signal"
    expects, protocol = "verdict", ORACLE.name
    compares: ClassVar[Compare] = "response"  # the default if neither the job nor the run sets it
    settable = ("pairs", "backends", "limits", "batch", "asks", "forms", "prompts")
    of_what = "pairs of an existing run"
    outcomes = ("judged", "without verdict")
    useless_help = (
        "Its template should end in a question that 1 or 2 answers; see that max_tokens leaves room for it, "
        "or name another judge with --backend."
    )

    @classmethod
    def choose_template(cls, named: str | None, compare: Compare, space: Space) -> Template:  # noqa: ARG003
        """Return the template for a kind of comparison; `named` replaces it for the same use."""
        return cls.make_template(named)

    @classmethod
    def find_usual_template(
        cls,
        run: RunFolder,  # noqa: ARG003
        compare: Compare,  # noqa: ARG003
        control: Control,  # noqa: ARG003
    ) -> str | None:
        """Return the name of the default template; None for the class's own."""
        return None

    def __init__(self, pairs: PairChoice | PlayedRollouts, job: Job, judge: Answerer) -> None:
        super().__init__(pairs.reader, job, judge, "pairs")
        self._pairs = pairs
        self._warned = False
        self.logprobs = job.pairs.logprobs is not None
        self.shaping |= {"votes": job.pairs.votes, "units": self.count()}
        if self.logprobs:
            self.shaping["logprobs"] = job.pairs.logprobs

    def list_units(self) -> Iterator[tuple[int, str]]:
        """Yield (scenario, task) of every comparison."""
        for index, names in self.reader.scenarios():
            if len(names) > 1:
                both = self._pairs.list_pairs_to_judge(index, names)
                yield from ((index, task) for task in sorted(name_comparison(*pair) for pair in both))

    def read_unit(self, index: int, task: str) -> CandidatePair:
        """Return the two sides of a comparison."""
        a, b = (self._pairs.candidate(index, name) for name in read_comparison(task))
        return CandidatePair(self.reader.space, self.reader.scenario(index), task, a, b)

    def ask(self, unit: CandidatePair) -> Generator[Request, Reply, list[Verdict] | Rejection]:
        """Ask which side is better, in both orders, once for each vote."""
        return judge_pair(unit, self.prompt, self.job.pairs, self.rules)

    def count_calls(self, index: int, task: str) -> tuple[int, int]:  # noqa: ARG002
        """Return the number of votes in both orders, expected and at most."""
        count = 2 * count_votes(self.job.pairs, self.rules.backend(self.role))
        return count, count

    def keep(self, answer: list[Verdict], unit: CandidatePair, spent: Spent) -> JudgedComparison:
        """Return the verdicts with a digest of both texts."""
        compare, model = self.job.pairs.compared, spent.by_role[self.role].model
        if not self._warned and any(verdict.logprob_gap == "not_told" for verdict in answer):
            self._warned = True
            log.warning(
                "%s sent some answers without log probabilities (pairs.logprobs); their verdicts "
                "have no soft preference.",
                self.answerer.model,
            )
        signal = make_oracle_signal(self.id, model, compare, answer, simulated=spent.simulated)
        return JudgedComparison(signal=signal, texts=digest_texts(unit.a, unit.b))

    def find_flaw(self, record: JudgedComparison) -> Rejection | None:
        """Return a rejection with the answer that names no side, if the judge abstains."""
        if not record.signal.abstain:
            return None
        unread = next((one.text for one in record.signal.verdicts if one.choice is None), None)
        said = (unread or "").strip()[:80] or "(empty)"
        return Rejection(RejectionReason.UNREAD, f"an answer names neither side: {said}")


class OracleAsker(JudgeAsker):
    """The judge that names the better side, with a template that the job, the run or the space chooses."""

    name, in_facts = "oracle", False
    template = "oracle_roles"  # for a space without a template of its own

    @classmethod
    def choose_template(cls, named: str | None, compare: Compare, space: Space) -> Template:
        """Return the template for a kind of comparison."""
        return ORACLE.template(named or choose_template(space), compare, space)

    @classmethod
    def find_usual_template(cls, run: RunFolder, compare: Compare, control: Control) -> str | None:
        """Return the published template if the run was judged with it, else None."""
        before = find_published_template(run, compare)
        if before is not None:
            control.note(
                f"this run was judged with the published template {before}, which is used again; --prompt "
                f"{GUARDED_TEMPLATE} guards the judge against instructions in conversations."
            )
        return before


class JudgeTemplate:
    """The choice of a judge's template: `named` by an option, else the job's, else the judge's default."""

    def __init__(
        self,
        kind: type[JudgeAsker],
        run: RunFolder,
        job: Job,
        space: Space,
        named: str | None,
        allowed: AllowedFiles,
    ) -> None:
        self.kind = kind
        self._run, self._space, self._allowed = run, space, allowed
        self._named, self._of_job = named, job.prompts.get(kind.name)

    def choose_compare(self, *, policies: bool) -> Compare:
        """Return what the judge compares if neither the job nor an option sets it.

        Pairs of `policies` compare whole conversations. Otherwise the run's earlier labels by a judge decide,
        so that no pair is judged again. Without labels it is the judge's default, or whole conversations if
        the named template cannot compare responses.
        """
        if policies:
            return "conversation"
        if (before := self._find_earlier_compare()) is not None:
            return before
        if self._named is not None or self._of_job is not None:
            with contextlib.suppress(TemplateError):
                self._load("response")
                return self.kind.compares
            return "conversation"
        return self.kind.compares

    def _find_earlier_compare(self) -> Compare | None:
        """Return what the run's labels by a judge compare; None without such labels."""
        with contextlib.suppress(RunError):
            for pair in read_pairs(self._run) if self._run.pairs.exists() else ():
                if pair.label is not None and pair.label.by == "oracle" and pair.label.k is UNSET:
                    return pair.label.compare
        return None

    def find(self, compare: Compare, control: Control) -> Prompt:
        """Load the template for this kind of comparison. Raises TemplateError."""
        if self._named is not None or self._of_job is not None:
            try:
                return self._load(compare)
            except TemplateError as error:
                if self._named is not None:
                    raise
                hint = Problem(
                    "try",
                    f"--prompt {GUARDED_TEMPLATE}, which is for both kinds, or --prompt oracle_{compare}, "
                    f"the published one for pairs.compare: {compare}",
                )
                raise TemplateError(error.source, error.summary, (*error.problems, hint)) from None
        usual = self.kind.find_usual_template(self._run, compare, control)
        template = self.kind.choose_template(usual, compare, self._space)
        return load_template(template, self._allowed, self._space)

    def _load(self, compare: Compare) -> Prompt:
        """Load the named template, or the job's."""
        named, allowed = (
            (self._named, allow_all_files())
            if self._named is not None
            else (self._of_job or "", self._allowed)
        )
        return load_template(self.kind.choose_template(named, compare, self._space), allowed, self._space)


class JudgeStart(RunStart[JudgeAsker]):
    """A start of the judge of pairs. It first plays the rollouts that the judge compares.

    model: the judge's model, once its backend is open. ledgers: the ledgers of the rollouts, by arm, once
    they are played.
    """

    def __init__(
        self,
        job: Job,
        choice: PairChoice,
        template: JudgeTemplate,
        rollouts: RolloutMaking | None,
        options: PairOptions,
        control: Control,
    ) -> None:
        reader = choice.reader
        folder = reader.rundir.judged
        super().__init__(template.kind, reader, options, folder, control, options.judge or "", job)
        self.model: str | None = None
        self.ledgers: dict[str, Path] | None = None
        self._choice, self._template, self._rollouts = choice, template, rollouts
        self._open = contextlib.ExitStack()

    def read_prompt(self) -> Prompt:
        """Load the template. Raises JobError if the job requires log probabilities that the judge cannot
        give."""
        config = find_backend(self.job, self._by, self.kind.role)
        check_logprobs(self.job, config, str(self.reader.rundir.job))
        return self._template.find(self.job.pairs.compared, self.control)

    @contextlib.asynccontextmanager
    async def open(self, *, send: bool) -> AsyncIterator[Opened]:
        """Open the judge."""
        async with super().open(send=send) as opened:
            (answering,) = opened.values()
            self.model = answering.backends[self.kind.role].model
            self._note_votes(answering.job)
            with self._open:
                yield opened

    def _note_votes(self, job: Job) -> None:
        """Note that the judge votes once, if further votes would be copies."""
        if count_votes(job.pairs, job.backends[self.kind.role]) == job.pairs.votes:
            return
        if job.backends[self.kind.role].BY_PEOPLE:
            self.control.note(f"people vote once in each order, not {job.pairs.votes} times (pairs.votes).")
        else:
            self.control.note(
                f"the judge votes once in each order, not {job.pairs.votes} times (pairs.votes): "
                "at temperature 0 and without a seed of each call, its votes would be copies of "
                "one another. Give it a temperature, or a seed: auto."
            )

    async def prepare(self) -> EdgenError | None:
        """Play the rollouts."""
        try:
            self.ledgers = {} if self._rollouts is None else await self._rollouts.play()
        except EdgenError as error:
            return error
        return None

    def make_asker(self, name: str, job: Job, backend: Backend, prompt: Prompt) -> JudgeAsker:  # noqa: ARG002
        """Return the judge. Rollouts that are not yet played count as usable."""
        pairs: PairChoice | PlayedRollouts = self._choice
        if self._rollouts is not None:
            pairs = self._open.enter_context(PlayedRollouts(self._choice, self.ledgers))
        way = {**self.kind.name_in_facts(), "compare": job.pairs.compared}
        return self.kind(pairs, job, Answerer.of(backend, prompt, **way))
