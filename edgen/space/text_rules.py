"""Which texts a space may hold: one line that shows something, without control characters.

A value ends up in prompts, records and terminals. Joiners and direction marks may stand in it, as some scripts need
them; control characters, line separators, lone surrogates and bidirectional overrides may not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from edgen.core.errors import Problem

_BIDI_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
_INVISIBLE = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")  # fillers and the empty Braille cell
_LAYOUT = str.maketrans("\n\t", "  ")


def is_forbidden(char: str) -> bool:
    """Whether a value may not hold this character."""
    return char in _BIDI_OVERRIDES or unicodedata.category(char) in _FORBIDDEN_CATEGORIES


def is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen: no character but spaces, controls and format characters."""
    return all(char in _INVISIBLE or unicodedata.category(char) in _INVISIBLE_CATEGORIES for char in text)


def likeness(text: str) -> str:
    """What two values have in common that a reader cannot tell apart.

    That is the text without format characters, such as a zero-width space, in Unicode's
    compatibility form (NFKC), which makes one of an é and an e with an accent put on it.
    """
    if text.isascii():
        return text
    seen = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", seen).strip()


def text_problems(text: str, path: str) -> Iterator[Problem]:
    """What is wrong with a text as a value, or as what an entry says of itself."""
    if is_blank(text):
        yield Problem(path, "this text is empty or blank")
        return
    if text != text.strip():
        yield Problem(path, f"{quoted(text)} begins or ends with a blank; remove it")
    if text.isprintable():
        return
    bad = dict.fromkeys(char for char in text if is_forbidden(char))
    if bad:
        codes = ", ".join(f"U+{ord(char):04X}" for char in bad)
        yield Problem(path, f"{quoted(text)} holds {codes}; remove it, a text is one line without controls")


def remark_problems(key: str, text: str) -> Iterator[Problem]:
    """What is wrong with a name, description or source; the last two may run over several lines."""
    line = text if key == "name" else text.translate(_LAYOUT).strip()
    yield from text_problems(line, f"$.{key}")


def value_problem(text: str) -> str | None:
    """What is wrong with a text as a value of a space, None if nothing is."""
    problem = next(text_problems(text, "$"), None)
    return None if problem is None else problem.message


def quoted(text: str) -> str:
    """A text as messages quote it."""
    return repr(text if len(text) <= 60 else text[:59] + "…")
