"""Replies as models write them: one lesson of sixteen turns in ten layouts, the texts drawn by number.

Nothing here imports edgen: texts and layouts are independent, so that a server can answer with them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

TURNS = 16
END = "[end of conversation]"

_TOPICS = ("photosynthesis", "fractions", "the water cycle", "electric current", "the French Revolution",
           "plate tectonics", "past tenses", "probability", "cell division", "supply and demand")  # fmt: skip
_TEACHER = (
    "Good morning! Today we look at {topic}, and I would like to start with what you already know about it.",
    "Let's take it step by step: first the idea, then one example, and after that you try one by yourself.",
    "That's a fair point. Think of it this way: if you change one part of {topic}, what happens to the rest?",
    "I usually explain it with a diagram — imagine a box on the left, a box on the right and an arrow between them.",
    "You’re close! The number at the bottom tells us how many equal parts there are; what does the one on top say?",
    "Not quite. Read the second sentence again, slowly, and tell me which word carries the meaning.",
    "Let me put it differently. A factory takes in raw material, uses energy, and gives out a product and some waste.",
    "Exactly, and notice that you found it without my help. Could you say it once more in your own words?",
    "We could go through the definition together, or you could look at three cases and find what they share.",
    "I see that the lecture is not your favourite way to learn, so we will try it with the cards on the table.",
    'The word "cause" matters here: something made it happen, it did not just come before it.',
    "Take two minutes for this one: what would you measure, and how would you know that you were wrong?",
)
_STUDENT = (
    "Okay, I think I know a bit about {topic}, but we never got to the part where it gets useful.",
    "Hmm, I don't really get it. Why does the second one depend on the first?",
    "Can I draw it? I always understand things better when I can move them around.",
    "So when one goes up, the other goes down... is that always true, or only in this example?",
    "This is boring, honestly. Could we do something with our hands instead of listening all the time?",
    "Wait, I think I have it: it’s like charging a phone, the energy is stored and used later!",
    "I counted 3 of 4, so that would be 75 percent, wouldn't it?",
    "You keep saying that it is simple, but the book says something else on page 12.",
    "Oh! So that's why the leaves turn yellow in autumn — nobody ever told me that.",
    "I tried, but I get stuck at the step where you divide both sides by the same number.",
    "Thanks, that helps a little. I would still like to see one more example before the test.",
    "Fine. If I say it in my own words: it takes in light and water, and it gives back sugar and oxygen?",
)
_THOUGHT = (
    "The user wants a conversation between a teacher and a student about {topic}. The student prefers hands-on work "
    "and gets impatient when lectured; the teacher likes to explain first and may adapt later.\n\n"
    "I should write about sixteen turns, keep both voices apart, and let the student end up only partly convinced. "
    "The probability should be low, something like {probability}, as the lesson mostly went the teacher's way.\n"
)

Lesson = list[tuple[str, str]]
Exchange = tuple[tuple[str, str], tuple[str, str]]  # a turn of the teacher and one of the student
exchanges: list[Exchange] = []  # of other lessons than those above, if there are any


def lesson(number: int) -> tuple[str, Lesson, str]:
    """Return (topic, turns as (role, text), probability) of a number, always the same."""
    draw = random.Random(number)
    topic = draw.choice(_TOPICS)
    if exchanges:
        turns = [turn for exchange in draw.sample(exchanges, TURNS // 2) for turn in exchange]
        return topic, turns, f"{draw.randrange(5, 96) / 100:g}"
    said = [draw.sample(_TEACHER, TURNS // 2), draw.sample(_STUDENT, TURNS // 2)]
    turns = [
        (("Teacher", "Student")[i % 2], said[i % 2][i // 2].replace("{topic}", topic)) for i in range(TURNS)
    ]
    return topic, turns, f"{draw.randrange(5, 96) / 100:g}"


def _published(number: int, rule: str = "") -> str:
    _, turns, probability = lesson(number)
    lines = [
        f'   {role}:  "{text}",'.replace('"cause"', '\\"cause\\"').replace(
            '",', f' {END}",' if last else '",'
        )
        for last, (role, text) in ((i == TURNS - 1, turn) for i, turn in enumerate(turns))
    ]
    inner = "\n".join(lines)
    return f'{rule}Conversation:\n[\n{inner}\n]\nProbability:  "{probability}",\n{rule}'


def _hashed(number: int) -> str:
    return _published(number, "#\n")


def _json(number: int) -> str:
    _, turns, probability = lesson(number)
    value = {
        "conversation": [
            {"role": role, "text": f"{text} {END}" if i == TURNS - 1 else text}
            for i, (role, text) in enumerate(turns)
        ],
        "probability": float(probability),
    }
    return json.dumps(value, ensure_ascii=False, indent=2 if number % 2 else None)


def _fenced(number: int) -> str:
    return f"```json\n{_json(number)}\n```"


def _lines(
    number: int, *, between: str = "\n", role: str = "{role}: ", foot: str = "Probability: {p}"
) -> str:
    _, turns, probability = lesson(number)
    lines = [role.format(role=who, n=i + 1) + text for i, (who, text) in enumerate(turns)]
    return f"{between.join(lines)} {END}\n\n{foot.format(p=probability)}"


def _spaced(number: int) -> str:
    return _lines(number, between="\n\n")


def _bold(number: int) -> str:
    return _lines(number, between="\n\n", role="**{role}:** ", foot="**Probability:** {p}")


def _numbered(number: int) -> str:
    return _lines(number, role="{n}. {role}: ")


def _headed(number: int) -> str:
    _, turns, probability = lesson(number)
    said = [(role, text.replace('"', "'")) for role, text in turns]
    said[-1] = (said[-1][0], f"{said[-1][1]} {END}")
    lines = "\n".join(f'{role}: "{text}"' for role, text in said)
    return f'**Conversation:**\n\n{lines}\n\n**Probability:** "{probability}"'


def _thinking(number: int) -> str:
    topic, _, probability = lesson(number)
    thought = _THOUGHT.replace("{topic}", topic).replace("{probability}", probability)
    return f"<think>\n{thought}</think>\n\n{_published(number)}"


LAYOUTS: dict[str, Callable[[int], str]] = {
    "published": _published,
    "published with #": _hashed,
    "JSON": _json,
    "fenced JSON": _fenced,
    "lines": _lines,
    "lines, blank lines between": _spaced,
    "bold names": _bold,
    "numbered": _numbered,
    "heading, quotes": _headed,
    "thinking": _thinking,
}
