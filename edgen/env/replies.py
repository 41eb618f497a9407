"""A judge's score of a policy's reply, compared with the run's reply at the same place.

It serves trainers that show a prompt, take one reply and need a number. `edgen export` writes the rows, and
this module scores the replies.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.errors import JobError, UsageError
from edgen.core.pair import Candidate
from edgen.core.values import END_MARKER, Rejection, RejectionReason, Reply, Request, Role, Scenario, Turn
from edgen.env.partners import Partners
from edgen.env.reward import judge_preference, judge_prompt
from edgen.execution.client.budget import Spending
from edgen.planning.load import load_plan
from edgen.planning.plan import Plan
from edgen.reading.one_turn.reader import read_turn

REMEMBERED = 10_000  # scores; the oldest is dropped first


class Score(msgspec.Struct, frozen=True):
    """A score. `value`: the probability, in [0, 1], that the judge prefers the reply to the reference.
    `judged`: whether the judge was asked and gave a verdict in each order. A reply that is not a turn of its
    role scores 0, one without verdicts 0.5."""

    value: float
    judged: bool


class _Place(msgspec.Struct, frozen=True):
    """The place of a reply, from a row of an export."""

    scenario: Scenario
    role: Role
    turn: int
    before: tuple[Turn, ...]


class ReplyJudge:
    """The judge of a job, with the job's budget, limits and connections. Replies are scored concurrently.

    `pairs.compare` determines what the judge sees: the conversation up to the reply, or the two replies. The
    judge is asked in both orders, `pairs.votes` times in each. Equal replies at the same place are judged
    once. Raises JobError for a job with arms, and errors of creating its backends.
    """

    def __init__(self, plan: Plan) -> None:
        if plan.job.arms:
            raise JobError(plan.job.name, "replies are judged for one arm: take a job without arms.")
        self._plan = plan
        self._prompt = judge_prompt(plan)
        self._partners = Partners(plan.call_settings)
        self._partners.join(plan.call_settings, ("judge",))
        self._scores: dict[bytes, Future[Score]] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_job(cls, path: str | Path, *overrides: str) -> ReplyJudge:
        """Build the judge of a job file; `overrides` as for --set. Raises JobError, SpaceError,
        TemplateError."""
        return cls(load_plan(Path(path), list(overrides)))

    @property
    def spent(self) -> Spending | None:
        """Charged tokens and US dollars; None if the job sets no budget."""
        return self._partners.spent

    def close(self) -> None:
        """Cancel running requests, and close the connections."""
        self._partners.leave()

    def score(self, reply: str, reference: str, row: Mapping[str, Any]) -> Future[Score]:
        """Score a reply. `row` is the `extra_info` of an exported row. Do not cancel the future: others may
        wait for it.

        Raises UsageError for a row of another job or not of an export; the future raises the errors of
        `Conversation.step`.
        """
        place = self._read(row)
        key = msgspec.json.encode((reply, reference, place))
        with self._lock:
            known = self._scores.get(key)
            if known is not None and not _has_failed(known):
                return known
            asked: Future[Score] = self._partners.ask(self._judge(reply, reference, place), {})
            self._scores[key] = asked
            if len(self._scores) > REMEMBERED:
                del self._scores[next(iter(self._scores))]
            return asked

    def _read(self, row: Mapping[str, Any]) -> _Place:
        """Return the place that a row names. Raises UsageError if the job has another scenario there."""
        try:
            before = msgspec.json.decode(row["before"], type=tuple[Turn, ...])
            values = msgspec.json.decode(row["scenario"], type=dict[str, str])
            index, turn, role = int(row["index"]), int(row["turn"]), str(row["role"])
        except (KeyError, TypeError, ValueError, msgspec.MsgspecError):
            raise UsageError(
                "the row does not state the place of its reply: take `extra_info` as `edgen export --to "
                "verl-rl` or `--to skyrl` wrote it."
            ) from None
        scenario = self._plan.scenario(index) if index >= 0 else None
        if scenario is None or scenario.values != values or role not in self._plan.job.speakers:
            raise UsageError(
                f"scenario {index} of {self._plan.job.name} differs from the row's: take the job of "
                "the exported run, or one with the same space, seed and design."
            )
        return _Place(scenario, role, turn, before)

    def _judge(self, reply: str, reference: str, place: _Place) -> Generator[Request, Reply, Score]:
        rules = self._plan.rules
        said = read_turn(reply, place.role, words=rules.words, roles=rules.role_words)
        if isinstance(said, Rejection) or not said.text:
            return Score(0.0, False)
        ours = _make_candidate("policy", place, said.text)
        theirs = _make_candidate("reference", place, reference.removesuffix(END_MARKER).rstrip())
        p = yield from judge_preference(self._plan, self._prompt, place.scenario, ours, theirs)
        if isinstance(p, Rejection):
            if p.reason is RejectionReason.IDENTICAL:
                return Score(0.5, True)
            raise UsageError(f"{p.detail}: set pairs.compare to conversation.")
        return Score(0.5, False) if p is None else Score(p, True)


def _has_failed(asked: Future[Score]) -> bool:
    return asked.done() and (asked.cancelled() or asked.exception() is not None)


def _make_candidate(who: str, place: _Place, text: str) -> Candidate:
    """Return the conversation up to a reply, and the reply."""
    return Candidate(
        id=f"{who}-{place.scenario.index}-{place.turn}",
        scenario=place.scenario.index,
        replicate=place.turn,
        arm=who,
        turns=(*place.before, Turn(place.role, text)),
    )


_judges: dict[tuple[str, ...], ReplyJudge] = {}
_making = threading.Lock()


def judge_of(job: str, overrides: Iterable[str] = ()) -> ReplyJudge:
    """Return the judge of a job, one per process: made at the first call, closed at the end.

    `job` is the path of a job file, `overrides` as for --set. Raises UsageError without a job, and the errors
    of `ReplyJudge.from_job`.
    """
    if not job:
        raise UsageError(
            "the job with the judge is missing. Name a job file by its absolute path: with verl by "
            "+reward.custom_reward_function.reward_kwargs.job=JOB, with SkyRL by register(..., "
            "kwargs={'job': JOB})."
        )
    named = (job, *map(str, overrides))
    with _making:
        if named not in _judges:
            _judges[named] = ReplyJudge.from_job(*named)
            atexit.register(_judges[named].close)
        return _judges[named]
