"""Connection to a Ray cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from typing import Any

from edgen.core.errors import InputError, ProviderError, UsageError

_START = "Start one with `ray start --head`, with the same versions of Ray and Python as here."
_STORE = 128 * 1024 * 1024  # bytes of shared memory: messages are small


_PATIENCE = 10.0  # seconds for a connection: Ray itself tries for minutes


def _knock(address: str) -> None:
    """Raise UsageError for an invalid address, ProviderError if nothing listens there."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(
            f"--on ray://{address}: write a host and the port of its head, as in ray://10.0.0.1:6379."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProviderError(f"No Ray cluster answers at {address} ({reason}). {_START}") from None


@contextlib.contextmanager
def connected(address: str) -> Iterator[int]:
    """Connect to the cluster at an address, empty for a new one on this machine; yield its CPU cores. Raises
    InputError if Ray is not installed, ProviderError if no cluster answers or it has another version."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault(
        "RAY_raylet_start_wait_time_s", "180"
    )  # a busy machine needs more than the usual 30
    try:
        import ray
    except ImportError:
        raise InputError("--on ray needs the extra `ray`: pip install 'edgen-dialogues[ray]'.") from None
    if address:
        _knock(address)
    # Ray prints news of workers on stdout, even without `log_to_driver`; stdout is for results.
    vars(ray._private.worker)["_worker_logs_enabled"] = False
    try:
        local: dict[str, Any] = {} if address else {"object_store_memory": _STORE, "include_dashboard": False}
        ray.init(
            address=address or "local",
            **local,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
        )
    except Exception as error:  # noqa: BLE001 - Ray raises bare ones
        said = str(error).strip().partition("\n")[0].rstrip(".")
        raise ProviderError(
            f"No Ray cluster can be used at {address or 'this machine'}: {said}. {_START}"
        ) from None
    try:
        resources: Any = ray
        yield max(1, int(resources.cluster_resources().get("CPU", 1)))
    finally:
        ray.shutdown()
