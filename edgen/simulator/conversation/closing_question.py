"""The closing question: the probability that the student understood, as one number.

It follows a side's conversation, or is a single message that shows the conversation. The number depends on
the tone of the turns, with more weight on later ones, and some noise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from edgen.core.values import Message
from edgen.simulator.judge import find_fenced, split_turns
from edgen.simulator.prompts import conversation_prompt
from edgen.simulator.prompts.agent_prompt import AgentPrompt
from edgen.simulator.tone import measure_tone

_ASKED = re.compile(
    r"\b(?:how (?:probable|likely|sure|certain)|probability|likelihood|chances?)\b[^\n]{0,160}"
    r"\b(?:understand|understood|understands|learned|learnt|grasped)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\b(?:number|probability|value)\b[^\n]{0,40}\b0(?:\.0+)?\b[^\n]{0,20}\b1(?:\.0+)?\b|\b(?:one|a single"
    r"|only a|just a) number\b",
    re.IGNORECASE,
)
_TAIL = 1_500  # characters at the end of a prompt that are searched for the question
_RULE = re.compile(r"\n[ \t]*(?:#+|-{3,})[ \t]*(?=\n|$)")
_LABEL = re.compile(r"(?im:^[\s>*_#\-\d.\"“]{0,12}(?:teacher|student)\b[^:\n]{0,40}:)")

_ANY_LABEL = re.compile(r"(?m:^(?!probability|conversation)[^\W\d_][\w-]{0,30}: \S)", re.IGNORECASE)


def read(messages: Sequence[Message], place: AgentPrompt | None) -> tuple[str, ...] | None:
    """Return the turns that a closing question is about; None if there is no such question.

    `place`: the messages as a side's prompt, with the question as the last heard turn.
    """
    if not messages or messages[-1].role != "user":
        return None
    text = messages[-1].content
    asked = list(_ASKED.finditer(text, max(0, len(text) - _TAIL)))
    if not asked or _NUMBER.search(text, max(0, len(text) - _TAIL)) is None:
        return None
    if place is not None:
        # The question may follow a last turn of the other side.
        last = text.rfind("\n\n", 0, asked[-1].start())
        turns = [said for _, said in place.said[:-1]]
        return (*turns, text[:last]) if last > 0 else tuple(turns)
    if (fenced := find_fenced(text)) is not None:
        return tuple(split_turns(fenced.replace("\n  | ", "\n")))
    question = text.rfind("\n", 0, asked[-1].start()) + 1
    label = _LABEL.search(text, 0, question) or _ANY_LABEL.search(text, 0, question)
    if (
        label is None
        or conversation_prompt.asks_for_conversation(text[: label.start()])
        or conversation_prompt.asks_for_conversation(text[question:])
    ):
        return None
    return tuple(split_turns(_RULE.sub("", text[label.start() : question])))


_ASKED_FREELY = re.compile(
    r"\b(?:how (?:probable|likely|sure|certain|much|well|far)|probab\w+|likelihood|chances?|scale|rate"
    r"|estimate|wahrscheinlich\w*)\b",
    re.IGNORECASE,
)
_NUMBER_FREELY = re.compile(
    r"\b0(?:\.0+)?\b[^\n]{1,20}\b1(?:\.0+|00)?\b|\bper ?cent(?:age)?\b|\d ?%|\b(?:one|a|single|just the"
    r"|only the) (?:\w+ )?number\b|\bnumber (?:only|alone)\b|\bprozent\b|\bzahl\b",
    re.IGNORECASE,
)


class FreeQuestion(NamedTuple):
    """A closing question in any words: its turns, and whether it requests a percentage."""

    turns: tuple[str, ...]
    percent: bool


def read_freely(messages: Sequence[Message]) -> FreeQuestion | None:
    """Return the closing question at the end of an agent's messages; None if there is none."""
    if not messages or messages[-1].role != "user":
        return None
    question = messages[-1].content.rstrip().rsplit("\n\n", 1)[-1][-_TAIL:]
    if _ASKED_FREELY.search(question) is None or _NUMBER_FREELY.search(question) is None:
        return None
    said = tuple(message.content for message in messages[:-1] if message.role != "system")
    return FreeQuestion(said, re.search(r"(?i)per ?cent|%|\b100\b|prozent", question) is not None)


def answer(turns: Sequence[str], rng: Random) -> str:
    """Return the number, with two decimals, in [0.01, 0.99]."""
    weights = [1 + 2 * i / len(turns) for i in range(len(turns))]
    course = sum([weight * measure_tone(text) for weight, text in zip(weights, turns, strict=True)])
    course = course / sum(weights) if turns else 0.0
    # Two uniform draws make a triangle: small errors are more common than large ones.
    chance = 0.25 * (rng.random() + rng.random() - 1)
    return f"{min(0.99, max(0.01, 0.12 + 1.1 * course + chance)):.2f}"
