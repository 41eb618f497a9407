"""Sub-task 5: knowledge with a conversation: the space's knowledge file, and a profile of the advised role.

A profile has the keys that readers of DSTC7's Advising data use. Its courses are the lists `prior` and
`suggested` in fields of the space's entries (`[{offering: CS101-A1, instructor: …}]`), its term and standing
the dimensions of these names; all other dimensions are under `Aggregated`, by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from edgen.domains.retrieval.export.dstc7.collect import Example
from edgen.plugin import RunReader, Scenario, Space, UsageError

_COURSES = {"prior": ("Prior", ("offering",)), "suggested": ("Suggested", ("offering", "instructor"))}
_ALONE = {"term": "Term", "standing": "Standing"}


def knowledge_of(run: RunReader) -> dict[str, str]:
    """Return the text of the space's knowledge file by name. Raises UsageError if the space has none."""
    knowledge = run.space.knowledge
    if knowledge is None:
        raise UsageError(
            f"{run.name}: sub-task 5 is about what a knowledge file tells, and the space {run.space.name} names none "
            "(`knowledge:` in its file, as that of course_advising does). Take --subtask 1."
        )
    return {knowledge.file: knowledge.text}


def has_profile(space: Space) -> bool:
    """Return whether a space has courses, a term or a standing."""
    fields = {name for dimension in space.dimensions for name in dimension.fields}
    return bool(fields & _COURSES.keys()) or bool({*space.names} & _ALONE.keys())


def profile_of(one: Example, space: Space) -> dict[str, Any]:
    """Return the profile of an example. On the test side it is limited to the next speaker's knowledge."""
    scenario = one.conversation.scenario
    visible: Collection[str] = scenario.values
    if one.side == "test":
        speaker = one.conversation.candidate.turns[one.cut.place].role
        visible = next((role.sees for role in space.roles if role.name == speaker), ())
    known = {name: value for name, value in scenario.values.items() if name in visible}
    return {
        "Aggregated": {name: value for name, value in known.items() if name not in _ALONE},
        "Courses": {
            key: [*_offerings(scenario, known, name, keys)] for name, (key, keys) in _COURSES.items()
        },
        **{key: known.get(name, "") for name, key in _ALONE.items()},
    }


def _offerings(
    scenario: Scenario, visible: Collection[str], name: str, keys: tuple[str, ...]
) -> Iterator[dict[str, str]]:
    """Yield the offerings listed under a name in entries of the visible dimensions."""
    for dimension in visible:
        listed = scenario.fields.get(dimension, {}).get(name)
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and isinstance(one.get("offering"), str):
                yield {key: str(one.get(key, "")) for key in keys}
