"""Facts collected from a run before its first example: its sides, the agents' utterances on each side, and
the right answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from edgen.domains.retrieval.candidates import CandidatePool, Key, RightAnswers, iterate_keys
from edgen.domains.retrieval.export.dstc7.options import Dstc7Options
from edgen.domains.retrieval.export.dstc7.paraphrased import Paraphrased, ParaphrasedTests
from edgen.domains.retrieval.export.msdialog import find_actor, join_lines
from edgen.domains.retrieval.export.sides import Side, Sides
from edgen.plugin import LeftOut, RunReader, Turn
from edgen.plugin.errors import ShortError, UsageError
from edgen.plugin.families import Role
from edgen.plugin.formats import AcceptedConversation
from edgen.plugin.texts import hash64

CONTEXT = 3  # minimum turns before the turn to choose


class DialogueCut(NamedTuple):
    """An agent's turn to choose: its place, a digest of the preceding turns, its text, and its
    alternatives."""

    place: int
    key: Key
    reply: str
    others: tuple[str, ...]


class CutConversation(NamedTuple):
    """A conversation with one cut."""

    conversation: AcceptedConversation
    side: Side
    cut: DialogueCut

    @property
    def name(self) -> str:
        """The conversation's id and the number of the turn, from 1."""
        return f"{self.conversation.candidate.id}-{self.cut.place + 1}"


@dataclass(slots=True)
class KnownUtterances:
    """A run with its agents' utterances, and the right answers for each context."""

    run: RunReader  # the exported one
    agent: Role  # the role that answers users
    options: Dstc7Options  # of the format
    topic: str  # dimension for same-topic candidates
    sides: Sides  # the side of each conversation: train, dev or test
    paraphrased: ParaphrasedTests | None  # conversations for paraphrased tests; None without them
    candidates: CandidatePool = field(default_factory=CandidatePool)
    """Utterances in groups: by side, or by side and topic."""
    answers: RightAnswers = field(default_factory=RightAnswers)  # right answers of each context

    def iterate_conversations(self) -> Iterator[AcceptedConversation]:
        """Yield the conversations of all sides. With paraphrased tests: those of the run's train and dev
        sides, then the paraphrased ones."""
        if self.paraphrased is None:
            yield from self.run.conversations()
            return
        yield from (one for one in self.run.conversations() if self.sides.of(one) != "test")
        yield from self.paraphrased.iterate_conversations(
            one for one in self.run.conversations() if self.sides.of(one) == "train"
        )

    def find_topic_group(self, conversation: AcceptedConversation) -> tuple[Side, str]:
        """Return the group of texts from the same side and topic."""
        return self.sides.of(conversation), str(conversation.scenario.values.get(self.topic))

    def name_speaker(self, turn: Turn) -> str:
        """Return the speaker's name in DSTC7's files: one of two, or the role."""
        if self.options.speakers == "roles":
            return turn.role.lower()
        return "participant_2" if find_actor(turn, self.agent) == "Agent" else "participant_1"

    def iterate_examples(self) -> Iterator[CutConversation | LeftOut]:
        """Yield every example, in the run's order; a LeftOut for a repeated context or an unused
        conversation."""
        seen: set[Key] = set()
        if self.paraphrased is not None:
            sides = map(self.sides.of, self.run.conversations())
            yield from (LeftOut("unseen") for side in sides if side == "test")
        for conversation in self.iterate_conversations():
            cuts = list_cuts(conversation, self.agent)
            if not cuts:
                yield LeftOut("no_target")
                continue
            new = [cut for cut in cuts if cut.key not in seen]
            if self.options.cuts == "one":
                draw = hash64(f"{self.run.job.seed}/cut/{conversation.candidate.id}")
                left = int(not new)
                new = [new[draw % len(new)]] if new else []
            else:
                left = len(cuts) - len(new)
            yield from [LeftOut("same_context")] * left
            for cut in new:
                seen.add(cut.key)
                yield CutConversation(conversation, self.sides.of(conversation), cut)


def collect(run: RunReader, agent: Role, options: Dstc7Options) -> KnownUtterances:
    """Collect the facts of the run. Raises UsageError for a topic that is not a dimension, ShortError if
    agents have too few utterances for any pool."""
    names = run.space.names
    topic = options.topic or names[0]
    if topic not in names:
        raise UsageError(
            f"--topic {topic}: the space {run.space.name} has no such dimension (known: {', '.join(names)})."
        )
    by_topic = options.negatives == "same-topic"
    paraphrased = ParaphrasedTests(run) if options.tests == 1 else None
    known = KnownUtterances(run, agent, options, topic, Sides(run, options.dev), paraphrased)
    tests = 0
    for conversation in known.iterate_conversations():
        groups = [
            known.sides.of(conversation),
            *([known.find_topic_group(conversation)] if by_topic else []),
        ]
        for turn in _list_sayable(conversation):
            if find_actor(turn, agent) == "Agent" and (text := join_lines(turn.text)):
                known.candidates.add(text, *groups)
        cuts = list_cuts(conversation, agent)
        tests += bool(cuts) and isinstance(conversation, Paraphrased)
        for cut in cuts:
            known.answers.add(cut.key, [known.candidates.add(text) for text in (cut.reply, *cut.others)])
    if paraphrased is not None and not tests:
        raise paraphrased.make_no_paraphrases_error()
    if known.candidates.texts and options.subtask != 2:
        _require(known)
    return known


def _list_sayable(conversation: AcceptedConversation) -> Iterator[Turn]:
    """Yield the turns whose texts may be candidates. Of a paraphrased conversation these are only the
    paraphrased turns, since the others occur in training."""
    if not isinstance(conversation, Paraphrased):
        yield from conversation.candidate.turns
        return
    yield from (conversation.candidate.turns[place] for place in conversation.places)


def _require(known: KnownUtterances) -> None:
    """Raise ShortError if the train side is too small for any pool."""
    run, wanted = known.run, known.options.candidates
    if (there := known.candidates.count_different("train")) >= wanted:
        return
    raise ShortError(
        f"{run.name}: a pool of {wanted:,} needs {wanted:,} different turns of agents (where turns do not say: "
        f"{known.agent}) on the train side, and there are {there:,}; {wanted - there:,} more are needed. "
        "Generate more conversations"
        + (
            f", or take --candidates {there} or fewer."
            if there > 1
            else ", or name who answers with --agent."
        )
    )


def list_cuts(conversation: AcceptedConversation, agent: Role) -> list[DialogueCut]:
    """Return the agent's turns after at least CONTEXT turns; in a paraphrased conversation, only those that
    may be chosen."""
    turns = conversation.candidate.turns
    keys = iterate_keys(join_lines(turn.text) for turn in turns)
    return [
        DialogueCut(place, key, text, tuple(join_lines(other.text) for other in turn.alternatives))
        for place, (turn, key) in enumerate(zip(turns, keys, strict=False))
        if place >= CONTEXT
        and find_actor(turn, agent) == "Agent"
        and (text := join_lines(turn.text))
        and (not isinstance(conversation, Paraphrased) or conversation.may_be_chosen(place))
    ]
