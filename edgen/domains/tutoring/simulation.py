"""The simulator's tutor and student in a session of exercises. It chooses actions first, then words for them,
so the actions that it names are true.

Prompts are recognised by their line about actions, the tutor's by the right answer in it. A tutor hints by
quoting its points. It gives the answer away after many requests, or at the rate in a line of its prompt
(`Tell the answer in 20% of your turns.`), which is a planted truth for measures and comparisons. A student
asks, tries what was quoted, and first makes the mistake that its prompt names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from edgen.domains.tutoring.exercises.model import split_words
from edgen.domains.tutoring.guessing import REMINDERS, assemble_answer, read_guessing_style
from edgen.plugin import Message, Simulation
from edgen.plugin.protocols import CONTINUED
from edgen.protocols.labelling_simulated import find_true_labels

_ACTIONS = re.compile(r'"actions"')
_TEXT = re.compile(r'"text"')
_LISTED = re.compile(r"(?m)^\s*[-*]\s+([A-Z][\w -]{0,39}):\s")
_ANSWER = re.compile(r"(?mi)^(?:the )?right answer:\s*(.+)$")
_MISTAKE = re.compile(r"(?mi)^your first answer:\s*(.+)$")
_POINTS = re.compile(r"(?ms)^What you may tell:\n(.*?)(?:\n\s*\n|\Z)")
_EXERCISE = re.compile(r"(?m)^Exercise \d+: (.+)$")
_WANTED = re.compile(r"(?mi)^do this now:\s*([\w -]{1,40})")
_TELLING = re.compile(r"(?mi)^tell the answer in (\d{1,3})% of your turns\b")
_QUOTED = re.compile(r"“([^“”]{1,200})”")
_RESPONSES = re.compile(r"(?ms)^\[([0-9a-f]{16})\] Responses begins\n(.*)\n\[\1\] Responses ends$")
_NOTHING_LEFT = 0.6  # rate of giving the answer once all points are made; it is always given after a reminder
_REMEMBER = "Remember: "
_TELLS_AFTER = 6  # turns of the student


def speak(request: Simulation) -> str | None:
    """Return the next turn as JSON; None for a prompt of another protocol."""
    brief = request.messages[0].content if request.messages else ""
    named = _ACTIONS.search(brief) is not None
    if not named and not (_TEXT.search(brief) and _EXERCISE.search(brief)):
        return None
    if request.fault == "garbage":
        return request.say("garbage")
    answer = _ANSWER.search(brief)
    said = (
        _write_tutor_turn(request, brief, answer[1].strip())
        if answer
        else _write_student_turn(request, brief)
    )
    known = _LISTED.findall(brief.rpartition("can do:")[2])
    text, actions = said
    if not named:
        return msgspec.json.encode({"text": text}).decode()
    fitting = [action for action in actions if action in known]
    if not fitting:
        fitting = [*find_true_labels("", text, known, several=True)] if known else ["Other"]
    return msgspec.json.encode({"text": text, "actions": fitting}).decode()


def find_true_actions(role: str, text: str) -> tuple[str, ...] | None:
    """Return the actions of a turn of the simulator, by its words; None for a text that the simulated student
    never says."""
    if role == "Tutor":
        if text.startswith(_PRAISE) or text in _GOING_WELL:
            return ("Confirmation",)
        if text.startswith(_GOING_WELL):
            return ("Confirmation", "Hint")
        if text.startswith(_ASKS):
            return ("Question", "Hint")
        if text.startswith((*_NOT_YET, _ORDER)):
            return ("Correction",) if text in (*_NOT_YET, _ORDER) else ("Correction", "Hint")
        return ("Hint",)  # its points are the space's
    if text.startswith(_SEES):
        return ("Affirmation",) if text in _SEES else ("Question", "Affirmation")
    if text in _WONDERS:
        return ("Question",)
    return ("Guess",) if text.startswith(_TRIES) else None


def judge(request: Simulation) -> str | None:
    """Return the best and the worst response; None if the prompt does not ask for them. The worth of a
    response is drawn from its words, and is lower if it gives the answer away."""
    body = _RESPONSES.search(request.text) if "] Responses begins" in request.text else None
    if body is None:
        return None
    if request.fault == "garbage":
        return request.say("garbage")
    lettered = re.split(r"(?m)^([A-Z]): ", body[2])[1:]
    answer = _ANSWER.search(request.text)
    worths = {
        letter: rate_response(
            said.strip().replace(f"\n{CONTINUED}", "\n"), answer[1].strip() if answer else None
        )
        for letter, said in zip(lettered[::2], lettered[1::2], strict=True)
    }
    ordered = sorted(worths, key=lambda letter: (worths[letter], letter))
    return msgspec.json.encode({"best": ordered[-1], "worst": ordered[0]}).decode()


def rate_response(text: str, answer: str | None) -> float:
    """Return the worth of a response to the simulated judge, in [-1, 1)."""
    digest = blake2b(" ".join(text.split()).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    drawn = int.from_bytes(digest, "big") / 2**64
    return drawn - 1 if answer and _says(text, answer) else drawn


def _find_heard_texts(messages: Sequence[Message], brief: str) -> list[str]:
    """Return the texts that the speaker heard since the question of the current exercise."""
    question = found[1].strip() if (found := _EXERCISE.search(brief)) else "\0"
    put = [place for place, message in enumerate(messages) if place and question in message.content]
    behind = messages[put[-1] + (messages[put[-1]].role == "assistant") :] if put else messages[1:]
    return [message.content for message in behind if message.role == "user"]


def _write_tutor_turn(request: Simulation, brief: str, answer: str) -> tuple[str, list[str]]:
    """Return a tutor's response to the last turn of the student."""
    heard = _find_heard_texts(request.messages, brief)
    last = heard[-1] if heard else ""
    if _says(last, answer):
        return f"{request.pick(_PRAISE)} “{answer}”.", ["Confirmation"]
    wanted = found[1].strip() if (found := _WANTED.search(brief)) else None
    tries, guessed = len(heard), last.startswith(_TRIES)
    told = _TELLING.search(brief)
    telling = int(told[1]) / 100 if told else 0.3 * max(0, tries - _TELLS_AFTER)
    own = [said for said in _find_own_texts(request.messages, len(heard)) if said]
    if not told and tries > 1 and not _list_unsaid(request, brief):
        telling = 1 if any(_REMEMBER in said for said in own) else max(telling, _NOTHING_LEFT)
    if wanted is None and request.random() < telling:
        return f"It is “{answer}”. Please say it.", ["Hint"]
    guess = next((text for text in reversed(heard) if text.startswith(_TRIES)), "")
    right = bool(guess) and _says(answer, _find_guessed_words(guess))
    if wanted is None:
        wanted = _choose_action(request, guessed)
        if wanted == "Confirmation" and not (last in _SEES and right):
            wanted = "Hint"  # no part of a right answer was said
        begun = any(_find_guessed_words(text).startswith(answer.split()[0]) for text in heard)
        if wanted == "Question" and (begun or any(text.startswith(_ASKS) for text in own)):
            wanted = "Hint"  # the first word is known
    point = _choose_point(request, brief, last, answer, guess)
    if last.endswith(_WONDERS[-1]) and guess:  # a question about the order
        if right:
            return request.pick(_GOING_WELL), ["Confirmation"]
        wanted = "Correction"
    if wanted == "Correction" and right:
        return f"{request.pick(_GOING_WELL)} {point}", ["Confirmation", "Hint"]
    return _respond(request, wanted, point, answer, _find_guessed_words(guess))


