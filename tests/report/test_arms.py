"""Arms in a report: paired or not, their own intervals, side by side, and differences after Holm."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import msgspec
import pytest

from edgen.core.registry import find
from edgen.evaluation.comparison.result import ArmFacts, ComparisonResult, Difference, Metric
from edgen.evaluation.drawings import Block, Picture, Table
from edgen.evaluation.panels import ArmResult
from edgen.evaluation.views import list_blocks
from edgen.report import arm_pictures, run_pictures
from edgen.report.canvas import configure_drawing
from edgen.report.charts import draw
from edgen.report.gather import gather
from edgen.report.model import ArmReport, Report
from edgen.report.page import render_page
from edgen.stats.ratios import RatioEstimate
from tests.report.runs import made


def blocks(name: str, *arms: ArmReport) -> list[Block]:
    """Return the blocks that a measure shows of these arms."""
    found = [ArmResult(arm.label, arm.name, arm.quality.values[name], arm.job) for arm in arms]
    return list(list_blocks(find("measure", name), found))


def pictures(name: str, *arms: ArmReport) -> dict[str, Picture]:
    return {block.name: block for block in blocks(name, *arms) if isinstance(block, Picture)}


def with_value(arm: ArmReport, name: str, value: object, **more: object) -> ArmReport:
    """Return the arm with another value of a measure."""
    quality = msgspec.structs.replace(arm.quality, values={**arm.quality.values, name: value})
    return msgspec.structs.replace(arm, quality=quality, **more)


VALUES = {
    "student_preferences": ["lectures", "experiments"],
    "student_reactions": ["and gets rude otherwise"],
    "teacher_preferences": ["lectures", "experiments"],
    "teacher_reactions": ["and insists on it", "but might adapt"],
}
TOPICS = ["verbs", "deserts", "rivers"]


def space(folder: Path, name: str, topics: list[object]) -> None:
    (folder / name).write_text(json.dumps({"name": name.partition(".")[0], "topics": topics, **VALUES}))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return a report of three arms, one of which weighs the space differently."""
    folder = tmp_path_factory.mktemp("arms")
    space(folder, "plain.yaml", [*TOPICS[:2], {"value": "rivers", "weight": 0.0002}])
    space(folder, "weighed.yaml", [*TOPICS[:2], {"value": "rivers", "weight": 9}])
    job = {
        "name": "a", "seed": 5, "conversations": 60, "design": "random", "asks": 1,
        "space": "./plain.yaml", "prompt": "education_dialogue",
        "backends": {"default": {"type": "simulator", "faults": "refusal=0.05,defects=0.5"}},
        "arms": {
            "published": {},
            "weighed": {"space": "./weighed.yaml"},
            "json": {"prompt": "education_dialogue_json", "backends": {"default": {"faults": "refusal=0.4"}}},
        },
    }  # fmt: skip
    (folder / "job.yaml").write_text(json.dumps(job))
    stages: list[str] = []
    found = gather(made(folder / "run", job=folder / "job.yaml", n=60), stages.append)
    assert stages
    return found


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return render_page(report)


@pytest.fixture(scope="module")
def section(text: str) -> str:
    """Return the report's section about arms."""
    found = re.search(r'<section id="arms">(.*?)</section>', text, re.DOTALL)
    assert found
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found[1])))


def test_every_arm_keeps_the_equation(report: Report) -> None:
    assert [arm.label for arm in report.arms] == ["published", "weighed", "json"]
    for arm in report.arms:
        assert sum(arm.outcomes.values()) == arm.status.planned == 60
        assert sum(reason.count for reason in arm.reasons) == 60 - arm.status.accepted
    assert report.comparison is not None
    assert report.comparison.baseline == "published"
    assert len({one.id for one in report.chosen}) == 12
    assert "resolved" not in report.job


def test_an_arm_that_is_not_paired_is_not_called_so(report: Report, section: str) -> None:
    assert report.comparison is not None
    assert {arm.label: arm.paired for arm in report.comparison.arms}["weighed"] is False
    assert "All arms answer the same scenarios" not in section
    assert "weighed draws other scenarios from a space of its own weights" in section
    assert "60 scenarios compared one by one with those of published" in section
    assert "60 scenarios of weighed against 60 others of published" in section
    forests = {picture.title: picture for picture in arm_pictures.draw_forests(report.comparison)}
    for title, picture in forests.items():
        weighed = title.startswith("weighed")
        assert ("Paired differences" in picture.caption) is not weighed
        assert ("not paired" in picture.caption) is weighed
        assert ("changed" in picture.tables[0].head) is not weighed
        assert {len(row) for row in picture.tables[0].rows} == {len(picture.tables[0].head)}
    assert {title.split()[0] for title in forests} == {"weighed", "json"}


