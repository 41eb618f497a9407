"""Rules for texts in a space, and for names of dimensions, fields and roles.

A text is one visible line without control characters. A name is an identifier that templates can use and
edgen does not.

A value ends up in prompts, records and terminals. Joiners and direction marks are allowed, as some scripts
need them; control characters, line separators, lone surrogates and bidirectional overrides are not.
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
    """Return whether this character is forbidden in a value."""
    return char in _BIDI_OVERRIDES or unicodedata.category(char) in _FORBIDDEN_CATEGORIES


def is_blank(text: str) -> bool:
    """Return whether the text is invisible: only spaces, controls and format characters."""
    return all(char in _INVISIBLE or unicodedata.category(char) in _INVISIBLE_CATEGORIES for char in text)


def likeness(text: str) -> str:
    """Return the common form of values that a reader cannot distinguish.

    That is the text without format characters, such as a zero-width space, in Unicode's compatibility form
    (NFKC), which composes an e and an accent to an é.
    """
    if text.isascii():
        return text
    seen = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", seen).strip()


def text_problems(text: str, path: str) -> Iterator[Problem]:
    """Yield problems of a text as a value or a field."""
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
    """Yield problems of a name, description or source; the last two may have several lines."""
    line = text if key == "name" else text.translate(_LAYOUT).strip()
    yield from text_problems(line, f"$.{key}")


def value_problem(text: str) -> str | None:
    """Return the problem of a text as a value of a space, None if there is none."""
    problem = next(text_problems(text, "$"), None)
    return None if problem is None else problem.message


def quoted(text: str) -> str:
    """Quote a text for messages."""
    return repr(text if len(text) <= 60 else text[:59] + "…")


# ---- names

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
# Jinja's reserved words and names, and Python's, which Jinja reads as values.
_OF_JINJA = frozenset({
    "False", "None", "True", "and", "as", "autoescape", "block", "break", "call", "caller", "context",
    "continue", "do", "elif", "else", "endblock", "endcall", "endfilter", "endfor", "endif", "endmacro",
    "endset", "endtrans", "endwith", "extends", "false", "filter", "for", "from", "if", "ignore", "import",
    "in", "include", "is", "kwargs", "loop", "macro", "missing", "none", "not", "or", "pluralize", "range",
    "recursive", "required", "scoped", "self", "set", "super", "trans", "true", "varargs", "with", "without",
})  # fmt: skip
# Further variables of edgen's own templates, and further columns of its tables.
OF_EDGEN = frozenset({
    "arm", "brief", "compare", "conversation", "conversation_1", "conversation_2", "count", "description", "dimension",
    "ended_by", "fence", "guarded", "guarded_1", "guarded_2", "history", "id", "index", "messages", "model",
    "name", "probability", "provenance", "replicate", "response_1", "response_2", "role", "roles", "scenario",
    "next_speaker", "others", "scenario_lines", "simulated", "space_goal", "space_roles", "split", "text", "turn", "turns",
    "values",
})  # fmt: skip
# Attributes of texts that templates read, so no field can have these names.
_OF_TEXTS = frozenset({
    "capitalize", "endswith", "lower", "split", "splitlines", "startswith", "title", "upper",
})  # fmt: skip
_OF_ROLES = frozenset({
    "assistant", "closing", "default", "human", "judge", "oracle", "simulator", "system", "tool", "user",
})  # fmt: skip


def dimension_problem(name: str) -> str | None:
    """Return the problem of a dimension's name, None if there is none."""
    return _shape(name) or _taken(name, _OF_JINJA, "Jinja") or _taken(name, OF_EDGEN, "edgen")


def field_problem(name: str) -> str | None:
    """Return the problem of an entry field's name, None if there is none."""
    return _shape(name) or _taken(name, _OF_TEXTS, "texts in templates")


def role_problem(name: str) -> str | None:
    """Return the problem of a role's name, None if there is none."""
    return _shape(name) or _taken(name.lower(), _OF_ROLES, "jobs and providers")


def _shape(name: str) -> str | None:
    if _NAME.fullmatch(name):
        return None
    return "a name is up to 40 letters, digits and _, a letter first, as in teacher_move"


def _taken(name: str, taken: frozenset[str], whose: str) -> str | None:
    return f"the name {name} means something else to {whose}; choose another" if name in taken else None
