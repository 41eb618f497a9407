"""Reading is linear: a megabyte in well under a second, twice the text in about twice the time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

from bench.reading import yardstick
from bench.replies import LAYOUTS
from bench.reply_layouts import INVENTED, LISTED, OWN
from edgen.reading import clean_turn, read
from edgen.reading.conversation import read_unknown
from edgen.reading.learned.layouts import find_layouts
from edgen.reading.roles import TEACHER_STUDENT
from tests.cases import each
from tests.dose import dose
from tests.timing import takes_at_most, takes_under

pytestmark = pytest.mark.integration

MEGABYTE = 1_000_000

SHAPES = {
    "quotes": '"',
    "escaped quotes": '\\"',
    "single quotes": "'",
    "curly quotes": "“”",
    "quote and comma": '",',
    "quotes and spaces": '"      ',
    "brackets": "[",
    "brackets of two kinds": "[(",
    "brackets and spaces": "[     ",
    "brackets, a line each": "[\n",
    "closing brackets": "]",
    "closing brackets, a line each": "]\n",
    "braces": "{",
    "objects": '{"a":',
    "objects with role and content": '{"role": "Teacher", "content": "a"},\n',
    "objects in lists": '[{"a":"b"},',
    "pairs of brackets": "[]\n",
    "roles": "Teacher:",
    "role lines": "Teacher:\n",
    "both role lines": "Teacher: a\nStudent: b\n",
    "both initials": "T: a\nS: b\n",
    "quoted role lines": 'Teacher: "a\nStudent: b\n',
    "role lines, quotes open": 'Teacher: "a\n',
    "words with role lines": "Teacher\n",
    "quoted turns closed later": 'Teacher: "a\n]\nb" c\nStudent: "d\n',
    "headings in quoted turns": 'Teacher: "a\nConversation:\n[\n',
    "blockquotes": "> Teacher: a\n> Student: b\n",
    "forms of a role": "Students: a\nStudent A: b\n",
    "numbered": "1. ",
    "newlines": "\n",
    "carriage returns": "\r",
    "line ends": "\r\n",
    "spaces": " ",
    "indented lines": "      \n",
    "backticks": "`",
    "fences": "```\n",
    "tildes": "~~~\n",
    "stars": "*",
    "rules": "---\n",
    "thinking": "<think>",
    "thinking lines": "<think>\n",
    "thinking closed": "</think>\n",
    "markers": "[end of conversation]",
    "half markers": "[end of conversation",
    "marker words": "end of conversation ",
    "bracket and end": "[ end of ",
    "parentheses": "(",
    "tags": '"(x)',
    "probabilities": "Probability: 0.2\n",
    "explained probabilities": "Teacher: a\nStudent: b\nProbability: 0.2\n\nSo\n",
    "chances": "a chance of the student to understand\n",
    "probability words": "probability ",
    "notes": "Note:\n",
    "notes after blank lines": "\nNote:\n",
    "turn headings": "Turn 1\n",
    "names": "Ms. R: a\n",
    "declared names": "Ms. R (Teacher): a\n",
    "stage tags": "(x) ",
    "special tokens": "<|end|>",
    "breaks": "<br>",
    "headings": "Conversation:\n",
    "headings and roles": "Conversation:\nTeacher: a\n",
    "conversations": 'Conversation:\n[\nTeacher: "a",\nStudent: "b",\n]\nProbability: 0.2\n',
    "commas": ",",
    "colons": ":",
    "digits": "9",
    "backslashes": "\\",
    "backslash n": "\\n",
    "comments": "/*",
    "line comments": "//",
    "letters": "a",
    "words": "Ab Cd ",
    "invisible": "\u200b",
    "surrogates": "\ud800",
    "nul": "\x00",
    "refusals": "I can ",
    "sorry": "sorry ",
    "dots": "...",
    "angle brackets": "<",
    "pipes": "|",
}
# The text before and after the shape.
PLACES = {
    "alone": ("", ""),
    "in a list": ('[\n{"role": "Teacher", "text": "', ""),
    "in single quotes": ("[{'role': 'Teacher', 'text': '", ""),
    "in a turn": ('Conversation:\n[\n   Teacher:  "a",\n   Student:  "', '",\n]\n'),
    "in an earlier turn": ("Teacher: a\nStudent: ", "\nTeacher: b\n"),
    "in an open turn": ("Student: b\nTeacher: ", ""),
    "in a value": ("Teacher: a\nStudent: b\nProbability: ", ""),
    "in thoughts": ("<think>", "</think>\nTeacher: a\nStudent: b\n"),
}


def is_read_in(most: float, text: str) -> bool:
    return takes_under(most, lambda: read(text))


@each("shape", SHAPES)
def test_no_shape_takes_longer_than_its_length_asks(shape: str) -> None:
    """The aim is a megabyte a second; a third of that leaves room for a busy machine.

    Quadratic code would need many seconds.
    """
    unit = SHAPES[shape]
    text = unit * (50_000 // len(unit))
    assert is_read_in(0.15, text)


@pytest.mark.parametrize("place", PLACES)
def test_no_shape_grows_faster_than_its_length_wherever_it_stands(place: str) -> None:
    """Quadratic code would need many seconds for work of milliseconds."""
    size = 4_000
    before, behind = PLACES[place]
    texts = {name: f"{before}{unit * (size // len(unit))}{behind}" for name, unit in SHAPES.items()}
    assert [name for name, text in texts.items() if not is_read_in(0.04, text)] == []


@pytest.mark.parametrize(
    "shape", ["quotes", "brackets and spaces", "both role lines", "newlines", "conversations"]
)
def test_twice_the_text_takes_about_twice_the_time(shape: str) -> None:
    unit = SHAPES[shape]
    small, large = (unit * (size // len(unit)) for size in (100_000, 200_000))
    assert takes_at_most(4, lambda: read(large), lambda: read(small))


EVERY = {**LAYOUTS, **LISTED, **OWN, **INVENTED}


def read_all(read: Callable[[str], object], texts: Sequence[str]) -> None:
    for text in texts:
        read(text)


def read_general(text: str) -> object:
    return read_unknown(text, TEACHER_STUDENT)


@pytest.mark.parametrize("layout", EVERY)
def test_a_layout_takes_no_longer_than_a_few_times_the_published_one(layout: str) -> None:
    """The general reader is timed, not learned layouts.

    One layout once took twenty times as long as another. Both are timed one after the other, until other work
    disturbed neither of a pair. Turns in other languages' words are found only after a first look at the
    whole reply.
    """
    texts, published = ([EVERY[name](number) for number in range(10)] for name in (layout, "published"))
    most = 8 if find_own_labels(texts[0]) is None else 4
    assert takes_at_most(
        most, lambda: read_all(read_general, texts), lambda: read_all(read_general, published)
    )


def find_own_labels(text: str) -> object:
    """Return whether a reply names the roles in the reader's own words."""
    return re.search(r"(?m)^.{0,60}\b(?:(?i:teacher|tutor|instructor)|T)\b", text)