def _choose_action(request: Simulation, guessed: bool) -> str:
    """Return the action of a tutor: mostly corrections after guesses, mostly hints otherwise."""
    draw = request.random()
    if guessed:
        return "Correction" if draw < 0.55 else "Hint" if draw < 0.85 else "Question"
    return "Hint" if draw < 0.8 else "Question" if draw < 0.9 else "Confirmation"


def _respond(request: Simulation, action: str, point: str, answer: str, guess: str) -> tuple[str, list[str]]:
    if action == "Correction":
        wanted = sorted(split_words(answer, accents=False))
        if guess and sorted(split_words(guess, accents=False)) == wanted:
            return _ORDER, ["Correction"]
        if request.random() < 0.8:
            return f"{request.pick(_NOT_YET)} {point}", ["Correction", "Hint"]
        return request.pick(_NOT_YET), ["Correction"]
    if action == "Question":
        first = answer.split()[0]
        return f"{_choose_new_phrasing(request, _ASKS)} It begins with “{first}”.", ["Question", "Hint"]
    if action == "Confirmation":
        return request.pick(_GOING_WELL), ["Confirmation"]
    return point, ["Hint"]


def _choose_point(request: Simulation, brief: str, last: str, answer: str, guess: str) -> str:
    """Return a point of the tutor's prompt: one that answers the student's question if there is one. If all
    points were made, return one that the last guess lacks."""
    points = _list_points(brief)
    if not points:
        return "Think of what we did before."
    unsaid = _list_unsaid(request, brief)
    fitting = [point for point in unsaid if _fits(point, last, answer)]
    # A guess needs the missing piece most.
    tried = last if unsaid else guess
    lacking = (
        [point for point in unsaid or points if not _says(tried, _find_last_quotation(point))]
        if _find_guessed_words(tried)
        else []
    )
    if not unsaid and (quoting := [point for point in lacking or points if "“" in point]):
        return f"{_REMEMBER}{_choose_new_phrasing(request, quoting)}"
    point = (
        request.pick(fitting or lacking or unsaid)
        if unsaid
        else _choose_new_phrasing(request, lacking or points)
    )
    # A rule without words of this exercise needs only a reminder if it was given before.
    known = "“" not in point and any(
        point in one.content for one in request.messages if one.role == "assistant"
    )
    return _choose_new_phrasing(request, REMINDERS) if known else point


