"""`--metrics FILE`: figures in Prometheus' text format, for a node exporter's textfile collector.

The format is version 0.0.4 of Prometheus' documentation ("Exposition formats"): a family's HELP and TYPE, then its
samples. The file is replaced as a whole, so that whoever reads it never reads half of it.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from edgen.errors import UsageError
from edgen.files import Part, write_whole

Labels = Mapping[str, str]
LAST_SUCCESS = "edgen_last_success_time_seconds"
_MARK = b"# HELP edgen_"


class Families:
    """Figures by family, in the order in which these first came."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[str, str, list[str]]] = {}

    def add(
        self, name: str, kind: Literal["gauge", "counter"], about: str, value: float | None, labels: Labels
    ) -> None:
        """One sample; None is none. A family's `kind` and `about` are those of its first sample."""
        if value is None:
            return
        *_, samples = self._families.setdefault(name, (kind, about, []))
        written = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        samples.append(f"{name}{{{written}}} {_number(value)}")

    def add_line(self, name: str, kind: Literal["gauge", "counter"], about: str, line: str) -> None:
        """A sample as it was written before."""
        self._families.setdefault(name, (kind, about, []))[2].append(line)

    def text(self) -> str:
        lines: list[str] = []
        for name, (kind, about, samples) in self._families.items():
            help_ = about.replace("\\", r"\\").replace("\n", r"\n")
            lines += [f"# HELP {name} {help_}", f"# TYPE {name} {kind}", *samples]
        return "\n".join(lines) + "\n"


class MetricsFile:
    """The file. Raises UsageError where it cannot be written, or is somebody else's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last_success = self._check()

    def _check(self) -> str | None:
        """See that the file may be written; returns the line about the last success in the one that is there."""
        path, parent = self.path, self.path.parent
        if path.is_dir():
            raise UsageError(
                f"--metrics {path}: this is a folder; name a file in it, as in {path}/edgen.prom."
            )
        if not parent.is_dir():
            raise UsageError(f"--metrics {path}: {parent} is no folder; make it, or name a file elsewhere.")
        try:
            Part(path).discard()
        except OSError as problem:
            raise UsageError(
                f"--metrics {path}: {parent} cannot be written ({problem.strerror}); name a file elsewhere."
            ) from None
        try:
            kind = path.stat().st_mode
            before = path.read_bytes() if stat.S_ISREG(kind) else None  # a pipe could be read for ever
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise UsageError(f"--metrics {path}: it cannot be read ({problem.strerror}).") from None
        if before is None or (before and not before.startswith(_MARK)):
            raise UsageError(
                f"--metrics {path}: this is no metrics file of edgen, and is left as it is; name another file."
            )
        found = re.search(rb"^%s\{[^\n]*$" % LAST_SUCCESS.encode(), before, re.MULTILINE)
        return None if found is None else found[0].decode(errors="replace")

    def write(self, families: Families) -> str | None:
        """Replace the file; returns why that could not be done, if it could not."""
        try:
            # Its temporary name ends in no .prom, which would be read; a disk is not waited for.
            write_whole(self.path, families.text(), sync=False)
        except OSError as problem:
            return problem.strerror or str(problem)
        return None


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
