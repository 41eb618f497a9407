"""Terms of expressions: kinds of values, names, and the error for an invalid text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from edgen.core.errors import UsageError

_SHOWN = 72  # characters of the text shown around an error

Value = Any  # None, bool, int, float, str, or a tuple of these
Kind = Literal["number", "text", "truth", "list", "any"]  # "any": known only at run time
Run = Callable[[Any], Value]  # the value, given the subject of the expression

CALLED: dict[Kind, str] = {
    "number": "a number",
    "text": "a text",
    "truth": "yes or no",
    "list": "a list",
    "any": "a value",
}


class ExpressionError(UsageError):
    """An invalid expression. `clause`: the error at `column`, counted from 1."""

    def __init__(self, text: str, column: int, clause: str) -> None:
        self.text, self.column, self.clause = text, column, clause
        super().__init__(text, column, clause)

    def __str__(self) -> str:
        start = max(0, self.column - 1 - _SHOWN // 2)
        shown = self.text[start : start + _SHOWN]
        visible = "".join(char if char.isprintable() else "?" for char in shown)
        return f"column {self.column}: {self.clause}.\n    {visible}\n    {' ' * (self.column - 1 - start)}^"


class NamedTerm(NamedTuple):
    """A known name. `kind`: of its value. `get`: returns its value. `texts`: the texts that its value can be
    or contain; () for any."""

    kind: Kind
    get: Run
    texts: Sequence[str] = ()


class Vocabulary(Protocol):
    """The names that an expression may use."""

    def find(self, path: tuple[str, ...]) -> NamedTerm | None:
        """Return the term with this path; None if it is unknown."""

    def list_names(self) -> Iterable[str]:
        """Yield every name that can be listed, to suggest corrections."""


def find_kind(value: Value) -> Kind:
    """Return the kind of a value; it must not be missing."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "list"


def describe(value: Value) -> str:
    """Describe a value in words."""
    return CALLED[find_kind(value)]
