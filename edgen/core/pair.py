"""The values of preference pairs: candidates, signals, labels.

A signal is one source's opinion of a pair; several stand beside each other and none replaces another.
`p` is always the soft preference, in [0, 1], that side a is the better one; a signal that abstains has
none. A label is made from one signal and says which side is chosen.
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
)  # what a run says itself of responses to one turn
PairOrigin = Literal["replicates", "branch", "arms", "responses"]
Order = Literal["ab", "ba"]
Compare = Literal["conversation", "response"]


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted conversation of a scenario, to be compared with others of the same scenario.

    `branch` is the turn, counted from 0, at which it left replicate 0. Turns hold no end marker. `outcome` is what it came
    to, where its protocol says so.
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

    @property
    def name(self) -> str:
        """What it is called among those of its scenario: "r0", "json.r0"."""
        return candidate_name(self.arm, self.replicate)


def candidate_name(arm: str, replicate: int) -> str:
    """What a conversation is called among those of its scenario."""
    return f"{arm}.r{replicate}" if arm else f"r{replicate}"


def read_candidate_name(name: str) -> tuple[str, int]:
    """The arm and the replicate in a candidate's name."""
    arm, _, replicate = name.rpartition(".")
    return arm, int(replicate.removeprefix("r"))


class ResponsePlace(msgspec.Struct, frozen=True):
    """One of several responses in a conversation: to which turn, from 0, it belongs, and which of its responses it is, the
    one that went on being 0."""

    turn: int
    number: int


def response_at(candidate: Candidate, place: ResponsePlace) -> Candidate:
    """The conversation up to a response and with it, as if it had ended there. Raises IndexError where there is none."""
    said = candidate.turns[place.turn]
    response = said if place.number == 0 else said.alternatives[place.number - 1]
    turns = (*candidate.turns[: place.turn], msgspec.structs.replace(response, alternatives=()))
    return msgspec.structs.replace(candidate, turns=turns, probability=None, ended_by=None)


def turns_left(a: Candidate, b: Candidate, prefix: int) -> int:
    """How many turns follow the one at which two candidates part, in the one where fewer do; -1 where one ends there.
    `prefix` is how many turns they share."""
    return min(len(a.turns), len(b.turns)) - prefix - 1


def texts_digest(a: Candidate, b: Candidate) -> str:
    """16 hex digits that stand for what two conversations say."""
    return hashlib.blake2b(_encode((a.turns, b.turns)), digest_size=8).hexdigest()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a judge. `order` is how the sides were shown; `choice` is None where the answer
    could not be read, and `text` then its beginning.

    Where log probabilities were asked for, `logprob_p` is what side a has of the probability of both where the verdict
    stands; None where that is not known, for the reason `logprob_gap` (those of `reading.answers.verdict_logprobs`, or
    "unread")."""

    order: Order
    vote: int
    choice: SideName | None
    text: str | None = None
    logprob_p: float | UnsetType | None = UNSET
    logprob_gap: str | UnsetType = UNSET


class LogprobSignal(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge's log probabilities say. `p_ab` and `p_ba` are side a's mean probability in each order, None where no
    verdict of it has one; `p` is the mean of both orders, in which the favour of a position cancels out, None where
    one is None. `known` counts the verdicts that have one.
    """

    p_ab: float | None
    p_ba: float | None
    p: float | None
    known: int


class OracleSignal(msgspec.Struct, frozen=True, kw_only=True):
    """What one judge said. `judge` names backend, template and way of asking (16 hex digits).

    `wins_ab` and `wins_ba` are side a's share of the read verdicts in each order, `p` their mean;
    `tie`: the orders do not favour the same side. An order abstains unless more than half of its verdicts
    could be read; one that abstains has no share, and the signal then abstains too. Verdicts that could not be
    read never count for either side.
    `simulated`: no model judged. `logprobs` is there where log probabilities were asked for.
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
    """What became of both responses at which a pair parts when the conversation was played on from each `k` times.

    `by` the conversations' own probabilities, `a` and `b` are the means over those played on from that response, and
    p = 0.5 + (a - b) / 2. By a judge, the first of a's is compared with the first of b's in both orders, and so on; p is
    the mean of these preferences (orders that disagree and equal texts: 0.5), `a` is p and `b` the rest. `counted`: of
    how many there is a value, on the side with fewer; it abstains unless that is more than half of k. `se` is p's
    standard error, None where fewer than two were counted. `verdicts`: those of the judge that could be read.
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
    """One person's choice. `texts` is the digest of the texts that were shown, where the vote names it."""

    rater: str
    choice: Literal["a", "b", "tie"]
    texts: str | None = None


class HumanSignal(msgspec.Struct, frozen=True, kw_only=True):
    """What people said: p is the mean of their votes, a tie counting one half."""

    votes: tuple[HumanVote, ...]
    p: float
    tie: bool


class MarkSignal(msgspec.Struct, frozen=True, kw_only=True):
    """What the run's own records say of two responses to one turn: the marks of `a` and `b`, None for one without a mark.
    p is 1 where a's is the better one, 0 where b's is; it abstains where the marks do not say."""

    a: str | None
    b: str | None
    p: float | None
    tie: bool
    abstain: bool


class JudgeDirected(msgspec.Struct, frozen=True, kw_only=True):
    """What each side says to whoever judges it, as it was found; None for a side that says nothing of the kind."""

    a: str | None
    b: str | None


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known about a pair, each source by itself. `judge_directed` is no source of labels but
    a reason against them; it is not there where neither side speaks to a judge. `rollouts` is there where the labels
    are to rest on them, `flag` (a response was called nonsense) and `judged` (a judge of the run found it the best or the
    worst of all to that turn) where the pair is of two responses to one turn."""

    probability: ProbabilitySignal
    oracle: tuple[OracleSignal, ...] = ()
    human: HumanSignal | None = None
    judge_directed: JudgeDirected | UnsetType = UNSET
    flag: MarkSignal | UnsetType = UNSET
    judged: MarkSignal | UnsetType = UNSET
    rollouts: tuple[RolloutSignal, ...] | UnsetType = UNSET


class Strength(msgspec.Struct, frozen=True):
    """A candidate's Bradley-Terry strength among its scenario's, in logits, with a 95% interval."""

    value: float
    low: float
    high: float


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation of a pair; of a pair of responses to one turn, the response in it."""

    id: str
    replicate: int
    arm: str | None = None  # as pairs.jsonl has it: null in a run without arms
    response: ResponsePlace | UnsetType = UNSET
    strength: Strength | None = None


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """Which side is chosen, by which source. `p` is the source's preference for the chosen side, in
    (0.5, 1]; `margin` in (0, 1] is 2p - 1, or for an oracle's label what the Bradley-Terry strengths make of it.
    `judge` and `compare` (how it compared) are an oracle's; None for other sources. Where the label rests on rollouts, it
    is about the responses at which the pair parts: `k` says how often each was played on from, `se` is p's standard
    error."""

    by: Source
    chosen: SideName
    p: float
    margin: float
    judge: str | None = None
    compare: Compare | None = None
    k: int | UnsetType = UNSET
    se: float | UnsetType | None = UNSET


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One line of pairs.jsonl. `label` is None where no label can be defended; `left_out` then says why.

    `prefix_turns` counts the turns that both sides share from the start, `differs_at` is who speaks
    first where they part (None: one ends there). `texts` is a digest of what both conversations say, in 16
    hexadecimal digits: a vote that names another one was cast on other texts.
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
