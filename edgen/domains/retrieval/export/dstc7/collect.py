"""Facts collected from a run before its first example: its sides, the agents' utterances on each, and the
right answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from edgen.domains.retrieval.candidates import Candidates, Key, RightAnswers, keys_of
from edgen.domains.retrieval.export.dstc7.options import Dstc7Options
from edgen.domains.retrieval.export.msdialog import actor_of, one_line
from edgen.plugin import AcceptedConversation, Chat, LeftOut, RunReader, Turn, UsageError
from edgen.plugin.errors import ShortError
from edgen.plugin.families import HeldOutGroups
from edgen.plugin.texts import hash64

Side = Literal["train", "dev", "test"]
CONTEXT = 3  # minimum turns before the one to be chosen


class Cut(NamedTuple):
    """An agent's turn to be chosen: its place, a digest of the preceding turns, its text, and
    alternatives."""

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
    """A run with its agents' utterances (by side, and by side and topic), and the right answers for each
    context."""

    run: RunReader
    chat: Chat
    options: Dstc7Options
    topic: str
    held_out: HeldOutGroups
    candidates: Candidates = field(default_factory=Candidates)
    answers: RightAnswers = field(default_factory=RightAnswers)

    def side(self, conversation: AcceptedConversation) -> Side:
        """Return the side of a conversation: a part of the run's training side is for validation."""
        if conversation.split == "test":
            return "test"
        return "dev" if self.held_out.is_test(self.run.group(conversation.scenario)) else "train"

    def about(self, conversation: AcceptedConversation) -> tuple[Side, str]:
        """Return the group of texts from the same side and topic."""
        return self.side(conversation), str(conversation.scenario.values.get(self.topic))

    def speaker(self, turn: Turn) -> str:
        """Return the speaker's name for a turn, one of two in DSTC7's files."""
        if self.options.speakers == "roles":
            return turn.role.lower()
        return "participant_2" if actor_of(turn, self.chat) == "Agent" else "participant_1"

    def examples(self) -> Iterator[Example | LeftOut]:
        """Yield every example, in the run's order, without repeated contexts."""
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
    """Collect the facts of the run. Raises UsageError for a topic that is not a dimension, ShortError if
    agents have too few utterances for any pool."""
    names = run.space.names
    topic = options.topic or names[0]
    if topic not in names:
        raise UsageError(
            f"--topic {topic}: the space {run.space.name} has no such dimension (known: {', '.join(names)})."
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
    """Raise ShortError if the train side is too small for any pool."""
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
    """Return the agent's turns after at least CONTEXT turns."""
    turns = conversation.candidate.turns
    keys = keys_of(one_line(turn.text) for turn in turns)
    return [
        Cut(place, key, text, tuple(one_line(other.text) for other in turn.alternatives))
        for place, (turn, key) in enumerate(zip(turns, keys, strict=False))
        if place >= CONTEXT and actor_of(turn, chat) == "Agent" and (text := one_line(turn.text))
    ]
