"""The language of expressions: `probability >= .5 and turns < 20 and "telling" not in labels.teacher_moves`.

Python's parser reads a text, and only a few kinds of nodes are accepted: names, numbers, texts, lists of
these, comparisons, `and`, `or`, `not`, `in`, `+ - * /`, and the functions in FUNCTIONS. They are compiled to
closures; Python never evaluates the text. Length and depth are bounded, and so is the work.

A missing value is None. Operations and comparisons with a missing value are missing, too; `and`, `or` and
`not` follow Kleene's three-valued logic, as in SQL. A missing result counts as false. `x is None` tests for a
missing value.
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
_SHOWN = 72  # characters shown of a longer text


class Expression:
    """A compiled expression. `names`: the names that it uses. `notes`: sentences on possible mistakes."""

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        """Compile the text. Raises ExpressionError if it is invalid or uses a name outside the vocabulary."""
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
        """Return whether the expression is true; a missing value counts as false. Raises ExpressionError if
        values cannot be compared."""
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
