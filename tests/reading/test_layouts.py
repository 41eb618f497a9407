"""Replies in many layouts, clean, changed in places, and assembled from odd parts."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from bench.asked_layouts import ASKED
from bench.fresh_layouts import FRESH
from bench.replies import END, LAYOUTS
from bench.reply_layouts import FURTHER, INVENTED, LISTED, OWN
from bench.unseen_layouts import UNSEEN
from bench.written_layouts import WRITTEN, find_expected
from edgen.core.values import Conversation, Turn
from edgen.reading import dump, read
from edgen.reading.roles import TEACHER_STUDENT
from edgen.reading.text.quotes import CLOSERS
from tests.cases import each
from tests.dose import dose
from tests.reading.test_properties import TOKENS, check

ALIASES = TEACHER_STUDENT.aliases

# More layouts, in no benchmark.
MORE: dict[str, Callable[[int], str]] = {
    "decorated": lambda n: (
        LAYOUTS["published"](n)
        .replace("Conversation:", "**Conversation:**")
        .replace("Probability:", "**Probability:**")
    ),
    "published in a fence": lambda n: f"```\n{LAYOUTS['published'](n)}```",
    "lines in a fence": lambda n: f"```text\n{LAYOUTS['lines'](n)}\n```\n",
    "thinking, then lines": lambda n: f"<think>\nSo.\n</think>\n\n{LAYOUTS['bold names'](n)}",
    "preamble": lambda n: (
        f"Sure! Here is a conversation between a teacher and a student:\n\n{LAYOUTS['bold names'](n)}"
    ),
    "curly quotes": lambda n: re.sub(
        r'^(\w+: )"(.*)"$', r"\1“\2”", LAYOUTS["heading, quotes"](n), flags=re.MULTILINE
    ),
    "wide colons": lambda n: re.sub("^(Teacher|Student): ", r"\1：", LAYOUTS["lines"](n), flags=re.MULTILINE),
    "bullets": lambda n: re.sub("^(?=Teacher|Student)", "- ", LAYOUTS["lines"](n), flags=re.MULTILINE),
}
ALL = {**LAYOUTS, **LISTED, **OWN, **INVENTED, **FURTHER, **UNSEEN, **FRESH, **WRITTEN, **ASKED, **MORE}
CLEAN = dose(3, 5)  # replies of each layout
CHANGED = dose(1, 6)  # replies of each layout that are changed
MUTATIONS = dose(5, 10)  # of each of these

HEADS = [
    "", "Conversation:\n", "# Conversation\n", "**Conversation:**\n\n", "### The Dialogue:\n", "Transcript\n",
    "Conversation:\n[\n", "Sure, here it is:\n\n", "```\n", "<think>a</think>\n", "Conversation 2:\n", "\n\n",
    "Sure! Here is a conversation between a teacher and a student:\n\n", "Okay. Here it is:\n\n**Conversation:**\n", "```text\n",
    "The conversation:\n", "Turn 1 teacher:\n", "Round 2: student:\n", "With a chance of 20%:\n", "Tutor and pupil:\n", "Teacher and student speak:\n", "Ms. R (Teacher):\n",
    "Probability: 0.3\n", "The teacher speaks first.\n", "[\n", "**Conversation**:\n",
]  # fmt: skip
NAMES = [
    "{}: ", "**{}:** ", "**{}**: ", "{n}. {}: ", "{n}) **{}:** ", "- {}: ", "• **{}**: ", "   {}:  ", "{}：", "{}:", "*{}:* ",
    "{} (Ms. R): ", "> {}: ", "{n}. {} - ", "[{}]: ", "{}： ", "__{}:__ ", "  {n}. {}: ", "**{}:**", "Turn {n} {}: ",
]  # fmt: skip
ENDS = [
    "", "Probability: 0.8", "**Probability:** 0.25", "Probability: 80%", "Probability: 1", 'Probability:  "0.2",', "Probability: 1.5",
    "Probability that the student understood: 0.4", "**Probability of understanding**: 0.5.", "Probability: low", "]\nProbability: 0.2",
    "Probability: 30", "Probability: 0.2\nProbability: 0.3", "Note: it was short.", "Probability: 0.2\n\nExplanation: so.", "---",
    "Probability: 12%\n", "Probability of success: 0.31", "The probability is 0.2.", "Probability: 0.2 (20%)", "```", "Probability: 100%", "Wahrscheinlichkeit: 0,4", "**Probabilidad:** 30%", "概率：0.3",
]  # fmt: skip
TEXTS = [
    "Hello there!", "(smiles) Yes?", "*nods* Go on.", "So 3 < 5, or not", 'The word "cause" matters.', '"Cause" is a word.', "'Tis so.",
    "Well, \"yes\"", "I mean it,", "...", "It is **very** important.", "**Yes.**", "Use `x = 1`.", "```python", "C:\\temp", "$\\frac{1}{2}$",
    'a \\"quoted\\" word', "Teacher: a name", "Student: what?", "See [1].", "[end of conversation]", "Bye. [end of conversation]",
    "Bye. [End of Conversation].", "Let's chat about the conversation.", "End of conversation.", "(end of conversation)", "A discussion, then.",
    "The probability is 0.5.", "Probability: 0.9", "naïve — yes’s", "„So“", "«Oui»", "“Yes.”", "ends in a star*", "1/2", "a_", "_a", "x\u200b",
    "\u00a0x", "a\u2028b", "\x1c", "日本語です。", "Lehrer: ja", "老师：你好", "[Ende des Gesprächs]", "Wahrscheinlichkeit: 0,4", "Schüler", "概率：0.3", "【学生】", "そう！", "「はい」", "¿Qué?", "50%", "I can't assist with that request.", ":", "a;", "<b>bold</b>", "a</think>", "[/think]",
    "Students: 20", "{", "{\"a\": 1}", "]", "|", "x  ", "\tx", "5", "Ok\r", "e\u0301", "\ud800", "’s", "Tutor: hi", "conversation", "1. one",
]  # fmt: skip
INNER = [
    *TOKENS,
    *TEXTS,
    "\n",
    "\n\n",
    "</think>",
    "<|",
    "[/plan]",
    "\\u0022",
    '"text"',
    '"role": "Student", ',
    "Conversation:",
    "[plan]\n",
    "1. ",
    "**",
]


# A stage direction in every turn is a part of it. JSON that ends within a text is rejected as truncated.
NOT_EXACT = {"JSON, cut short", "moods in italics before the text"}


@each("layout", [name for name in ALL if name not in NOT_EXACT])
def test_a_clean_reply_of_each_layout_is_read(layout: str) -> None:
    for number in range(CLEAN):
        reply = ALL[layout](number)
        result = read(reply)
        assert isinstance(result, Conversation)
        turns, probability = find_expected(layout, number)
        assert [turn.role for turn in result.turns] == [role for role, _ in turns]
        for turn, (_, text) in zip(result.turns, turns, strict=True):
            assert plain(turn.text) == plain(text)
        assert result.probability == (None if probability is None else pytest.approx(probability, abs=0.006))
        assert result.ended_by == "Student" or (layout in WRITTEN and END not in reply)


def plain(text: str) -> str:
    """Return a text without a layout's changes: other quotation marks, a paragraph in its middle."""
    return " ".join(text.replace('"', "'").split())


