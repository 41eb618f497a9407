"""Reading is linear: a megabyte of any shape in well under a second, twice as much in about twice."""

from __future__ import annotations

import time

import pytest

from edgen.transcript import clean_turn, read

MEGABYTE = 1_000_000

SHAPES = {
    "quotes": '"',
    "escaped quotes": '\\"',
    "single quotes": "'",
    "curly quotes": "“”",
    "quote and comma": '",',
    "quotes and spaces": '"      ',
    "brackets": "[",
    "brackets and spaces": "[     ",
    "brackets, a line each": "[\n",
    "closing brackets": "]",
    "closing brackets, a line each": "]\n",
    "braces": "{",
    "objects": '{"a":',
    "objects in lists": '[{"a":"b"},',
    "pairs of brackets": "[]\n",
    "roles": "Teacher:",
    "role lines": "Teacher:\n",
    "both role lines": "Teacher: a\nStudent: b\n",
    "quoted role lines": 'Teacher: "a\nStudent: b\n',
    "role lines, quotes open": 'Teacher: "a\n',
    "words with role lines": "Teacher\n",
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
    "probability words": "probability ",
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
    "names": "Ab Cd ",
    "invisible": "\u200b",
    "surrogates": "\ud800",
    "nul": "\x00",
    "refusals": "I can ",
    "sorry": "sorry ",
    "dots": "...",
    "angle brackets": "<",
    "pipes": "|",
}
STARTS = {
    "": "",
    "in a list": '[\n{"role": "Teacher", "text": "',
    "in single quotes": "[{'role': 'Teacher', 'text': '",
    "in a turn": 'Conversation:\n[\n   Teacher:  "a",\n   Student:  "',
    "in an open turn": "Student: b\nTeacher: ",
    "in a value": "Teacher: a\nStudent: b\nProbability: ",
    "in thoughts": "<think>",
}


def seconds(text: str) -> float:
    start = time.perf_counter()
    read(text)
    return time.perf_counter() - start


@pytest.mark.parametrize("start", STARTS)
def test_a_megabyte_of_any_shape_is_read_in_under_a_second(start: str) -> None:
    slow: dict[str, float] = {}
    # A tenth first: what is linear needs no more, and what is not shows in the ratio.
    for name, unit in SHAPES.items():
        small = STARTS[start] + unit * (MEGABYTE // 10 // len(unit))
        took = seconds(small)
        if took > 0.04:
            took = min(seconds(STARTS[start] + unit * (MEGABYTE // len(unit))) for _ in range(2)) / 10
        if took > 0.08:
            slow[name] = took * 10
    assert slow == {}
