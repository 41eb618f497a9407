"""The page: what was gathered, drawn, laid out and written whole. All text is escaped, by Jinja or by matplotlib."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgen.core.files import write_lines
from edgen.core.text import (
    dollars,
    escape_invisible,
    join_list,
    moment,
    number,
    percent,
    quantity,
    readable_name,
    seconds,
    shorten,
)
from edgen.evaluation.measuring import measures
from edgen.report import arm_pictures, run_pictures
from edgen.report.canvas import drawing
from edgen.report.charts import draw
from edgen.report.gather import gather
from edgen.report.model import ArmReport, Report
from edgen.report.sections import sections
from edgen.store.run_folder import RunFolder, check_file

if TYPE_CHECKING:
    from jinja2 import Environment

_GENERATOR = "edgen report"
_MARK = (
    f'<meta name="generator" content="{_GENERATOR}'.encode()
)  # what tells an earlier report from anything else
_HERE = Path(__file__).parent
_MOST_SESSIONS = 20


@dataclass(frozen=True)
class WrittenReport:
    """Where a report is, its size in bytes, and what became of what was planned. `missing`: arms of which nothing
    is settled; `uncompared`: why arms are not compared."""

    path: Path
    size: int
    pending: int
    accepted: int
    refused: int
    missing: tuple[str, ...]
    uncompared: str | None


def write_report(
    run: Path, output: Path | None = None, progress: Callable[[str], None] = lambda _: None
) -> WrittenReport:
    """Make the report of the run in the folder `run`: `report.html` in it, or the file `output`.

    An earlier report is replaced. Raises UsageError if something else is there or the file cannot be written, and
    what `gather` raises; nothing is half written.
    """
    RunFolder(run).require()
    path = RunFolder(run).report if output is None else output
    check_file(path, RunFolder(run), _MARK, "report")
    with RunFolder(run).lock_for_reading():  # until the file stands: nobody makes the run anew below it
        found = gather(run, progress)
        progress("drawing")
        text = page(found).encode()
        # what was checked may be another file by now
        check_file(path, RunFolder(run), _MARK, "report")
        write_lines(path, [text])
    return WrittenReport(
        path=path,
        size=len(text) + 1,
        pending=sum(arm.status.pending for arm in found.arms),
        accepted=sum(arm.status.accepted for arm in found.arms),
        refused=sum(reason.count for arm in found.arms for reason in arm.reasons),
        missing=found.missing,
        uncompared=found.uncompared,
    )


def page(report: Report) -> str:
    """The whole file, as HTML. The same report gives the same text."""
    template = _environment().get_template("report.html.j2")
    with drawing():
        return template.render(
            report=report,
            arms=report.arms,
            whole=_totals(report.arms),
            sections=list(sections(report)),
            tiles=_tiles(report),
            style=(_HERE / "report.css").read_text("utf-8"),
            generator=_GENERATOR,
            facts=_job_facts(report),
            most_sessions=_MOST_SESSIONS,
            draw=draw,
            describe_sessions=run_pictures.describe_sessions,
            equation=run_pictures.equation,
            side_by_side=arm_pictures.side_by_side(report.comparison) if report.comparison else None,
            compared=arm_pictures.describe_comparison(report.comparison) if report.comparison else "",
        )


@functools.cache
def _environment() -> Environment:
    """What compiles the page's template, once."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        loader=FileSystemLoader(_HERE),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escape,
    )
    environment.filters.update(
        number=number, percent=percent, dollars=dollars, seconds=seconds, moment=moment, readable=readable_name,
        quantity=quantity, joined=join_list, shorten=shorten,
    )  # fmt: skip
    return environment


