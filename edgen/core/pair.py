"""The values of preference pairs: candidates, signals, labels.

A signal is one source's opinion of a pair; signals are kept side by side and never replace each other. `p` is
always the soft preference, in [0, 1], that side a is better; an abstaining signal has none. A label is made
from one signal and names the chosen side.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core.values import Role, Turn

_encode = msgspec.json.Encoder().encode

SideName = Literal["a", "b"]
Source = Literal["oracle", "probability", "human", "flag", "judged"]
OF_RESPONSES: frozenset[Source] = frozenset(
    {"flag", "judged"}
)  # the run's own judgement of responses to one turn
PairOrigin = Literal["replicates", "branch", "arms", "responses"]
Order = Literal["ab", "ba"]
Compare = Literal["conversation", "response"]


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted conversation of a scenario, to be compared with others of the same scenario.

    `branch` is the turn, counted from 0, at which it left replicate 0. Turns have no end marker. `outcome` is
    its result, if its protocol states one.
    """

    id: str
    scenario: int
    replicate: int
    turns: tuple[Turn, ...]
    arm: str = ""
    probability: float | None = None
    ended_by: Role | None = None
    branch: int | None = None
    simulated: bool = False
    outcome: dict[str, Any] | None = None

    @classmethod
    def of(cls, recorded: Any, arm: str) -> Candidate:
        """Return the candidate of a record (`edgen.families.base.Recorded`) of an arm."""
        provenance, said = recorded.provenance, recorded.conversation
        return cls(
            id=recorded.id,
            scenario=provenance.scenario,
            arm=arm,
            replicate=provenance.replicate,
            turns=recorded.turns,
            probability=said.probability,
            ended_by=said.ended_by,
            branch=provenance.branch,
            simulated=provenance.simulated,
            outcome=said.outcome,
        )

    @property
    def name(self) -> str:
        """Its name within its scenario: "r0", "json.r0"."""
        return candidate_name(self.arm, self.replicate)


def candidate_name(arm: str, replicate: int) -> str:
    """Return a conversation's name within its scenario."""
    return f"{arm}.r{replicate}" if arm else f"r{replicate}"


def read_candidate_name(name: str) -> tuple[str, int]:
    """Return the arm and the replicate in a candidate's name."""
    arm, _, replicate = name.rpartition(".")
    return arm, int(replicate.removeprefix("r"))


class ResponsePlace(msgspec.Struct, frozen=True):
    """The place of one of several responses: `turn`, from 0, and the index of the response, 0 being the one
    that was continued."""

    turn: int
    number: int


def response_at(candidate: Candidate, place: ResponsePlace) -> Candidate:
    """Return the conversation up to and including a response, as if it had ended there. Raises IndexError if
    there is none."""
    said = candidate.turns[place.turn]
    response = said if place.number == 0 else said.alternatives[place.number - 1]
    turns = (*candidate.turns[: place.turn], msgspec.structs.replace(response, alternatives=()))
    return msgspec.structs.replace(candidate, turns=turns, probability=None, ended_by=None)


def turns_left(a: Candidate, b: Candidate, prefix: int) -> int:
    """Return the number of turns after the one at which two candidates part, in the one with fewer; -1 if one
    ends there. `prefix` is the number of shared turns."""
    return min(len(a.turns), len(b.turns)) - prefix - 1


def texts_digest(a: Candidate, b: Candidate) -> str:
    """Return 16 hex digits that identify the texts of two conversations."""
    return hashlib.blake2b(_encode((a.turns, b.turns)), digest_size=8).hexdigest()


UNKNOWN_SIDE = "unknown_side"  # why there is no preference: the token of one side is not listed


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a judge. `order` is the order of the shown sides; `choice` is None for an unreadable
    answer, and `text` then its beginning.

    If log probabilities were requested, `logprob_p` is side a's share of both sides' probability at the
    verdict; None if unknown, for the reason `logprob_gap` (those of `reading.answers.verdict_logprobs`,
    UNKNOWN_SIDE or "unread"). If the service lists only one side there, `logprob_bounds` has the least and
    the greatest possible share, and `logprob_p` is the bound nearer to even, or None if the bounds favour no
    side.
    """

    order: Order
    vote: int
    choice: SideName | None
    text: str | None = None
    logprob_p: float | UnsetType | None = UNSET
    logprob_gap: str | UnsetType = UNSET
    logprob_bounds: tuple[float, float] | UnsetType = UNSET


class LogprobSignal(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's log probabilities. `p_ab` and `p_ba` are side a's mean probability in each order, None if no
    verdict of it has one; `p` is the mean of both orders, which cancels a position bias, None if one is None.
    `known` counts the verdicts that have one. If the bounds of `p` are not equal, they are `bounds`; then `p`
    is the bound nearer to even, or None if they favour no side."""

    p_ab: float | None
    p_ba: float | None
    p: float | None
    known: int
    bounds: tuple[float, float] | UnsetType = UNSET


