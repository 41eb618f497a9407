"""The closing question: how probable it is that the student understood, as one number.

It comes behind a side's conversation, or as a single message that shows the conversation. The number
follows from the tone of the turns, the later ones counting more, with some chance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from edgen.core.values import Message
from edgen.simulator import conversation_prompt
from edgen.simulator.agent_prompt import AgentPrompt
from edgen.simulator.judge import turns_of
from edgen.simulator.tone import tone

_ASKED = re.compile(
    r"\b(?:how (?:probable|likely|sure|certain)|probability|likelihood|chances?)\b[^\n]{0,160}"
    r"\b(?:understand|understood|understands|learned|learnt|grasped)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\b(?:number|probability|value)\b[^\n]{0,40}\b0(?:\.0+)?\b[^\n]{0,20}\b1(?:\.0+)?\b|\b(?:one|a single|only a|just a) number\b",
    re.IGNORECASE,
)
_TAIL = 1_500  # characters at the end of a prompt in which the question is looked for
_RULE = re.compile(r"\n[ \t]*(?:#+|-{3,})[ \t]*(?=\n|$)")
_LABEL = re.compile(r"(?im:^[\s>*_#\-\d.\"“]{0,12}(?:teacher|student)\b[^:\n]{0,40}:)")

_ANY_LABEL = re.compile(r"(?m:^(?!probability|conversation)[^\W\d_][\w-]{0,30}: \S)", re.IGNORECASE)


def read(messages: Sequence[Message], place: AgentPrompt | None) -> tuple[str, ...] | None:
    """The turns that the messages ask about, None if they ask no closing question.

    `place` is what the messages are as a side's, the question being the last thing it heard.
    """
    if not messages or messages[-1].role != "user":
        return None
    text = messages[-1].content
    asked = list(_ASKED.finditer(text, max(0, len(text) - _TAIL)))
    if not asked or _NUMBER.search(text, max(0, len(text) - _TAIL)) is None:
        return None
    if place is not None:
        # The question may stand behind a last turn of the other side.
        last = text.rfind("\n\n", 0, asked[-1].start())
        turns = [said for _, said in place.said[:-1]]
        return (*turns, text[:last]) if last > 0 else tuple(turns)
    question = text.rfind("\n", 0, asked[-1].start()) + 1
    label = _LABEL.search(text, 0, question) or _ANY_LABEL.search(text, 0, question)
    if (
        label is None
        or conversation_prompt.asks_for_conversation(text[: label.start()])
        or conversation_prompt.asks_for_conversation(text[question:])
    ):
        return None
    return tuple(turns_of(_RULE.sub("", text[label.start() : question])))


def answer(turns: Sequence[str], rng: Random) -> str:
    """The number, with two decimals, in [0.01, 0.99]."""
    weights = [1 + 2 * i / len(turns) for i in range(len(turns))]
    course = sum([weight * tone(text) for weight, text in zip(weights, turns, strict=True)])
    course = course / sum(weights) if turns else 0.0
    # Two uniform draws make a triangle: small errors are more common than large ones.
    chance = 0.25 * (rng.random() + rng.random() - 1)
    return f"{min(0.99, max(0.01, 0.12 + 1.1 * course + chance)):.2f}"
