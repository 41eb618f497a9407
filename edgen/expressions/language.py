"""The language of expressions: `probability >= .5 and turns < 20 and "telling" not in labels.teacher_moves`.

A text is parsed as Python parses an expression, and only a few kinds of nodes are taken: names, numbers,
texts, lists of them, comparisons, `and`, `or`, `not`, `in`, `+ - * /`, and the functions in FUNCTIONS. What
is taken is compiled to closures; nothing is ever handed to Python to run. A text is bounded in length and
depth, so its work is, too.

A value that is missing is None. What is made of a missing value is missing, a comparison too; `and`, `or` and
`not` follow Kleene's three-valued logic, as SQL does; what is missing in the end does not hold. `x is None`
asks for it.
"""

from __future__ import annotations

from typing import Any

from edgen.expressions.compiler import Compiler
from edgen.expressions.terms import (
    CALLED,
    ExpressionError,
    Kind,
    NamedTerm,
    Value,
    Vocabulary,
    describe,
    find_kind,
)

MAX_LENGTH = 2_000  # characters
_SHOWN = 72  # of a text that is longer


class Expression:
    """A compiled expression. `names` are those that it uses; `notes` are sentences on what may be a
    mistake."""

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        """Compile the text. Raises ExpressionError for an invalid expression, or one with a name outside this
        vocabulary."""
        self.text = " ".join(text[: MAX_LENGTH + 1].split("\n")).strip()
        if len(text) > MAX_LENGTH:
            shown = self.text[:_SHOWN]
            raise ExpressionError(shown, 1, f"an expression is at most {MAX_LENGTH:,} characters long")
        compiler = Compiler(self.text, vocabulary)
        node = compiler.parse()
        kind, self._run = compiler.compile(node, 0)
        if kind not in ("truth", "any"):
            raise compiler.refuse(node, f"this is {CALLED[kind]}, and an expression must be true or false")
        self._refuse = compiler.refuse
        self._node = node
        self.names = frozenset(".".join(path) for path in compiler.paths)
        self.notes = tuple(compiler.notes)

    def holds(self, about: Any) -> bool:
        """Return whether the expression is true; a missing value counts as false. Raises ExpressionError for
        values that cannot be compared."""
        value = self._run(about)
        if value is not None and value is not True and value is not False:
            raise self._refuse(
                self._node, f"this is {describe(value)}, and an expression must be true or false"
            )
        return value is True

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


__all__ = [
    "MAX_LENGTH", "Expression", "ExpressionError", "Kind", "NamedTerm", "Value", "Vocabulary", "find_kind",
]  # fmt: skip