class OracleSignal(msgspec.Struct, frozen=True, kw_only=True):
    """The signal of one judge. `judge` names backend, template and settings (16 hex digits).

    `wins_ab` and `wins_ba` are side a's share of the readable verdicts in each order, `p` their mean; `tie`:
    the orders do not favour the same side. An order abstains unless more than half of its verdicts are
    readable; it then has no share, and the signal abstains, too. Unreadable verdicts never count for either
    side. `simulated`: no model judged. `logprobs` is set if log probabilities were requested.
    """

    judge: str
    model: str
    compare: Compare
    verdicts: tuple[Verdict, ...]
    wins_ab: float | None
    wins_ba: float | None
    p: float | None
    tie: bool
    abstain: bool
    simulated: bool = False
    logprobs: LogprobSignal | UnsetType = UNSET


class ProbabilitySignal(msgspec.Struct, frozen=True, kw_only=True):
    """The conversations' own probabilities of understanding. p = 0.5 + (a - b) / 2."""

    a: float | None
    b: float | None
    p: float | None
    tie: bool
    abstain: bool


class RolloutSignal(msgspec.Struct, frozen=True, kw_only=True):
    """The results of continuing the conversation `k` times from each of the two responses at which a pair
    parts.

    `by` the conversations' own probabilities, `a` and `b` are the means over the rollouts of that response,
    and p = 0.5 + (a - b) / 2. By a judge, the first rollout of a is compared with the first of b in both
    orders, and so on; p is the mean of these preferences (orders that disagree and equal texts: 0.5), `a` is
    p and `b` the rest. `counted`: rollouts with a value, on the side with fewer; the signal abstains unless
    that is more than half of k. `se` is p's standard error, None for fewer than two. `verdicts`: the judge's
    readable ones.
    """

    by: Literal["oracle", "probability"]
    k: int
    counted: int
    a: float | None
    b: float | None
    p: float | None
    se: float | None
    tie: bool
    abstain: bool
    judge: str | None = None
    model: str | None = None
    verdicts: int = 0
    simulated: bool = False


class HumanVote(msgspec.Struct, frozen=True, kw_only=True):
    """One person's choice. `texts` is the digest of the shown texts, if the vote names it."""

    rater: str
    choice: Literal["a", "b", "tie"]
    texts: str | None = None


class HumanSignal(msgspec.Struct, frozen=True, kw_only=True):
    """People's votes: p is their mean, a tie counting one half."""

    votes: tuple[HumanVote, ...]
    p: float
    tie: bool


class MarkSignal(msgspec.Struct, frozen=True, kw_only=True):
    """The run's own marks of two responses to one turn: those of `a` and `b`, None without a mark. p is 1 if
    a's is better, 0 if b's is; it abstains if the marks do not decide."""

    a: str | None
    b: str | None
    p: float | None
    tie: bool
    abstain: bool


class JudgeDirected(msgspec.Struct, frozen=True, kw_only=True):
    """The text of each side that addresses the judge; None for a side without any."""

    a: str | None
    b: str | None


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """All signals of a pair, one field per source."""

    probability: ProbabilitySignal
    oracle: tuple[OracleSignal, ...] = ()
    human: HumanSignal | None = None
    judge_directed: JudgeDirected | UnsetType = UNSET
    """Not a source of labels but a reason against them; None if neither side addresses a judge."""
    flag: MarkSignal | UnsetType = UNSET
    """For two responses to one turn: a response was called nonsense."""
    judged: MarkSignal | UnsetType = UNSET
    """For two responses to one turn: a judge of the run found it the best or the worst."""
    rollouts: tuple[RolloutSignal, ...] | UnsetType = UNSET
    """Set if the labels are to use them."""


class Strength(msgspec.Struct, frozen=True):
    """A candidate's Bradley-Terry strength within its scenario, in logits, with a 95% interval."""

    value: float
    low: float
    high: float


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation of a pair; for a pair of responses to one turn, the response in it."""

    id: str
    replicate: int
    arm: str | None = None  # as in pairs.jsonl: null in a run without arms
    response: ResponsePlace | UnsetType = UNSET
    strength: Strength | None = None


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """The chosen side, with its source. `p` is the source's preference for the chosen side, in (0.5, 1];
    `margin` in (0, 1] is 2p - 1, or for an oracle's label a function of the Bradley-Terry strengths. `judge`
    and `compare` (its mode) are an oracle's; None for other sources. A label from rollouts is about the
    responses at which the pair parts: `k` is the number of rollouts of each, `se` p's standard error."""

    by: Source
    chosen: SideName
    p: float
    margin: float
    judge: str | None = None
    compare: Compare | None = None
    k: int | UnsetType = UNSET
    se: float | UnsetType | None = UNSET


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One line of pairs.jsonl. `label` is None if no label is justified; `left_out` is the reason.

    `prefix_turns` counts the turns shared from the start, `differs_at` is the first speaker after that (None:
    one ends there). `texts` is a digest of both conversations, in 16 hexadecimal digits: a vote with another
    digest was cast on other texts.
    """

    id: str
    scenario: int
    split: Literal["train", "test"]
    origin: PairOrigin
    a: Side
    b: Side
    prefix_turns: int
    differs_at: Role | None
    texts: str
    signals: Signals
    label: Label | None
    left_out: str | None
    provenance: dict[str, Any]
