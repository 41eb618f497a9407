"""A measure with columns and aggregates gets its value, rows, pictures and comparisons from these."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import edgen
from edgen.core import registry
from edgen.evaluation.aggregates import (
    Aggregate,
    ByKey,
    Columns,
    Crossed,
    Examples,
    Histogram,
    Mean,
    Share,
    Tally,
    Total,
)
from edgen.evaluation.compared import Compared
from edgen.evaluation.drawings import Bars, Histograms, Intervals, Picture, Table
from edgen.evaluation.measure import Measure, NeedsDataSet, add_up, figure_kinds, list_comparisons
from edgen.evaluation.panels import ArmResult, Panel, Sentence, TablePanel, draw_panels
from edgen.evaluation.rows import render_rows
from edgen.evaluation.sample import Sample, Words, cut
from edgen.evaluation.views import list_blocks, list_examples, list_lines
from edgen.space import Space
from edgen.stats.intervals import Estimate
from tests.evaluation.said import count_of, lesson, measured

SPEAKERS = ("Teacher", "Student")


class AskedMeasure(NeedsDataSet, Measure[Any]):
    name = "asked"
    definition = "Turns with a question mark {as an example}. edgen's own."
    figures = figure_kinds("", "turns", truths=("begins",), texts=("first",))
    aggregates: tuple[Aggregate, ...] = (
        Total("asked", label="asked", says="{it:turn}"),
        Share("share", "asked", "turns", label="questions"),
        Share("begins", label="begins with one", says="{it}"),
        Mean("mean", "asked", label="questions each", says="{it:.2f}"),
        Histogram("lengths", label="words a turn", line="words"),
        Histogram("by_role", by_key=True, keys=SPEAKERS, label="words, {key}", title="{key}"),
        Histogram("spread", "part", shares=True),
        Share("of_role", "asked_by", "turns_by", label="  {key}", by_key=True),
        Tally("first", keys=("Teacher",), last=("nobody",), names={"Teacher": "the teacher"}, label="first"),
        Tally("words", order="size", label="  {key}", says="{it:turn}", most=2, rest="  others"),
        Crossed("table", columns=("yes", "no"), label="of {key}", heads=("who", "asks")),
        Examples("examples", "asked", most=2, why="it asks"),
        Aggregate("twice", label="twice that", says="{it:,}"),
    )

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Columns:
        if not sample.turns:
            return {}
        asks = ["?" in turn.text for turn in sample.turns]
        roles = [turn.role for turn in sample.turns]
        by = {
            role: [len(cut) for cut, own in zip(words, roles, strict=True) if own == role]
            for role in {*roles}
        }
        return {
            "asked": sum(asks),
            "turns": len(asks),
            "begins": asks[0],
            "lengths": [len(cut) for cut in words],
            "by_role": [(role, len(cut)) for role, cut in zip(roles, words, strict=True)],
            "part": sum(asks) / len(asks),
            "asked_by": {
                role: sum(ask for ask, own in zip(asks, roles, strict=True) if own == role) for role in by
            },
            "turns_by": {role: len(cut) for role, cut in by.items()},
            "first": roles[0],
            "words": [word for cut in words for word in cut],
            "table": [(role, ("yes" if ask else "no",)) for role, ask in zip(roles, asks, strict=True)],
        }

    def finish(self, figures: dict[str, Any], shared: Any) -> Any:
        return {**figures, "twice": 2 * figures["asked"]}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> AskedMeasure:
    monkeypatch.setattr(registry, "_added", dict(registry._added))
    one = AskedMeasure()
    registry.add("measure", "asked", one)
    return one


LESSONS = [
    lesson("T What is it?", "S A river.", "T Where?", index=0),
    lesson("S Is it wet? Is it?", "T Yes.", index=1),
    lesson("T No.", index=2),
    lesson(index=3),
]


def value_of(*lessons: Sample) -> Any:
    return measured(count_of("asked"), *lessons)


@pytest.mark.usefixtures("asked")
def test_each_aggregate_is_what_a_plain_computation_gives() -> None:
    found = value_of(*LESSONS)
    assert found.asked == 3
    assert (found.share.value, found.share.n, found.share.scenarios) == (3 / 6, 6, 3)
    assert (found.begins.value, found.begins.n) == (2 / 3, 3)
    assert (found.mean.value, found.mean.n) == (1.0, 3)
    assert (found.lengths.n, found.lengths.mean) == (6, 13 / 6)
    assert {role: one.n for role, one in found.by_role.items()} == {"Teacher": 4, "Student": 2}
    assert (found.spread.n, found.spread.max) == (3, 2 / 3)
    assert {role: (one.value, one.n) for role, one in found.of_role.items()} == {
        "Teacher": (0.5, 4),
        "Student": (0.5, 2),
    }
    assert found.first == {"Teacher": 2, "Student": 1, "nobody": 0}
    assert [*found.words.items()][:2] == [("is", 3), ("it", 3)]
    assert found.table == {"Teacher": (4, {"yes": 0.5, "no": 0.5}), "Student": (2, {"yes": 0.5, "no": 0.5})}
    assert found.examples == ("lesson-0", "lesson-1")
    assert found.twice == 6
    assert [*json.loads(msgspec.json.encode(found))] == [one.name for one in AskedMeasure.aggregates]


def test_rows_are_worded_as_declared(asked: AskedMeasure) -> None:
    lines = [*list_lines(asked, value_of(*LESSONS))]
    rows = [line for line in lines if not line.startswith(" " * 28)]
    assert "asked                       3 turns" in rows
    assert any(
        line.startswith("questions                   50.0% [") and line.endswith("of 6") for line in rows
    )
    assert sum("mean      sd   min" in line for line in lines) == 1, (
        "one head above the distributions of a run"
    )
    assert "first                       2 the teacher, 1 Student" in rows
    assert [line.split() for line in rows if line.startswith("  ")][-3:] == [
        ["is", "3", "turns"], ["it", "3", "turns"], ["others", "7", "turns"],
    ]  # fmt: skip
    assert "of Teacher                  yes 50.0%, no 50.0% (of 4)" in rows
    assert "twice that                  6" in rows
    assert max(map(len, lines)) <= 78


LABELLED: tuple[Aggregate, ...] = (
    Total("own", "asked", label="own"),
    Share("own", "begins", label="own"),
    Share("own", "asked", "turns", label="own"),
    Share("own", "asked_by", "turns_by", label="own", by_key=True),
    Mean("own", "asked", label="own"),
    Mean("own", "asked", "turns", label="own"),
    Histogram("own", "lengths", label="own"),
    Histogram("own", "by_role", label="own", by_key=True),
    Histogram("own", "part", label="own", shares=True),
    Tally("own", "words", label="own"),
    Crossed("own", "table", label="own"),
)


@pytest.mark.parametrize("aggregate", LABELLED, ids=lambda one: f"{type(one).__name__} of {one.column}")
def test_a_label_is_all_that_a_row_needs(
    asked: AskedMeasure, aggregate: Aggregate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AskedMeasure, "aggregates", (aggregate,))
    monkeypatch.setattr(AskedMeasure, "finish", NeedsDataSet.finish)
    value = value_of(*LESSONS)
    lines = [*list_lines(asked, value)]
    assert any(line.lstrip().startswith("own") for line in lines)
    if isinstance(aggregate, Crossed):  # one line per row
        assert lines == [
            "own Teacher                 yes 50.0%, no 50.0% (of 4)",
            "own Student                 no 50.0%, yes 50.0% (of 2)",
        ]
    if isinstance(aggregate, Crossed) or getattr(aggregate, "by_key", False):
        assert all(any(role in line for line in lines) for role in SPEAKERS)
    blocks = [*list_blocks(asked, [ArmResult(arm, arm, value, {}) for arm in ("one", "two")])]
    if isinstance(aggregate, Share) and aggregate.by_key:
        (picture,) = blocks
        rows = picture.tables[0].rows  # type: ignore[union-attr]
        assert {row[0] for row in rows} == {f"{role} · {arm}" for role in SPEAKERS for arm in ("one", "two")}
    assert bool(blocks) is not isinstance(aggregate, Total), "plain totals have no usual picture"


def test_there_are_no_rows_where_nothing_was_counted(asked: AskedMeasure) -> None:
    nothing = value_of(LESSONS[3])
    assert (nothing.asked, nothing.share, nothing.lengths.n, nothing.words) == (0, None, 0, {})
    assert [*list_lines(asked, nothing)] == []
    assert [*list_blocks(asked, [ArmResult("", "run", nothing, {})])] == []


def test_the_report_has_a_picture_of_all_shares_and_one_of_each_other_figure(asked: AskedMeasure) -> None:
    arms = [ArmResult(arm, arm, value_of(*LESSONS), {}) for arm in ("one", "two")]
    blocks = [*list_blocks(asked, arms)]
    kinds = {block.name: type(block.chart) for block in blocks if isinstance(block, Picture)}
    assert kinds["asked"] is Intervals
    assert {kinds[f"asked-{name}"] for name in ("lengths", "by_role", "spread")} == {Histograms}
    assert {kinds[f"asked-{name}"] for name in ("first", "words")} == {Bars}
    assert kinds["asked-mean"] is Intervals
    (table,) = [block for block in blocks if isinstance(block, Table)]
    assert table.head == ("who", "asks")
    assert table.rows[0] == ("Teacher (4) · one", "yes 50.0%, no 50.0%")
    shares = next(block for block in blocks if isinstance(block, Picture) and block.name == "asked")
    assert [row[0] for row in shares.tables[0].rows][:2] == ["questions · one", "questions · two"]
    assert {"Teacher · one", "Teacher · two"} <= {row[0] for row in shares.tables[0].rows}


def test_a_measure_may_name_its_pictures(asked: AskedMeasure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AskedMeasure, "panels", (Panel("mine", "Mine", ("share",), "Look.", of=""),))
    (picture,) = list_blocks(asked, [ArmResult("", "run", value_of(*LESSONS), {})])
    assert (picture.name, picture.title, picture.caption) == ("mine", "Mine", "Look.")  # type: ignore[union-attr]


def test_a_picture_that_is_folded_away_may_be_told_in_a_line(
    asked: AskedMeasure, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = Panel("mine", "Mine", ("share",), folded="More", told="Asking")
    monkeypatch.setattr(AskedMeasure, "panels", (panel,))
    value = value_of(*LESSONS)
    said, picture = list_blocks(asked, [ArmResult(arm, arm, value, {}) for arm in ("one", "two")])
    assert said == f"Asking: one {value.share.value:.1%}, two {value.share.value:.1%}."
    assert (picture.folded, picture.caption) == ("More", "Shares with their 95% intervals.")  # type: ignore[union-attr]
    said, _ = list_blocks(asked, [ArmResult("", "run", value, {})])
    assert said == f"Asking: {value.share.value:.1%}."


def test_the_conversations_to_read_are_the_examples(asked: AskedMeasure) -> None:
    assert [*list_examples(asked, value_of(*LESSONS))] == [("lesson-0", "it asks"), ("lesson-1", "it asks")]


def test_what_is_compared_adds_up_to_what_stats_finds(asked: AskedMeasure) -> None:
    sums: dict[str, float] = {}
    for one in LESSONS:
        for name, amount in add_up(asked, one, cut(one.turns), None):  # type: ignore[arg-type]
            sums[name] = sums.get(name, 0) + amount
    told = {
        one.name: sums[one.top] / sums[one.bottom]
        for one in list_comparisons(asked, sorted(sums))
        if one.top in sums
    }
    found = value_of(*LESSONS)
    assert told["asked.share"] == found.share.value
    assert told["asked.begins"] == found.begins.value
    assert told["asked.mean"] == found.mean.value
    assert told["asked.lengths"] == found.lengths.mean
    assert told["asked.first=Student"] == 1 / 3
    assert not [name for name in told if name.startswith(("asked.by_role", "asked.of_role"))]


def test_what_is_compared_can_be_declared(asked: AskedMeasure, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Compared(
        name="began_{key}",
        title="began: {key}",
        kind="share",
        top="first",
        over="x",
        definition="Who began: {key}.",
    )
    monkeypatch.setattr(AskedMeasure, "compares", (one,))
    sums = dict(add_up(asked, LESSONS[1], cut(LESSONS[1].turns), None))  # type: ignore[arg-type]
    (found,) = list_comparisons(asked, [*sums])
    assert (found.name, found.definition, found.top, found.bottom) == (
        "began_Student", "Who began: Student.", "first=Student", "first#",
    )  # fmt: skip


@pytest.mark.usefixtures("asked")
def test_a_run_is_measured_compared_selected_and_reported_by_it(tmp_path: Path) -> None:
    job = {
        "name": "t", "seed": 3, "conversations": 12, "space": "education_dialogue", "prompt": "education_dialogue",
        "protocol": "oneshot", "backends": {"default": {"type": "simulator"}}, "arms": {"a": {}, "b": {"asks": 9}},
        "gates": {"asks": "asked >= 1 and measures.asked.turns > 0"},
    }  # fmt: skip
    run = edgen.generate(job, output=tmp_path / "run", progress=False)
    value = run.stats(["asked"]).arms["a"]["asked"]
    metrics = edgen.compare(run, output=tmp_path / "compared").metrics
    assert metrics["asked.share"].arms["a"].value == pytest.approx(value.share.value, abs=1e-6)
    assert metrics["asked.first=Teacher"].kind == "share"
    where = "asked >= 1 and measures.asked.first == 'Teacher'"
    chosen = edgen.select(run.folder / "arms" / "a", tmp_path / "chosen", where)
    assert 0 < len([*chosen]) == value.first["Teacher"]
    page = run.report(tmp_path / "report.html").read_text("utf-8")
    assert "Asked: words a turn" in page


def test_a_measure_without_columns_or_a_count_is_refused() -> None:
    class Empty(Measure[Any]):
        name = "empty"
        definition = "x"

    with pytest.raises(TypeError, match="neither `of_one` nor a count of its own"):
        Empty()


@pytest.mark.parametrize(
    ("says", "figures", "line"),
    [
        ("{it:of states}", {"it": 3, "states": 1_000}, "3 of 1,000 states = 0.3%"),
        ("{it:of states}", {"it": 0, "states": 0}, "0 of 0 states = none"),
        ("{it:of states}", {"it": 1, "states": None}, "1 state"),
        ("{it:2}", {"it": ("a", "b", "c", "d")}, "a, b, and 2 more"),
        ("{it:2}", {"it": ("a", "b")}, "a, b"),
        ("{it}", {"it": ("a", "b", "c", "d")}, "a, b, c"),
    ],
)
def test_rows_with_parts_and_lists(says: str, figures: dict[str, Any], line: str) -> None:
    shown = (Aggregate("it", label="row", says=says), Aggregate("always"))
    row = [*render_rows(shown, SimpleNamespace(always=1, **figures))]
    assert row == [f"{'row':<28}{line}"]


class Part(msgspec.Struct):
    """A value in a sequence."""

    who: str
    share: float | None
    near: dict[str, float]


PARTS = [Part("one", 0.25, {"a_b": 0.5}), Part("two", None, {"a_b": 0.1, "c": 0.9})]
DECLARED = (
    Aggregate("parts_of_all", required=True),
    Total("count", label="count", note="All {it:part}, {key}."),
    Tally("kinds", label="kinds", names=str.upper, most=2, if_any=True),
    ByKey(
        "parts",
        key=lambda part: part.who,
        names={"one": "first"},
        most=1,
        each=(
            Aggregate("share", label="of {key}", says="{it:.0%}", title="{key}", drawn="{it:.0%} of {who}"),
            Aggregate("near", label="  near", says="{it:.1f}", names={"a_b": "ab"}, if_any=True),
        ),
    ),
)


def declared(**figures: Any) -> SimpleNamespace:
    given = {"parts_of_all": 3, "count": 2, "kinds": {"x": 2, "y": 1, "z": 1}, "parts": PARTS}
    return SimpleNamespace(**(given | figures))


def test_notes_names_and_values_of_a_sequence_are_rows() -> None:
    assert [*render_rows(DECLARED, declared())] == [
        f"{'count':<28}2",
        "All 2 parts, .",
        f"{'kinds':<28}2 X, 1 Y",
        f"{'of first':<28}25%",
        f"{'  near':<28}ab 0.5",
    ]


def test_nothing_is_shown_without_what_is_required() -> None:
    assert [*render_rows(DECLARED, declared(parts_of_all=0))] == []
    assert [*render_rows(DECLARED, None)] == []


def test_a_value_may_be_what_is_by_key_itself() -> None:
    aggregates = (ByKey("", each=(Total("n", label="{key}"),)),)
    assert [*render_rows(aggregates, {"a": SimpleNamespace(n=1), "b": SimpleNamespace(n=2)})] == [
        f"{'a':<28}1", f"{'b':<28}2",
    ]  # fmt: skip


def test_tables_sentences_and_bars_follow_from_panels() -> None:
    panels = (
        Panel("shares", "Shares", ("parts.share",), lambda found: f"{len(found)} arms.", colour_keys=True),
        Panel("near", "Near", ("parts.near",)),
        TablePanel("All", "parts", ("who", "share"), ("{key}", "{share:.0%}")),
        TablePanel("None", "nothing", ("who",), ("{it}",)),
        Sentence("count", "There are {it:part}."),
        Sentence("nothing", "There is {it}.", "There is none."),
        lambda found: iter([f"{len(found)} drawn."]),
    )
    value = declared(nothing=(), parts=[PARTS[0], Part("two", 0.5, {})])
    found = [ArmResult("x", "x", value, {}), ArmResult("y", "y", value, {})]
    bars, near, table, *said = draw_panels(panels, (*DECLARED, Aggregate("nothing")), found)
    assert isinstance(bars, Picture)
    assert isinstance(bars.chart, Bars)
    assert bars.caption == "2 arms."
    assert [(row.label, row.said, row.colour) for row in bars.chart.rows] == [
        ("first · x", "25% of one", "blue"), ("first · y", "25% of one", "blue"),
        ("two · x", "50% of two", "orange"), ("two · y", "50% of two", "orange"),
    ]  # fmt: skip
    assert isinstance(near, Picture)
    assert isinstance(table, Table)
    assert table.rows[0] == ("first · x", "25%")
    assert len(table.rows) == 4
    assert said == [
        "x: There are 2 parts.", "y: There are 2 parts.", "x: There is none.", "y: There is none.", "2 drawn.",
    ]  # fmt: skip


def test_the_furthest_from_a_reference_are_drawn_first() -> None:
    values = {name: Estimate(value=value, low=None, high=None, n=9, scenarios=9) for name, value in (("a", 0.4), ("b", 0.9), ("c", 0.2))}  # fmt: skip
    panel = Panel("p", "P", ("it",), "Look.", reference=0.5, most=2)
    (picture,) = draw_panels(
        [panel], [Share("it", title="{key}")], [ArmResult("", "x", SimpleNamespace(it=values), {})]
    )
    assert isinstance(picture, Picture)
    assert isinstance(picture.chart, Intervals)
    assert [row.label for row in picture.chart.rows] == ["b", "c"]
    assert (picture.chart.reference, picture.caption) == (0.5, "Look. The first 2 of 3.")
