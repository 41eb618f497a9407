"""The simulated answer to a wish for more values of a list: made up, one on each line.

A prompt is such a wish if its one user message asks for a number of new or further items, one on each line.
What the items are it reads from the words of the prompt; what is there, from the lines of its list. About
one line in six says again what is there, or what was just said, in slightly other words: models do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from typing import NamedTuple

from edgen.core.values import Message
from edgen.simulator import conversation_prompt


class Wish(NamedTuple):
    """What is asked for: how many, of what kind, and what is shown as being there."""

    number: int
    kind: str
    shown: tuple[str, ...]


_COUNT = re.compile(r"\b(\d{1,4}) (?:more|new|further|additional|other)\b", re.IGNORECASE)
_LINES = re.compile(
    r"\bone (?:on each|on every|a|per) line\b|\beach on (?:its|a) (?:own )?(?:new )?line\b", re.IGNORECASE
)
_KINDS = re.compile(
    r"\b(topic|student[ _](?:preference|reaction)|teacher[ _](?:preference|reaction))s\b", re.IGNORECASE
)
_LIST = re.compile(r"\babout the list of\b", re.IGNORECASE)  # of anything else
_ITEM = re.compile(r"^[-*] (\S[^\n]*)$", re.MULTILINE)
_MOST = 500  # lines of one answer
_SAID_AGAIN = 1 / 6


def read(messages: Sequence[Message]) -> Wish | None:
    """The wish that the messages express, None if they express none."""
    asked = [message for message in messages if message.role != "system"]
    if len(asked) != 1 or asked[0].role != "user":
        return None
    text = asked[0].content
    said = _ITEM.sub("", text)
    count, kind = _COUNT.search(said), _KINDS.search(said)
    named = kind[1].lower().replace(" ", "_") if kind else "other" if _LIST.search(said) else None
    if (
        count is None
        or named is None
        or _LINES.search(said) is None
        or conversation_prompt.asks_for_conversation(said)
    ):
        return None
    return Wish(
        min(int(count[1]), _MOST),
        named,
        tuple(found[1].strip() for found in _ITEM.finditer(text)),
    )


def answer(wish: Wish, rng: Random) -> str:
    """So many lines, each once; every choice is drawn from `rng`."""
    pool = _POOLS[wish.kind]
    fresh = iter(rng.sample(pool, min(len(pool), wish.number)))
    lines: list[str] = []
    for _ in range(wish.number):
        there = lines or wish.shown
        if there and rng.random() < _SAID_AGAIN:
            said = there if rng.random() < 0.5 else wish.shown or there
            line = _AGAIN[int(rng.random() * len(_AGAIN))](said[int(rng.random() * len(said))])
        else:
            line = next(fresh, "")
        if line and line not in lines:
            lines.append(line)
    return "\n".join(lines)


_AGAIN: tuple[Callable[[str], str], ...] = (
    str.lower,
    str.upper,
    lambda text: f"{text}.",
    lambda text: f'"{text}"',
    lambda text: f"{text} in the" if text.endswith(",") else f"The {text}",
    lambda text: text.replace("-", " ") if "-" in text else f" {text}",
)


def _pool(form: str, *parts: str) -> tuple[str, ...]:
    """Every combination of the words of `parts`, set into the form."""
    return tuple(form.format(*words) for words in product(*[part.split("|") for part in parts]))


_TOPICS = (
    *_pool(
        "{} in {}",
        "Bridges|Clocks|Coins|Mapmaking|Medicine|Theatre|Roads|Shipbuilding|Calendars|Taxation|Weaving|Astronomy|"
        "Schools|Festivals|Farming|Glassmaking|Law courts|Trade fairs",
        "ancient Egypt|the Roman Republic|medieval Cairo|the Inca Empire|Edo Japan|Renaissance Florence|Mughal India|"
        "Song dynasty China|the Hanseatic towns|colonial Lima",
    ),
    *_pool(
        "How {} {}",
        "bees|volcanoes|tides|lenses|batteries|glaciers|vaccines|magnets|earthworms|thunderstorms|kidneys|corals|"
        "seeds|fossils|rainbows|muscles|radios|yeasts",
        "came to be studied|shape what is around them|are described by models|change over a year|can be measured at home|"
        "are drawn by scientists|surprised their discoverers|work at night",
    ),
    *_pool(
        "{} and {}",
        "Ratios|Angles|Averages|Symmetry|Estimation|Graphs|Probability|Scale|Percentages|Patterns|Networks|Codes",
        "kitchen recipes|city maps|music|bicycle gears|board games|weather records|paper folding|"
        "bus timetables|knitting|sports tables|garden plans|pocket money",
    ),
    *_pool(
        "{} in {}",
        "Narrators|Settings|Dialogue|Symbols|Openings|Endings|Suspense|Humour|Metre|Irony|Letters|Dreams",
        "short stories|folk tales|travel writing|radio plays|diaries|ballads|"
        "fables|detective novels|haiku|speeches",
    ),
)  # fmt: skip
_WAYS = _pool(
    "{} {}",
    "building models|keeping a notebook|solving riddles|drawing comics|comparing objects|inventing examples|"
    "acting out scenes|recording short talks|sorting cards|interviewing people|planning small trips|"
    "writing letters|testing guesses|telling anecdotes|mapping ideas|making posters|tracing mistakes|timing races",
    "with a partner|outdoors|from everyday life|against the clock|before any theory|after each step|"
    "with music|in tiny groups|on a whiteboard|out of newspapers|about local history",
)
_DOES = (
    "whispers to neighbours|draws in the margins|asks for examples|hums a tune|counts the minutes|folds paper|"
    "requests a break|repeats every sentence|answers with jokes|compares notes|looks for loopholes|sighs a lot|"
    "copies the blackboard|negotiates politely|skips ahead"
)
_TEACHES = (
    "slows the pace|repeats the plan|offers a bargain|tells a story|raises the voice|praises small steps|"
    "hands out worksheets|asks what is wrong|shortens the lesson|changes the seats|draws a sketch|insists on notes|"
    "waits in silence|gives a warning|sets homework"
)
_WHEN = (
    "for a while|until the break|at every turn|without much hope|in good spirits|with growing impatience|"
    "as a matter of habit|after some thought|in front of everybody|only once|half the time|under protest"
)
_POOLS = {
    "topic": _TOPICS,
    "other": _WAYS,
    "student_preference": _WAYS,
    "teacher_preference": _WAYS,
    "student_reaction": _pool("and {} {} otherwise", _DOES, _WHEN),
    "teacher_reaction": _pool("and {} {} otherwise", _TEACHES, _WHEN),
}
