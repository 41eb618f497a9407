"""The page: collected contents, drawn, laid out and written atomically. Jinja and matplotlib escape all
text."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgen.core.files import write_lines
from edgen.core.page_parts import PAGE_PARTS, STYLE
from edgen.core.text import (
    escape_for_terminal,
    escape_invisible,
    format_dollars,
    format_duration,
    format_moment,
    join_list,
    number,
    percent,
    quantity,
    readable_name,
    shorten,
)
from edgen.evaluation.measuring import describe_faults, list_measures
from edgen.evaluation.views import list_tiles, show
from edgen.report import arm_pictures, run_pictures
from edgen.report.canvas import configure_drawing
from edgen.report.charts import count_folded_rows, draw, make_key
from edgen.report.gather import gather
from edgen.report.model import ArmReport, PairsReport, Report
from edgen.report.sections import group_tables, list_sections, merge_arms
from edgen.store.run_folder import RunFolder
from edgen.store.written_file import check_file

if TYPE_CHECKING:
    from jinja2 import Environment

_GENERATOR = "edgen report"
_MARK = f'<meta name="generator" content="{_GENERATOR}'.encode()  # sign of an earlier report
_HERE = Path(__file__).parent
_INTERVAL = re.compile(r"(\S+) (\(\S+ to \S+\).*)")
_MOST_SESSIONS = 20
_MOST_NAMED = 3  # most arms named for one value, and most values of one fact
_LONGEST_REMARK = 40  # most characters below a figure at the top


@dataclass(frozen=True)
class WrittenReport:
    """A written report."""

    path: Path  # path of the page
    size: int  # size in bytes
    pending: int  # conversations without an outcome
    accepted: int  # accepted conversations
    refused: int  # conversations rejected or failed
    missing: tuple[str, ...]  # arms without settled conversations
    uncompared: str | None  # reason why arms are not compared; None if they are
    unread_pairs: str | None  # reason why the run's pairs cannot be read; None if they can, or without pairs


def write_report(
    run: Path, output: Path | None = None, progress: Callable[[str], None] = lambda _: None
) -> WrittenReport:
    """Make the report of the run in the folder `run`: `report.html` in it, or the file `output`.

    An earlier report is replaced. Raises UsageError if another file is at its path or the file cannot be
    written, and the errors of `gather`. It never leaves a partial file.
    """
    RunFolder(run).require()
    path = RunFolder(run).report if output is None else output
    check_file(path, RunFolder(run), _MARK, "report")
    # locked until the file is complete, so that no process changes the run meanwhile
    with RunFolder(run).lock_for_reading():
        found = gather(run, progress)
        progress("drawing")
        text = render_page(found).encode()
        # the file may have changed since the first check
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
        unread_pairs=found.pairs if isinstance(found.pairs, str) else None,
    )


def render_page(report: Report) -> str:
    """Return the whole file as HTML. Equal reports give equal texts."""
    template = _make_environment().get_template("report.html.j2")
    with configure_drawing():
        return template.render(
            report=report,
            arms=report.arms,
            whole=_compute_totals(report.arms),
            sections=list(list_sections(report)),
            tiles=_list_tiles(report),
            style=STYLE.read_text("utf-8") + (_HERE / "report.css").read_text("utf-8"),
            generator=_GENERATOR,
            facts=list(_merge_facts(report.arms, _list_facts)),
            digests=list(_merge_facts(report.arms, lambda arm: _list_digests(arm.job, report.edgen))),
            costs=run_pictures.tabulate_costs(report.arms),
            notes=[*merge_arms(_list_notes(report.arms), [arm.label for arm in report.arms])],
            most_sessions=_MOST_SESSIONS,
            draw=draw,
            key_of=make_key,
            arm_values=list(arm_pictures.tabulate_values(report.comparison)) if report.comparison else [],
            pairs=None if isinstance(report.pairs, str) else report.pairs,
            bias_text=_render_bias(report),
            compared=arm_pictures.describe_comparison(report.comparison) if report.comparison else "",
        )


@functools.cache
def _make_environment() -> Environment:
    """Return the environment of the page's template, cached."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        loader=FileSystemLoader((_HERE, PAGE_PARTS)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escape,
    )
    environment.filters.update(
        number=number, percent=percent, dollars=format_dollars, seconds=format_duration, moment=format_moment,
            readable=readable_name,
        quantity=quantity, joined=join_list, shorten=shorten, grouped=group_tables,
            folded_rows=count_folded_rows,
        split_interval=_split_interval, with_code=_mark_code,
        as_facts=lambda table: zip(map(str.capitalize, table.head[1:]), table.rows[0][1:], strict=True),
    )  # fmt: skip
    return environment


def _split_interval(cell: str) -> tuple[str, str]:
    """Split a value and its interval, "(1.2 to 3.4) *", for a line break in a narrow column; "" without an
    interval."""
    found = _INTERVAL.fullmatch(cell)
    return (found[1], found[2]) if found else (cell, "")


def _mark_code(text: str) -> Any:
    """Return a sentence as HTML, with its parts in backquotes as code."""
    from markupsafe import Markup

    parts = escape_invisible(text).split("`")
    if len(parts) % 2 == 0:  # a lone backquote
        return text
    return Markup().join(
        Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts)
    )


def _escape(value: Any) -> Any:
    """Escape a text of the page, with invisible characters written out."""
    from markupsafe import Markup

    return escape_invisible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _compute_totals(arms: Iterable[ArmReport]) -> dict[str, Any]:
    """Return the totals over the arms."""
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


