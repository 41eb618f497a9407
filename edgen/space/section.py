"""Sections of a space file that a domain adds, such as the exercises of tutoring.

A domain registers an object under the entry points `edgen.space_sections`; its name is the key in space
files. The parsed section is kept in `Space.sections` under that key.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from edgen.core import registry
from edgen.core.errors import Problem

if TYPE_CHECKING:
    from edgen.space.model import Space


class SpaceSection:
    """A section of space files."""

    name: ClassVar[str]
    """Its key in the file."""
    help: ClassVar[str]
    """One sentence for the reference of space files."""
    shown: ClassVar[tuple[str, ...]] = ()
    """Names of template variables that roles see through it, beyond the dimensions."""
    structs: ClassVar[tuple[type[msgspec.Struct], ...]]
    """The structs of its values, for the JSON Schema of space files."""
    root: ClassVar[str]
    """The name of the outermost struct."""

    @abstractmethod
    def read(self, value: Any, dimensions: Collection[str], problems: list[Problem]) -> Any:
        """Return the parsed section of a space with these dimensions; None if it is invalid, after adding to
        `problems`."""

    def widen(self, definitions: dict[str, Any]) -> None:
        """Add the short forms that `read` also accepts to the definitions of a JSON Schema."""

    @abstractmethod
    def content(self, section: Any) -> Any:
        """Return the part of a section that shapes conversations, as JSON-able values, for the space's
        digest."""

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
        """Draw this many examples into a new folder. Return the number of pictures, and the page that shows
        them.

        Raises UsageError if the section has no pictures or the folder is not empty.
        """


def section_names() -> list[str]:
    """Return the keys that space files may have beyond edgen's own."""
    return registry.names("space_section")


def section(name: str) -> SpaceSection:
    """Return the section with this key. Raises PluginError."""
    found: SpaceSection = registry.find("space_section", name)
    return found


def sections_of(space: Space) -> Iterator[tuple[SpaceSection, Any]]:
    """Yield each section of a space, with its content."""
    for name, content in space.sections.items():
        yield section(name), content
