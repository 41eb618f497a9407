"""Settings of people as a backend in a job."""

from __future__ import annotations

from typing import ClassVar

from edgen.config.backends import Forms
from edgen.core.durations import seconds
from edgen.plugin import BackendConfig, Text


class HumanConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="human"):
    """People, invited with `edgen web` or playing with `edgen play`. Limits, retries and budgets of services do
    not apply to them."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {"wait"}
    BY_PEOPLE: ClassVar[bool] = True

    model: Text = "person"
    """What records call whoever answers; no person's name."""
    forms: Forms | None = "auto"
    """How answers are requested: `auto` and `schema` give each field of an answer its own place on the page."""
    wait: Text = "1h"
    """How long a person who took a conversation may leave a request unanswered; then the conversation ends as
    rejected, with the reason `left`."""

    @property
    def seconds(self) -> float:
        """Return `wait` in seconds. Raises ValueError for another text."""
        return seconds(self.wait)