def _list_points(brief: str) -> list[str]:
    """Return the points of the tutor's prompt."""
    lines = found[1].split("\n") if (found := _POINTS.search(brief)) else []
    return [line.strip()[2:].strip() for line in lines if line.strip()[:2] == "- "]


def _list_unsaid(request: Simulation, brief: str) -> list[str]:
    """Return the points of the tutor's prompt that it has not made in the current exercise."""
    said = "\n".join(_find_own_texts(request.messages, len(_find_heard_texts(request.messages, brief))))
    reminded = any(reminder in said for reminder in REMINDERS)
    return [
        point for point in _list_points(brief) if point not in said and not (reminded and "“" not in point)
    ]


def _find_last_quotation(point: str) -> str:
    """Return the last quotation of a point; the point itself if it quotes nothing."""
    return quoted[-1] if (quoted := _QUOTED.findall(point)) else point


def _fits(point: str, last: str, answer: str) -> bool:
    """Return whether a point answers the student's question about a word, the first word, or a rule."""
    word = _A_WORD.search(point)
    if last.endswith(_FIRST_WORD):
        return word is not None and answer.startswith(word[1])
    if last.endswith(_A_RULE):
        return word is None
    return word is not None if last.endswith(_SAYS_HOW) else False


def _find_own_texts(messages: Sequence[Message], turns: int) -> list[str]:
    """Return one role's texts in the last turns of the current exercise."""
    return [message.content for message in messages[-2 * turns :] if message.role == "assistant"]


def _find_guessed_words(text: str) -> str:
    """Return the guessed words of a text; empty if it is no guess."""
    begin = next((begin for begin in _TRIES if text.startswith(begin)), "")
    return text[len(begin) :].strip(" .?!") if begin else ""


def _choose_new_phrasing(request: Simulation, phrasings: Sequence[str]) -> str:
    """Return one of the phrases that were not used lately, or else the one used longest ago."""
    said = "\n".join([message.content for message in request.messages[-24:] if message.role == "assistant"])
    fresh = [phrasing for phrasing in phrasings if phrasing not in said]
    return request.pick(fresh) if fresh else min(phrasings, key=said.rfind)


