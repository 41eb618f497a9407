"""What a prompt says, read out of its sentences: the scenario, and the form the answer should have.

The simulator sees what a model sees and nothing else. A field that the prompt does not mention is
None. Known are the sentences of the prompt published with the Education Dialogue data set, near
variants of them, and labelled lines (`Student preference: …`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from edgen.model import Message

Layout = Literal["published", "json", "lines"]


class Brief(NamedTuple):
    """What the prompt says about the lesson. None: it does not say."""

    topic: str | None = None
    student_preference: str | None = None
    student_reaction: str | None = None
    teacher_preference: str | None = None
    teacher_reaction: str | None = None


class Task(NamedTuple):
    """A conversation to write. `turns` bounds its entries, both ends included."""

    brief: Brief
    layout: Layout
    turns: tuple[int, int]
    end_marker: bool
    probability: bool


# A phrase ends at a full stop before a word that opens a sentence, or with its line, so that the
# stop in "Martin Luther King Jr. and the law" is no end.
END = (
    r"(?=\.?\s*(?:\n|$)|\.\s+(?:The|A|An|He|She|They|His|Her|Their|It|This|That|There|In|If|When|"
    r"Otherwise|Output|Write|Return|Reply|Answer|Give|Use|Simulate|Make|Do|You|Your|Please|Both|Let)\b)"
)
# A topic ends before the length of the conversation and those who hold it, too.
_TOPIC_END = (
    rf"(?:{END}"
    r"|(?=,? (?:in|of|over|with) (?:about |roughly )?\d{1,2}(?:\s*(?:-|–|to)\s*\d{1,2})? turns\b)"
    r"|(?=,? between (?:an?|one|the) (?:\w+ )?(?:teacher|student)\b))"
)
_LABEL_OPEN = r"(?:^|\n)[ \t>*#\-\d.\"]*"
_LABEL_CLOSE = r"[\"*_ \t]*[:=][\"*_ \t]*(\S.{0,399}?)[\"*_,]*\s*(?=\n|$)"


def _frames(*sentences: str, label: str, end: str = END) -> tuple[re.Pattern[str], ...]:
    frames = [re.compile(sentence + r"\s*(\S.{0,399}?)" + end) for sentence in sentences]
    return (*frames, re.compile(f"{_LABEL_OPEN}(?:{label}){_LABEL_CLOSE}", re.IGNORECASE))


_STUDENT = r"\b[Tt]he student(?:'s)?(?: really| also| strongly| usually)? "
_TEACHER = r"\b[Tt]he teacher(?:'s)?(?: really| also| strongly| usually)? "
_LIKES = r"(?:likes|loves|enjoys|favou?rs|prefers(?! to (?:learn|teach) this)|wants to (?:learn|teach) (?:through|by|with))"
_REACTS = r"(?:prefers?|likes?) to {} this\s?way,"

# A heading that names somebody, and the items of the list below it, in any order.
_SECTION = r"(?:^|\n)[^\w\n]*The {}\b[^:\n]{{0,80}}:[ \t]*\n[ \t]*[-*] (?:[^\n]*\n[ \t]*[-*] ){{0,3}}?"
_METHOD = r"(?:learns|teaches|likes|prefers)[^:\n]*:"
_REACTION = r"(?:when|if|reacts|otherwise)[^:\n]*:"

# What follows "about" and the like in a sentence that names no topic: "about 12 turns", "on one page".
_NUMBER = (
    r"(?:\d[\d–-]*|an?|single|half|dozen|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|"
    r"twenty|thirty|hundred|thousand|to|or)"
)
_UNIT = r"(?:turn|page|line|word|sentence|minute|hour|exchange|message|entr(?:y|ie)|token)s?\b"
_NO_LENGTH = rf"\b(?!(?:\s+{_NUMBER})+\s+{_UNIT})(?!\s+(?:for|until|it|this|that|them|which)\b)"

_FRAMES = {
    "topic": _frames(
        r"\b[Tt]each(?:es|ing)? (?:the |a |his |her |their )?students? (?:all )?about",
        r"\b[Tt]opic(?: of the (?:lesson|conversation))? is",
        r"\b[Ll]essons?(?: is| focuses| (?:at|between|for|in|with)\b[^.:\n]{0,60}?)? on" + _NO_LENGTH,
        r"\b(?:[Ll]esson|[Cc]onversation|[Dd]ialogue)[^.:\n]{0,60}? about" + _NO_LENGTH,
        label=r"(?:the |lesson )?topic",
        end=_TOPIC_END,
    ),
    "student_preference": _frames(
        _STUDENT + _LIKES,
        _STUDENT + r"learns best (?:through|by|with|from)",
        _SECTION.format("student") + _METHOD,
        label=r"(?:the )?student(?:['’]s)?[ _](?:learning[ _])?(?:preferences?|prefrences?|pref|likes)",
    ),
    "student_reaction": _frames(
        r"\b(?:[Tt]he student|He|She|They) " + _REACTS.format("learn"),
        _SECTION.format("student") + _REACTION,
        label=r"(?:the )?student(?:['’]s)?[ _](?:reactions?|reacts)",
    ),
    "teacher_preference": _frames(
        _TEACHER + _LIKES,
        _TEACHER + r"teaches best (?:through|by|with)",
        _SECTION.format("teacher") + _METHOD,
        label=r"(?:the )?teacher(?:['’]s)?[ _](?:teaching[ _])?(?:preferences?|prefrences?|pref|likes)",
    ),
    "teacher_reaction": _frames(
        r"\b(?:[Tt]he teacher|He|She|They) " + _REACTS.format("teach"),
        _SECTION.format("teacher") + _REACTION,
        label=r"(?:the )?teacher(?:['’]s)?[ _](?:reactions?|reacts)",
    ),
}

_WANTED = re.compile(
    r"\b(?:simulate|write|generate|create|produce|output|invent|role.?play|imagine)\b[^.\n]{0,120}?\b(?:conversation|dialogue)\b",
    re.IGNORECASE,
)
_PUBLISHED = re.compile(r"Conversation:\s*\[\s*Teacher:")
_JSON = re.compile(r"\bJSON\b|\bjson\b|\"conversation\"\s*:")
_RANGE = r"(\d{1,2})\s*(?:-|–|to)\s*(\d{1,2})"
_TURNS = re.compile(rf"\b{_RANGE} turns\b|\bturns,? {_RANGE}\b")
DEFAULT_TURNS = (10, 15)
MOST_TURNS = 60
MARKER = "end of conversation"


def read(messages: Sequence[Message]) -> Task | None:
    """The conversation that the messages ask for, None if they ask for none."""
    text = "\n".join([message.content for message in messages if message.role != "assistant"])
    layout = _layout(text)
    if layout is None:
        return None
    lower = text.lower()
    return Task(
        brief=Brief(**{field: _find(frames, text) for field, frames in _FRAMES.items()}),
        layout=layout,
        turns=turns(text),
        end_marker=MARKER in lower,
        probability="probability" in lower,
    )


def _layout(text: str) -> Layout | None:
    if _PUBLISHED.search(text):
        return "published"
    if not _WANTED.search(text):
        return None
    return "json" if _JSON.search(text) else "lines"


def _find(frames: tuple[re.Pattern[str], ...], text: str) -> str | None:
    for frame in frames:
        if found := frame.search(text):
            return found[1]
    return None


def topic(text: str) -> str | None:
    """The topic that a text names."""
    return _find(_FRAMES["topic"], text)


def wanted(text: str) -> bool:
    """Whether a text asks for a whole conversation."""
    return _layout(text) is not None


FIRST = re.compile(r"[ _#]1\b")  # stands in the heading of every first transcript
_WHO_START = 600  # characters in which a brief says who one is


def asks_for_nothing_else(messages: Sequence[Message]) -> bool:
    """Whether it is plain that the messages can only ask for a whole conversation. False: look closer.

    It costs 2 µs, the closer look 50, and most prompts of a large run pass. A text that opens with the wish
    for a conversation holds no closing question, which comes behind one; without a 1 and a 2 there are no
    two transcripts to compare; and one of the four words below stands in every brief that tells a side who
    it is. They have no i and no s: patterns that ignore case also take letters for these that are none in
    lower case.
    """
    if len(messages) != 1 or messages[0].role != "user":
        return False
    text = messages[0].content
    if _WANTED.match(text) is None or ("2" in text and FIRST.search(text) is not None):
        return False
    start = text[:_WHO_START].lower()
    return not ("you" in start or "play" in start or "act a" in start or "eak a" in start)


def turns(text: str) -> tuple[int, int]:
    """How many turns a text asks for, at least and at most; DEFAULT_TURNS if it does not say."""
    found = _TURNS.search(text)
    if found is None:
        return DEFAULT_TURNS
    low, high = sorted(int(number) for number in found.groups() if number)
    return max(2, min(low, MOST_TURNS)), max(2, min(high, MOST_TURNS))
