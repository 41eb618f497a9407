"""The sections of the page: names, texts and contents. Measures show their own results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import get_args

import msgspec

from edgen.core.text import join_list, quantity, readable_name
from edgen.evaluation.drawings import ARM_SEPARATOR, Block, Drawing, Picture, Table
from edgen.evaluation.measure import Measure
from edgen.evaluation.measuring import list_measures
from edgen.evaluation.panels import ArmResult
from edgen.evaluation.views import list_blocks, show
from edgen.report import arm_pictures, pair_pictures, run_pictures
from edgen.report.model import ArmReport, Report

# The titles and texts of measures' `section`s. Measures of other sections are in the last one.
_MEASURED = {
    "shape": (
        "Length, balance and form",
        "How long the conversations are, how the talk is divided, and what had to be repaired.",
    ),
    "language": ("Variety of language", "How often the conversations repeat the same words."),
    "understanding": (
        "The stated probability",
        "The probability that each conversation states.",
    ),
    "behaviour": (
        "Do they keep to their scenarios?",
        "Whether each side does what its description says, and keeps its own secrets.",
    ),
    "labels": (
        "Labels",
        "Labels of turns and conversations by annotators, transitions between labels, and agreement.",
    ),
    "task": (
        "How the task went",
        "How conversations ended, how long they took, and what the roles did on the way.",
    ),
    "duplicates": (
        "Duplicates and leakage",
        "Conversations that occur more than once, and test conversations that resemble train.",
    ),
    "space": (
        "Coverage of the space",
        "Which cells of the space have conversations, and which values lost some on the way.",
    ),
    "more": ("Further measures", "Measures of installed packages."),
}


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the page."""

    name: str  # name, also of the template's own part
    title: str  # of the part
    lead: str  # first sentences below the title
    pictures: tuple[Picture, ...] = ()  # pictures shown first
    remarks: tuple[str, ...] = ()  # remarks, in sentences
    folded: dict[str, tuple[Picture, ...]] = {}  # collapsed pictures by title
    blocks: tuple[Table | Drawing, ...] = ()  # tables and drawings
    method: tuple[str, ...] = ()  # methods, in sentences
    definitions: tuple[tuple[str, str], ...] = ()  # names with definitions

    @property
    def folded_tables(self) -> list[Table]:
        return [block for block in self.blocks if isinstance(block, Table) and block.title]


def group_tables(tables: Iterable[Table]) -> Iterator[tuple[str, list[Table]]]:
    """Yield tables whose titles share words ("words · arm") under these words, each named after its arm; any
    other table separately, under ""."""
    groups: dict[str, list[tuple[str, Table]]] = {}
    for table in tables:
        words, _, arm = table.title.partition(ARM_SEPARATOR)
        groups.setdefault(words, []).append((arm, table))
    for words, group in groups.items():
        if len(group) > 1 and words:
            yield words, [msgspec.structs.replace(table, title=arm or words) for arm, table in group]
        else:
            yield "", [table for _, table in group]


