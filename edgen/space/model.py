"""A space as immutable values: dimensions with entries, and roles with their views.

Sections are parts of a space that domains add (`SpaceSection`). A domain can name dimensions by a layout
(`edgen.core.space_layouts`); a file with such dimensions may list values only.

A `Scene` is the simulator's knowledge of a scenario besides its prompt. A model never sees it: a request to a
role holds only what that role sees.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from edgen.core import registry
from edgen.core.errors import Problem
from edgen.core.pictures import PromptPicture, pictures_in
from edgen.core.space_layouts import find_layout, list_layouts
from edgen.core.text import compile_later
from edgen.core.values import Scenario
from edgen.space.knowledge import Knowledge
from edgen.space.phrases import NOTHING, PHRASES, Phrases, find_persona_among


class SpaceSection:
    """A section of space files."""

    name: ClassVar[str]
    """The section's key in the file."""
    help: ClassVar[str]
    """One sentence for the reference of space files."""
    shown: ClassVar[tuple[str, ...]] = ()
    """Names of template variables, beyond the dimensions, that roles see through the section."""
    structs: ClassVar[tuple[type[msgspec.Struct], ...]]
    """The structs of the section's values, for the JSON Schema of space files."""
    root: ClassVar[str]
    """The name of the outermost struct."""
    drawn: ClassVar[str] = ""
    """Help text of the option of `edgen space show` with the section's name, which sets how many examples are
    printed and drawn. Empty for a section without drawings."""

    @abstractmethod
    def read(self, value: Any, dimensions: Collection[str], problems: list[Problem]) -> Any:
        """Return the parsed section of a space with these dimensions; None if it is invalid, after adding its
        problems to `problems`."""

    def widen(self, definitions: dict[str, Any]) -> None:
        """Add the short forms that `read` accepts to the definitions of a JSON Schema."""

    @abstractmethod
    def content(self, section: Any) -> Any:
        """Return the part of a section that shapes conversations, as JSON-able values, for the space's
        digest; None if no part does."""

    def pictures(self, space: Space) -> Iterable[tuple[str, str]]:  # noqa: ARG002
        """Return the image files that the section names: (path in the space, name of the file)."""
        return ()

    def drawings(self, space: Space) -> Iterable[tuple[str, str, str]]:  # noqa: ARG002
        """Return the pictures that the section draws for models: (path in the space, name of a file, SVG)."""
        return ()

    @abstractmethod
    def check(self, space: Space) -> None:
        """Raise SpaceError if the section does not fit the rest of the space."""

    @abstractmethod
    def dimensions(self, section: Any) -> frozenset[str]:
        """Return the dimensions that roles see through the section."""

    @abstractmethod
    def describe(self, space: Space, examples: int) -> dict[str, Any]:
        """Return the facts for `edgen space show --json`, with this many examples."""

    @abstractmethod
    def render(self, facts: Mapping[str, Any]) -> Iterator[str]:
        """Yield the lines of these facts for `edgen space show`."""

    @abstractmethod
    def draw(self, space: Space, folder: Path, examples: int) -> tuple[int, Path]:
        """Draw this many examples into a new folder. Return the number of pictures, and the page with them.

        Raises UsageError if the section has no pictures or the folder is not empty.
        """


def list_section_names() -> list[str]:
    """Return the keys of sections that space files may have."""
    return registry.list_names("space_section")


def find_section(name: str) -> SpaceSection:
    """Return the section with this key. Raises PluginError for an unknown one."""
    found: SpaceSection = registry.find("space_section", name)
    return found


def iterate_sections(space: Space) -> Iterator[tuple[SpaceSection, Any]]:
    """Yield each section of a space, with its content."""
    for name, content in space.sections.items():
        yield find_section(name), content


Combination = dict[str, tuple[str, ...]]  # a scenario has one of these values of each of these dimensions


class Entry(msgspec.Struct, frozen=True):
    """One value of a dimension. `weight` is relative to the dimension's other entries. `fields` are further
    fields of the entry. With `when`, the entry occurs only with these values of other dimensions."""

    value: str
    weight: float = 1.0
    fields: dict[str, Any] = {}
    when: Combination = {}


