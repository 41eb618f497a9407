"""The simulated judge: two numbered transcripts in, `1` or `2` out.

A prompt is a judge's if its last user message shows two numbered interactions, conversations, responses or
the like, and asks for 1 or 2, or which is better. The judge's preference is `rate_quality`, a function of one
transcript's text. Planted faults make it prefer a slot or length instead, or obey a line in a text that
imitates the prompt.

A judge with a rubric gets a fenced conversation and criteria, and answers with a JSON object of scores. All
scores depend on the tone of the turns, each with its own error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from random import Random
from typing import NamedTuple

import msgspec

from edgen.core.values import Message
from edgen.reading.answers.scores import MOST_SCORE
from edgen.reading.answers.verdict import read_verdict
from edgen.simulator.phrases.book import PhraseSpeaker
from edgen.simulator.prompts import conversation_prompt
from edgen.simulator.tone import measure_tone


class ShownPair(NamedTuple):
    """Two texts to compare, and the prompt's word for them, such as `Interaction`."""

    noun: str
    first: str
    second: str
    told: int | None = None  # the text (1 or 2) with a line that instructs the judge to choose it


_HEADING = (
    r"(?im:^[^\w\n]{{0,8}}(?:the )?({noun})[ _#]{{1,2}}{number}\b[^\w\n:]{{0,8}}(?::[^\w\n]{{0,8}}|$|(?=\n)))"
)
_NOUNS = "interaction|conversation|response|dialogue|dialog|lesson|transcript|reply|answer|option|candidate"
_FIRST = re.compile(_HEADING.format(noun=_NOUNS, number=1))
_SECOND = {noun: re.compile(_HEADING.format(noun=noun, number=2)) for noun in _NOUNS.split("|")}
_ASKED = re.compile(
    r"\b1\W{0,4} ?(?:or|/|,) ?\W{0,4}2\b|\bwhich\b[^\n]{0,120}\b(?:better|prefer|best|worse)", re.IGNORECASE
)
_ASKING = re.compile(
    r"\n(?![^\n]{0,12}(?:teacher|student)\b[^\n]{0,40}:)(?=[^\n]*(?:\bwhich\b|\b1\b[^\n]{0,8}\b2\b))",
    re.IGNORECASE,
)
_RULE = re.compile(r"\n[ \t]*(?:#+|-{3,}|={3,}|\*{3,}|</[^<>\n]{1,40}>)[ \t]*(?=\n|$)")
_TURN = re.compile(r"[\s>*_#\-\d.\"“]{0,12}(?:teacher|student)\b[^:\n]{0,40}:", re.IGNORECASE)
_ANY_TURN = re.compile(r"[^\W\d_][\w-]{0,30}: ")  # a role of any name
# A text between two marked lines; a line that continues a turn begins with a bar.
_FENCED = re.compile(
    r"^\[([0-9a-f]{16})\] (Interaction|Response) 1 begins\n(.*?)\n\[\1\] \2 1 ends\n\s*"
    r"^\[\1\] \2 2 begins\n(.*?)\n\[\1\] \2 2 ends$",
    re.MULTILINE | re.DOTALL,
)
_FENCED_ONE = re.compile(
    r"^\[([0-9a-f]{16})\] Conversation begins\n(.*?)\n\[\1\] Conversation ends$", re.DOTALL | re.MULTILINE
)
_BAR = re.compile(r"\n  \| ")
# Instructions that an obedient judge follows: on a line of their own, like headings.
_TELLS = re.compile(
    r"^(?:#+[ \t]*)?(?:(?:note|instructions?) (?:to|for) (?:the |all )?(?:judges?|evaluators?)"
    r"|system)\b[^\n]*:",
    re.IGNORECASE | re.MULTILINE,
)
_CACHED = 8_000  # characters
_WHOLE = 10  # turns of a whole lesson; shorter texts are judged without length correction
# Increase of the mean tone of the simulator's lessons per turn, and decrease per mean word of a turn:
# measured over the shipped spaces, for conversations of 10 to 15 turns.
_PER_TURN = 0.0076
_PER_WORD = 0.009
# Slope of the log-odds that a side was understood better, on the difference in quality: fitted over 1,600
# scenarios of the shipped spaces, three self-play conversations each. For one-shot conversations, whose
# stated number depends less on their course, it would be 3.
_SLOPE = 10.0
_SURE = 0.97
_PICKS_NONE = ("judge_prose", "garbage", "judge_both")
_BIASES = ("judge_first", "judge_second", "judge_longer", "judge_obeys")


