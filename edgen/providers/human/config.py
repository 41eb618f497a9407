"""Settings of people as a backend in a job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, Self

import msgspec

from edgen.plugin import BackendConfig
from edgen.plugin.providers import Forms, Text, seconds


class HumanConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="human"):
    """People, invited with `edgen web` or playing with `edgen play`. Limits, retries and budgets of
    services do not apply to them."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {"wait", "consent", "before", "after"}
    """Settings that shape no answer."""
    FILES: ClassVar[Mapping[str, Literal["questionnaires", "text"]]] = {
        "consent": "text",
        "before": "questionnaires",
        "after": "questionnaires",
    }  # settings with paths of text files
    BY_PEOPLE: ClassVar[bool] = True  # limits, prices and retries of services do not apply
    ALWAYS_SEEDED: ClassVar[bool] = True  # each person gives a new answer, even to the same question

    model: Text = "human"
    """Name of all people in records."""
    forms: Forms | None = "auto"
    """`prose`: one text field; else an input per field."""
    wait: Text = "1h"
    """Time to answer. Then the `stand_in` continues, or the conversation is rejected (`left`)."""
    stand_in: Text | None = None
    """The backend that continues for a person who left; null: none."""
    consent: Text | None = None
    """A text file (.md, .txt) that people agree to first; null: none."""
    before: Text | None = None
    """A questionnaire (YAML) before the first conversation; null: none."""
    after: Text | None = None
    """A questionnaire (YAML) after each conversation; null: none."""

    def located(self, folder: Path) -> Self:
        """Return the settings with absolute paths of files."""
        named = {name: getattr(self, name) for name in self.FILES}
        placed = {name: str((folder / path).absolute()) for name, path in named.items() if path is not None}
        return msgspec.structs.replace(self, **placed)

    @property
    def others(self) -> tuple[str, ...]:
        """The name of the stand-in backend, if any."""
        return () if self.stand_in is None else (self.stand_in,)

    @property
    def seconds(self) -> float:
        """Return `wait` in seconds. Raises ValueError for another text."""
        return seconds(self.wait)
