"""A family with requirements on its space fits only such spaces."""

from __future__ import annotations

from typing import Any

import pytest

from edgen.core import resources
from edgen.plugin.families import FamilyBySpace
from edgen.space import load_space

pytestmark = pytest.mark.unit

SPACE = load_space(resources.find("preference_space", "broad"))
ROLES = tuple(role.name for role in SPACE.roles)


class Lessons(FamilyBySpace):
    """A family without records."""

    name = "lessons"
    schema = "dialogue"

    def record(self, recorded: Any) -> bytes:
        raise NotImplementedError

    def read(self, data: bytes) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("named", "fits"),
    [
        ({}, True),
        ({"space_dimensions": frozenset(SPACE.names[:1])}, True),
        ({"space_dimensions": frozenset({SPACE.names[0], "weather"})}, False),
        ({"space_roles": ROLES}, True),
        ({"space_roles": ROLES[::-1]}, False),
        ({"space_roles": ROLES[:1]}, False),
        ({"space_section": "no_such_section"}, False),
    ],
)
def test_a_space_fits_if_it_has_what_the_family_names(named: dict[str, Any], fits: bool) -> None:
    assert type("Mine", (Lessons,), named)().fits(SPACE) is fits
