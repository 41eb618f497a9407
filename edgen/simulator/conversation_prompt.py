"""What a prompt says, read out of its sentences: the scenario, and the form the answer should have.

The simulator sees what a model sees and nothing else. A field that the prompt does not mention is
None. Known are the sentences of the prompt published with the Education Dialogue data set, near
variants of them, and labelled lines (`Student preference: …`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import cycle
from typing import Literal, NamedTuple

from edgen.core.values import Message

Layout = Literal["published", "json", "lines"]


class ScenarioBrief(NamedTuple):
    """What the prompt says about the lesson. None: it does not say."""

    topic: str | None = None
    student_preference: str | None = None
    student_reaction: str | None = None
    teacher_preference: str | None = None
    teacher_reaction: str | None = None


class ConversationPrompt(NamedTuple):
    """A conversation to write. `turns` bounds its entries, both ends included."""

    brief: ScenarioBrief
    layout: Layout
    turns: tuple[int, int]
    end_marker: bool
    probability: bool
    roles: tuple[str, ...] = ()  # those of the layout that it shows; empty: a teacher and a student


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


class _Frame(NamedTuple):
    """A sentence around a value. `needle`, if any, stands in every match, `before` characters from its start: exactly,
    or at most so many. It is looked for first, which costs a tenth of trying the pattern at every character."""

    pattern: re.Pattern[str]
    needle: str = ""
    before: int = 0
    exactly: bool = True

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in a text."""
        if not self.needle:
            return self.pattern.search(text)
        at = text.find(self.needle)
        if not self.exactly:
            return None if at < 0 else self.pattern.search(text, max(0, at - self.before))
        while at >= 0:
            if at >= self.before and (found := self.pattern.match(text, at - self.before)):
                return found
            at = text.find(self.needle, at + 1)
        return None


def _sentence(
    sentence: str, needle: str = "", before: int = 1, *, exactly: bool = True, end: str = END
) -> _Frame:
    return _Frame(re.compile(sentence + r"\s*(\S.{0,399}?)" + end), needle, before, exactly)


def _label(label: str) -> _Frame:
    return _Frame(re.compile(f"{_LABEL_OPEN}(?:{label}){_LABEL_CLOSE}", re.IGNORECASE))


_LIKES = r"(?:likes|loves|enjoys|favou?rs|prefers(?! to (?:learn|teach) this)|wants to (?:learn|teach) (?:through|by|with))"

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

_LONGEST_SUBJECT = len("The student prefers")  # of a sentence about a reaction


def _person(who: str, does: str, best: str, doing: str) -> dict[str, tuple[_Frame, ...]]:
    """The frames of a person's preference and reaction; `does` is to learn or to teach."""
    named = rf"\b[Tt]he {who}(?:'s)?(?: really| also| strongly| usually)? "
    section, label = _SECTION.format(who), rf"(?:the )?{who}(?:['’]s)?[ _]"
    reacts = rf"\b(?:[Tt]he {who}|He|She|They) (?:prefers?|likes?) to {does} this\s?way,"
    return {
        f"{who}_preference": (
            _sentence(named + _LIKES, f"he {who}"),
            _sentence(named + best, f"he {who}"),
            _sentence(section + _METHOD),
            _label(rf"{label}(?:{doing}[ _])?(?:preferences?|prefrences?|pref|likes)"),
        ),
        f"{who}_reaction": (
            _sentence(reacts, f" to {does} this", _LONGEST_SUBJECT, exactly=False),
            _sentence(section + _REACTION),
            _label(rf"{label}(?:reactions?|reacts)"),
        ),
    }


_FRAMES = {
    "topic": (
        _sentence(
            r"\b[Tt]each(?:es|ing)? (?:the |a |his |her |their )?students? (?:all )?about",
            "each",
            end=_TOPIC_END,
        ),
        _sentence(r"\b[Tt]opic(?: of the (?:lesson|conversation))? is", "opic", end=_TOPIC_END),
        _sentence(
            r"\b[Ll]essons?(?: is| focuses| (?:at|between|for|in|with)\b[^.:\n]{0,60}?)? on" + _NO_LENGTH,
            "esson",
            end=_TOPIC_END,
        ),
        _sentence(
            r"\b(?:[Ll]esson|[Cc]onversation|[Dd]ialogue)[^.:\n]{0,60}? about" + _NO_LENGTH, end=_TOPIC_END
        ),
        _label(r"(?:the |lesson )?topic"),
    ),
    **_person("student", "learn", "learns best (?:through|by|with|from)", "learning"),
    **_person("teacher", "teach", "teaches best (?:through|by|with)", "teaching"),
}