def _escape(value: Any) -> Any:
    """Every text of the page, with what would be invisible in it written out."""
    from markupsafe import Markup

    return escape_invisible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _totals(arms: Iterable[ArmReport]) -> dict[str, Any]:
    """The arms added up."""
    arms = list(arms)
    costs = [cost for arm in arms if (cost := arm.status.counts.cost_usd) is not None]
    return {
        "planned": sum(arm.status.planned for arm in arms),
        "accepted": sum(arm.status.accepted for arm in arms),
        "pending": sum(arm.status.pending for arm in arms),
        "simulated": [arm.label for arm in arms if arm.simulated],
        "made": sum(arm.status.counts.made for arm in arms),
        "tokens": sum(arm.tokens for arm in arms),
        "cost_usd": sum(costs) if costs else None,
        "refused": sum(reason.count for arm in arms for reason in arm.reasons),
    }


def _tiles(report: Report) -> list[tuple[str, str, str]]:
    """The figures at the top: (figure, what it is, a remark)."""
    arms, whole = report.arms, _totals(report.arms)
    share = percent(whole["accepted"] / whole["planned"] if whole["planned"] else None)
    cost = "no price in the job" if whole["cost_usd"] is None else "all sessions"
    tiles = [
        (number(whole["accepted"]), "accepted", f"{share} of {number(whole['planned'])} planned"),
        (number(whole["refused"]), "rejected or failed", _most_frequent(arms)),
        (number(whole["tokens"]), "tokens", f"{quantity(whole['made'], 'call')} answered"),
        (dollars(whole["cost_usd"]), "cost", cost),
    ]
    if len(arms) > 1:
        return [*tiles, (number(len(arms)), "arms", ", ".join(shorten(arm.label, 24) for arm in arms[:4]))]
    values = arms[0].quality.values
    return [*tiles, *(tile for measure in measures(values) for tile in measure.tiles(values[measure.name]))]


def _most_frequent(arms: Iterable[ArmReport]) -> str:
    reasons = [reason for arm in arms for reason in arm.reasons]
    if not reasons:
        return "nothing was lost"
    return f"most often {readable_name(max(reasons, key=lambda reason: reason.count).reason)}"


def _job_facts(report: Report) -> Iterator[tuple[str, str]]:
    """The facts of the job, for a table of two columns; where arms differ, what each has."""
    found: dict[str, dict[str, list[str]]] = {}
    for arm in report.arms:
        for name, value in _facts(arm.job):
            found.setdefault(name, {}).setdefault(value, []).append(arm.label)
    for name, values in found.items():
        each = (f"{value} ({join_list(labels)})" for value, labels in values.items())
        yield name, " · ".join(each if len(values) > 1 else values)


def _facts(job: dict[str, Any]) -> Iterable[tuple[str, str]]:
    resolved = job.get("resolved") or {}
    templates = (resolved.get("prompts") or {}).values() or [job.get("prompt") or ""]
    yield "Scenarios", f"{_scenarios(job)}, drawn with seed {job['seed']}, design {job['design']}"
    yield "Conversations of each", number(job["replicates"])
    yield "Space", Path(resolved.get("space") or job["space"]).stem
    yield "Protocol", str(job["protocol"])
    yield "Template", ", ".join(dict.fromkeys(Path(name).stem for name in templates))
    models = (f"{role}: {', '.join(_backend(backend))}" for role, backend in job["backends"].items())
    yield "Models", "; ".join(models)
    yield "Asks", f"at most {number(job['asks'])} until an answer is a conversation"
    yield "Split", f"{percent(job['split']['test'], 0)} test, by {job['split']['by']}"


def _scenarios(job: dict[str, Any]) -> str:
    """How many; of a piece, which."""
    if piece := job.get("piece"):
        first, end, of = piece
        return f"{number(first)} to {number(end - 1)} of {number(of)}"
    return number(job["conversations"])


def _backend(backend: dict[str, Any]) -> Iterable[str]:
    """A service, its model and what shapes its answers."""
    yield str(backend["type"])
    for key in ("model", "temperature", "top_p", "max_tokens", "faults"):
        if backend.get(key) not in (None, ""):
            yield f"{key} {backend[key]}"
