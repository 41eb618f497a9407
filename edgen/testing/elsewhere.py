"""Work of checks in another process, in which Python orders sets otherwise. A resumed run is such a
process."""

from __future__ import annotations

import functools
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

from edgen.core.errors import EdgenError
from edgen.runtime.processes import Processes


def run_elsewhere(work: Callable[..., bytes], *given: Any) -> bytes | None:
    """Return what `work`, a function of a module, returns in another process. Return None if that process
    cannot import an argument, such as an object of a class inside of a function, or if it fails there."""
    try:
        pickled = pickle.dumps((work, given))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    try:
        (found,) = _start_process(tuple(sys.path)).iterate_results([functools.partial(_call, pickled)])
    except (EdgenError, RuntimeError):
        return None
    return bytes(found)


@functools.cache
def _start_process(path: tuple[str, ...]) -> Processes:
    """Return a process that imports from these folders. It ends with this process."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, path)), "PYTHONHASHSEED": seed}
    return Processes(1, environ={**os.environ, **variables})


def _call(pickled: bytes) -> bytes:
    work, given = pickle.loads(pickled)  # noqa: S301 - from the process that started this one
    return bytes(work(*given))
