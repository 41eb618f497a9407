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
    """An accepted conversation of a scenario, to be compared with others of the same scenario."""

    id: str  # of the conversation
    scenario: int  # index of the scenario
    replicate: int  # from 0
    turns: tuple[Turn, ...]  # without the end marker
    arm: str = ""  # empty without arms
    probability: float | None = None  # of its family's event; None if unknown
    ended_by: Role | None = None  # the speaker of the end marker; None without one
    branch: int | None = None  # turn, from 0, at which it left replicate 0; None if it did not
    simulated: bool = False  # no model wrote it
    outcome: dict[str, Any] | None = None  # its result, if its protocol states one

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
        return make_candidate_name(self.arm, self.replicate)


def make_candidate_name(arm: str, replicate: int) -> str:
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


def cut_at_response(candidate: Candidate, place: ResponsePlace) -> Candidate:
    """Return the conversation up to and including a response, as if it had ended there. Raises IndexError if
    the place does not exist."""
    said = candidate.turns[place.turn]
    response = said if place.number == 0 else said.alternatives[place.number - 1]
    turns = (*candidate.turns[: place.turn], msgspec.structs.replace(response, alternatives=()))
    return msgspec.structs.replace(candidate, turns=turns, probability=None, ended_by=None)


def turns_left(a: Candidate, b: Candidate, prefix: int) -> int:
    """Return how many turns follow the turn at which two candidates part, in the shorter one; -1 if one ends
    there. `prefix` is the number of shared turns."""
    return min(len(a.turns), len(b.turns)) - prefix - 1


def digest_texts(a: Candidate, b: Candidate) -> str:
    """Return 16 hex digits that identify the texts of two conversations."""
    return hashlib.blake2b(_encode((a.turns, b.turns)), digest_size=8).hexdigest()


UNKNOWN_SIDE = "unknown_side"  # why there is no preference: the token of one side is not listed


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a judge."""

    order: Order  # of the shown sides
    vote: int  # its number, from 0, in that order
    choice: SideName | None  # None for an unreadable answer
    text: str | None = None  # beginning of an unreadable answer
    logprob_p: float | UnsetType | None = UNSET
    """Side a's share of both sides' probability at the verdict, if log probabilities were requested. None if
    unknown; the bound nearer to 0.5 if the service lists only one side, None if the bounds favour no side."""
    logprob_gap: str | UnsetType = UNSET
    """Why `logprob_p` is unknown: a reason of `reading.answers.verdict_logprobs`, UNKNOWN_SIDE or
    "unread"."""
    logprob_bounds: tuple[float, float] | UnsetType = UNSET
    """The least and the greatest possible share, if the service lists only one side."""


class LogprobSignal(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's log probabilities. `p_ab` and `p_ba`: side a's mean probability in each order; None if no
    verdict in that order has one. `p`: the mean of both orders, which cancels a position bias; None if either
    is None. `known`: the number of verdicts with a probability. `bounds`: the bounds of `p` if they differ;
    then `p` is the bound nearer to 0.5, or None if they favour no side."""

    p_ab: float | None
    p_ba: float | None
    p: float | None
    known: int
    bounds: tuple[float, float] | UnsetType = UNSET


class OracleSignal(msgspec.Struct, frozen=True, kw_only=True):
    """The signal of one judge. Unreadable verdicts never count for either side."""

    judge: str  # names backend, template and settings (16 hex digits)
    model: str  # name of the judge's model
    compare: Compare  # compared texts
    verdicts: tuple[Verdict, ...]  # every answer of the judge
    wins_ab: float | None
    """Side a's share of the readable verdicts in order ab; None: at most half of its
    verdicts are readable, and the order abstains."""
    wins_ba: float | None  # the same in order ba
    p: float | None  # the mean of both; None if the signal abstains
    tie: bool  # the orders do not favour the same side
    abstain: bool  # an order abstains
    simulated: bool = False  # no model judged
    logprobs: LogprobSignal | UnsetType = UNSET  # set if log probabilities were requested


class ProbabilitySignal(msgspec.Struct, frozen=True, kw_only=True):
    """The conversations' own probabilities of understanding. p = 0.5 + (a - b) / 2."""

    a: float | None
    b: float | None
    p: float | None
    tie: bool
    abstain: bool


class RolloutSignal(msgspec.Struct, frozen=True, kw_only=True):
    """The results of continuing the conversation `k` times from each of the two responses at which the pair
    parts."""

    by: Literal["oracle", "probability"]
    """The conversations' own probabilities, or a judge that compares the first rollout of a with the first of
    b in both orders, and so on."""
    k: int  # rollouts of each response
    counted: int  # rollouts with a value, on the side with fewer
    a: float | None  # by probability: mean over the rollouts of a; by a judge: p
    b: float | None  # by probability: mean over the rollouts of b; by a judge: 1 - p
    p: float | None
    """By probability: 0.5 + (a - b) / 2. By a judge: mean preference, 0.5 for orders that disagree and equal
    texts."""
    se: float | None  # p's standard error; None for fewer than two
    tie: bool  # p favours no side
    abstain: bool  # `counted` is not more than half of k
    judge: str | None = None  # the judge's identity; None without one
    model: str | None = None  # name of the judge's model
    verdicts: int = 0  # readable verdicts of the judge
    simulated: bool = False  # no model wrote or judged


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
    """The run's own marks of two responses to one turn. `a` and `b` are the marks; None without one. p is 1
    if a's is better, 0 if b's is; it abstains if the marks do not decide."""

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

    probability: ProbabilitySignal  # from the conversations' own probabilities
    oracle: tuple[OracleSignal, ...] = ()  # one for each judge
    human: HumanSignal | None = None  # people's votes
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
    """The chosen side, with its source."""

    by: Source  # source of the label
    chosen: SideName  # the better side
    p: float  # the source's preference for the chosen side, in (0.5, 1]
    margin: float  # in (0, 1]: 2p - 1, or for an oracle's label a function of the Bradley-Terry strengths
    judge: str | None = None  # an oracle's identity; None for other sources
    compare: Compare | None = None  # an oracle's compared texts; None for other sources
    k: int | UnsetType = UNSET  # rollouts of each response at which the pair parts, for a label from rollouts
    se: float | UnsetType | None = UNSET  # p's standard error, for a label from rollouts


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One line of pairs.jsonl."""

    id: str  # of the pair
    scenario: int  # of both sides
    split: Literal["train", "test"]  # its side of the split
    origin: PairOrigin  # of the two candidates
    a: Side  # one side
    b: Side  # the other side
    prefix_turns: int  # turns shared from the start
    differs_at: Role | None  # the first speaker after the shared turns; None: one conversation ends there
    texts: str  # digest of both conversations, 16 hex digits; a vote with another one was cast on other texts
    signals: Signals  # of all sources
    label: Label | None  # None if no label is justified
    left_out: str | None  # the reason of a missing label
    provenance: dict[str, Any]  # how the pair was made
