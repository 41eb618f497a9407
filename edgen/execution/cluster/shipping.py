"""Tasks on their way to workers: pickled as a whole, with the user's functions among them by value.

A reader of a run opens the run's folder again where it arrives, so a worker that cannot see the folder cannot
take tasks about a run. It still makes calls; the head then runs the generators.
"""

from __future__ import annotations

import io
from typing import Any

from edgen.core import registry
from edgen.protocols.parts import Tasks
from edgen.store.ledger import LedgerReader
from edgen.store.run_reader import RunReader


def pack(tasks: Tasks) -> bytes:
    """Return tasks as bytes, with the functions that were made measures in this process."""
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
    """Return the tasks; the measures among them count in this process from now on. Raises EdgenError for a
    run's folder that is not here, and what unpickling raises without a plugin."""
    from ray import cloudpickle

    own, tasks = cloudpickle.loads(packed)
    for name, one in own.items():
        registry.add("measure", name, one)
    return tasks  # type: ignore[no-any-return]
