"""What has to be known of a run before the first example is made: its sides, what agents say on each, and what is right
where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from edgen.core.digest import hash64
from edgen.core.errors import ShortError, UsageError
from edgen.core.values import Turn
from edgen.export.chat import Chat
from edgen.export.format import AcceptedConversation, LeftOut, RunReader
from edgen.export.formats.dstc7.options import Dstc7Options
from edgen.export.msdialog import actor_of, one_line
from edgen.retrieval.candidates import Candidates, Key, RightAnswers, keys_of
from edgen.space.splits import HeldOutGroups

Side = Literal["train", "dev", "test"]
CONTEXT = 3  # turns before the one that is to be chosen, at least


class Cut(NamedTuple):
    """The turn of an agent that is to be chosen: its place, what stands for all that was said before, its text, and what
    could have been said instead."""

    place: int
    key: Key
    reply: str
    others: tuple[str, ...]


class Example(NamedTuple):
    """A conversation, cut."""

    conversation: AcceptedConversation
    side: Side
    cut: Cut

    @property
    def name(self) -> str:
        """The conversation's id and the number of the turn, from 1."""
        return f"{self.conversation.candidate.id}-{self.cut.place + 1}"


@dataclass(slots=True)
class Known:
    """A run, what agents say in it (by side, and by side and topic), and what is right after each context."""

    run: RunReader
    chat: Chat
    options: Dstc7Options
    topic: str
    held_out: HeldOutGroups
    candidates: Candidates = field(default_factory=Candidates)
    answers: RightAnswers = field(default_factory=RightAnswers)

    def side(self, conversation: AcceptedConversation) -> Side:
        """The side that a conversation is on: of what the run has for training, a part is for validation."""
        if conversation.split == "test":
            return "test"
        return "dev" if self.held_out.is_test(self.run.group(conversation.scenario)) else "train"

    def about(self, conversation: AcceptedConversation) -> tuple[Side, str]:
        """The group of texts that were said on the same side about the same topic."""
        return self.side(conversation), str(conversation.scenario.values.get(self.topic))

    def speaker(self, turn: Turn) -> str:
        """What the speaker of a turn is called, in one of the two ways that DSTC7's files have."""
        if self.options.speakers == "roles":
            return turn.role.lower()
        return "participant_2" if actor_of(turn, self.chat) == "Agent" else "participant_1"

    def examples(self) -> Iterator[Example | LeftOut]:
        """Every example, in the run's order; no context comes twice."""
        seen: set[Key] = set()
        for conversation in self.run.conversations():
            cuts = cuts_of(conversation, self.chat)
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
                yield Example(conversation, self.side(conversation), cut)


def collect(run: RunReader, chat: Chat, options: Dstc7Options) -> Known:
    """Read the run for what is to be known. Raises UsageError for a topic that is no dimension, ShortError where agents
    say too little for any pool."""
    names = run.space.names
    topic = options.topic or names[0]
    if topic not in names:
        raise UsageError(
            f"--topic {topic}: the space {run.space.name} has no such dimension (there: {', '.join(names)})."
        )
    by_topic = options.negatives == "same-topic"
    known = Known(run, chat, options, topic, run.hold_out(options.dev))
    for conversation in run.conversations():
        groups = [known.side(conversation), *([known.about(conversation)] if by_topic else [])]
        for turn in conversation.candidate.turns:
            if actor_of(turn, chat) == "Agent" and (text := one_line(turn.text)):
                known.candidates.add(text, *groups)
        for cut in cuts_of(conversation, chat):
            known.answers.add(cut.key, [known.candidates.add(text) for text in (cut.reply, *cut.others)])
    if known.candidates.texts and options.subtask != 2:
        _require(known)
    return known


def _require(known: Known) -> None:
    """Raise ShortError where the train side is too small for any pool."""
    run, chat, wanted = known.run, known.chat, known.options.candidates
    if (there := known.candidates.different("train")) >= wanted:
        return
    raise ShortError(
        f"{run.name}: a pool of {wanted:,} takes as many different turns of agents (here: {chat.agent}) on the train side, "
        f"and there are {there:,}; {wanted - there:,} more are needed. Generate more conversations"
        + (
            f", or take --candidates {there} or fewer."
            if there > 1
            else ", or name who answers with --agent."
        )
    )


def cuts_of(conversation: AcceptedConversation, chat: Chat) -> list[Cut]:
    """Where an agent speaks after CONTEXT turns or more."""
    turns = conversation.candidate.turns
    keys = keys_of(one_line(turn.text) for turn in turns)
    return [
        Cut(place, key, text, tuple(one_line(other.text) for other in turn.alternatives))
        for place, (turn, key) in enumerate(zip(turns, keys, strict=False))
        if place >= CONTEXT and actor_of(turn, chat) == "Agent" and (text := one_line(turn.text))
    ]
