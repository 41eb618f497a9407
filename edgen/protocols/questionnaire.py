"""Questionnaires, before or after a conversation. Each item has a scale or a free answer.

name: mine
items:
  - {name: task, text: The task was easy., scale: [1, 7], least: not at all, most: entirely}
  - {name: remarks, text: What else would you like to say?}
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from edgen.core.errors import JobError, Problem
from edgen.core.forms import Form, form_of, whole_number
from edgen.core.forms import text as text_of
from edgen.core.yaml_values import build, read_text, read_yaml

_Name = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,39}\Z")]
_Line = Annotated[str, Meta(min_length=1, max_length=1_000)]
_End = Annotated[int, Meta(ge=-1_000, le=1_000)]
MOST_ITEMS = 50
MOST_TEXT = 500  # characters of a free answer under a schema

Scale = tuple[int, int]  # the lowest and the highest rating


class QuestionnaireError(JobError):
    """A questionnaire that cannot be used."""

    what = "questionnaire"


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a questionnaire. `scale` is the lowest and the highest rating; None for a free answer.
    `least` and `most` describe the two ends of the scale."""

    name: _Name
    text: _Line
    scale: tuple[_End, _End] | None = None
    least: _Line | None = None
    most: _Line | None = None

    @property
    def ends(self) -> str:
        """The descriptions of the scale's ends, in brackets; empty for a free answer."""
        if self.scale is None:
            return ""
        return _describe_scale(self)


class Questionnaire(msgspec.Struct, frozen=True, kw_only=True):
    """A questionnaire: its items in order. `source` names the origin of the items."""

    name: _Line
    items: tuple[Item, ...]
    description: _Line | None = None
    source: _Line | None = None

    @property
    def scales(self) -> dict[str, Scale | None]:
        """The scale of each item, by name."""
        return {item.name: item.scale for item in self.items}

    @property
    def form(self) -> str:
        """An example of an answer, as JSON."""
        example = {item.name: "…" if item.scale is None else item.scale[0] for item in self.items}
        return msgspec.json.encode(example).decode()

    @property
    def answer_form(self) -> Form:
        """The form of the answers: a rating on each scale, and texts."""
        return form_of(
            {
                name: text_of(MOST_TEXT, least=0) if scale is None else whole_number(*scale)
                for name, scale in self.scales.items()
            }
        )

    def lines(self) -> list[str]:
        """Return the items as they are asked, one a line."""
        return [f"{item.name}: {item.text}{_describe_scale(item)}" for item in self.items]


def _describe_scale(item: Item) -> str:
    if item.scale is None:
        return " (in your own words)"
    low, high = item.scale
    ends = [f"{end} = {says}" for end, says in ((low, item.least), (high, item.most)) if says]
    return f" ({low} to {high}{'; ' if ends else ''}{', '.join(ends)})"


def load_questionnaire(path: Path) -> Questionnaire:
    """Return the questionnaire in a file. Raises QuestionnaireError with every problem."""
    return read_questionnaire(
        read_yaml(read_text(path, QuestionnaireError), str(path), QuestionnaireError), str(path)
    )


def read_questionnaire(value: Any, source: str) -> Questionnaire:
    """Return the questionnaire in decoded YAML or JSON. Raises QuestionnaireError with every problem."""
    made = build(value, Questionnaire, source, QuestionnaireError)
    problems = []
    names = [item.name for item in made.items]
    if not 1 <= len(names) <= MOST_ITEMS:
        problems.append(Problem("$.items", f"expected 1 to {MOST_ITEMS} items, and there are {len(names)}"))
    for place, item in enumerate(made.items):
        if item.name in names[:place]:
            problems.append(
                Problem(f"$.items[{place}].name", f"another item is called {item.name}; rename one of them")
            )
        if item.scale is not None and item.scale[0] >= item.scale[1]:
            problems.append(
                Problem(f"$.items[{place}].scale", "the lowest rating has to be less than the highest")
            )
    if problems:
        raise QuestionnaireError.of(source, problems)
    return made
