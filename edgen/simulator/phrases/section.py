"""The section `phrases` of a space file, as the rest of edgen reads, checks and shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgen.plugin.errors import Problem, SpaceError, UsageError
from edgen.plugin.files import convert, suggest_name
from edgen.space.model import SpaceSection, find_persona, find_phrases
from edgen.space.phrases import HEARD, KNOWLEDGE, PHRASES, SLOT, PhraseAnswer, Phrases, Phrasings, RolePhrases

if TYPE_CHECKING:
    from edgen.plugin import Space


def with_lists(value: Any) -> Any:
    """Return the section with a list wherever one text may replace a list, and without empty keys."""
    if not isinstance(value, dict):
        return value
    found = {key: one for key, one in value.items() if one is not None}
    if isinstance(said := found.get("said"), dict):
        found["said"] = {
            name: {text: _read_phrasings(phrasings) for text, phrasings in of.items()}
            if isinstance(of, dict)
            else of
            for name, of in said.items()
        }
    if isinstance(roles := found.get("roles"), dict):
        found["roles"] = {name: _read_role(one) for name, one in roles.items()}
    return found


def _read_phrasings(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _read_role(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    found = {key: _read_phrasings(one) for key, one in value.items() if one is not None}
    if isinstance(steps := found.get("says"), list):
        found["says"] = [_read_phrasings(step) for step in steps]
    if isinstance(answers := found.get("answers"), list):
        found["answers"] = [
            {key: _list_phrasings(key, said) for key, said in one.items()} if isinstance(one, dict) else one
            for one in answers
        ]
    return found


def _list_phrasings(key: str, value: Any) -> Any:
    if key == "when" and isinstance(value, dict):
        return {name: _read_phrasings(values) for name, values in value.items()}
    return _read_phrasings(value)


def find_problems(found: Phrases, space: Space) -> Iterator[Problem]:
    for name, said in found.said.items():
        yield from _find_unknown_values(f"$.phrases.said.{name}", said, space[name].values)
        yield from _find_empty_phrasings(f"$.phrases.said.{name}", said.values())
        yield from _find_unfilled(f"$.phrases.said.{name}", said.values(), space)
    roles = [role.name for role in space.roles]
    for name, one in found.roles.items():
        path = f"$.phrases.roles.{name}"
        if name not in roles:
            yield Problem(path, f"there is no role {name}{suggest_name(name, roles)}")
        steps = [one.opens, *one.says, one.closes]
        yield from _find_empty_phrasings(f"{path}.says", one.says)
        for answer in one.answers:
            steps += [answer.to, answer.says]
            yield from _find_empty_phrasings(f"{path}.answers", [answer.to, answer.says])
            yield from _find_impossible(f"{path}.answers", answer.when, space)
        yield from _find_unfilled(path, steps, space)


def find_unused_facts(found: Phrases, space: Space) -> list[str]:
    """Return the values with facts that no dimension has. A copy of a space may have lost them."""
    return [
        f"{name}: {value}"
        for name, facts in found.facts.items()
        for value in facts
        if value not in space[name].values
    ]


def _find_unknown_values(path: str, named: Iterable[str], values: Iterable[str]) -> Iterator[Problem]:
    """Yield the values that a dimension lacks."""
    known = [*values]
    return (
        Problem(path, f"there is no value {value!r}{suggest_name(value, known)}")
        for value in named
        if value not in known
    )


def _find_impossible(path: str, when: Mapping[str, Phrasings], space: Space) -> Iterator[Problem]:
    """Yield the conditions that no scenario fulfils."""
    for name, values in when.items():
        if name not in space.names:
            yield Problem(
                path, f"`when` names {name}, and there is no such dimension{suggest_name(name, space.names)}"
            )
            continue
        yield from _find_unknown_values(f"{path}.when.{name}", values, space[name].values)


def _find_unfilled(path: str, lists: Iterable[Phrasings], space: Space) -> Iterator[Problem]:
    return (
        Problem(path, f"nothing fills {{{slot}}} in {phrasing!r}")
        for phrasings in lists
        for phrasing in phrasings
        for slot in SLOT.findall(phrasing)
        if not _fills(slot.partition(":")[0], space)
    )


def _find_empty_phrasings(path: str, lists: Iterable[Phrasings]) -> Iterator[Problem]:
    if not all(phrasings and all(phrasing.strip() for phrasing in phrasings) for phrasings in lists):
        yield Problem(path, "a list of ways, or a way in it, is empty; write at least one")


def _fills(slot: str, space: Space) -> bool:
    name, _, field = slot.partition(".")
    if slot in (HEARD, KNOWLEDGE):
        return True
    name = name if name in space.names else name[:1].lower() + name[1:]
    if name not in space.names:
        return False
    facts = find_phrases(space).facts.get(name, {}).values()
    return not field or field in space[name].fields or any(field in one for one in facts)


class PhrasesSection(SpaceSection):
    """The section `phrases` of a space: sentences of the simulator about the space's values."""

    name = PHRASES
    help = "How the simulator says this space's values; no model sees it."
    structs = (Phrases, RolePhrases, PhraseAnswer)
    root = "Phrases"

    def read(self, value: Any, dimensions: Collection[str], problems: list[Problem]) -> Phrases | None:
        """Return the phrases, None if they are invalid."""
        found: Phrases | None = convert(with_lists(value), Phrases, "$.phrases", problems)
        if found is None:
            return None
        named = {
            "persona": found.persona or (),
            "wrong": found.wrong,
            "right": found.right,
            "said": tuple(found.said),
            "facts": tuple(found.facts),
        }
        for key, names in named.items():
            problems += [
                Problem(
                    f"$.phrases.{key}", f"there is no dimension {name}{suggest_name(name, [*dimensions])}"
                )
                for name in names
                if name not in dimensions
            ]
        return found

    def widen(self, definitions: dict[str, Any]) -> None:
        """Allow one way for a list of ways."""
        for part in ("RolePhrases", "PhraseAnswer"):
            for key, schema in definitions[part]["properties"].items():
                if key == "says" and part == "RolePhrases":
                    schema["items"] = {"anyOf": [{"type": "string"}, schema["items"]]}
                elif key in ("opens", "closes", "to", "says"):
                    kept = {
                        name: schema.pop(name) for name in [*schema] if name not in ("description", "default")
                    }
                    schema["anyOf"] = [{"type": "string"}, kept]
        when = definitions["PhraseAnswer"]["properties"]["when"]
        when["additionalProperties"] = {"anyOf": [{"type": "string"}, when["additionalProperties"]]}
        said = definitions["Phrases"]["properties"]["said"]["additionalProperties"]
        said["additionalProperties"] = {"anyOf": [{"type": "string"}, said["additionalProperties"]]}

    def content(self, section: Phrases) -> Any:  # noqa: ARG002
        """Return None: phrases shape neither scenarios nor a model's answers."""
        return None

    def check(self, space: Space) -> None:
        """Raise SpaceError for an unknown role or value, or a slot without content."""
        found: Phrases = space.sections[self.name]
        problems = [*find_problems(found, space)]
        if problems:
            raise SpaceError(space.name, f"{len(problems)} of its phrases cannot be said:", problems)

    def dimensions(self, section: Phrases) -> frozenset[str]:  # noqa: ARG002
        """Return none: no role sees a dimension through its phrases."""
        return frozenset()

    def describe(self, space: Space, examples: int) -> dict[str, Any]:
        """Return the persona's dimensions, and the number of steps of each role with some examples."""
        found: Phrases = space.sections[self.name]
        return {
            "persona": sorted(find_persona(space)),
            "unused_facts": find_unused_facts(found, space),
            "roles": {
                role: {
                    "steps": len(said.says),
                    "shown": [phrasings[0] for phrasings in said.says[:examples] if phrasings],
                }
                for role, said in found.roles.items()
            },
        }

    def render(self, facts: Mapping[str, Any]) -> Iterator[str]:
        """Yield a line per role."""
        for role, said in facts.get("roles", {}).items():
            yield f"{'phrases':20} {role} has {said['steps']} steps"
        if unused := facts.get("unused_facts"):
            shown = ", ".join(unused[:3]) + (" …" if len(unused) > 3 else "")
            yield f"{'phrases':20} {len(unused)} of their facts are about values that are not there: {shown}"

    def draw(self, space: Space, folder: Path, examples: int) -> tuple[int, Path]:  # noqa: ARG002
        """Raise UsageError: phrases have no pictures."""
        raise UsageError(f"{space.name}: phrases have no pictures.")


SECTION = PhrasesSection()
