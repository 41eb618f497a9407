"""One scenario in which a policy plays one role: its observations, and the results of its words.

Like a protocol this does no I/O: it yields the requests of the other roles and returns the new state.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from edgen.core.errors import UsageError
from edgen.core.values import Rejection, Reply, Request, Role, Scenario
from edgen.env.reward import Ended, Rewarder, Scored
from edgen.protocols.stage import Played, PlayedTurn, Stage
from edgen.reading.one_turn.reader import read_turn

Messages = list[dict[str, str]]


class Moment(msgspec.Struct, frozen=True):
    """The state of a conversation at the policy's turn, or at its end."""

    entries: Sequence[PlayedTurn]
    done: bool = False
    info: dict[str, Any] = {}


Going = Generator[Request, Reply, Moment]
_NO_WORTH: dict[str, Any] = {"probability": None, "reward": None}


class Episode:
    """A stage on which the policy plays `role`; `reward` rates the result, `broken` is the reward if its
    words are not a turn."""

    def __init__(self, stage: Stage, role: Role, reward: Rewarder, broken: float | None) -> None:
        self.scenario: Scenario = stage.scenario
        self.role = role
        self._stage = stage
        self._reward = reward
        self._broken = broken
        self._most = stage.settings.max_turns

    def observe(self, entries: Sequence[PlayedTurn]) -> Messages:
        """Return the policy's prompt: its brief, its own turns as assistant, the others' as user."""
        shown = self._stage.messages(self.role, entries)
        return [{"role": message.role, "content": message.content} for message in shown]

    @property
    def opens(self) -> bool:
        """True if the policy speaks first."""
        return self._stage.speaker(0) == self.role

    def first_prompt(self) -> Messages:
        """Return the policy's first prompt. Raises UsageError if another role opens."""
        if not self.opens:
            opener = self._stage.speaker(0)
            raise UsageError(
                f"scenario {self.scenario.index}: the {opener} speaks first, so the first prompt takes a "
                f"call: use reset, or set selfplay.first to {self.role.lower()}."
            )
        return self.observe([])

    def begin(self) -> Going:
        """Let roles before the policy speak. Raises UsageError if they end it or give no turn."""
        before = next((n for n in range(self._most) if self._stage.speaker(n) == self.role), None)
        if before is None:
            raise UsageError(
                f"scenario {self.scenario.index}: {self.role} has none of the first {self._most} turns: "
                "look at selfplay.order and selfplay.max_turns."
            )
        played = yield from self._stage.play(0, [], before_role=self.role)
        if len(played.entries) < before or played.ended_by is not None:
            opener = self._stage.speaker(0).lower()
            raise UsageError(f"scenario {self.scenario.index}: the {opener} gave no opening.")
        return Moment(played.entries)

    def say(self, entries: Sequence[PlayedTurn], text: str) -> Going:
        """Take the policy's turn, and those of the others until its next one."""
        rules = self._stage.rules
        said = read_turn(text, self.role, words=rules.words, roles=rules.role_words)
        heard = said if isinstance(said, Rejection) else self._stage.hear(self.role, entries, said)
        if isinstance(heard, Rejection):
            return self._reject(entries, heard, self.role)
        spoken = [*entries, heard] if heard.turn.text else [*entries]
        played = Played(spoken, self.role)
        if not heard.ended:  # the others speak until the policy's turn
            played = yield from self._stage.play(0, spoken, before_role=self.role)
        if played.rejection is not None:
            return self._reject(entries, played.rejection, self._stage.speaker(len(played.entries)))
        flags = [flag for entry in played.entries[len(entries) :] for flag in entry.flags]
        info = _describe_episode(played.entries, flags, played.ended_by)
        done = played.ended_by is not None or len(played.entries) >= self._most
        if done:
            info |= yield from self._close(played)
        return Moment(played.entries, done, info)

    def stop(self, entries: Sequence[PlayedTurn]) -> Going:
        """End the conversation now. Without any turn, the closing question is skipped."""
        worth = _NO_WORTH
        if entries:
            worth = yield from self._close(Played([*entries]))
        return Moment(entries, True, _describe_episode(entries, []) | worth)

    def _close(self, played: Played) -> Generator[Request, Reply, dict[str, Any]]:
        """Ask the closing question, and rate the conversation."""
        probability = yield from self._stage.close(0, played)
        worth = yield from self._reward(Ended(self.scenario, tuple(played.turns), probability))
        if isinstance(worth, Scored):
            return {"probability": probability, "reward": worth.reward, "scores": worth.scores}
        return {"probability": probability, "reward": worth}

    def _reject(self, entries: Sequence[PlayedTurn], rejection: Rejection, by: Role) -> Moment:
        """Return the end of a conversation in which a role's words are not a turn."""
        why = {"rejected": str(rejection.reason), "detail": rejection.detail, "rejected_by": by}
        worth = _NO_WORTH | ({"reward": self._broken} if by == self.role else {})
        return Moment(entries, True, _describe_episode(entries, []) | why | worth)


def _describe_episode(
    entries: Sequence[PlayedTurn], flags: list[str], ended_by: Role | None = None
) -> dict[str, Any]:
    return {"turns": len(entries), "ended_by": ended_by, "rejected": None, "flags": flags}
