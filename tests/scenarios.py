"""Scenarios of Education Dialogue's five dimensions, for tests."""

from __future__ import annotations

from edgen.core.values import Scenario
from edgen.space.model import DIMENSIONS, five_list_scenario


def scenario_of(index: int, *values: str, subject: str | None = None, level: str | None = None) -> Scenario:
    """The scenario of a topic, the student's preference and reaction, and the teacher's."""
    return five_list_scenario(index, dict(zip(DIMENSIONS, values, strict=True)), subject, level)
