"""Which names dimensions, fields and roles may have: identifiers that templates can use and edgen does not."""

from __future__ import annotations

import re

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
