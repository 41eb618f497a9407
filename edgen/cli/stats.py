"""`edgen stats`: what a data set is like, measured: a run, an arm at a time, or anybody's files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from edgen.cli.options import JsonOption, SetOption, SeveralWords, TrustOption
from edgen.cli.output import print_value


class Command(SeveralWords):
    """`--only overview lengths RUN`: the first word that is no measure, nor a misspelt one, is a path."""

    option = "--only"

    def takes(self, word: str) -> bool:
        from edgen.core.registry import names
        from edgen.core.yaml_values import nearest

        known = names("measure")
        words = [part.strip() for part in word.split(",")]
        if any(part in known for part in words):
            return True
        return not Path(word).exists() and any("did you mean" in nearest(part, known) for part in words)


def command(
    paths: Annotated[
        list[Path],
        Argument(
            metavar="PATH...",
            help="Runs, folders of shards, or files of records; several paths are one data set.",
        ),
    ],
    json: JsonOption = False,
    only: Annotated[
        list[str] | None,
        Option(metavar="MEASURE", help="Only these measures, one or several; `edgen plugins` lists them."),
    ] = None,
    judge: Annotated[
        int | None,
        Option(
            metavar="N",
            help="Have the job's judge read N conversations of the run (of each arm) for adherence; costs calls.",
        ),
    ] = None,
    set_: SetOption = None,
    trust_host: TrustOption = None,
) -> None:
    """Measure a data set: sizes, lengths, balance, diversity, duplicates, leakage, coverage, adherence and more.

    A run with arms is measured an arm at a time. Every definition, with its source, is in the output of --json.

    Example: edgen stats conversations_train*.json conversations_eval.json --only diversity leakage
    """
    from edgen.api.objects.results import Stats
    from edgen.api.stats import choose_measures, measure
    from edgen.cli.control import make_control
    from edgen.evaluation.measuring import render

    chosen, control = choose_measures(only), make_control(trust_host=trust_host)
    found = Stats(measure(paths, control, only=chosen, judge=judge, overrides=set_ or ()))
    each = [[*render(quality, chosen)] for quality in found.arms.values()]
    lines = [line for part in each for line in ("", "═" * 78, "", *part)][3:]
    print_value(found.as_json(), lines, json=json)
