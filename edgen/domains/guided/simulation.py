"""The simulator's guided conversations. The guided role mostly takes the hint, sometimes another offer or
free text. The partner answers questions by their form (yes or no, one of two, a name that it heard). Ratings
follow the success of the conversation.

Prompts are recognised by lines of the shipped templates.
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
_RATED = re.compile(r"(?m)^- ([A-Za-z]\w{0,39}): .*\((?:(-?\d+) to (-?\d+)|in your own words)([^()]*)\)$")
_HARD = re.compile(r"(?i)\b(?:bad|bored|confus|difficult|frustrat|hard|poor|slow|stress|tir)")
_DONE = re.compile(r"(?m)^It is over\. (?:(The task was done)|(The task was not done))?")
_PARTNER = re.compile(r"(?m)^You are .+ You do not see what .+ sees\.$")
_LABELS = re.compile(r"(?m)What it can do: (.+)$")
_EITHER = re.compile(r"\b([A-Z]\w+),? or (?:the |a )?([A-Z]\w+)\b")
_YES_OR_NO = re.compile(
    r"(?i)(?:^|[.!,;:]\s+)(?:(?:so|then|now),? )?(?:shall|should|do|does|did|may|can|could|is|are|will|would"
    r"|have|has|ready|ok(?:ay)?|agreed)\b[^.!?]*\?"
)
_SENTENCE = re.compile(r"[^.!?]+[.!?]?")
_NO_ANSWER = "(Nobody says anything.)"

# The simulator's phrases; some are beginnings of a sentence.
_LEADS = (
    "Listen:",
    "All right,",
    "Well,",
    "So,",
    "Look,",
)
_OTHER_WORDS = {
    "Hello": "Hi", "Thank you": "Thanks", "All right": "Okay", "Goodbye": "Bye", "Good.": "Fine.",
    "Well,": "So,",
    "I am ": "I'm ", "I would ": "I'd ", "I will ": "I'll ", "Let us ": "Let's ", "let us ": "let's ", "do "
    "not ": "don't ",
    "cannot ": "can't ", "Shall I ": "Should I ", "Shall we ": "Should we ", "May I ": "Can I ",
    "Do you see ": "Can you see ",
    "Here is ": "Here's ", "That is ": "That's ", "What is ": "What's ", "any more": "any longer",
}  # fmt: skip
_NO_LEAD = (
    "Hi",
    "Thanks",
    "Okay",
    "Fine",
    "So,",
    "Yes",
    "No",
    "Exactly",
    "Right",
    "Correct",
    "Very",
    "Excellent",
    "Now",
    "Listen",
)
_OWN = (
    "Give me a moment, please.",
    "I hear you.",
    "I have noted that.",
    "Thank you.",
)
_LATER = (
    "I will come back to that.",
    "One thing after the other, please.",
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
    "I understand.",
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
_THINKS = ("It has to do with", "You said something about", "I remember the words", "I would go by")
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
    """Return the answer to a prompt of guided; None for any other prompt."""
    if not request.messages:
        return None
    brief, last = request.messages[0].content, request.messages[-1].content
    if "You may say:" in last or "Nothing is offered to you now." in last:
        return _make_garbage(request) or _choose(request, last, brief)
    if reworded := _REWORD.search(last):
        return _make_garbage(request) or _reword(request, reworded[1].strip())
    if "\nQuestions:\n" in last and (rated := [*_RATED.finditer(last)]):
        return _make_garbage(request) or _rate(request, last, rated)
    if "You do not see what " in brief and _PARTNER.search(brief):
        return _make_garbage(request) or _answer(request, brief)
    return None


def _make_garbage(request: Simulation) -> str | None:
    return request.say("garbage") if request.fault == "garbage" else None


def _reword(request: Simulation, said: str) -> str:
    """Return a sentence in other words, or with an introductory word. Names keep their capital, and required
    values stay unchanged."""
    text = said
    for words, others in _OTHER_WORDS.items():
        text = text.replace(words, others)
    kept = _KEPT.search(request.messages[-1].content)
    if kept and not all(value in text for value in _MARKED.findall(kept[1])):
        text = said
    if text.startswith(_NO_LEAD) or request.random() < (0.3 if text == said else 0.6):
        return text
    first = text.split(" ", 1)[0]
    is_plain = re.search(rf"\b{re.escape(first.lower())}\b", f"{_PLAIN} {request.text}") is not None
    return f"{request.pick(_LEADS)} {text[:1].lower() + text[1:] if is_plain else text}"


_KEPT = re.compile(r"(?m)^To the letter: (.+)$")
_MARKED = re.compile(r"“([^“”]+)”")
# First words of sentences that are not names.
_PLAIN = (
    "a all an and are as at before can could do does did everybody first for have has here how if in is it "
    "let may my next "
    "nobody not now on one our please shall should still that the then there they this today two three to "
    "was we what when "
    "where which who why will with would you your every try tell keep hold take heat left pictures remember "
    "read here's that's what's let's"
)


def _choose(request: Simulation, asked: str, brief: str) -> str:
    """Return a number, or free text if the prompt allows it."""
    lists = [_NUMBERED.findall(found[1]) for found in _OFFERED.finditer(asked)]
    # Utterances that change something come first. A short reply needs a reason, such as an open question.
    alone, last = _has_spoken_last(brief, asked), _find_last_line(asked)
    asks = last.endswith("?") and not _WANTS.search(last) and not _GOES_ON.search(last)
    named = _find_named_option(asked, lists[0] if lists else [])
    chosen = named is not None and not _WANTS.search(last)  # a choice between two, which is made at once
    small = not (alone or chosen or "You speak first." in asked or _REFUSES.match(last))
    short = request.random() < (0.5 if asks else 0.05) and small
    numbers = lists[-1] if lists and short else lists[0] if lists else []
    if short and len(lists) > 1:
        numbers = _list_fitting_replies(asked, numbers, asks=asks) or lists[0]
    free, drawn = '"Say:"' in asked and not (numbers and alone), request.random()
    if free and (not numbers or (drawn > 0.95 and small and not _WANTS.search(last))):
        return f"Say: {request.pick(_LATER if asks else _OWN)}"
    if named:
        return named
    hints: list[str] = _HINT.findall(asked)
    if hints and drawn < 0.6:
        return hints[-1]
    return request.pick(numbers) if numbers else "1"


def _list_fitting_replies(asked: str, numbers: Sequence[str], *, asks: bool) -> list[str]:
    """Return the numbers of the short replies that fit: never a bare yes or no, and words of not knowing only
    for a question."""
    said = {one[1]: one[2].strip(" .!").lower() for one in _OPTION.finditer(asked)}
    return [
        number
        for number in numbers
        if said[number] not in ("yes", "no", "okay")
        and not said[number].endswith("?")
        and bool(_NOT_KNOWN.search(said[number])) is asks
    ]


def _find_last_line(asked: str) -> str:
    """Return the last line of the conversation so far, without its speaker."""
    lines = [*_SAID.finditer(asked.partition("You may say:")[0])]
    return lines[-1][1].strip() if lines else ""


def _has_spoken_last(brief: str, asked: str) -> bool:
    """Return whether the last line of the conversation is the role's own, so that there is nothing to
    answer."""
    role, said = _ROLE.search(brief), [*_LINE.finditer(asked)]
    return role is not None and bool(said) and said[-1][1] == role[1]


def _find_named_option(asked: str, numbers: Sequence[str]) -> str | None:
    """Return the number of the only option that holds a name from the partner's short last answer, or a word
    of its last request; None if no option, or more than one, does."""
    said = [one[1] for one in _SAID.finditer(asked)][-1:]
    wants = bool(said) and _WANTS.search(said[0])
    if not said or not (wants or len(said[0].split()) <= _SHORT):
        return None
    word = _WORD if wants else _NAME
    words = {*word.findall(wants[1] if wants else said[0])}
    options = [(one[1], {*word.findall(one[2])}) for one in _OPTION.finditer(asked) if one[1] in numbers]
    holding = [number for number, names in options if words & names]
    return holding[0] if len(holding) == 1 and len(options) > 1 else None


_ROLE = re.compile(r"\AYou are (\w[\w ]*?), and you talk with ")
_LINE = re.compile(r"(?m)^([A-Z][\w ]*): .+$")
_SAID = re.compile(r"(?m)^[A-Z]\w*: (.+)$")
_OPTION = re.compile(r"(?m)^(\d+)\. (.+)$")
_REFUSES = re.compile(r"(?i)no\b|i (?:don't|do not) think so")
_GOES_ON = re.compile(r"(?i)\bwhat (?:is|comes) (?:next|then)\?$")  # the next utterance answers it
_NOT_KNOWN = re.compile(r"\b(?:know|moment|later)\b")
_NAME = re.compile(r"\b[A-Z][a-z]{3,}\b")
_WORD = re.compile(r"\b[a-z]{4,}\b")
_WANTS = re.compile(
    r"(?i)\b(?:can|could|may|would) (?:you|i)\b(?: please)? (?:give|tell|show|have|get|see|send)\b([^?]*)\?"
)
_SHORT = 6  # words


def _rate(request: Simulation, asked: str, rated: Sequence[re.Match[str]]) -> str:
    """Return ratings at the good end of each scale if the task succeeded, at the other end if it failed."""
    found = [*_DONE.finditer(asked)][-1:]
    middle = 0.8 if found and found[0][1] else 0.3 if found and found[0][2] else 0.55
    answers: dict[str, int | str] = {}
    for name, low, high, ends in (one.groups() for one in rated):
        if low is None:
            answers[name] = request.pick(_LIKED if middle > 0.5 else _DISLIKED)
            continue
        is_bad = _HARD.search(ends.partition(f"{high} = ")[2])  # the meaning of the highest rating
        good = 1 - middle if is_bad else middle
        place = min(1.0, max(0.0, good + 0.5 * (request.random() - 0.5)))
        answers[name] = round(int(low) + place * (int(high) - int(low)))
    return msgspec.json.encode(answers).decode()


def _answer(request: Simulation, brief: str) -> str:
    """Return the partner's answer to what it heard last."""
    heard = [one.content for one in request.messages[1:] if one.role == "user" and one.content != _NO_ANSWER]
    own = [one.content for one in request.messages if one.role == "assistant"]
    text = _say(request, own, heard)
    if not (labels := _LABELS.search(brief)):
        return text
    named = request.pick([one.strip() for one in labels[1].split(",")])
    return msgspec.json.encode({"text": text, "actions": [named]}).decode()


