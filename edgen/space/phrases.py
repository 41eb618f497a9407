"""The section `phrases` of a space file: how the simulator says what a scenario holds.

A space needs none: its values, their fields and its knowledge file are said as they are. Phrases shape no
prompt and no scenario, so they are not part of a space's content.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.core.errors import Problem, SpaceError, UsageError
from edgen.core.yaml_values import convert, nearest
from edgen.space.model import SpaceSection

if TYPE_CHECKING:
    from edgen.space.model import Space

Ways = tuple[str, ...]
SLOT = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)?(?::lower)?)\}")
HEARD, KNOWLEDGE = "heard", "knowledge"


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a role says to a turn that holds certain words."""

    to: Ways
    """Words of the other's turn, one or several; they may have slots, such as `{topic.question}`."""
    says: Ways
    """Ways to answer; one is drawn."""


class RolePhrases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one role says, in order: a step per turn, each with one or several ways to say it."""

    opens: Ways = ()
    """Ways to say its first turn."""
    says: tuple[Ways, ...] = ()
    """The steps after it; each is a text, or a list of texts of which one is drawn."""
    closes: Ways = ()
    """Ways to say its last turn."""
    answers: tuple[Answer, ...] = ()
    """Answers to certain words, which come before the next step."""


class Phrases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the simulator says a space's values. A way may have slots: `{topic}`, `{topic:lower}`, a field as
    `{topic.example}`, `{heard}` for the example that the other gave last, `{knowledge}` for a fact of the
    knowledge file. A way with a slot that the role cannot fill is left out."""

    persona: Ways | None = None
    """Dimensions that say how a role behaves, which nobody says of oneself; null: recognised by their
    names."""
    wrong: Ways = ()
    """Dimensions whose values are not true, and are rarely believed."""
    said: dict[str, dict[str, Ways]] = {}
    """By dimension and value: ways to say that value in speech."""
    roles: dict[str, RolePhrases] = {}
    """What each role says, by role."""


class PhrasesSection(SpaceSection):
    """Sentences of the simulator, for a space's values."""

    name = "phrases"
    help = "How the simulator says this space's values; no model sees it."
    structs = (Phrases, RolePhrases, Answer)
    root = "Phrases"
    drawn = False

    def read(self, value: Any, dimensions: Collection[str], problems: list[Problem]) -> Phrases | None:
        """Return the phrases, None if they are invalid."""
        found: Phrases | None = convert(_listed(value), Phrases, "$.phrases", problems)
        if found is None:
            return None
        named = {"persona": found.persona or (), "wrong": found.wrong, "said": tuple(found.said)}
        for key, names in named.items():
            problems += [
                Problem(f"$.phrases.{key}", f"there is no dimension {name}{nearest(name, [*dimensions])}")
                for name in names
                if name not in dimensions
            ]
        return found

    def widen(self, definitions: dict[str, Any]) -> None:
        """Allow one way for a list of ways."""
        for part in ("RolePhrases", "Answer"):
            for key, schema in definitions[part]["properties"].items():
                if key == "says" and part == "RolePhrases":
                    schema["items"] = {"anyOf": [{"type": "string"}, schema["items"]]}
                elif key in ("opens", "closes", "to", "says"):
                    kept = {
                        name: schema.pop(name) for name in [*schema] if name not in ("description", "default")
                    }
                    schema["anyOf"] = [{"type": "string"}, kept]
        said = definitions["Phrases"]["properties"]["said"]["additionalProperties"]
        said["additionalProperties"] = {"anyOf": [{"type": "string"}, said["additionalProperties"]]}

    def content(self, section: Phrases) -> Any:  # noqa: ARG002
        """Return None: phrases shape no scenario and no model's answer."""
        return None

    def check(self, space: Space) -> None:
        """Raise SpaceError for an unknown role or value, or a slot that nothing fills."""
        found: Phrases = space.sections[self.name]
        problems = [*_problems(found, space)]
        if problems:
            raise SpaceError(space.name, f"{len(problems)} of its phrases cannot be said:", problems)

    def dimensions(self, section: Phrases) -> frozenset[str]:  # noqa: ARG002
        """Return none: no role sees a dimension through its phrases."""
        return frozenset()

    def describe(self, space: Space, examples: int) -> dict[str, Any]:
        """Return the persona's dimensions, and the number of steps of each role with some examples."""
        found: Phrases = space.sections[self.name]
        return {
            "persona": sorted(persona_of(space)),
            "roles": {
                role: {"steps": len(said.says), "shown": [ways[0] for ways in said.says[:examples] if ways]}
                for role, said in found.roles.items()
            },
        }

    def render(self, facts: Mapping[str, Any]) -> Iterator[str]:
        """Yield a line per role."""
        for role, said in facts.get("roles", {}).items():
            yield f"{'phrases':20} {role} has {said['steps']} steps"

    def draw(self, space: Space, folder: Path, examples: int) -> tuple[int, Path]:  # noqa: ARG002
        """Raise UsageError: phrases have no pictures."""
        raise UsageError(f"{space.name}: phrases have no pictures.")


