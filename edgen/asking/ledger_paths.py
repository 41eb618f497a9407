"""Paths of askers' ledgers: in a folder of a run, with a JSON file about the asker, or next to the file made
of the answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgen.asking.asker import Asker
from edgen.core.kept_files import refuse_links
from edgen.execution.session import Charged
from edgen.runtime.control import Control, explain_os_errors
from edgen.runtime.supervise import find_use_elsewhere
from edgen.store.locks import lock_for_writing
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from edgen.store.several_runs import open_together, refuse_duplicates


@dataclass(frozen=True, slots=True)
class AskerFolder:
    """A folder with askers' ledgers: a run's, locked by `open_for_work`, or one with files made of the
    answers."""

    folder: Path
    run: RunFolder | None = None

    def find_ledger(self, asker: Asker[Any, Any]) -> Path:
        """Return the path of an asker's ledger."""
        return self.folder / f"{asker.id}.db"

    def note(self, asker: Asker[Any, Any]) -> None:
        """Store the facts of an asker next to its ledger, in a run."""
        if self.run is not None:
            self.run.note(self.folder / f"{asker.id}.json", asker.facts)

    def find_use_elsewhere(self, own: Sequence[Path]) -> Iterable[Charged]:
        """Return the use of the same budget in other ledgers."""
        return () if self.run is None else find_use_elsewhere(self.run, *own)


@contextlib.contextmanager
def hold_ledger(path: Path) -> Iterator[None]:
    """Lock the ledger next to a file. Raises LockedError."""
    refuse_links(path.parent, [f"{path.name}{end}" for end in ("", "-wal", "-shm", "-journal", "-acked")])
    lock, taken = path.with_name(f".{path.name}.lock"), f"{path}: another process is using it"
    with explain_os_errors(path), lock_for_writing(lock, taken, "another name"):
        yield


@contextlib.contextmanager
def open_for_reading(run: Path, against: Sequence[Path] = ()) -> Iterator[RunReader]:
    """Open a run and keep others from changing it. With runs `against` it, they are read together, as arms.
    Raises RunError, UsageError and LockedError."""
    rundir = RunFolder(run).require()
    with rundir.lock_for_reading(), _read(run, against) as reader:
        yield reader


@contextlib.contextmanager
def open_for_work(
    run: Path, control: Control, unit: str, against: Sequence[Path] = ()
) -> Iterator[RunReader]:
    """Open a run for making `unit` (units in plural) and lock it. `against`: see `open_for_reading`. Raises
    RunError, UsageError and LockedError."""
    rundir = RunFolder(run).require()
    with explain_os_errors(run), rundir.lock_for_writing() as dead, _read(run, against) as reader:
        if dead is not None:
            control.note(f"{dead} was killed or crashed; its run is resumed.")
        control.begin(reader.name, unit, run)
        control.check_deadline()
        yield reader


@contextlib.contextmanager
def _read(run: Path, against: Sequence[Path]) -> Iterator[RunReader]:
    with contextlib.ExitStack() as stack:
        refuse_duplicates([run, *against])
        for other in map(RunFolder, against):
            other.require()
            stack.enter_context(other.lock_for_reading())
        yield stack.enter_context(open_together([run, *against]))