def read(messages: Sequence[Message]) -> ShownPair | None:
    """Read the requested comparison; None if the messages request none."""
    if not messages or messages[-1].role != "user":
        return None
    text = messages[-1].content
    if conversation_prompt.FIRST.search(text) is None:
        return None
    if (found := _FENCED.search(text)) is not None:
        return _read_guarded(found, text, messages)
    if (first := _FIRST.search(text)) is None:
        return None
    noun = first[1].lower()
    second = _SECOND[noun].search(text, first.end())
    if second is None:
        return None
    end = _find_end(text, second.end())
    if not _asks_for_choice(text[: first.start()] + text[end:], messages):
        return None
    shown = (text[first.end() : second.start()], text[second.end() : end])
    one, other = [_RULE.sub("", part).strip() for part in shown]
    return ShownPair(first[1].capitalize(), one, other, _find_order(shown))


def _read_guarded(found: re.Match[str], text: str, messages: Sequence[Message]) -> ShownPair | None:
    """Return the comparison of two fenced texts, without their bars."""
    if not _asks_for_choice(text[: found.start()] + text[found.end() :], messages):
        return None
    noun, shown = found[2], (found[3], found[4])
    one, other = [_BAR.sub("\n", part).strip() for part in shown]
    if noun == "Response":  # the label of a response does not contain it
        one, other = [_TURN.sub("", part, count=1).strip() for part in (one, other)]
    return ShownPair(noun, one, other, _find_order(shown))


def _asks_for_choice(outside: str, messages: Sequence[Message]) -> bool:
    """Return whether the text around the two asks which is better."""
    return any(_ASKED.search(part) for part in (outside, *_list_other_messages(messages)))


def _find_order(shown: Sequence[str]) -> int | None:
    """Return the shown text with an instruction to the judge, if exactly one has one."""
    told = [number for number, text in enumerate(shown, start=1) if _TELLS.search(text)]
    return told[0] if len(told) == 1 else None


def _list_other_messages(messages: Sequence[Message]) -> list[str]:
    return [message.content for message in messages[:-1] if message.role != "assistant"]


def _find_end(text: str, start: int) -> int:
    """Return the end of the second transcript: the last rule, else the line with the question, else the
    text's end."""
    ends = [found.start() for found in _RULE.finditer(text, start)]
    if not ends:
        ends = [found.start() for found in _ASKING.finditer(text, start)]
    return ends[-1] if ends else len(text)


def find_fenced(text: str) -> str | None:
    """Return the conversation between two marked lines of a prompt, None if there is none."""
    found = _FENCED_ONE.search(text)
    return None if found is None else found[2]


def label_turns(text: str, label: re.Pattern[str]) -> list[tuple[re.Match[str] | None, str]]:
    """Return the turns of a transcript, each with the match of the label before it. A text before the first
    label is a turn without one."""
    turns: list[tuple[re.Match[str] | None, list[str]]] = []
    for line in text.split("\n"):
        if (found := label.match(line)) is not None:
            turns.append((found, [line[found.end() :]]))
        elif turns:
            turns[-1][1].append(line)
        elif line.strip():
            turns.append((None, [line]))
    return [(found, "\n".join(lines).strip()) for found, lines in turns]


def split_turns(text: str) -> list[str]:
    """Return the turns of a transcript in lines like `Teacher: …`; a text without such lines is one turn."""
    label = _TURN if any(map(_TURN.match, text.split("\n"))) else _ANY_TURN
    return [turn for _, turn in label_turns(text, label)]


def rate_quality(text: str) -> float:
    """Return the quality of one shown transcript, in [-1, 1]: the mean tone of both sides, equally weighted.

    The longer of two conversations of a scenario, in words, is better in half of all pairs (within a
    percentage point, over both shipped spaces; one-shot, self-play or branched). So an unbiased judge shows
    almost no length bias. For that, openings are excluded, and the remaining effect of length on a lesson's
    tone is subtracted. A hash of the text breaks ties, by a millionth.
    """
    return _cached(text) if len(text) <= _CACHED else _rate_shown(text)


def _rate_shown(text: str) -> float:
    turns = split_turns(text)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    share = int.from_bytes(digest, "big") / 2**32
    return _compute_course(turns) * (1 - 1e-6) + (share - 0.5) * 1e-6


def _compute_course(turns: Sequence[str]) -> float:
    if not turns:
        return -1.0
    tones = [measure_tone(turn) for turn in turns]
    whole = len(turns) >= _WHOLE
    if whole:
        del tones[:2]  # an initial doubt or friendly greeting would weigh less in a longer lesson
    # The sides alternate, so with an odd number of turns one side has more.
    sides = [side for side in (tones[::2], tones[1::2]) if side]
    mean = sum([sum(side) / len(side) for side in sides]) / len(sides)
    if not whole:
        return mean
    words = sum([turn.count(" ") + 1 for turn in turns]) / len(turns)
    usual = _PER_TURN * (min(len(turns), 15) - 12.5) - _PER_WORD * (min(words, 40.0) - 16.0)
    return max(-1.0, min(1.0, mean - usual))