def _write_student_turn(request: Simulation, brief: str) -> tuple[str, list[str]]:
    """Return a student's next turn."""
    heard = _find_heard_texts(request.messages, brief)
    last = heard[-1] if heard else ""
    told = re.search(r"It is “([^“”]+)”\. Please say it", last)
    if told:
        return _guess(request, told[1]), ["Guess"]
    mistake = _MISTAKE.search(brief)
    if mistake and len(heard) == 1:
        return _guess(request, mistake[1].strip()), ["Guess"]
    own = [
        message.content for message in request.messages[1 - 2 * len(heard) :] if message.role == "assistant"
    ]
    question = found[1] if (found := _EXERCISE.search(brief)) else ""
    manner = read_guessing_style(brief, sum(text.startswith((*_NOT_YET, _ORDER)) for text in heard))
    pieces = assemble_answer(heard[1:], question, manner)
    told_of = " ".join(pieces.words) if pieces.covered >= manner.least else ""
    guessed = any(text.startswith(_TRIES) for text in own)
    wonders = _WONDERS[bool(pieces.words) :] if guessed else _WONDERS[bool(pieces.words) : _FIRST]
    if last == _ORDER:
        wonders = tuple(phrasing for phrasing in wonders if phrasing != _WONDERS[-1])
    # "I see" answers neither a question nor a bare "Not quite."
    sees = len(heard) > 1 and not last.startswith(_ASKS) and last not in (*_NOT_YET, _ORDER)
    eager = 0.75 if manner.least == 1 or not sees else 0.6
    if told_of and request.random() < eager and not any(_find_guessed_words(text) == told_of for text in own):
        return _guess(request, told_of), ["Guess"]
    draw = request.random()
    if draw < 0.25 and sees:
        return _choose_new_phrasing(request, _SEES), ["Affirmation"]
    if draw < 0.35 and sees:
        return f"{_choose_new_phrasing(request, _SEES)} {_choose_new_phrasing(request, wonders)}", [
            "Question",
            "Affirmation",
        ]
    return _choose_new_phrasing(request, wonders), ["Question"]


def _guess(request: Simulation, words: str) -> str:
    """Return a guess in a sentence."""
    begin = request.pick(_TRIES)
    return f"{begin} {words}{'?' if begin == _TRIES[1] else '.'}"


def _says(text: str, answer: str) -> bool:
    return (
        f" {' '.join(split_words(answer, accents=False))} "
        in f" {' '.join(split_words(text, accents=False))} "
    )


_PRAISE = ("Yes, that is right:", "Well done!", "Exactly:", "Very good, it is")
_NOT_YET = ("Not quite.", "Almost, but not yet.", "That is not it yet.")
_ORDER = "Close. Look at the order again."
_ASKS = (
    "Which word would you begin with?", "What do you already know of it?", "How would you start?", ("Where "
    "would you begin?"),
)  # fmt: skip
_GOING_WELL = ("That is the right way.", "Good so far.", "That part is right.", "Up to there it is right.")
_TRIES = ("I think it is", "Is it", "My guess is", "Maybe", "Then it must be")
_SEES = ("Okay, I see.", "Ah, that makes sense.", "Thanks, I get that now.", "Right, I remember.")
# The first can be asked before any word is known, the next at any time, the last three after a guess.
_WONDERS = (
    "What is the first word?", "How do I say that?", "Can you give me a hint?", "What does the rule say?",
    "Which word do I need?", "Which word comes next?", "How does it end?", "Is the order right?",
)  # fmt: skip
_FIRST = 5
_FIRST_WORD, _A_RULE = (_WONDERS[0],), (_WONDERS[3], _WONDERS[6], _WONDERS[7])
_SAYS_HOW = (_WONDERS[1], _WONDERS[4], _WONDERS[5])
_A_WORD = re.compile(r"^“[^”]+” is “([^”]+)”\.$")
