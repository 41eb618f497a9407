"""`edgen stats`: measures of a data set: a run, arm by arm, or anybody's files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.output import print_value
from edgen.evaluation.options import StatsOptions

PathsArgument = Annotated[
    list[Path],
    Argument(
        metavar="PATH...",
        help="Runs, folders of shards, or files of records; several paths are one data set.",
        autocompletion=complete.runs,
    ),
]


class StatsCommand(o.SeveralWords):
    """The command `edgen stats`. In `--only overview lengths RUN`, the first word that is neither a measure
    nor close to one is a path."""

    option = "--only"

    def takes(self, word: str) -> bool:
        from edgen.core.registry import list_names
        from edgen.core.yaml_values import suggest_name

        known = list_names("measure")
        words = [part.strip() for part in word.split(",")]
        if any(part in known for part in words):
            return True
        return not Path(word).exists() and any("did you mean" in suggest_name(part, known) for part in words)


COMMAND = StatsCommand  # see cli/app


def command(
    paths: PathsArgument,
    options: StatsOptions,
    dry_run: o.DryRunOption = False,
    json: o.JsonOption = False,
) -> None:
    """Measure a run or data files: lengths, diversity, leakage and more.

    A run with arms is measured arm by arm. --json has the definition of every measure, with its source.

    Measures of the run's own job are included if you agree to run their files. `--measure ./mine.py:words`
    adds your own function: docs/write_your_template.md has one.

    Example: edgen stats conversations_train*.json conversations_eval.json --only diversity leakage
    """
    from edgen.api.stats import estimate_judge, load_measures, measure
    from edgen.cli.control import make_control
    from edgen.evaluation.measuring import describe_as_json, render
    from edgen.runtime.options import WorkOptions

    control = make_control(WorkOptions(trust_hosts=options.trust_hosts), trust_code=options.trust_code)
    options = load_measures(paths, options, control)
    if dry_run:
        needs = estimate_judge(paths, options, control)
        print_value(needs, needs.lines(), json=json)
        return
    found = measure(paths, options, control)
    each = () if json else [[*render(quality, options.only)] for quality in found.values()]
    lines = [line for part in each for line in ("", "═" * 78, "", *part)][3:]
    print_value(describe_as_json(found), lines, json=json)
    for quality in found.values():
        for fault in quality.faults.values():
            raise fault
