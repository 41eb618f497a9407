"""A conversation on its way, for programs with an event loop and for those without."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from edgen.core.errors import UsageError
from edgen.core.values import Scenario
from edgen.env.episode import Episode, Going, Messages, Moment
from edgen.env.partners import Partners, Replies
from edgen.protocols.stage import PlayedTurn


class Step(NamedTuple):
    """What a step brings: what the policy sees now, the reward, whether it is over, and `info`.

    `reward` is None until it is over, and where it cannot be told.
    """

    messages: Messages
    reward: float | None
    done: bool
    info: dict[str, Any]


def heard(step: Step) -> Messages:
    """What the others said since the policy spoke; nothing where its words were the last, or were no turn.

    Raises UsageError where it goes on and nobody answered: for trainers in which a turn answers a turn.
    """
    messages = step.messages
    if step.info.get("rejected"):
        return []
    last = max((n for n, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    if last == len(messages) - 1 and not step.done:
        raise UsageError("the policy speaks twice in a row, and nobody answers: change selfplay.order.")
    return messages[last + 1 :]


class _Course:
    """How far a conversation is. What was answered within a step that failed is kept until the step succeeds."""

    def __init__(self, episode: Episode, partners: Partners) -> None:
        self._episode = episode
        self._partners = partners
        self._entries: Sequence[PlayedTurn] | None = None  # while it runs
        self._replies: Replies = {}

    @property
    def scenario(self) -> Scenario:
        """What it is about, the others' secrets included."""
        return self._episode.scenario

    def _ask(self, going: Going) -> Future[Moment]:
        return self._partners.ask(going, self._replies)

    def _say(self, text: str) -> Future[Moment]:
        return self._ask(self._episode.say(self._running(), text))

    def _stop(self) -> Future[Moment]:
        return self._ask(self._episode.stop(self._running()))

    def _running(self) -> Sequence[PlayedTurn]:
        if self._entries is None:
            raise UsageError("no episode is running: call reset first.")
        return self._entries

    def _now(self, moment: Moment) -> Step:
        """Take over how it stands."""
        self._entries = None if moment.done else moment.entries
        self._replies = {}
        return Step(
            self._episode.observe(moment.entries), moment.info.get("reward"), moment.done, moment.info
        )


class Conversation(_Course):
    """One conversation: `reset`, then `step` until done. One step at a time; conversations go side by side."""

    async def reset(self) -> Messages:
        """Begin, or begin again; returns what the policy sees. Those before it have spoken.

        Raises CallError if a backend gives no answer, BudgetExhausted where the budget takes no more calls,
        ProviderError where a service has fallen silent, UsageError if the others' first words are none.
        """
        return self._now(await asyncio.wrap_future(self._ask(self._episode.begin()))).messages

    async def step(self, text: str) -> Step:
        """Say what the policy says and hear the others until it is its turn again.

        `info` holds `turns` (so far), `ended_by` (the role that ended it, or None), `rejected` (why a role's
        words are no turn, else None: the conversation is then over, and `rejected_by` says whose they were), `flags` of
        the last turns, and, once done, `probability` that the student understood (None if the job asks no closing
        question), `reward`, and `scores` where the reward has several. Raises UsageError where nothing is running, else as `reset`; then the words are not taken, and
        the step can be tried again. What was answered before it failed is not asked for again.
        """
        return self._now(await asyncio.wrap_future(self._say(text)))

    async def stop(self) -> Step:
        """End it here: the closing question is asked, and `info` is what `step` gives at an end. Raises as `step`."""
        return self._now(await asyncio.wrap_future(self._stop()))


class SyncConversation(_Course):
    """A `Conversation` whose methods wait for the answer."""

    def reset(self) -> Messages:
        """As `Conversation.reset`."""
        return self._now(_wait(self._ask(self._episode.begin()))).messages

    def step(self, text: str) -> Step:
        """As `Conversation.step`."""
        return self._now(_wait(self._say(text)))

    def stop(self) -> Step:
        """As `Conversation.stop`."""
        return self._now(_wait(self._stop()))


def _wait(asked: Future[Moment]) -> Moment:
    """The result; whoever interrupts the wait breaks off the calls, too."""
    try:
        return asked.result()
    finally:
        asked.cancel()
