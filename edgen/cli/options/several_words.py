"""Options that take several words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from typer.core import TyperCommand


class SeveralWords(TyperCommand):
    """A command with an option that takes several words: `--arms A B`, `--arms A,B` and `--arms A --arms B`
    are the same. Click takes the first as `--arms A` and an argument more."""

    option: ClassVar[str]

    def takes(self, word: str) -> bool:  # noqa: ARG002 - for those who know the words
        """Whether a word behind the option's first is one more of its values, and no argument."""
        return True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._spread(args)))

    def _spread(self, args: list[str]) -> Iterator[str]:
        """The option before each of its values, and nowhere else."""
        inside, bare = False, False  # bare: the option stands there, and no value yet
        for number, word in enumerate(args):
            name, equals, value = word.partition("=")
            if word.startswith("-") and len(word) > 1:
                if bare:
                    yield self.option
                inside = name == self.option
                bare = inside and not equals
                if word == "--":
                    yield from args[number:]
                    return
                if not inside:
                    yield word
                elif equals:
                    yield from self._each(value)
            elif inside and (bare or self.takes(word)):
                bare = False
                yield from self._each(word)
            else:
                inside = False
                yield word
        if bare:
            yield self.option

    def _each(self, text: str) -> Iterator[str]:
        for value in text.split(","):
            if value.strip():
                yield from (self.option, value.strip())


class SeveralArms(SeveralWords):
    option = "--arms"


class SeveralMeasures(SeveralWords):
    """`--only overview lengths RUN`: the first word that is no measure, nor a misspelt one, is a path."""

    option = "--only"

    def takes(self, word: str) -> bool:
        from edgen.core.registry import names
        from edgen.core.yaml_values import nearest

        known = names("measure")
        words = [part.strip() for part in word.split(",")]
        if any(part in known for part in words):
            return True
        return not Path(word).exists() and any("did you mean" in nearest(part, known) for part in words)