def _say(request: Simulation, own: list[str], heard: list[str]) -> str:
    """Return an answer to the last turn: by the phrases of the space, or by the form of the question."""
    last, talk = heard[-1] if heard else "", request.talk()
    latest = last.rsplit("\n", 1)[-1]
    newest = [*heard[:-1], latest]
    if latest.endswith("?"):  # a question comes before the statements in the same turn
        heard = newest
    if own and _AGAIN.search(latest):
        return f"{request.pick(_I_SAID)} {own[-1]}"
    if talk is not None and heard:
        for one in [newest, heard][newest == heard :]:
            if said := talk.answer(own, one):
                return said
    if "?" not in last and not _CHOOSE.search(last):
        steps = talk.phrases.says if talk is not None else ()
        if talk is not None and steps and request.random() < 0.7:
            phrasings = steps[int(request.random() * len(steps))]
            if (said := talk.choose_phrasing(phrasings, own, heard)) and said not in own:
                return said
        return request.pick(_FOLLOWS if heard else _BEGINS)
    if found := [*_EITHER.finditer(last)]:
        return f"{request.pick(found[-1].groups())}, {request.pick(_PLEASE)}"
    drawn = request.random()
    if _YES_OR_NO.search(last):
        return request.pick(_YES if drawn < 0.8 else _NO)
    told = [one.strip(" .!") for text in heard[-6:] for one in _SENTENCE.findall(text) if "?" not in one]
    if told and drawn < 0.75:
        tail = " ".join(request.pick(told[-4:]).split()[-_QUOTED:])
        return f"{request.pick(_THINKS)} “{tail}”."
    return request.pick(_UNSURE)


_AGAIN = re.compile(
    r"(?i)\b(?:say|repeat) (?:that|it|this)(?: once more| again)?, please\?|\bsay that again\b"
)
_CHOOSE = re.compile(r"(?i)\bplease (?:name|choose|pick|say) (?:one|which)\b")
_I_SAID = ("I said:", "Once more:", "Again:")
_QUOTED = 3  # words repeated from what was heard


_PLEASE = ("please.", "I would say.", "if you ask me.", "I think.")
