"""Options of `edgen pairs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

ByOption = Annotated[
    Literal["oracle", "probability", "human"] | None,
    typer.Option(help="Who labels: a judge model, the conversations' own probabilities, or votes."),
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        metavar="[JOB:]ROLE",
        help="The backend that judges: a role of the run's job, or of another job file.  [default: judge, else default]",
    ),
]
PromptOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The judge's template.  [default: the job's, else oracle_guarded or oracle_roles]",
    ),
]
HumanOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="People's votes, one a line; they are kept with the run."),
]
MarginOption = Annotated[
    float | None, typer.Option(metavar="M", min=0, max=1, help="Leave out pairs less clear than this.")
]
MostOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Keep the N clearest pairs of each scenario.")
]
ReportOption = Annotated[
    bool, typer.Option("--report", help="Position and length bias, agreement, calibration.")
]
