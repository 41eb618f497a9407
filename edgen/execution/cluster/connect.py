"""Connection to a Ray cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from edgen.core.errors import EdgenError, InputError, ProviderError, SignalError, UsageError
from edgen.core.system import ALARM, ENDING_SIGNALS
from edgen.core.text import quantity, shorten

_START = "Start one with `ray start --head`, with the same versions of Ray and Python as here."
_PORTS = (
    "Give the port of `ray start --head`, 6379 unless you chose another; 8265 is the dashboard's, 10001 "
    "Ray Client's."
)
_FOLDER = (
    "Its files are in RAY_TMPDIR, else in TMPDIR: set one to a folder with a short name, as in TMPDIR=/tmp."
)
_STORE = 128 * 1024 * 1024  # bytes of Ray's shared memory, which edgen's messages do not use
_SHARED = Path("/dev/shm")  # noqa: S108 - where Ray keeps it on Linux
_PATIENCE = 10.0  # seconds to connect; Ray itself would try for minutes
_MOST_PER_CORE = 16  # maximum workers per core of a cluster on this machine; each takes some 150 MB
_CONNECTING = 120.0  # seconds for Ray to connect to a head
_GREETING = 30.0  # seconds for the first bytes from a head, which may be busy
_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # HTTP/2's first frame, in both directions; 4 is its type
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS
_AGAIN = 0.2  # seconds until a swallowed signal during Ray's start is raised again
_SECOND = 0.01  # share of a core for each worker of a further session: it uses the first session's cores


class ClusterConnection(contextlib.AbstractContextManager["ClusterConnection"]):
    """A connection to the cluster at an address; an empty address starts a cluster on this machine, with room
    for `workers` workers. Connections of one process share one. If the process is already connected to a
    cluster, they use that connection and leave it open.

    `cores`: number of the cluster's cores. `host`: address of this node for other nodes. `share`: share of a
    core that each worker claims. `address`: the cluster's address for other processes.

    Entering raises InputError if Ray is not installed; UsageError for an invalid address or too many workers
    for this machine; ProviderError if no cluster answers or it has another version; SignalError for a signal
    meanwhile.
    """

    _open: ClassVar[int] = 0
    _foreign: ClassVar[bool] = False  # the Python API's caller connected before, so the connection stays open

    def __init__(self, address: str, workers: int = 1) -> None:
        self._address, self._workers = address, workers
        self.cores, self.host, self.share, self.address = 1, "127.0.0.1", 1.0, address

    def __enter__(self) -> ClusterConnection:
        require_ray()
        import ray

        if ClusterConnection._open:
            self.share = _SECOND
        elif ray.is_initialized():
            _require_address(self._address)
            ClusterConnection._foreign = True
        else:
            _connect(self._address, self._workers)
            ClusterConnection._foreign = False
        ClusterConnection._open += 1
        resources: Any = ray
        self.cores = max(1, int(resources.cluster_resources().get("CPU", 1)))
        self.address = ray.get_runtime_context().gcs_address
        if self._address or ClusterConnection._foreign:
            self.host = ray.util.get_node_ip_address()
        return self

    def __exit__(self, *_: object) -> None:
        ClusterConnection._open -= 1
        if not ClusterConnection._open and not ClusterConnection._foreign:
            import ray

            ray.shutdown()
            _drop_token()


def describe_few_cores(cores: int, workers: int) -> str:
    """Return a sentence if a cluster has fewer cores than workers, which take one each; else an empty
    text."""
    if workers <= cores:
        return ""
    return (
        f"The cluster has {quantity(cores, 'core')}, and each of {workers} workers takes one. The others wait "
        "for nodes that join."
    )


def require_ray() -> None:
    """Raise InputError if Ray is not installed."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A busy machine needs more than the usual 30 s.
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "180")
    try:
        import ray  # noqa: F401 - checks that it is installed
    except ImportError:
        raise InputError("--on ray needs the extra `ray`: pip install 'edgen-dialogues[ray]'.") from None


