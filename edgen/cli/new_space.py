"""Options and output of commands that make a space file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from edgen.cli.output import note, print_value
from edgen.core.options import declare_name, declare_output

if TYPE_CHECKING:
    from edgen.space.new_file import NewSpace

NewSpaceFile = Annotated[Path | None, declare_output("FILE", "The space.  [default: stdout]")]
SpaceName = Annotated[str | None, declare_name(" [default: after the file]")]


def print_new_space(made: NewSpace, summary: str, output: Path | None, *, json: bool) -> None:
    """Print the new file's text if it is not written, then the remarks and the findings."""
    facts = {"records": made.records, "values": made.values, "notes": list(made.notes)}
    facts |= {"text": made.text, "file": None} if output is None else {"file": str(output)}
    print_value(facts, [] if output else [made.text.rstrip("\n")], json=json)
    for remark in made.notes:
        note(remark)
    note(f"{summary}; written to {output}" if output else summary)
