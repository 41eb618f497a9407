"""The keys of a backend `type: simulator`."""

from __future__ import annotations

from typing import Annotated, ClassVar

from edgen.config.backends import BackendConfig, Text
from edgen.core.options import LatencyMs, Share, declare_faults

CHARS_PER_TOKEN = 4  # the usual rule of thumb for English; the simulator has no tokenizer


class SimulatorConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="simulator"):
    """The embedded simulator. `faults` like "refusal=0.02,429=0.1"; see `edgen simulator --help`."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {"latency_ms"}  # settings that shape no answer
    ALWAYS_SEEDED: ClassVar[bool] = True  # a repeated equal call gets a new answer, by its seed

    model: Text = "edgen-simulator"
    """The model's name in records."""
    faults: Annotated[str, declare_faults()] = ""
    """See `edgen simulator --list-faults`."""
    latency_ms: LatencyMs = 0.0
    planted: int | None = None
    """Seed of planted worths: each teacher turn adds a drawn value, by which judges answer; null: none."""
    confusion: dict[Text, dict[Text, Share]] | None = None
    """How often a labeller errs, as {Hint: {Question: 0.2}}; `*`: any; null: never."""
