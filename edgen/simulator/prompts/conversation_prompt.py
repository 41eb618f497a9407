"""Parser of conversation prompts: scenario and layout of the answer.

The simulator sees only what a model sees; fields that are not in the prompt are None. It knows the sentences
of the prompt published with the Education Dialogue data set, near variants of them, and labelled lines
(`Student preference: …`). In other prompts it reads the speakers (`prompt_roles`) and the layout
(`answer_form`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

from edgen.core.text import compile_later
from edgen.core.values import Message
from edgen.simulator.prompts.answer_form import CHANCE, Form, read_form
from edgen.simulator.prompts.prompt_length import count_turns, read_any_turns
from edgen.simulator.prompts.prompt_roles import find_roles, may_guess
from edgen.simulator.prompts.shown_names import find_shown_names


class ScenarioBrief(NamedTuple):
    """The scenario in a prompt. None: not stated."""

    topic: str | None = None
    student_preference: str | None = None
    student_reaction: str | None = None
    teacher_preference: str | None = None
    teacher_reaction: str | None = None


class ConversationPrompt(NamedTuple):
    """A request for a conversation."""

    brief: ScenarioBrief  # scenario in the prompt
    turns: tuple[int, int]  # least and most entries of the answer
    end_marker: bool  # whether an end marker is requested
    probability: bool  # whether a probability is requested
    roles: tuple[str, ...] = ()  # speakers, in the prompt's words; empty: a teacher and a student
    form: Form | None = None  # the layout; None for the published one


# A phrase ends at a full stop before a word that opens a sentence, or at its line's end, so that "Martin
# Luther King Jr. and the law" stays whole.
END = (
    r"(?=\.?\s*(?:\n|$)|\.\s+(?:The|A|An|He|She|They|His|Her|Their|It|This|That|There|In|If|When|"
    r"Otherwise|Output|Write|Return|Reply|Answer|Give|Use|Simulate|Make|Do|You|Your|Please|Both|Let)\b)"
)
# A topic also ends before the conversation's length and speakers.
_TOPIC_END = (
    rf"(?:{END}"
    r"|(?=,? (?:in|of|over|with) (?:about |roughly )?\d{1,2}(?:\s*(?:-|–|to)\s*\d{1,2})? turns\b)"
    r"|(?=,? between (?:an?|one|the) (?:\w+ )?(?:teacher|student)\b))"
)
_LABEL_OPEN = r"(?:^|\n)[ \t>*#\-\d.\"]*"
_LABEL_CLOSE = r"[\"*_ \t]*[:=][\"*_ \t]*(\S.{0,399}?)[\"*_,]*\s*(?=\n|$)"


class _Frame(NamedTuple):
    """A sentence around a value. `needle`, if any, occurs in every match, `before` characters from its start:
    exactly, or at most that many. It is searched first, at a tenth of the cost of trying the pattern
    everywhere. `bounded`: a slower pattern for values of at most 400 characters."""

    pattern: re.Pattern[str]
    needle: str = ""
    before: int = 0
    exactly: bool = True
    bounded: re.Pattern[str] | None = None

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a text."""
        found = self._search(self.pattern, text)
        if found is not None and self.bounded is not None and len(found[1]) > _LONGEST_VALUE:
            return self._search(self.bounded, text)
        return found

    def _search(self, pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
        needle, before = self.needle, self.before
        if not needle:
            return pattern.search(text)
        at = text.find(needle)
        if not self.exactly:
            return None if at < 0 else pattern.search(text, max(0, at - before))
        while at >= 0:
            if at >= before and (found := pattern.match(text, at - before)):
                return found
            at = text.find(needle, at + 1)
        return None


_LONGEST_VALUE = 400  # characters


def _compile_sentence(
    sentence: str, needle: str = "", before: int = 1, *, exactly: bool = True, end: str = END
) -> _Frame:
    # Look for the end only at marks and blanks, where it can begin.
    value = rf"(\S[^.,\s]*+(?>(?:(?!{end})[.,\s][^.,\s]*+)*))"
    pattern, bounded = (rf"{sentence}\s*{each}{end}" for each in (value, r"(\S.{0,399}?)"))
    return _Frame(compile_later(pattern), needle, before, exactly, compile_later(bounded))


def _compile_label(label: str) -> _Frame:
    return _Frame(compile_later(f"{_LABEL_OPEN}(?:{label}){_LABEL_CLOSE}", re.IGNORECASE))


_LIKES = (
    r"(?:likes|loves|enjoys|favou?rs|prefers(?! to (?:learn|teach) this)|wants to (?:learn|teach) (?:through"
    r"|by|with))"
)

# A heading with a role, and the items of the list below it, in any order.
_SECTION = r"(?:^|\n)[^\w\n]*The {}\b[^:\n]{{0,80}}:[ \t]*\n[ \t]*[-*] (?:[^\n]*\n[ \t]*[-*] ){{0,3}}?"
_METHOD = r"(?:learns|teaches|likes|prefers)[^:\n]*:"
_REACTION = r"(?:when|if|reacts|otherwise)[^:\n]*:"

# Words after "about" and the like in sentences without a topic: "about 12 turns", "on one page".
_NUMBER = (
    r"(?:\d[\d–-]*|an?|single|half|dozen|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|"
    r"twenty|thirty|hundred|thousand|to|or)"
)
_UNIT = r"(?:turn|page|line|word|sentence|minute|hour|exchange|message|entr(?:y|ie)|token)s?\b"
_NO_LENGTH = rf"\b(?!(?:\s+{_NUMBER})+\s+{_UNIT})(?!\s+(?:for|until|it|this|that|them|which)\b)"

_LONGEST_SUBJECT = len("The student prefers")  # end of a sentence about a reaction


def _compile_person(who: str, does: str, best: str, doing: str) -> dict[str, tuple[_Frame, ...]]:
    """Return the frames of a person's preference and reaction. `does` is to learn or to teach."""
    named = rf"\b[Tt]he {who}(?:'s)?(?: really| also| strongly| usually)? "
    section, label = _SECTION.format(who), rf"(?:the )?{who}(?:['’]s)?[ _]"
    reacts = rf"\b(?:[Tt]he {who}|He|She|They) (?:prefers?|likes?) to {does} this\s?way,"
    return {
        f"{who}_preference": (
            _compile_sentence(named + _LIKES, f"he {who}"),
            _compile_sentence(named + best, f"he {who}"),
            _compile_sentence(section + _METHOD),
            _compile_label(rf"{label}(?:{doing}[ _])?(?:preferences?|prefrences?|pref|likes)"),
        ),
        f"{who}_reaction": (
            _compile_sentence(reacts, f" to {does} this", _LONGEST_SUBJECT, exactly=False),
            _compile_sentence(section + _REACTION),
            _compile_label(rf"{label}(?:reactions?|reacts)"),
        ),
    }


_FRAMES = {
    "topic": (
        _compile_sentence(
            r"\b[Tt]each(?:es|ing)? (?:the |a |his |her |their )?students? (?:all )?about",
            "about",
            len("teaching their students all "),
            exactly=False,
            end=_TOPIC_END,
        ),
        _compile_sentence(r"\b[Tt]opic(?: of the (?:lesson|conversation))? is", "opic", end=_TOPIC_END),
        _compile_sentence(
            r"\b[Ll]essons?(?: is| focuses| (?:at|between|for|in|with)\b[^.:\n]{0,60}?)? on" + _NO_LENGTH,
            "esson",
            end=_TOPIC_END,
        ),
        _compile_sentence(
            r"\b(?:[Ll]esson|[Cc]onversation|[Dd]ialogue)[^.:\n]{0,60}? about" + _NO_LENGTH, end=_TOPIC_END
        ),
        _compile_label(r"(?:the |lesson )?topic"),
    ),
    **_compile_person("student", "learn", "learns best (?:through|by|with|from)", "learning"),
    **_compile_person("teacher", "teach", "teaches best (?:through|by|with)", "teaching"),
}

# The topic of prompts in any words.
_ANY_TOPIC = (
    _Frame(
        compile_later(
            r"\b(?:discuss(?:es|ing)?|explain(?:s|ing)?"
            r"|(?:talk|speak|chat|argue|teach|negotiat|know|disagree)\w{0,5}(?: [\w’']+){0,3} about)"
            + _NO_LENGTH
            + r"\s+(\S.{0,199}?)"
            + _TOPIC_END
        )
    ),
)
_SENTENCE_END = compile_later(
    r"(?<=\w{4})[.!?:;](?:\s+[^\W\d_]|\s*$)|(?<=\w)[:;]$| (?:to|between|as) (?:an?|the|one)\b|,? in \w+ "
    r"turns|,? as (?:JSON|YAML|XML)\b"
)


def _cut_sentence(text: str | None) -> str | None:
    """Return the text up to the end of its first sentence."""
    if text is None or (end := _SENTENCE_END.search(text)) is None:
        return text
    return text[: end.start()] or text


_WANTED = compile_later(
    r"\b(?:simulate|write|generate|create|produce|output|invent|role.?play"
    r"|imagine)\b[^.\n]{0,120}?\b(?:conversation|dialogue)\b",
    re.IGNORECASE,
)
_HEADING = "Conversation:"  # found faster than the pattern
_PUBLISHED = compile_later(_HEADING + r"\s*\[\s*[^\W\d_][\w-]{0,30}:")
# The two best-known requests. Patterns begin with letters, since letters are found faster than places between
# words.
_TEACHER = compile_later(r"Teacher(?<=\bTeacher)\b")
_STUDENT = compile_later(r"Student(?<=\bStudent)\b")
MARKER = "end of conversation"


def read(
    messages: Sequence[Message], speakers: Sequence[tuple[str, ...]] = (), *, certain: bool = False
) -> ConversationPrompt | None:
    """Read the requested conversation; None if there is none or its speakers are unknown.

    `speakers`: the possible roles, if known, each with synonyms. `certain`: the messages can only request a
    conversation.
    """
    text = "\n".join([message.content for message in messages if message.role != "assistant"])
    published = _shows_published_layout(text)
    asked = published or _WANTED.search(text) is not None
    if not asked and not certain:
        return None
    lower = text.lower()
    found = {field: find_in_frames(frames, text) for field, frames in _FRAMES.items()}
    if not published:
        found["topic"] = _cut_sentence(found["topic"] or find_in_frames(_ANY_TOPIC, text))
    brief = ScenarioBrief(**found)
    ends = MARKER in lower
    if published:
        roles = () if _is_about_the_pair(text) else find_shown_roles(text)
        return ConversationPrompt(brief, count_turns(text), ends, "probability" in lower, roles)
    roles = find_roles(text, speakers)
    if not roles and (not asked or not may_guess(text, speakers)):
        return None
    form = read_form(text, roles or ("Teacher", "Student"))
    probability = CHANCE.search(text) is not None
    return ConversationPrompt(brief, read_any_turns(text), ends, probability, roles, form)


def _is_about_the_pair(text: str) -> bool:
    """Return whether a text names a Teacher and, after that, a Student."""
    at = text.find("Teacher")
    first = None if at < 0 else _TEACHER.search(text, at)
    return first is not None and _STUDENT.search(text, first.end()) is not None


def _shows_published_layout(text: str) -> bool:
    return (at := text.find(_HEADING)) >= 0 and _PUBLISHED.search(text, at) is not None


def find_in_frames(frames: Sequence[_Frame | re.Pattern[str]], text: str) -> str | None:
    """Return the first group of the first frame or pattern that matches a text; None if none matches."""
    for frame in frames:
        if found := frame.search(text):
            return found[1]
    return None


def find_topic(text: str) -> str | None:
    """Return the topic in a text."""
    return find_in_frames(_FRAMES["topic"], text)


def asks_for_conversation(text: str) -> bool:
    """Return whether a text requests a whole conversation."""
    return _shows_published_layout(text) or _WANTED.search(text) is not None


_TALK = compile_later(
    r"\b(?:conversations?|dialogues?|dialogs?|chats?|talk(?:s|ing)?|q ?& ?a|e-?mails|argues?|debat(?:e|es"
    r"|ing)|reviews?|meets?|logs?|what (?:they|each)\b[^.\n]{0,20} says?|what is said|transcripts?"
    r"|discussions?|lessons?|scenes?|scripts?|interviews?|"
    r"exchanges?|sessions?|debates?|discuss(?:es)?|explains?|utterances?|turns?|role.?play|say to each other"
    r"|speak|gespräch|unterhaltung|diálogo|conversación|conversation|"
    r"dialogo|conversazione|conversa|gesprek|rozmow\w{1,3}|konuşma\w{0,4}|samtal\w{0,3}|rozhovor\w{0,3}"
    r"|keskustelu\w{0,3}|beszélgetés\w{0,3}|percakapan)\b|hội thoại|συζήτηση|对话|對話|会話|対話|대화|разговор|диалог"
    r"|محادثة|حوار|संवाद|बातचीत",
    re.IGNORECASE,
)
_WRITE = compile_later(
    r"\b(?:write|create|generate|give|produce|make|invent|draft|compose|imagine|simulate|show|output|return"
    r"|let|wrap|put|format|transcripts?|one line per|prefix|example"
    r"|schreib\w*|erfinde|cri[ea]\w*|escrib\w*|écri\w*|scriv\w*|escrev\w*|schrijf|napisz|yaz)\b|写|寫|書|작성|써"
    r"|напиш|اكتب|लिख|כתוב",
    re.IGNORECASE,
)
_SAID = compile_later(r"(?m)^[^\W\d_][\w-]{0,30}: \S[^\n]{20,}")  # a heard turn, which may be about anything
_ONE_SIDE = compile_later(
    r"\b(?:you are (?!an? (?:\w+ ){0,2}(?:author|writer|playwright|novelist|screenwriter|expert|assistant"
    r"|simulator|data))|you're|act as|speak as|reply as|answer as|respond as|your (?:next|turn|part|role"
    r"|reply|task is to (?:play|judge)))\b",
    re.IGNORECASE,
)


def may_ask(messages: Sequence[Message]) -> bool:
    """Return whether messages of no known prompt may request a conversation and assign no side to play."""
    if [message.role for message in messages] not in (["user"], ["system", "user"]):
        return False
    text = _SAID.sub("", "\n".join([message.content for message in messages]))
    if _ONE_SIDE.search(text) is not None:
        return False
    if len([*find_shown_names(text)]) > 1:
        return True
    if _TALK.search(text) is None:
        return False
    return _WRITE.search(text) is not None or len(find_roles(text)) > 1


FIRST = compile_later(r"[ _#]1\b")  # occurs in the heading of every first transcript
_WHO_START = 600  # characters of a brief that name the role


def asks_for_nothing_else(messages: Sequence[Message]) -> bool:
    """Return whether the messages can only request a whole conversation. False means: look closer.

    This costs 2 µs, the closer look 50 µs, and most prompts of a large run pass. A text that opens with the
    request for a conversation contains no closing question, since that follows a conversation. Without a 1
    and a 2 there are no two transcripts to compare. Every brief that assigns a role contains one of the four
    words below. They have no i and no s, since patterns that ignore case also match other letters for these,
    which `lower` does not convert.
    """
    if len(messages) != 1 or messages[0].role != "user":
        return False
    text = messages[0].content
    if _WANTED.match(text) is None or ("2" in text and FIRST.search(text) is not None):
        return False
    start = text[:_WHO_START].lower()
    return not ("you" in start or "play" in start or "act a" in start or "eak a" in start)


# ---- custom roles

_LEADS = compile_later(
    r"teacher|tutor|instructor|coach|mentor|trainer|lecturer|professor|examiner|interviewer|counsell?or"
    r"|therapist|expert|guide|host|moderator|facilitator|adviser|advisor|parent|doctor|librarian",
    re.IGNORECASE,
)
_NAME = r"[^\W\d_][\w-]{0,30}"
# A line of a shown layout, in the published form or in JSON: `   Tutor:  "...",`.
_SHOWN = compile_later(
    rf"^[ \t]*[*\-\"]{{0,3}}({_NAME})[*\"]{{0,3}}:[ \t]*[\"“]?(?:\.\.\.|…)|\"role\":[ ]?\"({_NAME})\"",
    re.MULTILINE,
)
_NOT_ROLES = {"conversation", "probability", "text", "role"}


def find_shown_roles(prompt: str) -> tuple[str, ...]:
    """Return the roles of a shown layout in order; empty if there are fewer than two."""
    found = dict.fromkeys(one or other for one, other in _SHOWN.findall(prompt))
    names = tuple(name for name in found if name.lower() not in _NOT_ROLES)
    return names if len(names) > 1 else ()


def is_teaching_role(name: str) -> bool:
    """Return whether a role teaches, judged by its name."""
    return _LEADS.search(name) is not None


def assign_roles(spoken: Sequence[tuple[str, str]], names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Assign a teacher's and a student's turns to these roles. Leading roles share the teacher's turns in
    rotation, all others the student's."""
    teachers = [name for name in names if is_teaching_role(name)]
    if len(teachers) in (0, len(names)):
        teachers = [names[0]]
    speakers = {"Teacher": cycle(teachers), "Student": cycle(name for name in names if name not in teachers)}
    return [(next(speakers[role]), text) for role, text in spoken]
