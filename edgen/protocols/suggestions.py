"""Protocols and settings that error messages suggest, taken from the registered protocols."""

from __future__ import annotations

from collections.abc import Sequence

from edgen.config import Job, find_job_protocol
from edgen.config.job import RolesAndSettings
from edgen.core.registry import find_all, part_of
from edgen.protocols.base import SelfDescription, TurnByTurn
from edgen.space.model import SpaceRole


def list_branching() -> list[str]:
    """Return the names of the protocols for which a job may have the key `branch`."""
    return [one.name for one in find_all("protocol") if part_of(one, RolesAndSettings).branches]


def list_playable() -> list[str]:
    """Return the names of the protocols with agents that others can play (`TurnByTurn.stage`)."""
    parts = {one.name: part_of(one, TurnByTurn) for one in find_all("protocol")}
    return [name for name, part in parts.items() if type(part).stage is not TurnByTurn.stage]


def find_probability_setting(job: Job, roles: Sequence[SpaceRole]) -> str:
    """Return the setting of a job that makes conversations of these roles state a probability, as text; empty
    if its protocol has none."""
    setting = part_of(find_job_protocol(job), SelfDescription).probability_setting
    return setting.replace("{role}", roles[-1].name.lower())
