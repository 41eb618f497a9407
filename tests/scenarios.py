"""Scenarios of Education Dialogue's five dimensions, for tests."""

from __future__ import annotations

from edgen.core.values import Scenario
from edgen.domains.education.family import make_five_list_scenario
from edgen.domains.education.layout import DIMENSIONS as DIMENSIONS
from edgen.domains.education.layout import LAYOUT
from edgen.domains.education.layout import TOPIC_FIELDS as TOPIC_FIELDS
from edgen.space.model import list_layout_roles, list_usual_variables

LISTS = LAYOUT.lists
ROLES = list_layout_roles()
DEFAULT_VARIABLES = list_usual_variables()


def scenario_of(index: int, *values: str, subject: str | None = None, level: str | None = None) -> Scenario:
    """Return the scenario of a topic, the student's preference and reaction, and the teacher's."""
    return make_five_list_scenario(index, dict(zip(DIMENSIONS, values, strict=True)), subject, level)
