"""`edgen stats`: measures of a data set: a run, arm by arm, or anybody's files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.output import print_value
from edgen.core.options import On, Overrides, OwnMeasures, Processes, TrustCode, TrustHost, template

PathsArgument = Annotated[
    list[Path],
    Argument(
        metavar="PATH...",
        help="Runs, folders of shards, or files of records; several paths are one data set.",
        autocompletion=complete.runs,
    ),
]
OnlyOption = Annotated[
    list[str] | None,
    Option(
        metavar="MEASURE",
        help="Compute only these measures, one or several; `edgen list measures` explains them.",
        autocompletion=complete.measures,
    ),
]
AdherenceOption = Annotated[
    int | None,
    Option(
        metavar="N",
        help="Have the job's judge rate how well N conversations (of each arm) keep to their scenarios; "
        "costs calls.",
    ),
]


class StatsCommand(o.SeveralWords):
    """`--only overview lengths RUN`: the first word that is no measure, nor a misspelt one, is a path."""

    option = "--only"

    def takes(self, word: str) -> bool:
        from edgen.core.registry import names
        from edgen.core.yaml_values import suggest_name

        known = names("measure")
        words = [part.strip() for part in word.split(",")]
        if any(part in known for part in words):
            return True
        return not Path(word).exists() and any("did you mean" in suggest_name(part, known) for part in words)


COMMAND = StatsCommand  # see cli/app


def command(
    paths: PathsArgument,
    only: OnlyOption = None,
    adherence: AdherenceOption = None,
    prompt: Annotated[str | None, template("adherence_guarded")] = None,
    own: OwnMeasures = (),
    workers: Processes = 1,
    on: On = None,
    overrides: Overrides = (),
    trust_host: TrustHost = (),
    trust_code: TrustCode = (),
    dry_run: o.DryRunOption = False,
    json: o.JsonOption = False,
) -> None:
    """Measure a run or data files: lengths, diversity, leakage and more.

    A run with arms is measured arm by arm. --json has the definition of every measure, with its source.

    Measures of the run's own job are included if you agree to run their files. `--measure ./mine.py:words`
    adds your own function: docs/write_your_template.md has one.

    Example: edgen stats conversations_train*.json conversations_eval.json --only diversity leakage
    """
    from edgen.api.stats import choose_measures, estimate_judge, measure, split_names
    from edgen.cli.control import make_control
    from edgen.evaluation.measure_files import add_own_measures, load_measures, load_run_measures
    from edgen.evaluation.measuring import json_of, render
    from edgen.runtime.options import WorkOptions

    loaded = load_measures(own)
    control = make_control(WorkOptions(trust_host=trust_host), trust_code=trust_code)
    load_run_measures(paths, control, None if only is None else split_names(only))
    chosen = choose_measures(add_own_measures(only, loaded))
    if dry_run:
        needs = estimate_judge(
            paths, control, only=chosen, judge=adherence, prompt=prompt, overrides=overrides
        )
        print_value(needs, needs.lines(), json=json)
        return
    found = measure(
        *(paths, control),
        only=chosen,
        judge=adherence,
        prompt=prompt,
        overrides=overrides,
        workers=workers,
        on=on,
    )
    each = () if json else [[*render(quality, chosen)] for quality in found.values()]
    lines = [line for part in each for line in ("", "═" * 78, "", *part)][3:]
    print_value(json_of(found), lines, json=json)
    for quality in found.values():
        for fault in quality.faults.values():
            raise fault
