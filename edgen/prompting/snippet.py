"""Short texts with variables, such as those of a space: compiled once, rendered to one text.

They run in the sandbox of prompts. Snippets of one file share a sandbox. `fraction(n, d)` prints n/d in
lowest terms: `3/4`, `-1/2`, or a whole number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

from edgen.core.errors import TemplateError
from edgen.prompting.check import RENDERING, compile_text, word_error
from edgen.prompting.sandbox import MAX_TEXT, Sandbox

MAX_SNIPPET = 4_000  # characters


def make_sandbox() -> Sandbox:
    """Return a sandbox for the snippets of one file."""
    sandbox = Sandbox()
    sandbox.globals["fraction"] = _fraction
    return sandbox


def _fraction(numerator: int, denominator: int) -> str:
    return str(Fraction(numerator, denominator))


def _compile_again(text: str, used: frozenset[str]) -> Snippet:
    return Snippet(text, make_sandbox(), used)


class Snippet:
    """A compiled text. `variables_used` are the variables that it reads."""

    def __init__(
        self,
        text: str,
        sandbox: Sandbox,
        available: Collection[str],
        fields: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Compile the text. Raises TemplateError for forbidden constructs, and for unknown variables and
        fields."""
        if len(text) > MAX_SNIPPET:
            raise TemplateError("text", f"it is longer than {MAX_SNIPPET:,} characters.")
        self._text = text
        self._plain = text if "{" not in text else None
        self._sandbox = sandbox
        self._template, self.variables_used = compile_text(text, "text", sandbox, available, fields)

    def __reduce__(self) -> tuple[Any, ...]:
        """Compile the text anew in another process."""
        return _compile_again, (self._text, self.variables_used)

    def render(self, variables: Mapping[str, Any]) -> str:
        """Return the text, stripped. Raises TemplateError for rendering errors."""
        if self._plain is not None:
            return self._plain.strip()
        self._sandbox.work = 0
        context = self._template.new_context(dict(variables))
        try:
            text = "".join(self._template.root_render_func(context))
        except RENDERING as error:
            raise word_error(error, self._template, "text") from None
        if len(text) > MAX_TEXT:
            raise TemplateError("text", f"it renders to more than {MAX_TEXT:,} characters.")
        return text.strip()