class Dimension(msgspec.Struct, frozen=True):
    """A dimension of scenarios. Templates use `name`, people read `label`."""

    name: str
    entries: tuple[Entry, ...]
    label: str | None = None

    @property
    def words(self) -> str:
        """The label, or else the name with blanks for underscores."""
        return self.label or self.name.replace("_", " ")

    @property
    def values(self) -> tuple[str, ...]:
        """The values in order."""
        return tuple(entry.value for entry in self.entries)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of all fields of the entries, in order of first appearance."""
        return tuple(dict.fromkeys(name for entry in self.entries for name in entry.fields))

    def find_entry(self, value: str) -> Entry:
        """Return the first entry with a value, which must exist."""
        return next(entry for entry in self.entries if entry.value == value)


class SpaceRole(msgspec.Struct, frozen=True):
    """A speaker in a space's conversations, and the dimensions that it sees."""

    name: str
    sees: tuple[str, ...]


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """A space that scenarios are drawn from."""

    name: str  # of the space
    description: str | None = None  # for people
    source: str | None = None  # origin of its values
    duplicates: Literal["refuse", "keep"] = "refuse"
    """With `keep`, a value may be listed more than once; each copy is a separate entry."""
    dimensions: tuple[Dimension, ...]  # in order
    roles: tuple[SpaceRole, ...]  # in order
    exclude: tuple[Combination, ...] = ()
    """Combinations that do not occur."""
    sections: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The sections of domains, by key (see `SpaceSection`)."""
    knowledge: Knowledge | None = None
    """The file of facts about the values."""
    pictures: Mapping[str, PromptPicture] = msgspec.field(default_factory=dict)
    """The pictures that entries and sections name, by the names of their files."""
    family: str | None = None
    """The family that a job names for its records; never in a space file. None: the first of edgen's own that
    fits."""

    def __getitem__(self, name: str) -> Dimension:
        for dimension in self.dimensions:
            if dimension.name == name:
                return dimension
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions in order."""
        return tuple(dimension.name for dimension in self.dimensions)

    @property
    def product(self) -> int:
        """The product of the dimensions' sizes: the number of cells if no cell is ruled out."""
        return math.prod(len(dimension.entries) for dimension in self.dimensions)

    @property
    def conditional(self) -> bool:
        """True if the space has conditions or exclusions."""
        return bool(self.exclude) or any(entry.when for one in self.dimensions for entry in one.entries)

    def replace_entries(self, name: str, entries: tuple[Entry, ...]) -> Space:
        """Return the space with other entries in one dimension."""
        dimensions = tuple(
            msgspec.structs.replace(one, entries=entries) if one.name == name else one
            for one in self.dimensions
        )
        return msgspec.structs.replace(self, dimensions=dimensions)


PICTURE = "picture"  # a field with an image file; the variable with the first picture of a scenario


def list_layout_roles(names: Collection[str] | None = None) -> tuple[SpaceRole, ...]:
    """Return the roles of the layout of a space with the dimensions `names`; empty without a layout. Without
    `names`, return the roles of edgen's own first layout."""
    layout = next(iter(list_layouts()), None) if names is None else find_layout(names)
    return () if layout is None else tuple(SpaceRole(role, sees) for role, sees in layout.roles.items())


def name_list(space: Space, dimension: str) -> str:
    """Return the key of a dimension's list in the layout of the space, or the dimension's name without a
    layout."""
    layout = find_layout(space.names)
    return dimension if layout is None else layout.lists.get(dimension, dimension)


def find_turn_templates(names: Collection[str] | None) -> Mapping[str, str]:
    """Return the shipped templates of turns in a space with the dimensions `names`, by role in lower case.
    Without `names`, return those of edgen's own first layout."""
    layout = next(iter(list_layouts()), None) if names is None else find_layout(names)
    return {} if layout is None else layout.templates


def list_usual_variables() -> tuple[str, ...]:
    """Return the scenario variables of all layouts, for a template without a space."""
    layouts = list_layouts()
    names = [one.name for layout in layouts for one in layout.dimensions]
    return tuple(dict.fromkeys(("index", *names, *(field for one in layouts for field in one.fields))))


