"""A sheet for people to label a run in."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgen.annotation.sheet import write_sheet
from edgen.api.annotating import resolve
from edgen.asking.options import AnnotateOptions
from edgen.asking.places import open_for_reading
from edgen.asking.units import choose_conversations
from edgen.core.errors import UsageError
from edgen.protocols.labelled_units import Asking
from edgen.runtime.control import explain_os_errors
from edgen.store.run_folder import RunFolder


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """A sheet that was written: how many units of how many conversations, and the labels that they can
    carry."""

    file: str
    unit: str
    units: int
    conversations: int
    labels: tuple[str, ...]
    several: bool


def make_sheet(run: Path, options: AnnotateOptions, path: Path) -> Sheet:
    """Write an empty sheet of a run's units, or of a sample, to a new file: JSON Lines by its suffix, else
    CSV.

    The sample is that of models. Raises UsageError, LabelSetError and RunError.
    """
    if options.by or options.people or options.gold is not None:
        raise UsageError("--sheet labels nothing; leave out --backend, --people and --gold.")
    rundir = RunFolder(run)
    rundir.require()
    labels, options = resolve(rundir, options)
    asking = Asking(labels=labels, unit=options.unit)
    with explain_os_errors(run), open_for_reading(run) as reader:
        sample = options.sample
        chosen = None if sample is None else choose_conversations(reader, reader.job.seed, sample)
        conversations = (
            reader.candidate(index, name)
            for index, names in reader.scenarios()
            for name in names
            if chosen is None or (index, name) in chosen
        )
        units, called = write_sheet(conversations, asking, path)
    return Sheet(
        file=str(path), unit=options.unit, units=units, conversations=called, labels=labels.names,
        several=labels.several,
    )  # fmt: skip
