"""Pieces of work as tasks of a Ray cluster, one core each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from edgen.core.errors import ProviderError
from edgen.execution.cluster.connect import ClusterConnection


class RayTasks:
    """Tasks that call `run` with pieces of work, `count` at once. `address`: of the cluster; empty for a new
    one on this machine. Raises InputError if Ray is not installed, ProviderError if no cluster answers."""

    def __init__(self, address: str, run: Callable[[bytes], bytes], count: int) -> None:
        self._stack = contextlib.ExitStack()
        connection = self._stack.enter_context(ClusterConnection(address, count))
        import ray

        self._remote: Any = ray.remote(num_cpus=connection.share, scheduling_strategy="SPREAD")(run)

    def begin(self, given: bytes) -> Callable[[], bytes]:
        """Begin a task with the bytes `given`; return a function that waits for its result. It raises
        ProviderError if the worker is lost."""
        return partial(_wait, self._remote.remote(given))

    def end(self) -> None:
        """Leave the cluster, which ends the tasks."""
        self._stack.close()


def _wait(task: Any) -> bytes:
    import ray

    try:
        found: bytes = ray.get(task)
    except ray.exceptions.RayError as error:
        said = str(error).strip().splitlines()[0]
        raise ProviderError(f"A worker of the cluster was lost: {said}") from None
    return found