def _list_tiles(report: Report) -> list[tuple[str, str, str]]:
    """Return the figures at the top: (figure, name, remark)."""
    arms, whole = report.arms, _compute_totals(report.arms)
    share = percent(whole["accepted"] / whole["planned"] if whole["planned"] else None)
    cost = "no price in the job" if whole["cost_usd"] is None else "all sessions"
    tiles = [
        (number(whole["accepted"]), "accepted", f"{share} of {number(whole['planned'])} planned"),
        (number(whole["refused"]), "rejected or failed", _describe_top_reason(arms)),
        (number(whole["tokens"]), "tokens", f"{quantity(whole['made'], 'call')} answered"),
        (format_dollars(whole["cost_usd"]), "cost", cost),
    ]
    if isinstance(report.pairs, PairsReport):
        of = f"of {quantity(report.pairs.count, 'preference pair')}"
        tiles.append((number(report.pairs.labelled), "labelled pairs", of))
    if len(arms) > 1:
        names = ", ".join(arm.label for arm in arms)
        fits = len(names) <= _LONGEST_REMARK
        remark = names if fits else f"the first is {shorten(arms[0].label, _LONGEST_REMARK)}"
        return [*tiles, (number(len(arms)), "arms", remark)]
    quality = arms[0].quality
    for one in list_measures(quality.values):
        tiles += show(
            one, partial(list_tiles, one, quality.values[one.name]), tuple, quality.faults, "its tiles"
        )
    return tiles


def _describe_top_reason(arms: Iterable[ArmReport]) -> str:
    reasons = [reason for arm in arms for reason in arm.reasons]
    if not reasons:
        return "nothing was lost"
    return f"most often {readable_name(max(reasons, key=lambda reason: reason.count).reason)}"


def _render_bias(report: Report) -> str:
    """Return the text of `edgen pairs --report`."""
    from edgen.preferences.render import render

    pairs = report.pairs
    return (
        "" if pairs is None or isinstance(pairs, str) else "\n".join(render(pairs.bias, pairs.probability_of))
    )


def _list_notes(arms: Iterable[ArmReport]) -> Iterator[str]:
    """Yield the measures' notes on each arm's data."""
    for arm in arms:
        quality = arm.quality
        faults = [*describe_faults(quality.faults)]
        for text in faults:
            logging.getLogger("edgen").warning("edgen: %s", escape_for_terminal(text))
        for text in dict.fromkeys((*quality.notes, *faults)):
            yield f"{arm.label}: {text}" if arm.label else text


def _merge_facts(
    arms: Iterable[ArmReport], get: Callable[[ArmReport], Iterable[tuple[str, str]]]
) -> Iterator[tuple[str, str]]:
    """Yield facts of the arms by name, for a table of two columns. Different values have the names of their
    arms."""
    found: dict[str, dict[str, list[str]]] = {}
    for arm in arms:
        for name, value in get(arm):
            found.setdefault(name, {}).setdefault(value, []).append(arm.label)
    for name, values in found.items():
        if len(values) == 1:
            yield name, next(iter(values))
            continue
        if len(values) > _MOST_NAMED:
            yield name, f"{number(len(values))} values, listed in job.yaml below"
            continue
        most = max(map(len, values.values()))
        each = (
            f"{value} ({'all others' if most == len(labels) > _MOST_NAMED else join_list(labels)})"
            for value, labels in values.items()
        )
        yield name, " · ".join(each)


def _list_digests(job: dict[str, Any], edgen: str) -> Iterable[tuple[str, str]]:
    """Return the digests that identify the job of a run."""
    resolved = job.get("resolved") or {}
    yield "edgen", str(resolved.get("edgen", edgen))
    yield "seed", str(job["seed"])
    for name, key in (
        ("space, sha256", "space_sha256"), ("template, sha256", "template_sha256"),
        ("fingerprint", "fingerprint"),
    ):  # fmt: skip
        if resolved.get(key):
            yield name, str(resolved[key])


def _list_facts(arm: ArmReport) -> Iterable[tuple[str, str]]:
    """Yield the settings of the arm's job, as (name, value)."""
    job, status = arm.job, arm.status
    resolved = job.get("resolved") or {}
    templates = (resolved.get("prompts") or {}).values() or [job.get("prompt") or ""]
    yield "Scenarios", f"{_describe_scenarios(job)}, drawn with seed {job['seed']}, design {job['design']}"
    if status.planned != status.plan.asked:
        yield "Conversations", f"{number(status.plan.asked)} asked for, {number(status.planned)} planned"
    yield "Replicates", f"{quantity(job['replicates'], 'conversation')} of each scenario"
    yield "Space", Path(resolved.get("space") or job["space"]).stem
    yield "Protocol", str(job["protocol"])
    yield "Template", ", ".join(dict.fromkeys(Path(name).stem for name in templates))
    models = (f"{role}: {', '.join(_describe_backend(backend))}" for role, backend in job["backends"].items())
    yield "Models", "; ".join(models)
    yield "Asks", f"at most {number(job['asks'])} until an answer is a conversation"
    yield "Split", f"{percent(job['split']['test'], 0)} test, by {job['split']['by']}"


def _describe_scenarios(job: dict[str, Any]) -> str:
    """Describe the number of scenarios; for a piece of a run, its range."""
    if piece := job.get("piece"):
        first, end, of = piece
        return f"{number(first)} to {number(end - 1)} of {number(of)}"
    return number(job["conversations"])


def _describe_backend(backend: dict[str, Any]) -> Iterable[str]:
    """Yield a service, its model and the settings that shape its answers."""
    yield str(backend["type"])
    for key in ("model", "temperature", "top_p", "max_tokens", "faults"):
        if backend.get(key) not in (None, ""):
            yield f"{key} {backend[key]}"
