"""Base classes of plugins have the members that every object needs; others are in optional parts."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import msgspec
import pytest

import edgen.plugin
from edgen.core import registry
from edgen.core.plugin_checks import find_flaw, find_misplaced_names, list_names_of_part
from edgen.families import reader
from edgen.plugin import (
    BackendConfig,
    ConversationProtocol,
    Family,
    Provider,
    RecordContents,
    RequestFeatures,
)
from edgen.plugin.protocols import PlayedProtocol
from edgen.plugin.readers import DataSetReader
from edgen.protocols import base as protocols
from edgen.providers import base as providers
from edgen.testing import ConformanceError, check_provider

# With all optional methods in the base, these were 34, 24, 30, 31 and 27 names.
BASES: dict[type, tuple[tuple[type, ...], int]] = {
    Family: (reader.PARTS, 9),
    DataSetReader: (reader.PARTS, 6),
    ConversationProtocol: (protocols.PARTS, 9),
    PlayedProtocol: (protocols.PARTS, 12),
    Provider: (providers.PARTS, 4),
}


class MineConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="mine"):
    """The settings of a backend of this file."""


class MineProvider(Provider):
    """A minimal provider."""

    name = "mine"
    Config = MineConfig

    def create(self, config: Any, key: Any, link: Any) -> Any:
        raise NotImplementedError


class MineFamily(Family):
    """A minimal family."""

    name = "mine"
    schema = "dialogue"

    def fits(self, space: Any) -> bool:
        raise NotImplementedError

    def record(self, recorded: Any) -> bytes:
        raise NotImplementedError

    def read(self, data: bytes) -> Any:
        raise NotImplementedError


class MineProtocol(ConversationProtocol):
    """A minimal protocol."""

    name = "mine"

    def templates(self, job: Any, space: Any) -> Any:
        raise NotImplementedError

    def start(self, scenario: Any, replicate: Any, prompts: Any, rules: Any) -> Any:
        raise NotImplementedError

    def opening(self, scenario: Any, prompts: Any, rules: Any) -> Any:
        raise NotImplementedError

    def expected(self, job: Any, level: int) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("base", BASES)
def test_a_base_class_has_few_names(base: type) -> None:
    parts, most = BASES[base]
    names = list_names_of_part(base)
    assert len(names) <= most, sorted(names)
    for part in parts:
        assert issubclass(base, part) or not names & list_names_of_part(part)


@pytest.mark.parametrize("kind", [MineProvider, MineFamily, MineProtocol])
def test_a_minimal_plugin_has_few_names_and_no_flaw(kind: type) -> None:
    assert len([name for name in dir(kind) if not name.startswith("_")]) <= 9
    assert find_flaw(kind.__name__.removeprefix("Mine").lower(), kind()) is None


@pytest.mark.parametrize("parts", [reader.PARTS, protocols.PARTS, providers.PARTS])
def test_parts_are_few_and_share_no_name(parts: tuple[type, ...]) -> None:
    assert len(parts) <= 7
    for one, other in itertools.combinations(parts, 2):
        assert not list_names_of_part(one) & list_names_of_part(other), (one, other)


def test_a_plugin_finds_each_part_in_the_public_module() -> None:
    from edgen.plugin import families, readers
    from edgen.plugin import protocols as of_protocols
    from edgen.plugin import providers as of_providers

    homes = (edgen.plugin, readers, families, of_protocols, of_providers)
    for part in {*reader.PARTS, *protocols.PARTS, *providers.PARTS}:
        (home,) = (home for home in homes if part.__name__ in dir(home))
        assert getattr(home, part.__name__) is part


def test_edgens_own_objects_have_the_parts_whose_names_they_define() -> None:
    kinds = {
        "provider": providers.PARTS,
        "protocol": protocols.PARTS,
        "family": reader.PARTS,
        "reader": reader.PARTS,
    }
    for plugin in registry.list_all_plugins():
        found = registry.find(plugin.kind, plugin.name) if plugin.kind in kinds else None
        assert not [*find_misplaced_names(found, kinds.get(plugin.kind, ()))], plugin


class Seeing(MineProvider):
    sees_pictures = True


class Staged(MineFamily):
    """A family whose scenes edgen would ignore."""

    templates: ClassVar[dict[str, str]] = {}

    def scenes(self, space: Any) -> None:
        return None


class Branching(MineProtocol):
    branches = True

    def prepare(self, job: Any, space: Any) -> None:
        return None


@pytest.mark.parametrize(
    ("kind", "misplaced", "said"),
    [
        ("provider", Seeing(), "`sees_pictures`, which belongs to RequestFeatures; derive from it as well: class Seeing(RequestFeatures, MineProvider)"),
        ("family", Staged(), "`scenes`, which belongs to RecordContents; derive from it as well: class Staged(RecordContents, MineFamily)"),
        ("protocol", Branching(), "`branches`, which belongs to RolesAndSettings; derive from it as well: class Branching(RolesAndSettings, MineProtocol)"),
    ],
)  # fmt: skip
def test_a_name_of_a_part_without_the_part_is_a_flaw(kind: str, misplaced: object, said: str) -> None:
    assert find_flaw(kind, misplaced) == f"defines {said}"


def test_the_checks_for_packages_say_so() -> None:
    with pytest.raises(ConformanceError, match="provider 'mine': defines `sees_pictures`"):
        check_provider(Seeing())


def test_a_part_makes_the_name_count() -> None:
    class Right(RequestFeatures, MineProvider):
        sees_pictures = True

    class Shown(RecordContents, MineFamily):
        def scenes(self, space: Any) -> None:
            return None

    assert find_flaw("provider", Right()) is None
    assert find_flaw("family", Shown()) is None
    assert Right().picture_problem(msgspec.convert({"type": "mine", "model": "m"}, MineConfig)) is None