def test_every_arm_has_its_own_values_with_intervals(report: Report) -> None:
    assert report.comparison is not None
    (table,) = arm_pictures.tabulate_values(report.comparison)
    accepted = next(row for row in table.rows if row[0] == "accepted")
    for cell, arm in zip(accepted[1:4], report.comparison.arms, strict=True):
        assert re.fullmatch(r"[\d.]+% \([\d.]+ to [\d.]+\)( \*)?", cell), cell
        assert cell.startswith(f"{100 * arm.accepted / 60:.1f}%")


def test_every_arm_is_drawn_for_each_repair(report: Report) -> None:
    repairs = pictures("overview", *report.arms)["repairs"]
    rows = [label for label, _ in repairs.tables[0].rows]
    kinds = {label.rpartition(" · ")[0] for label in rows}
    assert len(kinds) > 3
    for kind in kinds:
        for arm in ("published", "weighed", "json"):
            assert f"{kind} · {arm}" in rows
    drawn = re.findall(r"([\w ]+) · (\w+): \d", repairs.alternative)
    assert len(drawn) == 24
    assert [arm for _, arm in drawn] == ["published", "weighed", "json"] * 8
    # the kinds with the largest share in any arm
    overviews = [arm.quality.overview for arm in report.arms]
    largest = {
        kind.replace("_", " "): max(each.repairs.get(kind, 0) / each.records for each in overviews)
        for overview in overviews
        for kind in overview.repairs
    }
    assert min(largest[kind.strip()] for kind, _ in drawn) >= sorted(largest.values())[-8]


def test_debris_that_is_left_is_no_repair(report: Report) -> None:
    """Both have kinds with the same name: neither covers the other's count."""
    overview = msgspec.structs.replace(
        report.arms[0].quality.overview, repairs={"empty_turn": 11}, defects={"empty_turn": 2}
    )
    found = pictures("overview", with_value(report.arms[0], "overview", overview, label=""))
    assert found["repairs"].tables[0].rows[0][1].startswith("11 (")
    assert found["defects"].tables[0].rows[0][1].startswith("2 (")


def test_never_planned_is_not_never_accepted(report: Report) -> None:
    """A topic that was never planned is not listed as never accepted.

    In the first arm one topic has no chance to be drawn; in a copy of it another one is refused each time.
    """
    coverage = report.arms[0].quality.values["coverage"]
    topics = msgspec.structs.replace(coverage.dimensions[0], seen=1, unseen=("deserts",))
    assert (topics.planned, topics.unplanned) == (2, ("rivers",))
    coverage = msgspec.structs.replace(coverage, dimensions=(topics, *coverage.dimensions[1:]))
    arm = with_value(report.arms[0], "coverage", coverage)
    table = next(block for block in blocks("coverage", arm) if isinstance(block, Table))
    found = dict(zip(table.head, table.rows[0], strict=True))
    assert found["planned, never accepted"] == "deserts"
    assert found["never planned"] == "rivers"
    assert (found["values"], found["planned"], found["accepted"]) == ("3", "2", "1")


def test_pictures_that_leave_arms_out_say_so(report: Report) -> None:
    def says_so(arms: tuple[ArmReport, ...]) -> bool:
        return any(
            isinstance(block, str) and "the first 6 of 9 arms" in block for block in blocks("coverage", *arms)
        )

    assert not says_so(report.arms)
    assert says_so(report.arms * 3)


def test_leaks_are_explained_by_protocol(report: Report) -> None:
    def caption(*arms: ArmReport) -> str:
        return pictures("leaks", *arms)["leaks"].caption

    one = report.arms[0]
    other = msgspec.structs.replace(one, label="played", job={**one.job, "protocol": "selfplay"})
    assert "the writer knows both" in caption(one)
    assert "any leak" not in caption(one)
    assert "any leak" in caption(other)
    assert "the writer knows both" not in caption(other)
    assert "the writer knows both" in (both := caption(one, other))
    assert "any leak" in both