def mutated(text: str, draw: random.Random) -> str:
    """Return the text with one to three small changes."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        pieces = re.split(r"(\W)", text) if draw.random() < 0.5 else text.split("\n")
        joint = "" if len(pieces) > text.count("\n") + 1 else "\n"
        at = draw.randrange(len(pieces))
        change = draw.randrange(7)
        if change == 0:
            pieces.insert(at, draw.choice(INNER))
        elif change == 1:
            pieces[at] = draw.choice(INNER)
        elif change == 2:
            del pieces[at]
        elif change == 3:
            pieces.insert(at, pieces[draw.randrange(len(pieces))])
        elif change == 4:
            other = draw.randrange(len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif change == 5:
            pieces[at] += draw.choice(INNER)
        else:
            pieces = pieces[: at + 1] if draw.random() < 0.3 else pieces
        text = joint.join(pieces)
    return text


@pytest.mark.long
@pytest.mark.parametrize("layout", ALL)
def test_mutations_of_each_layout(layout: str) -> None:
    draw = random.Random(layout)
    make = ALL[layout]
    for number in range(CHANGED):
        text = short(make(number), draw)
        for _ in range(MUTATIONS):
            check(read(mutated(text, draw)))


def short(text: str, draw: random.Random) -> str:
    """Return the reply with most of its middle lines left out, so that a change hits a relevant part."""
    thought, tag, spoken = text.rpartition("</think>")
    lines = spoken.split("\n")
    if len(lines) < 12:
        return text
    keep = draw.randrange(2, 6)
    return thought[:60] + tag + "\n".join([*lines[:keep], *lines[-keep - 4 :]])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_lines_in_every_manner(seed: int) -> None:
    """Replies assembled from parts: heads, ways to write a role, odd texts, foots."""
    draw = random.Random(seed)
    results = [read(composed(draw)) for _ in range(dose(150, 500))]
    for result in results:
        check(result)
    assert sum(isinstance(result, Conversation) for result in results) > len(results) / 2


def composed(draw: random.Random) -> str:
    """Draw a reply in lines, made of common and odd parts."""
    common = draw.random() < 0.5
    manner = draw.choice(NAMES[:9] if common else NAMES)
    roles = draw.choice(
        [("Teacher", "Student")] * 4
        + [("Tutor", "Pupil"), ("T", "S"), ("TEACHER", "STUDENT"), ("Tutor", "Student")]
    )
    quote = draw.choice(["", "", "", '"', "“"])
    lines = []
    for i in range(draw.randrange(1, 8)):
        said = draw.choice(TEXTS) if draw.random() < 0.2 else draw.choice(TEXTS[:3])
        said = f"{quote}{said}{CLOSERS[quote][0]}{draw.choice(['', ','])}" if quote else said
        said = draw.choice(TEXTS[:3]) if common and draw.random() < 0.8 else said
        name = (manner if draw.random() < 0.97 else draw.choice(NAMES)).format(
            draw.choice(roles) if draw.random() < 0.1 else roles[i % 2], n=i + 1
        )
        lines.append(name + said)
    if draw.random() < 0.4:
        lines[-1] = (
            f'{lines[-1][:-1]} [end of conversation]"'
            if quote == '"'
            else f"{lines[-1]} [end of conversation]"
        )
    between = draw.choice(["\n", "\n\n", "\n", "\n \n"])
    return (
        draw.choice(HEADS) * (draw.random() < 0.3)
        + between.join(lines)
        + draw.choice(["\n", "\n\n"])
        + draw.choice(ENDS[:5] if common else ENDS)
    )


@pytest.mark.parametrize("around", ["```json\n{}\n```", "<think>\nSo.\n</think>\n{}"])
def test_what_was_dumped_is_taken_exactly_only_where_it_stands_alone(around: str) -> None:
    said = Conversation((Turn("Teacher", '"Light", she said,'), Turn("Student", "...")))
    assert read(dump(said)) == said
    assert read(around.format(dump(said))) != said


@pytest.mark.parametrize("word", ALIASES)
def test_other_words_for_the_roles_are_taken(word: str) -> None:
    other = next(name for name, role in ALIASES.items() if role != ALIASES[word])
    for spelt in (str.capitalize, str.upper, str.lower):
        lines = [f"{spelt((word, other)[i % 2])}: Well, number {i} is what I would say." for i in range(6)]
        result = read("\n".join(lines))
        assert isinstance(result, Conversation)
        assert len(result.turns) == 6
