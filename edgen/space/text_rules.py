"""Which texts a space may hold, and which names its dimensions, fields and roles may have.

A text is one line that shows something, without control characters. A name is an identifier that templates can use and
edgen does not.

A value ends up in prompts, records and terminals. Joiners and direction marks may stand in it, as some scripts need
them; control characters, line separators, lone surrogates and bidirectional overrides may not.
"""

from __future__ import annotations

import re
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


# ---- names

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
# Jinja's own words and names, and Python's, which Jinja takes for values.
_OF_JINJA = frozenset({
    "False", "None", "True", "and", "as", "autoescape", "block", "break", "call", "caller", "context",
    "continue", "do", "elif", "else", "endblock", "endcall", "endfilter", "endfor", "endif", "endmacro",
    "endset", "endtrans", "endwith", "extends", "false", "filter", "for", "from", "if", "ignore", "import",
    "in", "include", "is", "kwargs", "loop", "macro", "missing", "none", "not", "or", "pluralize", "range",
    "recursive", "required", "scoped", "self", "set", "super", "trans", "true", "varargs", "with", "without",
})  # fmt: skip
# What edgen's own templates are told besides the scenario, and columns of tables besides its values.
OF_EDGEN = frozenset({
    "arm", "brief", "compare", "conversation", "conversation_1", "conversation_2", "count", "description", "dimension",
    "ended_by", "fence", "guarded", "guarded_1", "guarded_2", "history", "id", "index", "messages", "model",
    "name", "probability", "provenance", "replicate", "response_1", "response_2", "role", "roles", "scenario",
    "next_speaker", "others", "scenario_lines", "simulated", "space_goal", "space_roles", "split", "text", "turn", "turns",
    "values",
})  # fmt: skip
# A template reads these of a text, so no field can have the name.
_OF_TEXTS = frozenset({
    "capitalize", "endswith", "lower", "split", "splitlines", "startswith", "title", "upper",
})  # fmt: skip
_OF_ROLES = frozenset({
    "assistant", "closing", "default", "human", "judge", "oracle", "simulator", "system", "tool", "user",
})  # fmt: skip


def dimension_problem(name: str) -> str | None:
    """What is wrong with the name of a dimension, None if nothing is."""
    return _shape(name) or _taken(name, _OF_JINJA, "Jinja") or _taken(name, OF_EDGEN, "edgen")


def field_problem(name: str) -> str | None:
    """What is wrong with the name of a field of an entry, None if nothing is."""
    return _shape(name) or _taken(name, _OF_TEXTS, "texts in templates")


def role_problem(name: str) -> str | None:
    """What is wrong with the name of a role, None if nothing is."""
    return _shape(name) or _taken(name.lower(), _OF_ROLES, "jobs and providers")


def _shape(name: str) -> str | None:
    if _NAME.fullmatch(name):
        return None
    return "a name is up to 40 letters, digits and _, a letter first, as in teacher_move"


def _taken(name: str, taken: frozenset[str], whose: str) -> str | None:
    return f"the name {name} means something else to {whose}; choose another" if name in taken else None
