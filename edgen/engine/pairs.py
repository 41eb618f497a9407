"""From judged comparisons, votes and probabilities to pairs.jsonl: every pair with all its signals.

Each line has a label, or the reason why none can be defended. The file is made anew, whole, from what
the ledgers hold; nothing is asked here.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from edgen import __version__
from edgen.engine.judging import Judgement
from edgen.engine.votes import votes_that_hold
from edgen.errors import RunError
from edgen.ledger import View
from edgen.model import RejectionReason, Scenario, Status
from edgen.pairing.directed import first_directed
from edgen.pairing.labels import OfDirected, label_scenario
from edgen.pairing.model import Candidate, JudgeDirected, Pair, Side, Signals, Source
from edgen.pairing.signals import human_signal, probability_signal
from edgen.pairing.tournament import slot
from edgen.pairing.votes import Votes
from edgen.protocols.oracle import shared_prefix
from edgen.runreader import RunReader, texts_digest
from edgen.shards import write_jsonl_atomic

_judgement = msgspec.json.Decoder(Judgement).decode
_encode = msgspec.json.Encoder().encode


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Which signal makes the labels, and which pairs are kept."""

    by: Source
    judge: str | None = None
    min_margin: float = 0.0
    max_per_scenario: int | None = None
    judge_directed: OfDirected = "unlabelled"


class Made(msgspec.Struct):
    """What a pairs file holds: labelled pairs by side, and the others by reason. `simulated`: a simulator
    had a part in a conversation or a verdict."""

    train: int = 0
    test: int = 0
    simulated: bool = False
    left_out: Counter[str] = msgspec.field(default_factory=Counter)


def write_pairs(reader: RunReader, choice: Choice, votes: Votes) -> Made:
    """Write pairs.jsonl in the run's folder, in place of an earlier one."""
    made = Made()
    path = reader.rundir.pairs
    path.parent.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        judged = [stack.enter_context(View(ledger)) for ledger in reader.rundir.judge_ledgers()]
        pairs = _labelled(reader, choice, votes, judged)
        write_jsonl_atomic(path, (_encode(_counted(pair, made)) for pair in pairs))
    return made


def _counted(pair: Pair, made: Made) -> Pair:
    made.simulated |= bool(pair.provenance["simulated"])
    if pair.label is None:
        made.left_out[pair.left_out or "unknown"] += 1
    elif pair.split == "test":
        made.test += 1
    else:
        made.train += 1
    return pair


def _labelled(reader: RunReader, choice: Choice, votes: Votes, judged: Sequence[View]) -> Iterator[Pair]:
    for index, numbers in reader.scenarios():
        if len(numbers) > 1:
            pairs = list(_of_scenario(reader, index, numbers, choice, votes, judged))
            yield from label_scenario(
                pairs,
                choice.by,
                choice.judge,
                choice.min_margin,
                choice.max_per_scenario,
                choice.judge_directed,
            )


def _of_scenario(
    reader: RunReader,
    index: int,
    numbers: list[int],
    choice: Choice,
    votes: Votes,
    judged: Sequence[View],
) -> Iterator[Pair]:
    """Every pair of a scenario that some source was asked about, with all that is known of it."""
    scenario = reader.scenario(index)
    candidates = {number: reader.candidate(index, number) for number in numbers}
    said_to_judges = {
        number: first_directed(turn.text for turn in candidate.turns)
        for number, candidate in candidates.items()
    }
    verdicts = [view.outcomes(index) for view in judged]
    asked = set().union(*verdicts)
    for a, b in itertools.combinations(numbers, 2):
        number = slot(a, b)
        one, other = candidates[a], candidates[b]
        human = votes_that_hold(votes, one, other)
        if choice.by != "probability" and number not in asked and not human:
            continue
        texts = texts_digest(one, other)
        heard = [_signal(outcomes.get(number), texts) for outcomes in verdicts]
        judgements = [judgement for judgement in heard if judgement is not None]
        signals = Signals(
            probability=probability_signal(one.probability, other.probability),
            oracle=tuple(judgement.signal for judgement in judgements),
            human=human_signal(human),
            judge_directed=_directed(said_to_judges[a], said_to_judges[b]),
        )
        simulated = (
            any(judgement.signal.simulated for judgement in judgements) or one.simulated or other.simulated
        )
        yield _pair(reader, scenario, one, other, texts, signals, simulated)


def _directed(a: str | None, b: str | None) -> JudgeDirected | UnsetType:
    return UNSET if a is None and b is None else JudgeDirected(a=a, b=b)


def _signal(outcome: tuple[str, str | None, bytes | None] | None, texts: str) -> Judgement | None:
    """What a judge said of a pair, if it was about these very texts."""
    if outcome is None:
        return None
    status, reason, record = outcome
    if record is None or not (status == Status.ACCEPTED or reason == RejectionReason.UNREAD):
        return None
    try:
        judgement = _judgement(record)
    except (ValueError, msgspec.MsgspecError) as problem:
        raise RunError(
            f"a judge's ledger holds a judgement that is none ({problem}); it is damaged."
        ) from None
    return judgement if judgement.texts == texts else None


def _pair(
    reader: RunReader,
    scenario: Scenario,
    a: Candidate,
    b: Candidate,
    texts: str,
    signals: Signals,
    simulated: bool,
) -> Pair:
    prefix = shared_prefix(a, b)
    both_go_on = min(len(a.turns), len(b.turns)) > prefix
    speakers = {c.turns[prefix].role for c in (a, b)} if both_go_on else set()
    return Pair(
        id=f"{reader.name}-{scenario.index:06d}-{_side_name(a)}-{_side_name(b)}",
        scenario=scenario.index,
        split=reader.split(scenario),
        origin=reader.origin,
        a=Side(id=a.id, replicate=a.replicate, arm=a.arm),
        b=Side(id=b.id, replicate=b.replicate, arm=b.arm),
        prefix_turns=prefix,
        differs_at=speakers.pop() if len(speakers) == 1 else None,
        texts=texts,
        signals=signals,
        label=None,
        left_out="identical" if a.turns == b.turns else None,
        provenance={"run": reader.name, "edgen": __version__, "simulated": simulated},
    )


def _side_name(candidate: Candidate) -> str:
    """How a pair's id names a side: its replicate, with its arm where there are arms."""
    return f"r{candidate.replicate}" if candidate.arm is None else f"{candidate.arm}.r{candidate.replicate}"