_WANTED = re.compile(
    r"\b(?:simulate|write|generate|create|produce|output|invent|role.?play|imagine)\b[^.\n]{0,120}?\b(?:conversation|dialogue)\b",
    re.IGNORECASE,
)
_PUBLISHED = re.compile(r"Conversation:\s*\[\s*[^\W\d_][\w-]{0,30}:")
_PAIR = re.compile(r"\bTeacher\b[\s\S]*\bStudent\b")  # the two that are known best
_JSON = re.compile(r"\bJSON\b|\bjson\b|\"conversation\"\s*:")
_RANGE = r"(\d{1,2})\s*(?:-|–|to)\s*(\d{1,2})"
_TURNS = re.compile(rf"\b{_RANGE} turns\b|\bturns,? {_RANGE}\b")
_LONGEST_RANGE = 64  # characters
DEFAULT_TURNS = (10, 15)
MOST_TURNS = 60
MARKER = "end of conversation"


def read(messages: Sequence[Message]) -> ConversationPrompt | None:
    """The conversation that the messages ask for, None if they ask for none."""
    text = "\n".join([message.content for message in messages if message.role != "assistant"])
    layout = _layout(text)
    if layout is None:
        return None
    lower = text.lower()
    return ConversationPrompt(
        brief=ScenarioBrief(**{field: _find(frames, text) for field, frames in _FRAMES.items()}),
        layout=layout,
        turns=turns(text),
        end_marker=MARKER in lower,
        probability="probability" in lower,
        roles=() if _PAIR.search(text) else named_roles(text),
    )


def _layout(text: str) -> Layout | None:
    if _PUBLISHED.search(text):
        return "published"
    if not _WANTED.search(text):
        return None
    return "json" if _JSON.search(text) else "lines"


def _find(frames: tuple[_Frame, ...], text: str) -> str | None:
    for frame in frames:
        if found := frame.search(text):
            return found[1]
    return None


def topic(text: str) -> str | None:
    """The topic that a text names."""
    return _find(_FRAMES["topic"], text)


def asks_for_conversation(text: str) -> bool:
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
    at = text.find("turns")
    found = None if at < 0 else _TURNS.search(text, max(0, at - _LONGEST_RANGE))
    if found is None:
        return DEFAULT_TURNS
    low, high = sorted(int(number) for number in found.groups() if number)
    return max(2, min(low, MOST_TURNS)), max(2, min(high, MOST_TURNS))


# ---- roles of any name

_LEADS = re.compile(
    r"teacher|tutor|instructor|coach|mentor|trainer|lecturer|professor|examiner|interviewer|counsell?or|therapist|expert"
    r"|guide|host|moderator|facilitator|adviser|advisor|parent|doctor|librarian",
    re.IGNORECASE,
)
_NAME = r"[^\W\d_][\w-]{0,30}"
# A line of the layout that a prompt shows, in the published form or in JSON: `   Tutor:  "...",`.
_SHOWN = re.compile(
    rf"^[ \t]*[*\-\"]{{0,3}}({_NAME})[*\"]{{0,3}}:[ \t]*[\"“]?(?:\.\.\.|…)|\"role\":[ ]?\"({_NAME})\"",
    re.MULTILINE,
)
_NOT_ROLES = {"conversation", "probability", "text", "role"}


def named_roles(prompt: str) -> tuple[str, ...]:
    """The roles of the layout that a prompt shows, in their order; empty where it shows none or one."""
    found = dict.fromkeys(one or other for one, other in _SHOWN.findall(prompt))
    names = tuple(name for name in found if name.lower() not in _NOT_ROLES)
    return names if len(names) > 1 else ()


def leads(name: str) -> bool:
    """Whether somebody called so teaches, as far as the name tells."""
    return _LEADS.search(name) is not None


def in_roles(spoken: Sequence[tuple[str, str]], names: tuple[str, ...]) -> list[tuple[str, str]]:
    """A conversation of a teacher and a student as one of these roles: those who lead take the teacher's turns one
    after the other, all others the student's."""
    teachers = [name for name in names if leads(name)]
    if len(teachers) in (0, len(names)):
        teachers = [names[0]]
    speakers = {"Teacher": cycle(teachers), "Student": cycle(name for name in names if name not in teachers)}
    return [(next(speakers[role]), text) for role, text in spoken]
