"""Runs in memory, to export from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import Job, parse_job
from edgen.core import resources
from edgen.core.errors import RunError
from edgen.core.pair import (
    Candidate,
    Compare,
    HumanSignal,
    HumanVote,
    Label,
    OracleSignal,
    Pair,
    ProbabilitySignal,
    Side,
    SideName,
    Signals,
    Strength,
    Verdict,
)
from edgen.core.registry import find, list_names
from edgen.core.values import END_MARKER, Role, Scenario, Turn
from edgen.domains.education.family import EDUCATION
from edgen.export.chat import Chat, make_chat
from edgen.export.format import Format
from edgen.export.options import OptionValues
from edgen.export.shared_options import Opening
from edgen.families.base import Family
from edgen.space import Space, load_space
from edgen.space.splits import HeldOutGroups, choose_test_side, hash_group
from edgen.store.layers import LayerFacts
from edgen.store.run_folder import RunFolder
from edgen.store.run_parts import AcceptedConversation, ComparedPair
from tests.scenarios import scenario_of

HALF = scenario_of(
    0,
    "fractions",
    "drawings",
    "sulks in a corner",
    "long lectures",
    "speaks louder",
)
NO_LABELS = ProbabilitySignal(a=None, b=None, p=None, tie=False, abstain=True)


def options(format_name: str, **given: Any) -> OptionValues:
    """Return the options of an export in a format."""
    read: OptionValues = find("format", format_name).read(given)
    return read


@dataclass
class MemoryRun:
    """A run whose conversations and pairs are lists; pairs are None if they were never made."""

    taught: Sequence[AcceptedConversation] = ()
    pairs: Sequence[ComparedPair] | None = ()
    simulated: bool = True
    name: str = "tiny"
    breaks_after: int | None = None
    space: Space = field(default_factory=lambda: SPACE)
    family: Family = EDUCATION
    layers: tuple[LayerFacts, ...] = ()
    labels_of: tuple[str, ...] = ()
    stale_labels: Counter[str] = field(default_factory=Counter)

    @property
    def job(self) -> Job:
        return job()

    def job_of(self, arm: str) -> Job:
        return self.job

    @property
    def rundir(self) -> RunFolder:
        return RunFolder(Path("runs") / self.name)

    def group(self, scenario: Scenario) -> int:
        return hash_group("scenario", self.job.seed, scenario)

    def hold_out(self, share: float) -> HeldOutGroups:
        groups = sorted((self.group(one.scenario), 1) for one in self.taught if one.split == "train")
        return choose_test_side(groups, share)

    def conversations(self) -> Iterator[AcceptedConversation]:
        yield from self.taught

    def compared(self) -> Iterator[ComparedPair]:
        if self.pairs is None:
            raise RunError("tiny: there are no pairs; make them with 'edgen pairs'.")
        for i, compared in enumerate(self.pairs):
            if i == self.breaks_after:
                raise RunError("tiny: the ledger cannot be read.")
            yield compared

    def describe(self) -> dict[str, Any]:
        return {"job": msgspec.to_builtins(self.job), "simulated": self.simulated, "accepted": {"tiny": 3}}


def job() -> Job:
    value = {
        "name": "tiny",
        "seed": 7,
        "conversations": 3,
        "space": "education_dialogue",
        "protocol": "oneshot",
        "prompt": "education_dialogue",
        "backends": {"default": {"type": "openai", "model": "m-1", "base_url": "http://10.9.8.7:1/v1"}},
        "shards": {"train": 2, "test": 1},
    }
    return parse_job(value, "job")


SPACE = load_space(resources.find("preference_space", "education_dialogue"))
FORMATS: dict[str, Format] = {name: find("format", name) for name in list_names("format")}
# Formats for which a run of any size about Education Dialogue's space has rows.
OF_EDUCATION = [
    name
    for name, one in FORMATS.items()
    if one.family in (None, "education")
    and not {"labels", "events"} & {*one.needs}
    and "text-ranking" not in one.card.tasks
]
# Of these, the formats whose files are tables; a corpus and dialogs by their ids are objects.
TABLES = [name for name in OF_EDUCATION if name not in ("convokit", "msdialog-complete")]


def chat(train: Role = "Teacher", opening: Opening = "user") -> Chat:
    return make_chat(options("trl-sft", train=train.lower(), opening=opening), SPACE)


def turns(*lines: str) -> tuple[Turn, ...]:
    """Return turns: `"T hello", "S hi"`."""
    roles: dict[str, Role] = {"T": "Teacher", "S": "Student"}
    return tuple(Turn(roles[line[0]], line[2:]) for line in lines)


def scenario(index: int) -> Scenario:
    return msgspec.structs.replace(HALF, index=index)


def candidate(index: int, number: int, said: tuple[Turn, ...], simulated: bool = True) -> Candidate:
    return Candidate(
        id=f"tiny-{index:06d}-r{number}",
        scenario=index,
        replicate=number,
        turns=said,
        ended_by=said[-1].role,
        simulated=simulated,
    )


def lesson(index: int, number: int, said: tuple[Turn, ...], split: str = "train") -> AcceptedConversation:
    who = scenario(index)
    texts = [{"role": turn.role, "text": turn.text} for turn in said]
    texts[-1]["text"] += f" {END_MARKER}"
    record = {
        "background_info": {
            "topic": who["topic"],
            "student_prefrences": who["student_preference"],
            "teacher_prefrences": who["teacher_preference"],
            "student_reactions": who["student_reaction"],
            "teacher_reactions": who["teacher_reaction"],
        },
        "conversation": texts,
        "id": f"tiny-{index:06d}-r{number}",
        "probability": None,
        "ended_by": said[-1].role,
    }
    turns = tuple(Turn(**turn) for turn in texts)
    return AcceptedConversation(candidate(index, number, said), who, split, record, turns, {})  # type: ignore[arg-type]


def oracle(
    p: float, *, tie: bool = False, judge: str = "0123456789abcdef", compare: Compare = "conversation"
) -> OracleSignal:
    return OracleSignal(
        judge=judge,
        model="judge-1",
        compare=compare,
        verdicts=(Verdict(order="ab", vote=0, choice="a"), Verdict(order="ba", vote=0, choice=None)),
        wins_ab=p,
        wins_ba=p,
        p=p,
        tie=tie,
        abstain=False,
    )


def human(p: float) -> HumanSignal:
    return HumanSignal(votes=(HumanVote(rater="r", choice="a"),), p=p, tie=False)


def compared(
    index: int,
    a: tuple[Turn, ...],
    b: tuple[Turn, ...],
    *,
    chosen: SideName | None = "a",
    p: float = 0.75,
    left_out: str | None = None,
    split: str = "train",
    numbers: tuple[int, int] = (0, 1),
    signals: Signals | None = None,
    by: str = "oracle",
    compare: Compare = "conversation",
    simulated: Sequence[str] = ("conversations", "labels"),
    strengths: tuple[float, float] | None = None,
) -> ComparedPair:
    """Return a compared pair.

    `simulated` names what a simulator made: the conversations, the labels, both or neither. `strengths` are
    those of a and b.
    """
    label = None
    if chosen is not None:
        judge = {"judge": "0123456789abcdef", "compare": compare} if by == "oracle" else {}
        label = Label(by=by, chosen=chosen, p=p, margin=2 * p - 1, **judge)  # type: ignore[arg-type]
    played = "conversations" in simulated
    sides = [candidate(index, number, said, played) for number, said in zip(numbers, (a, b), strict=True)]
    strong = [None, None] if strengths is None else [Strength(s, s - 1, s + 1) for s in strengths]
    pair = Pair(
        id=f"tiny-{index:06d}-r{numbers[0]}-r{numbers[1]}",
        scenario=index,
        split=split,  # type: ignore[arg-type]
        origin="replicates",
        a=Side(id=sides[0].id, replicate=numbers[0], strength=strong[0]),
        b=Side(id=sides[1].id, replicate=numbers[1], strength=strong[1]),
        prefix_turns=0,
        differs_at=None,
        texts="0" * 16,
        signals=_judged_by(
            signals or Signals(probability=NO_LABELS, oracle=(oracle(p, compare=compare),)),
            "labels" in simulated,
        ),
        label=label,
        left_out=left_out,
        provenance={"run": "tiny", "simulated": bool(simulated)},
    )
    return ComparedPair(pair, sides[0], sides[1], scenario(index))


def _judged_by(signals: Signals, simulated: bool) -> Signals:
    """Return the signals, their judges simulated or not."""
    judges = tuple(msgspec.structs.replace(signal, simulated=simulated) for signal in signals.oracle)
    return msgspec.structs.replace(signals, oracle=judges)