@pytest.mark.parametrize("layout", [name for name in EVERY if name != "Python tuples"])
def test_a_learned_layout_takes_a_few_times_what_its_own_expression_would(layout: str) -> None:
    texts, published = ([EVERY[name](number) for number in range(8)] for name in (layout, "published"))
    find_layouts.cache_clear()  # a beginning that other tests read often is rarely examined
    for text in texts * 2:
        read(text)
    assert takes_at_most(3, lambda: read_all(read, texts), lambda: read_all(yardstick, published))


@pytest.mark.long
@each("shape", SHAPES)
def test_no_shape_takes_long_inside_a_learned_layout(shape: str) -> None:
    """A departure from a layout late in a long reply costs time in proportion to its length."""
    for layout in dose(("lines", "JSON"), ("lines", "role on its own line", "JSON", "table with numbers")):
        for number in range(4):
            read(EVERY[layout](number))
        reply = EVERY[layout](5)
        middle = reply.rfind("\n", 0, len(reply) // 2)
        text = reply[:middle] + SHAPES[shape] * (10_000 // len(SHAPES[shape])) + reply[middle:]
        assert is_read_in(0.06, text)


@each("shape", SHAPES)
def test_cleaning_a_turn_is_linear(shape: str) -> None:
    text = SHAPES[shape] * (200_000 // len(SHAPES[shape]))
    assert takes_under(0.5, lambda: clean_turn(text))
