"""The kind of folders that hold machines: jobs name them like files."""

from __future__ import annotations

from edgen.plugin.errors import FileError
from edgen.plugin.files import FolderKind


class MachineError(FileError):
    """An unusable folder of a state machine."""

    what = "machine"


KIND = FolderKind("machines", "machine.yaml", "machine", MachineError)
