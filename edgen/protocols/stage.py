"""Two agents on a stage: what each knows, how each is asked, and what is made of what they say.

A side's brief is rendered from its own values alone; what one knows of the other is what the other
said. `Stage` yields requests, as protocols do; selfplay and the environment for online methods drive it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Generator, Mapping, Sequence
from typing import Literal

import msgspec

from edgen.model import Address, Message, Rejection, RejectionReason, Reply, Request, Role, Scenario, Turn
from edgen.protocols.base import Prompting, Rules, ask, transcript_of
from edgen.transcript.detect import leaked, loops
from edgen.transcript.probability import read_probability
from edgen.transcript.turn import Said, read_turn

CLOSING_STEP = 1000  # behind the last step that a turn can have
OTHER: dict[Role, Role] = {"Teacher": "Student", "Student": "Teacher"}
BACKEND_ROLE: dict[Role, str] = {"Teacher": "teacher", "Student": "student"}
COMMON = ("index", "topic", "subject", "level")
SECRETS: dict[Role, tuple[str, str]] = {
    "Teacher": ("teacher_preference", "teacher_reaction"),
    "Student": ("student_preference", "student_reaction"),
}
# What a template may use of the scenario, by what it is for.
VARIABLES = {
    "teacher": (*COMMON, *SECRETS["Teacher"]),
    "student": (*COMMON, *SECRETS["Student"]),
    "closing_student": (*COMMON, *SECRETS["Student"]),
    "closing_judge": (*COMMON, *SECRETS["Student"], *SECRETS["Teacher"], "conversation"),
}


class Entry(msgspec.Struct, frozen=True):
    """A turn, with what was mended and what was found in it. `ended`: with it the side closes the
    conversation; its text is "" if it says nothing else."""

    turn: Turn
    repairs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    ended: bool = False


class Played(msgspec.Struct, frozen=True):
    """How far a conversation came. `rejection`: the turn behind the last one could not be had."""

    entries: list[Entry]
    ended_by: Role | None = None
    rejection: Rejection | None = None

    @property
    def turns(self) -> list[Turn]:
        return [entry.turn for entry in self.entries]


class Stage:
    """What both agents know when the lesson begins, and how they are asked."""

    def __init__(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> None:
        self._scenario = scenario
        self._rules = rules
        self._prompts = prompts
        self.first: Role = "Teacher" if rules.selfplay.first == "teacher" else "Student"
        self._brief: dict[Role, tuple[Message, ...]] = {}
        self._secret: dict[Role, list[str]] = {}
        for role in OTHER:
            mine = prompts[BACKEND_ROLE[role]].messages(self._variables(BACKEND_ROLE[role]))
            self._brief[role] = mine if role == self.first else _listening(mine)
            known = _folded(" ".join([message.content for message in mine]))
            theirs = [getattr(scenario, name) for name in SECRETS[OTHER[role]]]
            self._secret[role] = [text for text in theirs if _folded(text) not in known]

    def _variables(self, use: str, **more: str) -> dict[str, str | int | None]:
        known = {name: getattr(self._scenario, name, None) for name in VARIABLES[use]}
        return {**known, **more}

    def play(
        self, replicate: int, start: list[Entry], until: int | None = None
    ) -> Generator[Request, Reply, Played]:
        """The conversation from `start` on, to its end or until it has so many turns."""
        entries = list(start)
        most = self._rules.selfplay.max_turns
        while len(entries) < (most if until is None else min(most, until)):
            said = yield from self.speak(replicate, entries)
            if isinstance(said, Rejection):
                return Played(entries, rejection=said)
            if said.turn.text:
                entries.append(said)
            if said.ended:
                return Played(entries, ended_by=said.turn.role)
        return Played(entries)

    def speaker(self, number: int) -> Role:
        """Who speaks turn `number`, counted from 0."""
        return self.first if number % 2 == 0 else OTHER[self.first]

    def speak(self, replicate: int, entries: Sequence[Entry]) -> Generator[Request, Reply, Entry | Rejection]:
        """The turn behind `entries`, by the side whose turn it is."""
        role = self.speaker(len(entries))

        def heard(reply: Reply) -> Entry | Rejection:
            said = read_turn(
                reply.text,
                role,
                finish_reason=reply.finish_reason,
                refusal=reply.refusal,
                words=self._rules.words,
            )
            return said if isinstance(said, Rejection) else self.hear(role, entries, said)

        address = Address(self._scenario.index, replicate, step=len(entries))
        return (yield from ask(address, self.messages(role, entries), self._rules, heard, BACKEND_ROLE[role]))

    def hear(self, role: Role, entries: Sequence[Entry], said: Said) -> Entry | Rejection:
        """A turn as it stands in the conversation, with what the detectors found; or why it cannot stand."""
        side = role.lower()
        found: list[tuple[RejectionReason, Literal["reject", "flag"], str]] = []
        secret = leaked(said.text, self._secret[role], [entry.turn.text for entry in entries])
        policy = self._rules.selfplay
        if secret is not None:
            detail = f"the {side} says “{secret}”, and cannot know it"
            found.append((RejectionReason.LEAKED_SECRET, policy.leaked_secret, detail))
        if loops(said.text, [entry.turn.text for entry in entries if entry.turn.role == role]):
            found.append((RejectionReason.LOOP, policy.loop, f"the {side} repeats: {said.text[:80]}"))
        for reason, action, detail in found:
            if action == "reject":
                return Rejection(reason, detail)
        flags = tuple(str(reason) for reason, _, _ in found)
        return Entry(Turn(role, said.text), said.repairs, flags, said.ended)

    def messages(self, role: Role, entries: Sequence[Entry]) -> tuple[Message, ...]:
        """What a side is asked with: its brief, what it said as assistant, what it heard as user."""
        messages = list(self._brief[role])
        for entry in entries:
            _append(messages, Message("assistant" if entry.turn.role == role else "user", entry.turn.text))
        return tuple(messages)

    def closing(self, turns: Sequence[Turn]) -> tuple[Message, ...]:
        """What the closing question is asked with: the judge's prompt, or the student's history and the
        question behind it."""
        prompt = self._prompts["closing"]
        if self._rules.selfplay.closing == "judge":
            shown = transcript_of(turns)
            return prompt.messages(self._variables("closing_judge", conversation=shown))
        history = list(self.messages("Student", [Entry(turn) for turn in turns]))
        asked = prompt.messages(self._variables("closing_student"))
        _append(history, Message("user", "\n\n".join([message.content for message in asked])))
        return tuple(history)

    def close(self, replicate: int, played: Played) -> Generator[Request, Reply, float | None]:
        """The answer to the closing question, None where none is asked or none can be read."""
        asked = self._rules.selfplay.closing
        if asked is None:
            return None
        messages = self.closing(played.turns)
        address = Address(self._scenario.index, replicate, step=CLOSING_STEP)
        answer = yield from ask(address, messages, self._rules, _probability, asked)
        return None if isinstance(answer, Rejection) else answer


def _listening(brief: tuple[Message, ...]) -> tuple[Message, ...]:
    """The brief of the side that does not open: all of it in one message, so that what it hears comes
    first from the other."""
    text = "\n\n".join([message.content for message in brief])
    return (Message(brief[0].role, text),)


def _append(messages: list[Message], message: Message) -> None:
    """Add a message; two of one role in a row, which many models refuse, become one."""
    if messages and messages[-1].role == message.role:
        message = Message(message.role, f"{messages.pop().content}\n\n{message.content}")
    messages.append(message)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _probability(reply: Reply) -> float | Rejection:
    value = None if reply.refusal else read_probability(reply.text)
    if value is None:
        reason = RejectionReason.TRUNCATED if reply.finish_reason == "length" else RejectionReason.UNREAD
        return Rejection(reason, "the answer holds no probability")
    return value
