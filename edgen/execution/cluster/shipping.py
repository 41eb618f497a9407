"""Pickling of tasks for workers, with the user's functions by value.

A reader of a run is pickled as its path, and the worker opens the run's folder again. A worker that cannot
see the folder cannot take tasks about a run. It still makes calls, and the head runs the generators.
"""

from __future__ import annotations

import io
from typing import Any

from edgen.core import registry
from edgen.protocols.parts import Tasks
from edgen.store.ledger import LedgerReader
from edgen.store.run_reader import RunReader


def pack(tasks: Tasks) -> bytes:
    """Return tasks as bytes, with the functions that this process has added as measures."""
    from ray import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, RunReader):
                return RunReader, (value.rundir.path.absolute(), value.labels_of)
            if isinstance(value, LedgerReader):
                return LedgerReader, (value.path,)
            return super().reducer_override(value)

    names = [name for name in registry.list_names("measure") if registry.is_added("measure", name)]
    own = {name: registry.find("measure", name) for name in names}
    out = io.BytesIO()
    Pickler(out).dump((own, tasks))
    return out.getvalue()


def unpack(packed: bytes) -> Tasks:
    """Return the tasks, and register their measures in this process. Raises EdgenError if a run's folder is
    missing on this node, and any error of unpickling if a plugin is missing."""
    from ray import cloudpickle

    own, tasks = cloudpickle.loads(packed)
    for name, one in own.items():
        registry.add("measure", name, one)
    return tasks  # type: ignore[no-any-return]
