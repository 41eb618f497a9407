"""The key `pool` of `tutoring`: responses of tutors in earlier rounds, served to students."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from edgen.plugin import Rejection
from edgen.plugin.answers import ActedTurn, read_acted_turn
from edgen.plugin.errors import Problem
from edgen.plugin.protocols import Text

SOLVED = "solved"  # key of templates for turns that solve an exercise, for any actions of the student

Share = Annotated[float, Meta(ge=0, le=1)]

# For CIMA's actions (see tutoring/config); edgen's own words.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "Guess": (
        "[Correction, Hint] That is not the whole answer yet. {point}",
        "[Correction, Hint] Not quite. Remember: {point}",
        "[Correction, Hint] Look at it once more. {point}",
    ),
    "Question": ("[Hint] {point}", "[Hint] This may help: {point}", "[Hint] Think of this: {point}"),
    "Affirmation": (
        "[Question, Hint] Good. What would you say now? {point}",
        "[Hint] Then try the whole answer. {point}",
    ),
    "Other": ("[Hint] Back to the exercise. {point}", "[Hint] Let us go on. {point}"),
    SOLVED: ("[Confirmation] Yes, “{answer}” is right.", "[Confirmation] Well done: “{answer}”."),
}


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """For `choose: pool`: the student is served a response that a tutor gave to a similar turn in an earlier
    round."""

    fallback: dict[Text, Share] = msgspec.field(default_factory=lambda: {"Guess": 0.3, "Question": 0.1})
    """Share of turns that get a template, by the student's action."""
    shared: Annotated[int, Meta(ge=1, le=20)] = 2
    """Minimum keywords shared with the turn of a pooled response."""
    longest: Annotated[int, Meta(ge=2, le=1_000)] | None = 10
    """Turns about one exercise after which no tutor responds; null: none."""
    most: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    """Maximum responses in the pool."""
    templates: dict[Text, tuple[Text, ...]] | None = None
    """Responses by the student's action, and under `solved`; null: shipped ones, for CIMA's actions."""

    @property
    def named_templates(self) -> Mapping[str, tuple[str, ...]]:
        """The templates by action."""
        return TEMPLATES if self.templates is None else self.templates

    def problems(self, actions: Mapping[str, Mapping[str, str]], path: str) -> Iterator[Problem]:
        """Yield the actions in `fallback` and `templates` that do not exist, and the actions without a
        template."""
        student, tutor = actions.get("student", {}), actions.get("tutor", {})
        templates, known = self.named_templates, ", ".join((*student, SOLVED))
        for name in self.fallback:
            if name not in student and name not in TEMPLATES:
                yield Problem(
                    f"{path}.fallback.{name}", f"the student has no such action (known: {', '.join(student)})"
                )
        if missing := [name for name in (*student, SOLVED) if not templates.get(name)]:
            told = (
                f"there is none for {', '.join(missing)}; each action of the student needs one, and "
                f"`{SOLVED}`"
            )
            yield Problem(f"{path}.templates", told)
        for name, several in templates.items() if self.templates is not None else ():
            if name != SOLVED and name not in student:
                yield Problem(f"{path}.templates.{name}", f"the student has no such action (known: {known})")
            for place, text in enumerate(several):
                if isinstance(read_template(text, tutor), Rejection):
                    told = (
                        f"expected some of the tutor's actions in front ({', '.join(tutor)}), as in `[Hint] "
                        "{point}`"
                    )
                    yield Problem(f"{path}.templates.{name}[{place}]", told)


def read_template(text: str, actions: Mapping[str, str]) -> ActedTurn | Rejection:
    """Return a template: a reply of the tutor, in which `{point}` stands for one of the exercise's points and
    `{answer}` for the right answer. Return a rejection if it does not begin with actions."""
    return _read(text, tuple(actions))


@functools.lru_cache(maxsize=1_000)
def _read(text: str, actions: tuple[str, ...]) -> ActedTurn | Rejection:
    return read_acted_turn(text, "Tutor", actions)
