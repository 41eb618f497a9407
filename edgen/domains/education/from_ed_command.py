"""`edgen space from-ed`: released Education Dialogue files to a space file with observed frequencies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from typer import Argument

from edgen.cli.new_space import NewSpaceFile, SpaceName, print_new_space
from edgen.cli.options import DomainCommand, JsonOption
from edgen.core.options import Yes


class FromEdOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for making a space from released files."""

    output: NewSpaceFile = None
    name: SpaceName = None
    yes: Yes = False


def command(
    files: Annotated[list[Path], Argument(metavar="FILES", help="Released ED files: JSON lists of records.")],
    options: FromEdOptions,
    json: JsonOption = False,
) -> None:
    """Make a space from released Education Dialogue files.

    It has the values of the files and their frequencies.

    Example: edgen space from-ed conversations_train*.json -o my_space.yaml
    """
    from edgen.domains.education.from_ed import make_space_from_ed

    made = make_space_from_ed(files, options.output, options.name, force=options.yes)
    found = ", ".join(f"{count} {dimension.replace('_', ' ')}" for dimension, count in made.values.items())
    print_new_space(made, f"{made.records:,} records: {found}", options.output, json=json)


COMMAND = DomainCommand("from-ed", command=command)
