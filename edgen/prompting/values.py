"""Variables of templates: a scenario's values. No Jinja is imported here: reading a run does not need it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from edgen.core.pictures import pictures_in
from edgen.core.space_layouts import map_bare_fields
from edgen.core.values import Scenario

PICTURE = "picture"  # the field of an entry, and the variable of a scenario
MAX_TEXT = 1_000_000  # characters of one text or of a rendered message


class ValueWithFields(str):
    """A scenario's value in a template, with its entry's fields as attributes."""

    __slots__ = ("fields",)
    fields: Mapping[str, Any]

    def __new__(cls, value: str, fields: Mapping[str, Any]) -> ValueWithFields:
        new = super().__new__(cls, value)
        new.fields = fields
        return new


def scenario_variables(scenario: Scenario) -> dict[str, str | int | None]:
    """Return the template variables of a scenario: its index and its values, each with the fields of its
    entry. The fields with bare names, by layouts of spaces, go by these too, and `picture` is the first one,
    unless the space has dimensions of these names."""
    variables: dict[str, str | int | None] = {"index": scenario.index}
    for name, dimension in map_bare_fields().items():
        variables[name] = scenario.field(dimension, name)
    variables[PICTURE] = find_picture(scenario)
    variables |= scenario.values
    for name, fields in scenario.fields.items():
        variables[name] = ValueWithFields(scenario[name], fields)
    return variables


def find_picture(scenario: Scenario, sees: Collection[str] | None = None) -> str:
    """Return the mark of the first picture of a scenario's values, of these dimensions alone if they are
    given; empty without one."""
    for name, fields in scenario.fields.items():
        text = fields.get(PICTURE)
        if isinstance(text, str) and (sees is None or name in sees) and pictures_in(text):
            return text
    return ""
