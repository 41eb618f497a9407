"""The profile of the advised role in Advising's examples, and the knowledge file of sub-task 5.

A profile has the fields of DSTC7's description. Its courses are the lists `prior` and `suggested` in fields
of the space's entries (`[{offering: CS101-A1, instructor: …}]`). Its term and standing are the dimensions of
these names. `Aggregated` has preferences by fields of the knowledge file: each dimension and each field of an
entry with the name of a field in the file's records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from edgen.domains.retrieval.export.dstc7.collect import CutConversation
from edgen.plugin import RunReader, Scenario, Space
from edgen.plugin.errors import UsageError

_COURSES = {"prior": ("Prior", ("offering",)), "suggested": ("Suggested", ("offering", "instructor"))}
_ALONE = {"term": "Term", "standing": "Standing"}
_WHEN = ("Semester", "Year")  # fields of a term's entry that make up its name in the course file


def read_knowledge(run: RunReader) -> dict[str, str]:
    """Return the text of the space's knowledge file by its name. Raises UsageError if the space has none."""
    knowledge = run.space.knowledge
    if knowledge is None:
        raise UsageError(
            f"{run.name}: sub-task 5 needs a knowledge file, and the space {run.space.name} names "
            "none (`knowledge:` in its file, as that of course_advising does). Take --subtask 1."
        )
    return {knowledge.file: knowledge.text}


def has_profile(space: Space) -> bool:
    """Return whether a space is about courses, so that its examples have profiles."""
    return any(name in _COURSES for dimension in space.dimensions for name in dimension.fields)


class Profiles:
    """The profiles of examples on one space."""

    def __init__(self, space: Space) -> None:
        self._space = space
        value = space.knowledge.value if space.knowledge is not None and space.knowledge.text else ()
        records = value.values() if isinstance(value, dict) else value
        self._fields = {name for record in records if isinstance(record, dict) for name in record}

    def of(self, one: CutConversation) -> dict[str, Any]:
        """Return the profile of an example. On the test side it has only what the next speaker knows."""
        scenario = one.conversation.scenario
        visible: Collection[str] = scenario.values
        if one.side == "test":
            speaker = one.conversation.candidate.turns[one.cut.place].role
            visible = next((role.sees for role in self._space.roles if role.name == speaker), ())
        known = [name for name in scenario.values if name in visible]
        return {
            "Aggregated": dict(self._list_preferences(scenario, known)),
            "Courses": {
                key: [*_list_offerings(scenario, known, name, keys)] for name, (key, keys) in _COURSES.items()
            },
            **{key: _name_term(scenario, name) if name in known else "" for name, key in _ALONE.items()},
        }

    def _list_preferences(self, scenario: Scenario, known: Collection[str]) -> Iterator[tuple[str, Any]]:
        for dimension in known:
            if dimension not in _ALONE:
                told = {dimension: scenario.values[dimension], **scenario.fields.get(dimension, {})}
                yield from ((name, value) for name, value in told.items() if name in self._fields)


def _name_term(scenario: Scenario, dimension: str) -> str:
    """Return a term or a standing: as named in the course file if the entry has these fields."""
    fields = scenario.fields.get(dimension, {})
    return " ".join(str(fields[name]) for name in _WHEN if name in fields) or scenario.values[dimension]


def _list_offerings(
    scenario: Scenario, visible: Collection[str], name: str, keys: tuple[str, ...]
) -> Iterator[dict[str, str]]:
    """Yield the offerings in the list `name` of entries of the visible dimensions."""
    for dimension in visible:
        listed = scenario.fields.get(dimension, {}).get(name)
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and isinstance(one.get("offering"), str):
                yield {key: str(one.get(key, "")) for key in keys}
