"""Requests as the answering protocols see them, and the search for the right protocol.

The embedded simulator knows the requesting protocol. A server does not, so it asks the protocols in turn
whether the prompt is theirs. A run that only requests whole conversations never loads the other protocols.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.core import registry
from edgen.core.plugins.faults import require_type
from edgen.core.registry import part_of
from edgen.core.values import Message
from edgen.protocols.base import Protocol, SimulatedAnswers
from edgen.simulator import layout_defects
from edgen.simulator.conversation.dialogue import converse, render
from edgen.simulator.phrases.book import PhraseSpeaker, Phrasing, list_aspects
from edgen.simulator.prompts import conversation_prompt, prompt_roles

if TYPE_CHECKING:
    from edgen.simulator.phrases.turns import Talk
    from edgen.simulator.prompts.agent_prompt import AgentPrompt
    from edgen.space.model import Scene


class SimulatedRequest:
    """The request that a protocol answers (`edgen.protocols.base.Simulation`). All randomness comes from
    `rng`."""

    def __init__(
        self,
        messages: Sequence[Message],
        fault: str | None,
        rng: Random,
        *,
        json_mode: bool = False,
        speakers: Sequence[tuple[str, ...]] = (),
        scene: Scene | None = None,
        find_scene: Callable[[Sequence[Message]], Scene | None] | None = None,
        planted: int | None = None,
        confusion: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        self.messages = messages
        self.confusion = confusion or {}
        self.fault = fault
        self.random = rng.random
        self._rng = rng
        self._json_mode = json_mode
        self._speakers = tuple(speakers)
        self._scene, self._find_scene = scene, find_scene
        self._asker: str | None = None
        self._wants_less = False  # less than a conversation, as far as the protocol is known
        self._planted = planted

    @functools.cached_property
    def text(self) -> str:
        """The text of all messages, separated by newlines."""
        return "\n".join([message.content for message in self.messages])

    @functools.cached_property
    def scene(self) -> Scene | None:
        """The scene, as given or as found in the prompt."""
        if self._scene is None and self._find_scene is not None:
            return self._find_scene(self.messages)
        return self._scene

    def say(self, rule: str, **slots: str) -> str:
        """Return one phrasing of a rule of the phrase book."""
        return PhraseSpeaker(self._rng, slots).say(rule)

    def pick(self, phrasings: Sequence[str]) -> str:
        """Return one of several texts."""
        return phrasings[int(self.random() * len(phrasings))]

    def answer(self, protocol: str | None) -> str:
        """Return the answer to any request. `protocol`: its name, if known."""
        self._asker = protocol
        if protocol:
            # Load the others only if the requesting protocol does not recognise the prompt.
            if (answer := self._hear(_find_protocol(protocol))) is not None:
                return answer
            names = tuple(list_own_protocols())
            self._wants_less = protocol in names
        else:
            names = tuple(registry.list_names("protocol"))
            if len(names) == len(list_own_protocols()) and conversation_prompt.asks_for_nothing_else(
                self.messages
            ):
                answer = self.conversation()
                if answer is not None:
                    return answer
        answer = next(filter(None, (self._hear(other) for other in _sort_by_precedence(names))), None)
        if answer is None and not protocol and conversation_prompt.may_ask(self.messages):
            answer = self._converse(conversation_prompt.read(self.messages, certain=True))
        return self._answer_anything() if answer is None else answer

    def _hear(self, protocol: Any) -> str | None:
        """Return a protocol's answer; None if it does not recognise the prompt."""
        answer = part_of(protocol, SimulatedAnswers).simulated(self)
        if answer is None or type(answer) is str:
            return answer
        return require_type("protocol", protocol.name, answer, str, "a str or None")  # type: ignore[no-any-return]

    def conversation(self) -> str | None:
        """Return a whole conversation. If its speakers are unknown, return a sentence that explains it. None
        if no conversation is requested."""
        if self._wants_less:
            return None
        speakers = self._speakers
        task = conversation_prompt.read(self.messages, speakers, certain=bool(speakers))
        if task is None and speakers:
            return prompt_roles.explain_unknown_speakers(self.text, speakers)
        return self._converse(task)

    def _converse(self, task: conversation_prompt.ConversationPrompt | None) -> str | None:
        if task is None:
            return None
        if self.fault == "garbage":
            return self._make_garbage()
        scene: Scene | None = None
        if self._find_scene is None or task.brief.student_preference is None:
            values = {} if self.scene is None else self.scene.scenario.values
            if (topic := values.get("topic", task.brief.topic)) != task.brief.topic:
                task = task._replace(brief=task.brief._replace(topic=topic))
            scene = self._speaking_scene
        if scene is None:
            dialogue = converse(task, self._rng, self._list_aspects(self._scene))
        else:
            from edgen.simulator.conversation.scene_talk import converse_about

            dialogue = converse_about(scene, task, self._rng)
        spoken = dialogue.entries
        if self.fault == "one_speaker":
            spoken = [entry for entry in spoken if entry[0] == spoken[0][0]]
        if task.roles and scene is None:
            spoken = conversation_prompt.assign_roles(spoken, task.roles)
        clean = render(spoken, dialogue.probability if task.probability else None, task)
        if self.fault == "defects" or self.fault in layout_defects.FAMILIES:
            return layout_defects.add_defect(
                self.fault, layout_defects.CleanAnswer(spoken, dialogue.probability, clean), self._rng
            )
        return clean

    def talk(self) -> Talk | None:
        """Return the scene's role as a speaker; None without a scene or a role."""
        if self.scene is None or self.scene.role is None:
            return None
        from edgen.simulator.phrases.turns import Talk

        return Talk(self.scene, self.scene.role, self._rng)

    @property
    def _speaking_scene(self) -> Scene | None:
        """The scene whose values turns are about; None if the prompt alone defines the subject."""
        return self.scene if self.scene is not None and self.scene.book.speaks else None

    @staticmethod
    def _list_aspects(scene: Scene | None) -> tuple[Phrasing, ...]:
        """Return the aspects that the space names for the scene's topic."""
        if scene is None or not (facts := scene.book.phrases.facts.get("topic")):
            return ()
        texts = facts.get(scene.scenario.values.get("topic", ""), {}).get("aspects", ())
        return list_aspects(tuple(texts)) if texts and not isinstance(texts, str) else ()

    def turn(self) -> str | None:
        """Return a side's next turn."""
        if (scene := self._speaking_scene) is not None and scene.role is not None:
            from edgen.simulator.conversation.scene_talk import speak_next

            said = speak_next(scene, self.messages, self.fault, self._rng)
            return self._garble() or self.as_json("text", said)
        if self._place is None:
            return None
        from edgen.simulator.conversation import turns

        return self._garble() or self.as_json(
            "text", turns.speak(self._place, self.fault, self._rng, self._list_aspects(self.scene))
        )

    def probability(self) -> str | None:
        """Return the answer to a closing question."""
        from edgen.simulator.conversation import closing_question

        asked = closing_question.read(self.messages, self._place)
        if asked is not None:
            return self._garble() or self.as_json("probability", self._close(asked))
        free = closing_question.read_freely(self.messages) if self._asker in list_own_protocols() else None
        if free is None:
            return None
        value = self._close(free.turns)
        return self._garble() or self.as_json(
            "probability", f"{round(float(value) * 100)}%" if free.percent else value
        )

    def _close(self, turns: tuple[str, ...]) -> str:
        from edgen.simulator import planted_worth
        from edgen.simulator.conversation import closing_question

        if self._planted is None:
            return closing_question.answer(turns, self._rng)
        taught = planted_worth.pick_teacher_turns(turns, self._place)
        return planted_worth.answer_probability(self._planted, taught, self._rng)

    def verdict(self) -> str | None:
        """Return the verdict on two conversations."""
        # A turn may contain anything, so heard turns are never read as a judge's prompt.
        if self._place is not None and self._place.said:
            return None
        from edgen.simulator import judge

        comparison = judge.read(self.messages)
        if comparison is None:
            return None
        quality = judge.rate_quality
        if self._planted is not None:
            from edgen.simulator import planted_worth

            quality = functools.partial(planted_worth.rate_quality, self._planted)
        return self.as_json("answer", judge.answer(comparison, self.fault, self._rng, quality))

    def scores(self) -> str | None:
        """Return the scores of a rubric."""
        if self._place is not None and self._place.said:  # as for a verdict
            return None
        from edgen.simulator import judge

        sheet = judge.read_rubric(self.messages)
        return sheet and judge.answer_rubric(sheet, self.fault, self._rng)

    def values(self) -> str | None:
        """Return new values of a space's dimension."""
        from edgen.simulator import list_values

        if self._place is not None or (wish := list_values.read(self.messages)) is None:
            return None
        return self._garble() or self.as_json("text", list_values.answer(wish, self._rng))

    @functools.cached_property
    def _place(self) -> AgentPrompt | None:
        from edgen.simulator.prompts import agent_prompt

        return agent_prompt.read(self.messages)

    def _answer_anything(self) -> str:
        from edgen.simulator.conversation import turns

        if self.fault == "garbage":
            return self._make_garbage()
        said = turns.make_small_talk(self.messages, self._rng) or self.say("plain")
        return self.as_json("answer", turns.shape(said, self.messages, self._rng))

    def _garble(self) -> str | None:
        return self._make_garbage() if self.fault == "garbage" else None

    def _make_garbage(self) -> str:
        voice = PhraseSpeaker(self._rng, {})
        return " ".join(voice.say("garbage") for _ in range(1 + int(self.random() * 4)))

    def as_json(self, key: str, words: str) -> str:
        """Return an answer in words, or a JSON object with the words under a key if the request asks for
        JSON."""
        return msgspec.json.encode({key: words}).decode() if self._json_mode else words


@functools.cache
def _find_protocol(name: str) -> Protocol:
    protocol: Protocol = registry.find("protocol", name)
    return protocol


@functools.cache
def list_own_protocols() -> list[str]:
    """Return the names of edgen's own protocols."""
    return [
        plugin.name
        for plugin in registry.list_plugins()
        if plugin.kind == "protocol" and plugin.package == registry.DISTRIBUTION
    ]


@functools.cache
def _sort_by_precedence(names: tuple[str, ...]) -> list[SimulatedAnswers]:
    """Return the protocols that can be loaded and that the simulator can answer, by precedence."""
    usable = [_find_protocol(name) for name in names if name in list_own_protocols()]
    if len(usable) < len(names):
        usable = [protocol for protocol in registry.find_all("protocol") if protocol.name in names]
    found = sorted(usable, key=lambda protocol: protocol.precedence)
    return [protocol for protocol in found if isinstance(protocol, SimulatedAnswers)]
