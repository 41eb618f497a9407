"""A language model that is none: rehearsal, tests and benchmarks without a key or a network.

What it writes follows from the prompt and a seed and is marked as simulated wherever it goes; it is
not for training. `edgen.backends.simulator.server` offers the same over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgen.backends.base import Backend
from edgen.backends.simulator.backend import Simulator
from edgen.config import SimulatorConfig


def create(
    config: SimulatorConfig,
    *,
    timeout: float,
    connections: int,  # noqa: ARG001 - every backend is made alike; this one opens none
    environ: Mapping[str, str],  # noqa: ARG001
) -> Backend:
    """The embedded simulator. Raises InputError if `config.faults` cannot be read."""
    return Simulator(config, timeout=timeout)