SECTION = PhrasesSection()
NOTHING = Phrases()


def phrases_of(space: Space) -> Phrases:
    """Return a space's phrases; empty ones if it has none."""
    found: Phrases = space.sections.get(SECTION.name, NOTHING)
    return found


def _listed(value: Any) -> Any:
    """Return the section with a list wherever one text may stand for it, and without empty keys."""
    if not isinstance(value, dict):
        return value
    found = {key: one for key, one in value.items() if one is not None}
    if isinstance(said := found.get("said"), dict):
        found["said"] = {
            name: {text: _ways(ways) for text, ways in of.items()} if isinstance(of, dict) else of
            for name, of in said.items()
        }
    if isinstance(roles := found.get("roles"), dict):
        found["roles"] = {name: _role(one) for name, one in roles.items()}
    return found


def _ways(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _role(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    found = {key: _ways(one) for key, one in value.items() if one is not None}
    if isinstance(steps := found.get("says"), list):
        found["says"] = [_ways(step) for step in steps]
    if isinstance(answers := found.get("answers"), list):
        found["answers"] = [
            {key: _ways(said) for key, said in one.items()} if isinstance(one, dict) else one
            for one in answers
        ]
    return found


def _problems(found: Phrases, space: Space) -> Iterator[Problem]:
    for name, said in found.said.items():
        values = [*space[name].values]
        yield from (
            Problem(f"$.phrases.said.{name}", f"there is no value {value!r}{nearest(value, values)}")
            for value in said
            if value not in values
        )
        yield from _empty(f"$.phrases.said.{name}", said.values())
        yield from _unfilled(f"$.phrases.said.{name}", said.values(), space)
    roles = [role.name for role in space.roles]
    for name, one in found.roles.items():
        path = f"$.phrases.roles.{name}"
        if name not in roles:
            yield Problem(path, f"there is no role {name}{nearest(name, roles)}")
        steps = [one.opens, *one.says, one.closes]
        yield from _empty(f"{path}.says", one.says)
        for answer in one.answers:
            steps += [answer.to, answer.says]
            yield from _empty(f"{path}.answers", [answer.to, answer.says])
        yield from _unfilled(path, steps, space)


def _unfilled(path: str, lists: Iterable[Ways], space: Space) -> Iterator[Problem]:
    return (
        Problem(path, f"nothing fills {{{slot}}} in {way!r}")
        for ways in lists
        for way in ways
        for slot in SLOT.findall(way)
        if not _fills(slot.removesuffix(":lower"), space)
    )


def _empty(path: str, lists: Iterable[Ways]) -> Iterator[Problem]:
    if not all(ways and all(way.strip() for way in ways) for ways in lists):
        yield Problem(path, "a list of ways, or a way in it, is empty; write at least one")


def _fills(slot: str, space: Space) -> bool:
    name, _, field = slot.partition(".")
    if slot in (HEARD, KNOWLEDGE):
        return True
    name = name if name in space.names else name[:1].lower() + name[1:]
    return name in space.names and (not field or field in space[name].fields)


# ---- personas

_TRAIT = r"(?:persona|personality|manner|mood|tone|temper|temperament|attitude|behaviou?r|style)s?"
_TRAITS = re.compile(
    rf"\b{_TRAIT}\b|\b(?:how|who)(?: much| well)? you (?:are|write|talk|speak|behave|feel|know|react|learn|teach)\b"
)
_OF_ROLE = re.compile(rf"(?:{_TRAIT}|moves?|preferences?|prefrences?|reactions?|type|kind)\Z")
_PEOPLE = ("learner", "student", "pupil", "teacher", "tutor", "speaker")


def persona_of(space: Space) -> frozenset[str]:
    """Return the dimensions that say how a role is or behaves: the space's own list, else those whose name or
    label says so: `tone`, `manner`, "How you write", a role as in `learner`, or its trait as in
    `tutor_move`."""
    declared = phrases_of(space).persona
    if declared is not None:
        return frozenset(declared)
    labels = {one.name: one.label or "" for one in space.dimensions}
    return persona_among(labels, [role.name for role in space.roles])


def persona_among(labels: Mapping[str, str], roles: Iterable[str]) -> frozenset[str]:
    """Return those of the dimensions, given with their labels, that say how one of the roles is."""
    people = {*_PEOPLE, *(role.lower() for role in roles)}
    return frozenset(name for name, label in labels.items() if _is_persona(name.lower(), label, people))


def _is_persona(name: str, label: str, people: Collection[str]) -> bool:
    whose, _, what = name.partition("_")
    if name in people or (whose in people and _OF_ROLE.match(what)):
        return True
    return _TRAITS.search(f"{name.replace('_', ' ')} {label.lower()}") is not None