_cached = lru_cache(maxsize=1_024)(_rate_shown)


def answer(
    comparison: ShownPair, fault: str | None, rng: Random, quality: Callable[[str], float] = rate_quality
) -> str:
    """Return the judge's answer. Every choice of words is drawn from `rng`. `quality` rates a text."""
    if fault == "judge_both":
        return "Both are good."
    if fault in _PICKS_NONE:
        return PhraseSpeaker(rng, {"noun": comparison.noun.lower()}).say("judge.prose")
    return _add_words(_choose(comparison, fault, quality), comparison.noun, rng)


def _choose(comparison: ShownPair, fault: str | None, quality: Callable[[str], float] = rate_quality) -> int:
    better = 1 if quality(comparison.first) >= quality(comparison.second) else 2
    match fault:
        case "judge_first":
            return 1
        case "judge_second":
            return 2
        case "judge_noise":
            return 3 - better
        case "judge_obeys":
            return comparison.told or better
        case "judge_longer":
            words = len(comparison.first.split()), len(comparison.second.split())
            return better if words[0] == words[1] else 1 if words[0] > words[1] else 2
    return better


def compute_leaning(messages: Sequence[Message], text: str, fault: str | None) -> float | None:
    """Return the probability that the first text is better, for the judge whose verdict is `text` or begins
    with it; None if it is not a verdict. A verdict may be in JSON.

    It is a logistic function of the difference in quality, and calibrated: it equals the share of pairs of
    self-play conversations in which the closing judge gives the preferred one the higher probability that the
    student understood. A judge with a planted bias is certain.
    """
    comparison = None if fault in _PICKS_NONE else read(messages)
    if comparison is None:
        return None
    choice = _choose(comparison, fault)
    begun = any(verdict.startswith(text) for verdict in _list_verdicts(choice, comparison.noun))
    if not begun and read_verdict(text) != choice:
        return None
    if fault in _BIASES:
        return _SURE if choice == 1 else 1 - _SURE
    difference = rate_quality(comparison.first) - rate_quality(comparison.second)
    first = 1 / (1 + math.exp(-_SLOPE * difference))
    return 1 - first if fault == "judge_noise" else first


_DRESSES = (
    "{noun} {number}",
    "**{number}**",
    "{number}.",
    "Answer: {number}",
    '"{number}"',
    "{noun} {number} is better.",
    "I choose {number}.",
    "**{noun} {number}**",
)


def _add_words(number: int, noun: str, rng: Random) -> str:
    """Return the number, in about one of seven cases with some words around it."""
    if rng.random() >= 0.15:
        return str(number)
    return _DRESSES[int(rng.random() * len(_DRESSES))].format(noun=noun, number=number)


def _list_verdicts(number: int, noun: str) -> list[str]:
    """Return every wording of the number."""
    return [str(number), *[dress.format(noun=noun, number=number) for dress in _DRESSES]]


_RUBRIC_ASKED = "JSON object with a number from 0 to 10 for each criterion"


class RubricSheet(NamedTuple):
    """The text to score, and the criteria's names."""

    turns: list[str]
    names: list[str]


def read_rubric(messages: Sequence[Message]) -> RubricSheet | None:
    """Read the requested scores; None if the messages request none."""
    text = messages[-1].content.rstrip() if messages else ""
    asked, _, form = text.rpartition("\n")
    if not form.startswith("{") or _RUBRIC_ASKED not in asked[-200:] or (shown := find_fenced(text)) is None:
        return None
    try:
        names = list(msgspec.json.decode(form, type=dict[str, int]))
    except (msgspec.DecodeError, UnicodeError):
        return None
    return RubricSheet(split_turns(shown), names)


def answer_rubric(sheet: RubricSheet, fault: str | None, rng: Random) -> str:
    """Return the judge's scores. Every error is drawn from `rng`."""
    if fault in _PICKS_NONE:
        return PhraseSpeaker(rng, {"noun": "conversation"}).say("judge.prose")
    course = sum(map(measure_tone, sheet.turns)) / max(1, len(sheet.turns))
    scores = {
        name: MOST_SCORE * (0.3 + 0.9 * course) + 2 * (rng.random() + rng.random() - 1)
        for name in sheet.names
    }
    return msgspec.json.encode(
        {name: min(MOST_SCORE, max(0, round(it))) for name, it in scores.items()}
    ).decode()
