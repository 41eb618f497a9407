"""`edgen compare`: arms of an experiment, runs of the same scenarios, or data sets, side by side with
intervals."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.output import print_value
from edgen.core.errors import UsageError
from edgen.core.options import OwnMeasures, RoleWords, TrustCode


class CompareCommand(o.SeveralWords):
    option = "--arms"


COMMAND = CompareCommand  # see cli/app


def command(
    runs: Annotated[
        list[Path] | None,
        Argument(
            metavar="PATH…",
            help="A run with arms, several runs of the same scenarios, or data sets.",
            autocompletion=complete.runs,
        ),
    ] = None,
    arms: Annotated[
        list[str] | None,
        Option(
            metavar="A B…",
            help="Compare only these arms; the first is the baseline. Put it after the runs.  [default: all]",
            autocompletion=complete.arms,
        ),
    ] = None,
    prompts: Annotated[
        bool, Option("--prompts", help="Show how the rendered prompts of the first scenario differ.")
    ] = False,
    role: RoleWords = (),
    output: Annotated[
        Path | None, o.output("FILE", "The result as JSON.  [default: RUN/comparisons/<a>-vs-<b>.json]")
    ] = None,
    own: OwnMeasures = (),
    trust_code: TrustCode = (),
    json: o.JsonOption = False,
) -> None:
    """Compare the arms of an experiment, or runs, with 95% intervals.

    The first arm or run is the baseline. Differences are paired by scenario. A * marks a difference that
    remains significant after Holm's correction for all tests.

    Any other path is a data set that `edgen stats` can read. It is compared as an independent sample, on the
    measures that apply to both.

    Example: edgen compare outputs/experiment --arms published json --prompts

    Example: edgen compare dataset.json outputs/quickstart --role Teacher=Tutor
    """
    from edgen.api.finished import compare_runs
    from edgen.cli.control import make_control
    from edgen.evaluation.comparison.render import render_comparison
    from edgen.evaluation.measure_files import load_measures, load_run_measures

    load_measures(own)
    control = make_control(trust_code=trust_code)
    load_run_measures(runs or [], control)
    comparison, file = compare_runs(
        runs or [], control, arms=arms or [], prompts=prompts, roles=_roles(role), output=output
    )
    lines = [*render_comparison(comparison, max(80, min(120, shutil.get_terminal_size().columns)))]
    if prompts and not comparison.prompts:
        lines.append("prompts    those of the first scenario are the same in all arms")
    if file is not None:
        lines.append(f"stored     {file}")
    print_value(comparison, lines, json=json)


def _roles(given: Sequence[str]) -> dict[str, str]:
    """Return the roles by the data sets' words for them. Raises UsageError."""
    found: dict[str, str] = {}
    for one in given:
        role, equals, word = (part.strip() for part in one.partition("="))
        if not (role and equals and word):
            raise UsageError(f"--role {one}: expected ROLE=WORD, as in --role Tutor=Agent.")
        found[word] = role
    return found
