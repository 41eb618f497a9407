"""The page: what was gathered, drawn and laid out. All text goes through Jinja's escaping, or matplotlib's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.report import arms, cover, outcome, talk
from edgen.report.model import Part, Picture, Report
from edgen.report.pictures import drawing
from edgen.report.text import (
    counted,
    dollars,
    listed,
    moment,
    named,
    number,
    percent,
    seconds,
    shortened,
    shown,
)

if TYPE_CHECKING:
    from jinja2 import Environment

GENERATOR = "edgen report"  # what tells an earlier report from anything else
_HERE = Path(__file__).parent
_MOST_VISITS = 20


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the page. `body` is the template's block that goes between pictures and definitions
    (or before the pictures), "" for none."""

    name: str
    title: str
    lead: str
    pictures: tuple[Picture, ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()
    body: str = ""
    body_first: bool = False


def page(report: Report) -> str:
    """The whole file, as HTML. The same report gives the same text."""
    with drawing():
        sections = list(_sections(report))
    environment = _environment()
    template = environment.get_template("report.html.j2")
    return template.render(
        report=report,
        parts=report.parts,
        whole=_whole(report.parts),
        sections=sections,
        tiles=_tiles(report),
        style=(_HERE / "report.css").read_text("utf-8"),
        generator=GENERATOR,
        asked=_asked(report),
        most_visits=_MOST_VISITS,
        visits=outcome.visits,
        equation=outcome.equation,
        side_by_side=arms.side_by_side(report.comparison) if report.comparison else None,
        compared=arms.compared(report.comparison) if report.comparison else "",
        dimensions=cover.dimensions(report.parts),
        all_values=cover.all_values,
        lost=cover.lost(report.parts),
    )


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        autoescape=True,
        loader=FileSystemLoader(_HERE),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_final,
    )
    made.filters.update(
        number=number, percent=percent, dollars=dollars, seconds=seconds, moment=moment, named=named,
        counted=counted, listed=listed, shortened=shortened,
    )  # fmt: skip
    return made


def _final(value: Any) -> Any:
    """Every text of the page, with what would be invisible in it written out."""
    from markupsafe import Markup

    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _sections(report: Report) -> Iterable[Section]:
    parts, name = report.parts, report.name
    definitions = {key: text for part in parts for key, text in part.quality.definitions.items()}

    def defined(*keys: str) -> tuple[tuple[str, str], ...]:
        return tuple((named(key), definitions[key]) for key in keys if key in definitions)

    yield Section(
        name="asked",
        title="What was asked, and what came",
        lead="Every conversation that was planned ends as exactly one of accepted, rejected or failed, or is pending.",
        pictures=(outcome.outcomes(parts, name), *outcome.refusals(parts, name)),
        body="asked",
        body_first=True,
    )
    yield Section(
        name="cost",
        title="Cost and time",
        lead="What the answers took, over all sessions; an answer that was stored is never paid for twice.",
        pictures=(*outcome.tokens(parts, name), *outcome.latencies(parts, name)),
        body="cost",
    )
    yield from _of_arms(report)
    if any(part.accepted for part in parts):
        yield from _of_data(parts, name, defined)
    yield Section(
        name="space",
        title="Coverage of the space",
        lead="Which cells of the preference space came, and whose conversations were lost on the way."
        + cover.drawn(parts),
        pictures=(*cover.maps(parts), *cover.survivors(parts)),
        definitions=defined("coverage"),
        body="space",
    )
    if report.chosen:
        yield Section(
            name="conversations",
            title=f"{counted(len(report.chosen), 'conversation')} to read",
            lead="Chosen to show the range, each with why. They are not a sample: what is extreme is rare.",
            body="conversations",
        )
    yield Section(
        name="refused",
        title="What was not accepted",
        lead="Every reason, with the first examples as the model wrote them.",
        body="refused",
    )
    yield Section(
        name="again",
        title="How to make it again",
        lead="The same job gives the same scenarios; a model may answer otherwise, a stored answer never.",
        body="again",
    )


def _of_arms(report: Report) -> Iterable[Section]:
    """The section about arms, for a run that has some."""
    if len(report.parts) < 2 and not report.missing:
        return
    found = report.comparison
    yield Section(
        name="arms",
        title="Arms side by side",
        lead=arms.lead(found),
        pictures=tuple(arms.forests(found)) if found else (),
        definitions=tuple((metric.title, metric.definition) for metric in found.metrics) if found else (),
        body="arms",
    )


