"""A request as the protocols see it that answer it, and the way to the protocol that does.

The embedded simulator is told who asks. A served one is not: it asks the protocols one after the other whether the
prompt is theirs. A run whose prompts ask for whole conversations never loads what answers the others.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

import msgspec

from edgen.core import registry
from edgen.core.values import Message
from edgen.protocols.base import Protocol
from edgen.simulator import conversation_prompt, defects
from edgen.simulator.dialogue import converse, render
from edgen.simulator.phrases import Phrases

if TYPE_CHECKING:
    from edgen.simulator.agent_prompt import AgentPrompt


class SimulatedRequest:
    """What a protocol is given to answer with (`edgen.protocols.base.Simulation`). All chance comes from `rng`."""

    def __init__(
        self,
        messages: Sequence[Message],
        fault: str | None,
        rng: Random,
        *,
        json_mode: bool = False,
        planted: int | None = None,
        confusion: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        self.messages = messages
        self.confusion = confusion or {}
        self.fault = fault
        self.random = rng.random
        self._rng = rng
        self._json_mode = json_mode
        self._planted = planted

    @functools.cached_property
    def text(self) -> str:
        """What all messages say, one below the other."""
        return "\n".join([message.content for message in self.messages])

    def say(self, rule: str, **slots: str) -> str:
        """One way to say a rule of the phrase book."""
        return Phrases(self._rng, slots).say(rule)

    def pick(self, ways: Sequence[str]) -> str:
        """One of several texts."""
        return ways[int(self.random() * len(ways))]

    def answer(self, protocol: str | None) -> str:
        """The answer to whatever is asked, of a protocol if its name is known."""
        if protocol:
            # The others are loaded only where the one that asks does not know the prompt for its own.
            if (answer := _find_protocol(protocol).simulated(self)) is not None:
                return answer
            names = tuple(own_protocols())
        else:
            names = tuple(registry.names("protocol"))
            if len(names) == len(own_protocols()) and conversation_prompt.asks_for_nothing_else(
                self.messages
            ):
                answer = self.conversation()
                if answer is not None:
                    return answer
        answer = next(filter(None, (other.simulated(self) for other in _by_precedence(names))), None)
        return self._anything() if answer is None else answer

    def conversation(self) -> str | None:
        """A whole conversation."""
        task = conversation_prompt.read(self.messages)
        if task is None:
            return None
        if self.fault == "garbage":
            return self._garbage()
        dialogue = converse(task, self._rng)
        spoken = dialogue.entries
        if self.fault == "one_speaker":
            spoken = [entry for entry in spoken if entry[0] == "Teacher"]
        if task.roles:
            spoken = conversation_prompt.in_roles(spoken, task.roles)
        clean = render(spoken, dialogue.probability if task.probability else None, task)
        if self.fault == "defects" or self.fault in defects.FAMILIES:
            return defects.spoil(self.fault, defects.Answer(spoken, dialogue.probability, clean), self._rng)
        return clean

    def turn(self) -> str | None:
        """What a side says next."""
        if self._place is None:
            return None
        from edgen.simulator import turns

        return self._garble() or self._as_json("text", turns.speak(self._place, self.fault, self._rng))

    def probability(self) -> str | None:
        """The number that a closing question asks for."""
        from edgen.simulator import closing

        asked = closing.read(self.messages, self._place)
        if asked is None:
            return None
        return self._garble() or self._as_json("probability", self._close(asked))

    def _close(self, turns: tuple[str, ...]) -> str:
        from edgen.simulator import closing, planted

        if self._planted is None:
            return closing.answer(turns, self._rng)
        taught = planted.taught_turns(turns, self._place)
        return planted.probability(self._planted, taught, self._rng)

    def verdict(self) -> str | None:
        """Which of two conversations is the better one."""
        # A turn may say anything, so what a side hears is never taken for a judge's prompt.
        if self._place is not None and self._place.said:
            return None
        from edgen.simulator import judge

        comparison = judge.read(self.messages)
        if comparison is None:
            return None
        quality = judge.quality
        if self._planted is not None:
            from edgen.simulator import planted

            quality = functools.partial(planted.quality, self._planted)
        return self._as_json("answer", judge.answer(comparison, self.fault, self._rng, quality))

    def sheet(self) -> str | None:
        """The answers to a sheet of questions."""
        from edgen.simulator import adherence

        sheet = adherence.read(self.messages)
        return sheet and self._as_json("answer", adherence.answer(sheet, self.fault, self._rng))

    def scores(self) -> str | None:
        """The scores of a rubric."""
        if self._place is not None and self._place.said:  # as for a verdict
            return None
        from edgen.simulator import rubric

        sheet = rubric.read(self.messages)
        return sheet and rubric.answer(sheet, self.fault, self._rng)

    def values(self) -> str | None:
        """New values of a space's dimension."""
        from edgen.simulator import values

        if self._place is not None or (wish := values.read(self.messages)) is None:
            return None
        return self._garble() or self._as_json("text", values.answer(wish, self._rng))

    @functools.cached_property
    def _place(self) -> AgentPrompt | None:
        from edgen.simulator import agent_prompt

        return agent_prompt.read(self.messages)

    def _anything(self) -> str:
        from edgen.simulator import turns

        if self.fault == "garbage":
            return self._garbage()
        return self._as_json("answer", turns.small_talk(self.messages, self._rng) or self.say("plain"))

    def _garble(self) -> str | None:
        return self._garbage() if self.fault == "garbage" else None

    def _garbage(self) -> str:
        voice = Phrases(self._rng, {})
        return " ".join(voice.say("garbage") for _ in range(1 + int(self.random() * 4)))

    def _as_json(self, key: str, words: str) -> str:
        return msgspec.json.encode({key: words}).decode() if self._json_mode else words


@functools.cache
def _find_protocol(name: str) -> Protocol:
    protocol: Protocol = registry.find("protocol", name)
    return protocol


@functools.cache
def own_protocols() -> list[str]:
    """The names of edgen's own protocols."""
    return [
        plugin.name
        for plugin in registry.plugins()
        if plugin.kind == "protocol" and plugin.package == registry.DISTRIBUTION
    ]


@functools.cache
def _by_precedence(names: tuple[str, ...]) -> list[Protocol]:
    """Those of the protocols that can be loaded, the first to be asked first."""
    usable = [_find_protocol(name) for name in names if name in own_protocols()]
    if len(usable) < len(names):
        usable = [protocol for protocol in registry.find_all("protocol") if protocol.name in names]
    return sorted(usable, key=lambda protocol: protocol.precedence)
