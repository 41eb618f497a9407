"""Self-play prompts of one side: its brief, and the turns so far.

A prompt is a side's if its brief (the system message, or else the first user message) names the role, `You
are a teacher …`, and asks for one turn at a time. The side's own turns are the assistant's messages, and the
other side's turns are the user's. The prompt does not contain the other side's preferences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from edgen.core.values import Message, Role
from edgen.reading import phrase_kinds
from edgen.simulator.prompts import conversation_prompt, prompt_length
from edgen.simulator.prompts.conversation_prompt import find_in_frames, is_teaching_role
from edgen.simulator.tone import measure_tone


class RoleBrief(NamedTuple):
    """A brief: role, preference and reaction. None: not stated."""

    role: Role  # role of the side that speaks
    topic: str | None  # topic of the conversation
    preference: str | None  # the role's preferred way
    reaction: str | None  # the role's reaction to another way
    turns: tuple[int, int]  # least and most entries of the conversation
    end_marker: bool  # whether an end marker is requested


class AgentPrompt(NamedTuple):
    """The state of a side: its brief, and the turns so far in order, as (whether it is the side's own,
    text)."""

    side: RoleBrief
    said: tuple[tuple[bool, str], ...]

    @property
    def own(self) -> tuple[str, ...]:
        """The side's own turns."""
        return tuple([text for own, text in self.said if own])

    @property
    def other(self) -> tuple[str, ...]:
        """The other side's turns."""
        return tuple([text for own, text in self.said if not own])


_ROLES: dict[str, Role] = {
    "teacher": "Teacher",
    "tutor": "Teacher",
    "instructor": "Teacher",
    "student": "Student",
    "pupil": "Student",
    "learner": "Student",
}
_WHO = "|".join(_ROLES)
_YOU_ARE = re.compile(
    rf"\b(?:you are|you're|act as|speak as|(?:you )?play(?:ing)?(?: the (?:role|part) of)?|your role is)[ :]+"
    rf"(?:that of )?(?:an?|the|one)? ?(?:[\w-]+,? ){{0,3}}?({_WHO})\b(?! (?:trainer|educat|coach|and a |and "
    r"the ))",
    re.IGNORECASE,
)
# Any other role: its name must occur again in the request for one turn.
_ANYBODY = re.compile(
    r"\b(?:you are|you're|act as|speak as|you play)(?: the role of)? (?:an? |the "
    r")?(?P<name>[^\W\d_][\w-]{0,30})\b",
    re.IGNORECASE,
)
# Requests for one turn at a time, which no prompt for a whole conversation contains.
_NEXT = re.compile(
    rf"\bwhat (?:the|this|your) (?:{_WHO}) (?:says|would say|answers|replies)\b|\bwhat you (?:say|would "
    r"say) next\b"
    r"|\b(?:never|don't|do not) (?:speak|talk|write|answer|reply) (?:for|as|on behalf of) the (?:other"
    rf"|{_WHO})",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"\b(?:your|the|one|a single) next (?:turn|line|reply|message|words)\b|\bnext (?:turn|line|reply) only\b"
    r"|\bone turn (?:at a time|only)\b|\bonly (?:your|one|the next) (?:own )?(?:turn|line|reply|words"
    r"|message)\b"
    r"|\b(?:stay|remain|answer|reply|respond|speak) in (?:character|your role)\b|\byour last turn\b"
    r"|\bwithout (?:a|any) (?:name|label|role)\b",
    re.IGNORECASE,
)
# Sentences that only a brief to a side has, and no prompt for a whole conversation.
_END = (
    rf"(?:{conversation_prompt.END}|(?=\.\s+(?:Say|Speak|Stay|Remain|Respond|Keep|Be|Never|Don't|Not"
    r"|Begin)\b))"
)
_LIKES = (
    r"\b[Yy]ou (?:really |also |strongly |usually |always )?(?:(?:like|love|enjoy|prefer) to (?:teach|learn)|"
    r"(?:teach|learn) best|like|love|enjoy|prefer|favou?r)(?! (?:the |your |a )?(?:student|about"
    r"|this\s?way,))(?: (?:like this|this way|best|by|through|with|from|using))?[ ]?[:,]?"
)
_LABEL = r"(?im:^[ \t>*#\-\d.\"]{0,12}(?:your |own )?(?:"
_LABEL_END = r")[\"*_ \t]{0,6}[:=][\"*_ \t]{0,6}(\S[^\n]{0,398}?)[\"*_,]{0,6}[ \t]*$)"
_PREFERENCE = (
    re.compile(_LIKES + r"\s{0,4}(\S.{0,399}?)" + _END),
    re.compile(
        _LABEL + r"(?:teaching|learning|teacher|student)?[ _]?(?:preferences?|style|method)" + _LABEL_END
    ),
)
_REACTION = (
    re.compile(r"(?m:^[^\w\n]{0,8}(?:[Ww]hen|[Ii]f)\b[^:\n]{0,120}:[ \t]*(\S[^\n]{0,399}?)\.?[ \t]*$)"),
    re.compile(r"\b[Yy]ou (?:prefer|like) to (?:teach|learn) this\s?way,\s?(\S.{0,399}?)" + _END),
    re.compile(r"\b[Ww]hen [^.:\n]{0,80}, you (\S.{0,399}?)" + _END),
    re.compile(_LABEL + r"(?:teacher|student)?[ _]?(?:reactions?|otherwise)" + _LABEL_END),
    re.compile(r"\b(?:[Oo]therwise|[Ii]f not|[Ii]f it is otherwise),? you (\S.{0,399}?)" + _END),
)
_OPENING = re.compile(
    r"\W*(?:(?:the|this|your|our) (?:lesson|class|conversation|session|dialogue|talk|chat|call|meeting"
    r"|interview|consultation)[^.!?\n]{0,40} (?:begins?|starts?|opens?)"
    r"|(?:please )?(?:begin|start|open|go ahead)|you (?:begin|start|open|speak first))\b[^.!?\n]{0,40}\W*",
    re.IGNORECASE,
)
# A line that states the first speaker's opening.
_BEGIN = re.compile(
    r"\W*(?:please )?(?:begin|start|open) (?:the|this|your|our) (?:lesson|class|conversation|session"
    r"|dialogue|talk|chat|interview)\b",
    re.IGNORECASE,
)
_NAMED_TURN = re.compile(r"[^\W\d_][\w-]{0,30}: \S")
# An item of a brief's list: `- when the student does not go along: …`.
_ITEM = re.compile(r"(?im:^[^\w\n]{0,8}(?:you|your|when|if|otherwise|topic|the topic)\b[^:\n]{0,120}:)")
_MOST_BRIEF = 20_000  # maximum characters in which a brief is searched