def _of_data(parts: tuple[Part, ...], name: str, defined: Any) -> Iterable[Section]:
    """The sections about conversations, for a run that has some."""
    yield Section(
        name="shape",
        title="Length, balance and form",
        lead="How long the conversations are, who has how much of the talk, and what had to be mended.",
        pictures=tuple(talk.shapes(parts, name)),
        definitions=defined("overview", "lengths", "balance"),
    )
    yield Section(
        name="language",
        title="Variety of language",
        lead="Whether the conversations say the same things over and over.",
        pictures=tuple(talk.language(parts)),
        definitions=defined("diversity"),
    )
    yield Section(
        name="understanding",
        title="Did the student understand?",
        lead="The probability that each conversation states for it, by whether the two prefer the same way.",
        pictures=tuple(talk.understanding(parts)),
        definitions=defined("probability", "calibration"),
        body="understanding",
    )
    yield Section(
        name="behaviour",
        title="Do they keep to their scenarios?",
        lead="Whether the sides do what their descriptions say, and keep to themselves what the other must not know.",
        pictures=tuple(talk.behaviour(parts)),
        definitions=defined("adherence", "leaks", "answers"),
    )
    yield Section(
        name="sides",
        title="Duplicates and leakage",
        lead="What is there more than once, and what of the test side was to be seen in train.",
        pictures=tuple(talk.sides(parts)),
        definitions=defined("duplicates", "leakage"),
        body="sides",
    )


def _whole(parts: Iterable[Part]) -> dict[str, Any]:
    """The arms added up."""
    parts = list(parts)
    costs = [part.cost_usd for part in parts if part.cost_usd is not None]
    return {
        "planned": sum(part.planned for part in parts),
        "accepted": sum(part.accepted for part in parts),
        "pending": sum(part.pending for part in parts),
        "simulated": [part.label for part in parts if part.simulated],
        "made": sum(part.made for part in parts),
        "tokens": sum(part.prompt_tokens + part.completion_tokens for part in parts),
        "cost_usd": sum(costs) if costs else None,
        "refused": sum(reason.count for part in parts for reason in part.reasons),
    }


def _tiles(report: Report) -> list[tuple[str, str, str]]:
    """The figures at the top: (figure, what it is, a remark)."""
    parts = report.parts
    whole = _whole(parts)
    share = percent(whole["accepted"] / whole["planned"] if whole["planned"] else None)
    tiles = [
        (number(whole["accepted"]), "accepted", f"{share} of {number(whole['planned'])} planned"),
        (number(whole["refused"]), "rejected or failed", _most_common(parts)),
        (number(whole["tokens"]), "tokens", f"{counted(whole['made'], 'call')} answered"),
        (
            dollars(whole["cost_usd"]),
            "cost",
            "no price in the job" if whole["cost_usd"] is None else "all sessions",
        ),
    ]
    if len(parts) == 1:
        found = parts[0].quality
        mean = found.probability.all.mean
        if found.lengths.turns.n:
            turns, words = found.lengths.turns.median, found.lengths.words.median
            tiles.append((number(turns), "turns, median", f"{number(words)} words"))
        if mean is not None:
            tiles.append((number(mean.value, 2), "mean probability", "that the student understood"))
    else:
        tiles.append((number(len(parts)), "arms", ", ".join(shortened(part.label, 24) for part in parts[:4])))
    return tiles


def _most_common(parts: Iterable[Part]) -> str:
    reasons = [reason for part in parts for reason in part.reasons]
    if not reasons:
        return "nothing was lost"
    return f"most often {named(max(reasons, key=lambda reason: reason.count).reason)}"


def _asked(report: Report) -> list[tuple[str, str]]:
    """The facts of the job, for a table of two columns; where arms differ, what each has."""
    found: dict[str, dict[str, list[str]]] = {}
    for part in report.parts:
        for name, value in _facts(part.job):
            found.setdefault(name, {}).setdefault(value, []).append(part.label)
    return [
        (
            name,
            " · ".join(
                f"{value} ({listed(arms_)})" if len(values) > 1 else value for value, arms_ in values.items()
            ),
        )
        for name, values in found.items()
    ]


def _facts(job: dict[str, Any]) -> Iterable[tuple[str, str]]:
    resolved = job.get("resolved") or {}
    templates = (resolved.get("prompts") or {}).values() or [job.get("prompt") or ""]
    yield (
        "Scenarios",
        f"{_scenarios(job)}, drawn with seed {job['seed']}, design {job['design']}",
    )
    yield "Conversations of each", number(job["replicates"])
    yield "Space", _stem(resolved.get("space") or job["space"])
    yield "Protocol", str(job["protocol"])
    yield "Template", ", ".join(dict.fromkeys(map(_stem, templates)))
    yield (
        "Models",
        "; ".join(f"{role}: {', '.join(_backend(backend))}" for role, backend in job["backends"].items()),
    )
    yield "Asks", f"at most {number(job['asks'])} until an answer is a conversation"
    yield "Split", f"{percent(job['split']['test'], 0)} test, by {job['split']['by']}"


def _scenarios(job: dict[str, Any]) -> str:
    """How many; of a piece, which."""
    if piece := job.get("piece"):
        first, end, of = piece
        return f"{number(first)} to {number(end - 1)} of {number(of)}"
    return number(job["conversations"])


def _stem(name: str) -> str:
    return Path(name).stem


def _backend(backend: dict[str, Any]) -> Iterable[str]:
    """A service, its model and what shapes its answers."""
    yield str(backend["type"])
    for key in ("model", "temperature", "top_p", "max_tokens", "faults"):
        if backend.get(key) not in (None, ""):
            yield f"{key} {backend[key]}"
