"""How the simulator plays guided conversations: it mostly takes the hint, sometimes another offer or words of
its own; answers questions as they are put (yes or no, one of two, something that it heard); and rates by how
it ended.

Prompts are known by their lines: those of the shipped templates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from edgen.plugin import Simulation

_OFFERED = re.compile(r"(?m)^(?:You may say|Or a short reply\b.*):\n((?:\d+\. .*\n?)+)")
_NUMBERED = re.compile(r"(?m)^(\d+)\. ")
_HINT = re.compile(r"(?m)^A hint: in this place number (\d+) ")
_REWORD = re.compile(r"(?m)^To be said in other words: (.+)$")
_RATED = re.compile(r"(?m)^- ([A-Za-z]\w{0,39}): .*\((?:(-?\d+) to (-?\d+)|in your own words)[^()]*\)$")
_DONE = re.compile(r"(?m)^It is over\. (?:(The task was done)|(The task was not done))?")
_PARTNER = re.compile(r"(?m)^You are .+ You do not see what .+ sees\.$")
_LABELS = re.compile(r"(?m)What it can do: (.+)$")
_EITHER = re.compile(r"\b([A-Z]\w+),? or (?:the |a )?([A-Z]\w+)\b")
_YES_OR_NO = re.compile(
    r"(?i)(?:^|[.!,;:] )(?:(?:so|then|now),? )?(?:shall|should|do|does|did|may|can|could|is|are|will|would|have|has|ready|ok(?:ay)?|agreed)\b[^.!?]*\?"
)
_SENTENCE = re.compile(r"[^.!?]+[.!?]?")
_NO_ANSWER = "(Nobody says anything.)"

# What the simulator says; some lines are beginnings of a sentence.
_LEADS = (
    "Listen:",
    "All right,",
    "Well,",
    "So,",
    "Look,",
)
_OWN = (
    "Give me a moment, please.",
    "Thank you for telling me.",
    "Let me think about that.",
    "I hear you.",
    "One thing after the other.",
    "I will come back to that.",
)
_BEGINS = (
    "Hello, what is it?",
    "Yes, I am here.",
    "Hello!",
    "Good to hear you.",
)
_FOLLOWS = (
    "Okay, go on.",
    "I see.",
    "All right.",
    "Thank you. What is next?",
    "Understood.",
    "Good to know.",
    "What should I do?",
    "How long will that take?",
)
_YES = (
    "Yes, please.",
    "Yes, do that.",
    "Yes, I think so.",
    "Sure.",
    "Okay, go ahead.",
    "Yes, that is fine.",
)
_NO = (
    "No, not yet.",
    "No, wait a moment.",
    "I don't think so.",
)
_THINKS = (
    "I think",
    "Was it that",
    "I remember:",
    "You said that",
    "Maybe",
)
_UNSURE = (
    "I don't know.",
    "I am not sure, can you tell me more?",
    "Hm, what do you mean?",
    "I would have to guess.",
)
_LIKED = (
    "It went well.",
    "I always knew where we were.",
    "Clear and quick.",
    "Nothing else, thank you.",
)
_DISLIKED = (
    "We lost time.",
    "I did not get what I needed.",
    "It could have been clearer.",
    "Too slow for me.",
)


def respond(request: Simulation) -> str | None:
    """Return the answer to a prompt of guided; None where it is none."""
    if not request.messages:
        return None
    brief, last = request.messages[0].content, request.messages[-1].content
    if "You may say:" in last or "Nothing is offered to you now." in last:
        return _garbage(request) or _choose(request, last)
    if reworded := _REWORD.search(last):
        return _garbage(request) or f"{request.pick(_LEADS)} {_lower(reworded[1].strip())}"
    if "\nQuestions:\n" in last and (rated := [*_RATED.finditer(last)]):
        return _garbage(request) or _rate(request, last, rated)
    if "You do not see what " in brief and _PARTNER.search(brief):
        return _garbage(request) or _answer(request, brief)
    return None


def _garbage(request: Simulation) -> str | None:
    return request.say("garbage") if request.fault == "garbage" else None


def _choose(request: Simulation, asked: str) -> str:
    """Return a number, or words where they are asked for."""
    lists = [_NUMBERED.findall(found[1]) for found in _OFFERED.finditer(asked)]
    # What changes something stands first; who says a short reply has a reason.
    numbers = lists[-1] if lists and request.random() < 0.06 else lists[0] if lists else []
    free, drawn = '"Say:"' in asked, request.random()
    if free and (not numbers or drawn > 0.93):
        return f"Say: {request.pick(_OWN)}"
    hints: list[str] = _HINT.findall(asked)
    if hints and drawn < 0.6:
        return hints[-1]
    return request.pick(numbers) if numbers else "1"


def _rate(request: Simulation, asked: str, rated: Sequence[re.Match[str]]) -> str:
    """Ratings in the upper part of each scale where the task was done, in the lower part where it was not."""
    found = [*_DONE.finditer(asked)][-1:]
    middle = 0.8 if found and found[0][1] else 0.3 if found and found[0][2] else 0.55
    answers: dict[str, int | str] = {}
    for name, low, high in (one.groups() for one in rated):
        if low is None:
            answers[name] = request.pick(_LIKED if middle > 0.5 else _DISLIKED)
            continue
        place = min(1.0, max(0.0, middle + 0.5 * (request.random() - 0.5)))
        answers[name] = round(int(low) + place * (int(high) - int(low)))
    return msgspec.json.encode(answers).decode()


def _answer(request: Simulation, brief: str) -> str:
    """What the partner says to what it heard last."""
    heard = [one.content for one in request.messages[1:] if one.role == "user" and one.content != _NO_ANSWER]
    text = _say(request, heard)
    if not (labels := _LABELS.search(brief)):
        return text
    named = request.pick([one.strip() for one in labels[1].split(",")])
    return msgspec.json.encode({"text": text, "actions": [named]}).decode()


def _say(request: Simulation, heard: Sequence[str]) -> str:
    last = heard[-1] if heard else ""
    if "?" not in last:
        return request.pick(_FOLLOWS if heard else _BEGINS)
    if found := [*_EITHER.finditer(last)]:
        return f"{request.pick(found[-1].groups())}, {request.pick(_PLEASE)}"
    drawn = request.random()
    if _YES_OR_NO.search(last):
        return request.pick(_YES if drawn < 0.8 else _NO)
    told = [one.strip() for text in heard[-6:] for one in _SENTENCE.findall(text) if "?" not in one]
    if told and drawn < 0.75:
        return f"{request.pick(_THINKS)} {_lower(request.pick(told[-4:]))}"
    return request.pick(_UNSURE)


def _lower(text: str) -> str:
    """Return a sentence as it goes on behind other words."""
    first = text.split(" ", 1)[0]
    return (
        text
        if first == "I" or first.startswith(("I'", "I’")) or not first.istitle()
        else text[:1].lower() + text[1:]
    )


_PLEASE = ("please.", "I would say.", "if you ask me.", "that one.")