def read(messages: Sequence[Message]) -> AgentPrompt | None:
    """Read a side's prompt; None if the messages are not one."""
    if not messages or messages[-1].role == "assistant":
        return None
    count = 0
    while count < len(messages) and messages[count].role == "system":
        count += 1
    if count:
        side = read_brief("\n\n".join([message.content for message in messages[:count]])[:_MOST_BRIEF])
        if side is not None:
            return AgentPrompt(side, _read_turns(messages[count:]))
    if count == len(messages) or messages[count].role != "user":
        return None
    # Without a system message, or with another one, the brief may begin the first user message.
    first = messages[count].content
    side = read_brief(first[:_MOST_BRIEF])
    if side is None:
        return None
    return AgentPrompt(side, _read_turns((Message("user", _cut_after(first)), *messages[count + 1 :])))


def read_turns_so_far(messages: Sequence[Message]) -> tuple[tuple[bool, str], ...]:
    """Return the turns so far of any role's prompt, in order, as (whether it is the role's own, text). The
    brief is left out: the system message, or else the beginning of the first message."""
    rest = [message for message in messages if message.role != "system"]
    if len(rest) == len(messages) and rest:
        rest[0] = Message("user", _cut_after(rest[0].content))
    return _read_turns(rest)


def _cut_after(text: str) -> str:
    """Return the paragraphs after the last instruction of a message that begins with the brief."""
    paragraphs = text.split("\n\n")
    last = 0
    for i, paragraph in enumerate(paragraphs):
        if _instructs(paragraph[:2_000]):
            last = i
    return "\n\n".join(paragraphs[last + 1 :])


def _instructs(paragraph: str) -> bool:
    return (
        _NEXT.search(paragraph) is not None
        or _HINT.search(paragraph) is not None
        or _YOU_ARE.search(paragraph) is not None
        or _ITEM.search(paragraph) is not None
        or conversation_prompt.MARKER in paragraph.lower()
    )


def _read_turns(messages: Sequence[Message]) -> tuple[tuple[bool, str], ...]:
    """Return the turns so far, without the line that opens the lesson."""
    turns = [
        (message.role == "assistant", text)
        for message in messages
        if message.role != "system"
        for text in (_split_named_turns(message.content) if message.role == "user" else (message.content,))
    ]
    if turns and not turns[0][0]:
        first = turns[0][1][:160].strip()
        if not first or _OPENING.fullmatch(first) or _BEGIN.match(first):
            del turns[0]
    return tuple(turns)


def _split_named_turns(text: str) -> list[str]:
    """Split a message that contains several others' turns, each of which begins with a name. Otherwise return
    it unchanged."""
    parts = text.split("\n\n")
    return parts if len(parts) > 1 and all(map(_NAMED_TURN.match, parts)) else [text]


@lru_cache(maxsize=2_048)
def read_brief(text: str) -> RoleBrief | None:
    """Read the brief in a text; None if there is none."""
    role = _find_role(text)
    if role is None:
        return None
    return RoleBrief(
        role=role,
        topic=conversation_prompt.find_topic(text),
        preference=find_in_frames(_PREFERENCE, text),
        reaction=find_in_frames(_REACTION, text),
        turns=prompt_length.count_turns(text),
        end_marker=conversation_prompt.MARKER in text.lower(),
    )


def _find_role(text: str) -> Role | None:
    """Return the role to play: the brief's teacher or student, or for another role the more similar of the
    two. None: not a brief."""
    who = _YOU_ARE.search(text[:600])
    if who is not None and (
        _NEXT.search(text) or (_HINT.search(text) and not conversation_prompt.asks_for_conversation(text))
    ):
        return _ROLES[who[1].lower()]
    anybody = _ANYBODY.search(text[:600])
    if anybody is None:
        return None
    name = re.escape(anybody["name"])
    asked = rf"\bwhat (?:the |an? )?{name} (?:says|would say|answers|replies)\b"
    if re.search(asked, text, re.IGNORECASE) is None:
        return None
    return "Teacher" if is_teaching_role(anybody["name"]) else "Student"


@lru_cache(maxsize=8_192)
def _find_all_methods(text: str) -> tuple[str, ...]:
    return phrase_kinds.find_methods.__wrapped__(text)


def find_methods(text: str, topic: str) -> tuple[str, ...]:
    """Return the families of methods in a turn, without the ones that the topic itself mentions."""
    start = text[:1_000]
    return _find_all_methods(start.replace(topic, "") if topic else start)


def compute_mood(place: AgentPrompt) -> float:
    """Return the recent mood: the mean tone of the last four turns, 0 before the first."""
    last = place.said[-4:]
    return sum([measure_tone(text) for _, text in last]) / len(last) if last else 0.0
