"""Cheap tests of characters and words come before the patterns of placeholders.

None leaves out a text that a pattern matches.
"""

from __future__ import annotations

import re

import hypothesis
import pytest
from hypothesis import strategies

from edgen.reading import placeholders
from edgen.reading.detect import words

_ASCII = strategies.characters(max_codepoint=127)


def _texts_of(name: str) -> strategies.SearchStrategy[str]:
    """Return texts that a pattern of placeholders matches, with `#` for characters beyond ASCII."""
    pattern = getattr(placeholders, name)
    expression = pattern._wanted[0].replace(r"\A", "").replace(r"\Z", "")
    ascii_only = "".join(char if char.isascii() else "#" for char in expression)
    return strategies.from_regex(re.compile(ascii_only), fullmatch=True, alphabet=_ASCII)


@hypothesis.given(strategies.data())
def test_words_leave_out_no_phrase(data: strategies.DataObject) -> None:
    text = data.draw(_texts_of("_PHRASES"))
    assert "#" in text or placeholders._may_be_phrase(words(text), "_" in text)


@pytest.mark.parametrize("name", ["_VARIABLE", "_EMPTY_JSON", "_NO_WORD", "_TRAILING", "_LENGTH"])
@hypothesis.given(data=strategies.data())
def test_ends_of_a_line_leave_out_no_form(name: str, data: strategies.DataObject) -> None:
    text = data.draw(_texts_of(name))
    assert "#" in text or placeholders._may_have_form(text)


@hypothesis.given(strategies.data())
def test_characters_leave_out_no_line_of_dots(data: strategies.DataObject) -> None:
    text = data.draw(_texts_of("_ONLY_DOTS"))
    assert "#" in text or placeholders._may_be_dots(text)
