"""The sections of the page: what each is called, says and shows. What is measured, the measures show themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from edgen.core.text import quantity, readable_name
from edgen.evaluation.figures import Block, Picture
from edgen.evaluation.measure import ArmResult, Measure
from edgen.evaluation.measuring import measures
from edgen.report import arm_pictures, run_pictures
from edgen.report.model import ArmReport, Report

# What a measure's `section` is called, and what is said of it. Measures of other sections stand in the last one.
_MEASURED = {
    "shape": (
        "Length, balance and form",
        "How long the conversations are, who has how much of the talk, and what had to be mended.",
    ),
    "language": ("Variety of language", "Whether the conversations say the same things over and over."),
    "understanding": (
        "Did the student understand?",
        "The probability that each conversation states for it, by whether the two prefer the same way.",
    ),
    "behaviour": (
        "Do they keep to their scenarios?",
        "Whether the sides do what their descriptions say, and keep to themselves what the other must not know.",
    ),
    "labels": (
        "Labels",
        "What annotators say of turns and conversations, what follows what, and how far they agree.",
    ),
    "task": (
        "How the task went",
        "What a state machine offered and what was made of it: how conversations ended, what was said, what was never reached.",
    ),
    "duplicates": (
        "Duplicates and leakage",
        "What is there more than once, and what of the test side is in train too.",
    ),
    "space": (
        "Coverage of the space",
        "Which cells of the preference space came, and whose conversations were lost on the way.",
    ),
    "more": ("Further measures", "What installed packages measure."),
}


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the page: pictures, then other blocks, then what the template has of that name, then definitions."""

    name: str
    title: str
    lead: str
    pictures: tuple[Picture, ...] = ()
    blocks: tuple[Block, ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()


def sections(report: Report) -> Iterator[Section]:
    """All sections of the page, in order."""
    arms, found = report.arms, report.comparison
    yield Section(
        name="asked",
        title="What was asked, and what came",
        lead="Every conversation that was planned ends as exactly one of accepted, rejected or failed, or is pending.",
        pictures=(run_pictures.outcomes(arms), *run_pictures.rejections(arms)),
    )
    yield Section(
        name="cost",
        title="Cost and time",
        lead="What the answers took, over all sessions; an answer that was stored is never paid for twice.",
        pictures=(*run_pictures.tokens(arms), *run_pictures.latencies(arms)),
    )
    if len(arms) > 1 or report.missing:
        yield Section(
            name="arms",
            title="Arms side by side",
            lead=arm_pictures.lead(found),
            pictures=tuple(arm_pictures.forests(found)) if found else (),
            definitions=tuple((metric.title, metric.definition) for metric in found.metrics) if found else (),
        )
    yield from _measured_sections(arms)
    if report.chosen:
        yield Section(
            name="conversations",
            title=f"{quantity(len(report.chosen), 'conversation')} to read",
            lead="Chosen to show the range, each with why. They are not a sample: what is extreme is rare.",
        )
    yield Section(
        name="refused",
        title="What was not accepted",
        lead="Every reason, with the first examples as the model wrote them.",
    )
    yield Section(
        name="again",
        title="How to make it again",
        lead="The same job gives the same scenarios; a model may answer otherwise, a stored answer never.",
    )


def _measured_sections(arms: Sequence[ArmReport]) -> Iterator[Section]:
    """The sections of the measures; where nothing was accepted, of those that tell of the plan."""
    accepted = any(arm.status.accepted for arm in arms)
    by_section: dict[str, list[Measure[object]]] = {name: [] for name in _MEASURED}
    for measure in measures(arms[0].quality.values):
        if accepted or measure.tells_of_plan:
            by_section.get(measure.section, by_section["more"]).append(measure)
    for name, (title, lead) in _MEASURED.items():
        blocks = [block for measure in by_section[name] for block in measure.blocks(_results(measure, arms))]
        if blocks:
            yield Section(
                name=name,
                title=title,
                lead=lead,
                pictures=tuple(block for block in blocks if isinstance(block, Picture)),
                blocks=tuple(block for block in blocks if not isinstance(block, Picture)),
                definitions=tuple((readable_name(one.name), one.definition) for one in by_section[name]),
            )


def _results(measure: Measure[object], arms: Sequence[ArmReport]) -> list[ArmResult[object]]:
    return [
        ArmResult(arm.label, arm.name, arm.quality.values[measure.name], arm.job, arm.machine) for arm in arms
    ]