def test_what_differs_between_arms_names_them(text: str) -> None:
    assert "faults refusal=0.4 (json)" in text
    assert "faults refusal=0.05,defects=0.5 (published and weighed)" in text


def test_shares_of_reasons_are_of_what_was_planned(report: Report) -> None:
    picture = next(run_pictures.draw_rejections(report.arms))
    refused = report.arms[2].status.rejected["refused"]
    assert report.arms[2].status.accepted < 60
    assert f"refused · json: {refused} ({100 * refused / 60:.1f}%)" in picture.alternative


def one_metric(**difference: float) -> ComparisonResult:
    facts = {"run": "r", "fingerprint": "f", "scenarios": 9, "paired": True, "planned": 9, "accepted": 9,
             "rejected": {}, "failed": {}, "pending": 0, "tokens": 9, "cost_usd": None, "simulated": True}  # fmt: skip
    values = {
        "a": RatioEstimate(value=0.5, low=0.4, high=0.6, n=9),
        "b": RatioEstimate(value=0.7, low=None, high=None, n=9),
    }
    return ComparisonResult(
        name="c", baseline="a", shared=9, not_compared=(), caveats=(), method="", resamples=9, seed=1,
        arms=tuple(msgspec.convert({"label": label, **facts}, ArmFacts) for label in "ab"),
        metrics=(
            Metric(
                name="m", title="m", kind="share", over="", definition="", arms=values,
                differences=(Difference(arm="b", value=0.2, low=0.1, high=0.3, n=9, changed=9, **difference),),
            ),
        ),
    )  # fmt: skip


@pytest.mark.parametrize(("p_holm", "marked"), [(0.2, False), (0.04, True)])
def test_a_mark_is_what_stays_after_holm(p_holm: float, marked: bool) -> None:
    found = one_metric(p=0.01, p_holm=p_holm)
    row = next(arm_pictures.tabulate_values(found)).rows[0]
    assert row[1:] == ("50.0% (40.0 to 60.0)", "70.0% *" if marked else "70.0%")
    assert next(arm_pictures.tabulate_differences(found)).rows[0][1].endswith(" *") is marked
    picture = next(arm_pictures.draw_forests(found))
    assert ("Look at m." in picture.caption) is marked
    with configure_drawing():
        assert ("var(--vermillion)" in draw(picture)) is marked


def test_what_no_scenario_changes_is_called_so_and_not_drawn() -> None:
    """An arm that answers like the baseline has no interval from 0.0 to 0.0: no scenario differs."""
    found = one_metric(p=0.01, p_holm=0.2)
    alike = msgspec.structs.replace(found.metrics[0].differences[0], value=0.0, low=0.0, high=0.0, changed=0)
    other = msgspec.structs.replace(found.metrics[0], name="n", title="n")
    same = msgspec.structs.replace(found.metrics[0], differences=(alike,))
    (picture,) = arm_pictures.draw_forests(msgspec.structs.replace(found, metrics=(same, other)))
    assert [row[0] for row in picture.tables[0].rows] == ["n"]
    assert "No difference in any scenario: m." in picture.caption
    identical = msgspec.structs.replace(found, metrics=(same,))
    assert list(arm_pictures.draw_forests(identical)) == []
    assert list(arm_pictures.describe_identical_arms(identical)) == [
        "b and a: none of 1 metrics differs in any scenario."
    ]
    assert next(arm_pictures.tabulate_differences(identical)).rows[0][1] == "none differs"


@pytest.mark.parametrize("count", [2, 4, 5, 12])
def test_every_arm_stands_next_to_the_baseline_in_some_table(count: int) -> None:
    labels = [f"arm{place}" for place in range(count)]
    facts = one_metric(p=0.01, p_holm=0.2).arms[0]
    found = msgspec.structs.replace(
        one_metric(p=0.01, p_holm=0.2),
        baseline=labels[0],
        arms=tuple(msgspec.structs.replace(facts, label=label) for label in labels),
    )
    tables = [*arm_pictures.tabulate_values(found)]
    assert [name for table in tables for name in table.head[2:]] == labels[1:]
    assert all(table.head[:2] == ("metric", labels[0]) and len(table.head) <= 5 for table in tables)
    assert [bool(table.title) for table in tables] == [False, *[True] * (len(tables) - 1)]