def template_variables(space: Space, sees: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the variables of a template: all, or those of a role that sees the dimensions `sees`. The index
    comes first."""
    seen = [name for name in space.names if sees is None or name in sees]
    layout = find_layout(space.names)
    said = () if layout is None else [field for field, named in layout.fields.items() if named in seen]
    shown = (PICTURE,) if any(_has_pictures(space[name]) for name in seen) else ()
    return tuple(dict.fromkeys(("index", *seen, *said, *shown)))


def _has_pictures(dimension: Dimension) -> bool:
    return PICTURE in dimension.fields and any(
        pictures_in(str(entry.fields.get(PICTURE, ""))) for entry in dimension.entries
    )


def list_template_fields(space: Space) -> dict[str, tuple[str, ...]]:
    """Return the fields of entries, by dimension, as in `{{ topic.grade }}`."""
    return {dimension.name: dimension.fields for dimension in space.dimensions}


def find_phrases(space: Space) -> Phrases:
    """Return a space's phrases; empty ones if it has none."""
    found: Phrases = space.sections.get(PHRASES, NOTHING)
    return found


def find_persona(space: Space) -> frozenset[str]:
    """Return the dimensions that describe how a role is or behaves.

    These are the space's own list. Without a list: dimensions whose name or label says so, such as `tone`,
    `manner`, "How you write", a role as in `learner`, or its trait as in `tutor_move`.
    """
    declared = find_phrases(space).persona
    if declared is not None:
        return frozenset(declared)
    labels = {one.name: one.label or "" for one in space.dimensions}
    return find_persona_among(labels, [role.name for role in space.roles])


class SpaceBook:
    """A space as the simulator uses it, made once for a job."""

    def __init__(self, space: Space) -> None:
        self.space = space

    @cached_property
    def phrases(self) -> Phrases:
        """The space's phrases."""
        return find_phrases(self.space)

    @cached_property
    def persona(self) -> frozenset[str]:
        """The dimensions that describe how a role is."""
        return find_persona(self.space)

    @cached_property
    def labels(self) -> dict[str, str]:
        """The label of each dimension, for the middle of a sentence."""
        return {one.name: _fit_inside_sentence(one.name, one.label) for one in self.space.dimensions}

    @cached_property
    def persona_labels(self) -> frozenset[str]:
        """The labels of the dimensions in `persona`, as briefs write them."""
        return frozenset(self.space[name].words for name in self.persona)

    @cached_property
    def sees(self) -> dict[str, tuple[str, ...]]:
        """The dimensions that each role sees."""
        return {role.name: role.sees for role in self.space.roles}

    @cached_property
    def speaks(self) -> bool:
        """True if simulated talk follows the space's values; False if the simulator has its own talk for the
        layout."""
        layout = find_layout(self.space.names)
        if layout is None or not layout.simulated:
            return True
        return PHRASES in self.space.sections and bool(self.phrases.roles)

    @cached_property
    def facts(self) -> dict[str, str]:
        """A sentence of the knowledge file for each of its entries, by the entry's first text."""
        known = self.space.knowledge
        if known is None or not known.text:
            return {}
        value = known.value
        entries = (
            value if isinstance(value, list) else [{"key": key, "about": one} for key, one in value.items()]
        )
        return dict(_list_facts(entries))


def _list_facts(entries: Collection[Any]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        texts = (
            [one for one in entry.values() if isinstance(one, str) and one] if isinstance(entry, dict) else []
        )
        if len(texts) > 1:
            about = max(texts[1:], key=len)
            yield texts[0], f"{texts[0]}: {about}"


_CLAUSE = compile_later(r"(?:how|what|who|which|why|when|where|whether)\b", re.IGNORECASE)


def _fit_inside_sentence(name: str, label: str | None) -> str:
    """Return a label for the middle of a sentence, after an article. A clause is replaced by the dimension's
    name; an abbreviation keeps its capitals."""
    if label is None or _CLAUSE.match(label):
        return name.replace("_", " ")
    label = re.sub(r"(?i)^(?:the|an?) ", "", label)
    return label[:1].lower() + label[1:] if label[1:2].islower() else label


def _without_pictures(scenario: Scenario) -> Scenario:
    """Return the scenario without fields that are pictures, since nobody can say them."""
    fields = {
        name: {key: said for key, said in own.items() if key != PICTURE or not pictures_in(str(said))}
        for name, own in scenario.fields.items()
    }
    return msgspec.structs.replace(scenario, fields=fields)


class Scene:
    """A scenario and the role that speaks; None: one writer speaks for all roles. Scenes of the same space,
    scenario and role are equal, so that requests can be keys."""

    __slots__ = ("book", "role", "scenario")

    def __init__(self, book: SpaceBook, scenario: Scenario, role: str | None = None) -> None:
        self.book, self.role = book, role
        self.scenario = _without_pictures(scenario) if book.space.pictures else scenario

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scene) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, int, str | None]:
        return self.book.space.name, self.scenario.index, self.role

    def list_visible(self, role: str) -> tuple[str, ...]:
        """Return the dimensions that this role may mention: all that it sees."""
        return self.book.sees.get(role, tuple(self.scenario.values))
