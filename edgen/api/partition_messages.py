"""Messages between the command and the processes of its partitions."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgen.api.generate_options import GenerateOptions
from edgen.planning.load import JobSource
from edgen.providers.trust import Consents
from edgen.runtime.control import Control
from edgen.runtime.key_consent import Trust
from edgen.runtime.snapshot import Snapshot


class PartitionMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a partition: a note, its state, or its end."""

    note: str = ""  # for the log
    snapshot: Snapshot | None = None  # state of the partition
    done: bool = False  # it has ended; the fields below are set
    made: int = 0  # calls that it made now
    ended: str = ""  # the error's message; empty if all was made
    code: int = 0  # exit code
    reason: str = ""  # in one word


class PartitionWork:
    """The work of a partition: the job, the options, and the user's consents."""

    def __init__(self, source: JobSource, options: GenerateOptions, control: Control) -> None:
        self.source, self.options = source, options
        self.consents: Consents = control.trust.consents
        self.code: tuple[Path, ...] = tuple(control.trust.code)

    @property
    def trust(self) -> Trust:
        """The consents, as the process of a command has them."""
        trust = Trust(code=self.code)
        trust.consents = self.consents
        return trust
