"""Pieces of work as tasks of a Ray cluster, a core each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from edgen.core.errors import ProviderError
from edgen.execution.cluster.connect import Connection


class RayTasks:
    """Tasks that call `run` with one of `given` each. `address`: of the cluster, empty for a new one here.
    Raises InputError if Ray is not installed, ProviderError if no cluster answers."""

    def __init__(self, address: str, run: Callable[[bytes], bytes], given: Sequence[bytes]) -> None:
        self._stack = contextlib.ExitStack()
        connection = self._stack.enter_context(Connection(address, len(given)))
        import ray

        remote: Any = ray.remote(num_cpus=connection.share, scheduling_strategy="SPREAD")(run)
        self._waiting = [remote.remote(one) for one in given]

    def results(self) -> list[bytes]:
        """Return what each returned. Raises ProviderError if a worker was lost."""
        import ray

        try:
            found: list[bytes] = ray.get(self._waiting)
        except ray.exceptions.RayError as error:
            said = str(error).strip().splitlines()[0]
            raise ProviderError(f"A worker of the cluster was lost: {said}") from None
        return found

    def end(self) -> None:
        """Leave the cluster, which ends the tasks."""
        self._stack.close()
