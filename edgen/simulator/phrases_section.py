"""The section `phrases` of a space file, as the rest of edgen reads, checks and shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgen.plugin import Problem
from edgen.plugin.errors import SpaceError, UsageError
from edgen.plugin.files import convert, suggest_name
from edgen.space.model import SpaceSection
from edgen.space.phrases import (
    NAME,
    PhraseAnswer,
    Phrases,
    RolePhrases,
    find_problems,
    find_unused_facts,
    persona_of,
    with_lists,
)

if TYPE_CHECKING:
    from edgen.plugin import Space


class PhrasesSection(SpaceSection):
    """Sentences of the simulator, for a space's values."""

    name = NAME
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
        """Return None: phrases shape no scenario and no model's answer."""
        return None

    def check(self, space: Space) -> None:
        """Raise SpaceError for an unknown role or value, or a slot that nothing fills."""
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
            "persona": sorted(persona_of(space)),
            "unused_facts": find_unused_facts(found, space),
            "roles": {
                role: {"steps": len(said.says), "shown": [ways[0] for ways in said.says[:examples] if ways]}
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