def knock(address: str) -> None:
    """Check an address before Ray does, which would try for minutes. Raises UsageError for an invalid
    address, ProviderError if nothing answers there in HTTP/2, as Ray does."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "@" in host:
        raise UsageError(
            f"--on ray://{address}: write a host and the port of its head, as in ray://10.0.0.1:6379."
        )
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _PATIENCE) as talk:
            if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
                return
            talk.settimeout(_GREETING)
            talk.sendall(_HELLO)
            answer = talk.recv(len(_SETTINGS))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProviderError(f"No Ray cluster answers at {address} ({reason}). {_START}") from None
    if answer[3:4] != _SETTINGS[3:4]:
        raise ProviderError(f"Something else than the head of a Ray cluster answers at {address}. {_PORTS}")


def require_shared_memory(folder: Path = _SHARED, size: int = _STORE) -> None:
    """Check that Ray can make its file of `size` bytes in the folder of shared memory, which it would try for
    minutes. Raises ProviderError.

    Ray uses its folder of temporary files if this folder is missing or has less free space.
    """
    if not folder.is_dir():
        return
    try:
        if shutil.disk_usage(folder).free < size:
            return
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(size)
    except OSError as error:
        raise ProviderError(
            f"Ray cannot start on this machine: it cannot make a file of {size // 2**20} MiB in {folder} "
            f"({error.strerror}). Make this folder writable, and raise the limit of files' sizes if there is one."
        ) from None


def _require_address(address: str) -> None:
    """Raise UsageError if this process is connected to another cluster than the one at an address. An empty
    address fits any cluster."""
    import ray

    known = ray.get_runtime_context().gcs_address
    if address and address != known:
        raise UsageError(
            f"This process is connected to the Ray cluster at {known} already. Leave the address out to use that "
            "one, or call ray.shutdown() before."
        )


def _connect(address: str, workers: int) -> None:
    import ray

    if not address and workers > (most := _MOST_PER_CORE * (os.cpu_count() or 1)):
        raise UsageError(
            f"{workers:,} workers are too many for this machine; it can have {most}, {_MOST_PER_CORE} for each "
            "core. One for each core is usual."
        )
    # Ray prints workers' logs on stdout, even without `log_to_driver`; stdout is for results.
    vars(ray._private.worker)["_worker_logs_enabled"] = False
    try:
        own = {
            "object_store_memory": _STORE,
            "include_dashboard": False,
            "num_cpus": max(workers, os.cpu_count() or 1),
        }
        local: dict[str, Any] = {} if address else own
        if not address:
            require_shared_memory()
            _set_token()
        with _end_on_failure(), _raise_signals(_CONNECTING if address else None), _silence(logging.ERROR):
            if address:
                knock(address)
            ray.init(
                address=address or "local",
                **local,
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=False,
            )
    except _Interrupted as interrupted:
        if interrupted.number == ALARM:
            raise ProviderError(
                f"No head of a Ray cluster answers at {address} within {_CONNECTING:.0f} s. {_PORTS}"
            ) from None
        raise SignalError(interrupted.number, "Interrupted. Nothing was begun.") from None
    except SystemExit:  # raised by Ray's own signal handler
        raise SignalError(signal.SIGTERM, "Interrupted. Nothing was begun.") from None
    except EdgenError:
        raise
    except Exception as error:  # noqa: BLE001 - Ray raises bare Exceptions
        said = shorten(" ".join(str(error).split()), 300).rstrip(".")
        if address:
            raise ProviderError(f"No Ray cluster can be used at {address}: {said}. {_START}") from None
        raise ProviderError(f"Ray cannot start on this machine: {said}. {_FOLDER}") from None


_OWN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _set_token() -> None:
    """Give a cluster on this machine a token, unless the environment sets how Ray authenticates. Otherwise
    Ray would write a token to the home folder, which may be read-only, and print a warning."""
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ |= _OWN
        _read_token()


def _drop_token() -> None:
    """Remove the token of a cluster on this machine, so that connections to others do not use it."""
    if os.environ.get("RAY_AUTH_TOKEN") == _OWN["RAY_AUTH_TOKEN"]:
        for name in _OWN:
            os.environ.pop(name, None)
        _read_token()


def _read_token() -> None:
    """Make Ray read its authentication from the environment again."""
    import ray

    raylet: Any = ray._raylet
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()


class _Interrupted(BaseException):
    """A signal or a time-out during Ray's start, which blocks the event loop."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def _raise_signals(limit: float | None) -> Iterator[None]:
    """Raise `_Interrupted` for signals that have handlers, and after `limit` seconds; restore the handlers
    afterwards. Ray's own handler for SIGTERM would end the process without a clean stop. If hooks of a fork
    swallow the exception, it is raised again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    came: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        if number != ALARM or not came:
            came.append(number)
        if ALARM is not None:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        raise _Interrupted(came[0])

    report = sys.unraisablehook
    sys.unraisablehook = lambda said: None if said.exc_type is _Interrupted else report(said)
    for number, handler in before.items():
        if callable(handler) and handler is not signal.default_int_handler:
            signal.signal(number, interrupt)
    if ALARM is not None:
        before[ALARM] = signal.signal(ALARM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, limit or 0)
    try:
        yield
    finally:
        if ALARM is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
        sys.unraisablehook = report


@contextlib.contextmanager
def _silence(level: int) -> Iterator[None]:
    """Silence Ray's log below a level: its hints address users of Ray."""
    log = logging.getLogger("ray")
    before = log.level
    log.setLevel(level)
    try:
        yield
    finally:
        log.setLevel(before)


@contextlib.contextmanager
def _end_on_failure() -> Iterator[None]:
    """End Ray, and all processes that it has started, if its start fails or is interrupted."""
    import psutil  # type: ignore[import-untyped]  # comes with Ray

    process = psutil.Process()
    before = {*process.children(recursive=True)}
    try:
        yield
    except BaseException:
        import ray

        started = {*process.children(recursive=True)} - before
        with contextlib.suppress(Exception):
            ray.shutdown()
        for one in started:
            with contextlib.suppress(psutil.Error):
                one.kill()
        raise