def list_sections(report: Report) -> Iterator[Section]:
    """Yield all sections of the page, in order."""
    arms, found = report.arms, report.comparison
    yield Section(
        name="asked",
        title="Plan and outcome",
        lead="Every conversation that was planned ends as exactly one of accepted, rejected or failed, or is "
        "pending.",
        pictures=(run_pictures.draw_outcomes(arms), *run_pictures.draw_rejections(arms)),
    )
    yield Section(
        name="cost",
        title="Cost and time",
        lead="Tokens, money and time of all sessions. A stored answer is never paid for twice.",
        pictures=(*run_pictures.draw_tokens(arms), *run_pictures.draw_latencies(arms)),
    )
    if len(arms) > 1 or report.missing:
        lead = arm_pictures.describe_arms(found)
        blocks = [*arm_pictures.render_comparison(found)] if found else []
        definitions = tuple((metric.title, metric.definition) for metric in found.metrics) if found else ()
        section = lay_out("arms", "Arms side by side", lead, blocks, definitions)
        yield msgspec.structs.replace(section, method=(found.method,) if found else ())
    yield from _list_measure_sections(arms, report.section_words)
    if isinstance(report.pairs, str):
        lead = f"The pairs of this run cannot be read: {report.pairs}"
        yield Section(name="pairs", title="Preference pairs", lead=lead)
    elif report.pairs is not None:
        yield lay_out(
            "pairs",
            "Preference pairs",
            pair_pictures.describe_pairs(report.pairs),
            [*pair_pictures.render_blocks(report.pairs)],
        )
    if report.chosen:
        yield Section(
            name="conversations",
            title=f"{quantity(len(report.chosen), 'conversation')} to read",
            lead="Most were chosen to show the range, so they are not a random sample. Each states why it "
            "was chosen.",
        )
    if any(arm.reasons for arm in arms):
        yield Section(
            name="refused",
            title="Rejected and failed conversations",
            lead="Every reason, with the first examples as the model wrote them.",
        )
    yield Section(
        name="again",
        title="Reproduce this run",
        lead="The same job gives the same scenarios. A model may answer differently; stored answers never "
        "change.",
    )


def _list_measure_sections(
    arms: Sequence[ArmReport], section_words: Mapping[str, tuple[str, str]]
) -> Iterator[Section]:
    """Yield the sections of the measures; without accepted conversations, only those on the plan.
    `section_words`: the family's titles and texts of sections."""
    accepted = any(arm.status.accepted for arm in arms)
    by_section: dict[str, list[Measure[object]]] = {name: [] for name in _MEASURED}
    for measure in list_measures({name for arm in arms for name in arm.quality.values}):
        if accepted or measure.describes_plan:
            by_section.get(measure.section, by_section["more"]).append(measure)
    for name, (title, lead) in {**_MEASURED, **section_words}.items():
        blocks: list[Block] = []
        for measure in by_section[name]:
            found = partial(list_blocks, measure, _list_results(measure, arms))
            blocks += show(measure, found, get_args(Block), arms[0].quality.faults, "its part of the report")
        if blocks:
            definitions = tuple((readable_name(one.name), one.definition) for one in by_section[name])
            yield lay_out(name, title, lead, blocks, definitions, [arm.label for arm in arms])


def lay_out(
    name: str,
    title: str,
    lead: str,
    blocks: Sequence[Block],
    definitions: tuple[tuple[str, str], ...] = (),
    arms: Sequence[str] = (),
) -> Section:
    """Return a section of these blocks, sorted by kind."""
    folded: dict[str, list[Picture]] = {}
    for block in blocks:
        if isinstance(block, Picture):
            folded.setdefault(block.folded, []).append(block)
    return Section(
        name=name,
        title=title,
        lead=lead,
        pictures=tuple(folded.pop("", ())),
        remarks=tuple(merge_arms([block for block in blocks if isinstance(block, str)], arms)),
        folded={words: tuple(pictures) for words, pictures in folded.items()},
        blocks=tuple(block for block in blocks if isinstance(block, Table | Drawing)),
        definitions=definitions,
    )


def merge_arms(sentences: Iterable[str], arms: Sequence[str]) -> Iterator[str]:
    """Yield each sentence once: "ARM: sentence" of several arms begins with all their names, or with "every
    arm"."""
    by_words: dict[str, list[str]] = {}
    for sentence in sentences:
        arm = next((arm for arm in arms if arm and sentence.startswith(f"{arm}: ")), "")
        by_words.setdefault(sentence.removeprefix(f"{arm}: ") if arm else sentence, []).append(arm)
    for words, labels in by_words.items():
        known = [label for label in labels if label]
        who = "Every arm" if len(known) == len(arms) > 1 else join_list(known)
        yield f"{who}: {words}" if who else words


def _list_results(measure: Measure[object], arms: Sequence[ArmReport]) -> list[ArmResult[object]]:
    return [
        ArmResult(
            arm.label, arm.name, arm.quality.values[measure.name], arm.job, arm.guide, arm.family, arm.roles
        )
        for arm in arms
        if measure.name in arm.quality.values
    ]
