"""A conversation in progress, for programs with or without an event loop."""

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
    """The result of a step: the policy's observation, the reward, whether the conversation is over, and
    `info`.

    `reward` is None until the conversation is over, and if it is unknown.
    """

    messages: Messages
    reward: float | None
    done: bool
    info: dict[str, Any]


def heard(step: Step) -> Messages:
    """Return the others' turns since the policy spoke. Empty if the policy's words ended the conversation, or
    were not a turn.

    Raises UsageError if the conversation continues without an answer: for trainers that need one answer to
    each turn.
    """
    messages = step.messages
    if step.info.get("rejected"):
        return []
    last = max((n for n, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    if last == len(messages) - 1 and not step.done:
        raise UsageError("the policy speaks twice in a row, and nobody answers: change selfplay.order.")
    return messages[last + 1 :]


class _Course:
    """The state of a conversation. Answers within a failed step are kept until the step succeeds."""

    def __init__(self, episode: Episode, partners: Partners) -> None:
        self._episode = episode
        self._partners = partners
        self._entries: Sequence[PlayedTurn] | None = None  # only while the conversation runs
        self._replies: Replies = {}

    @property
    def scenario(self) -> Scenario:
        """Its scenario, including the others' secrets."""
        return self._episode.scenario

    def _ask(self, going: Going) -> Future[Moment]:
        return self._partners.ask(going, self._replies)

    def _say(self, text: str) -> Future[Moment]:
        return self._ask(self._episode.say(self._find_running(), text))

    def _stop(self) -> Future[Moment]:
        return self._ask(self._episode.stop(self._find_running()))

    def _find_running(self) -> Sequence[PlayedTurn]:
        if self._entries is None:
            raise UsageError("no episode is running: call reset first.")
        return self._entries

    def _take_over(self, moment: Moment) -> Step:
        """Continue from a new state."""
        self._entries = None if moment.done else moment.entries
        self._replies = {}
        return Step(
            self._episode.observe(moment.entries), moment.info.get("reward"), moment.done, moment.info
        )


class Conversation(_Course):
    """One conversation: `reset`, then `step` until done. One step at a time; conversations run
    concurrently."""

    async def reset(self) -> Messages:
        """Begin, or begin again; return what the policy sees, after roles before it have spoken.

        Raises CallError if a backend gives no answer, BudgetExhausted if the budget covers no more calls,
        ProviderError if a service has fallen silent, UsageError if the others' first words are not a turn.
        """
        return self._take_over(await asyncio.wrap_future(self._ask(self._episode.begin()))).messages

    async def step(self, text: str) -> Step:
        """Say the policy's words and hear the others until its next turn.

        `info` holds `turns` (so far), `flags` of the last turns, and `ended_by` (the role that ended the
        conversation, or None). `rejected` says why a role's words are not a turn, else None; the conversation
        is then over, and `rejected_by` names the role. At the end, `info` also holds `probability` from the
        closing question (None without one), `reward`, and `scores` if the reward has several. Raises
        UsageError if no conversation is running, else as `reset`. After an error, the words have no effect,
        and the step can be retried; it reuses answers from before the failure.
        """
        return self._take_over(await asyncio.wrap_future(self._say(text)))

    async def stop(self) -> Step:
        """End the conversation here: the closing question is asked, and `info` is as at the end of `step`.
        Raises as `step`."""
        return self._take_over(await asyncio.wrap_future(self._stop()))


class SyncConversation(_Course):
    """A `Conversation` with blocking methods."""

    def reset(self) -> Messages:
        """Begin as `Conversation.reset` does."""
        return self._take_over(_wait(self._ask(self._episode.begin()))).messages

    def step(self, text: str) -> Step:
        """Take a step as `Conversation.step` does."""
        return self._take_over(_wait(self._say(text)))

    def stop(self) -> Step:
        """End the conversation as `Conversation.stop` does."""
        return self._take_over(_wait(self._stop()))


def _wait(asked: Future[Moment]) -> Moment:
    """Return the result; an interrupted wait cancels the calls, too."""
    try:
        return asked.result()
    finally:
        asked.cancel()
