"""Measures of guided conversations: they find planted values, and accept any texts in records."""

from __future__ import annotations

import random
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgen.core import resources
from edgen.core.values import Conversation, Scenario, Turn
from edgen.domains.guided.events import ACTS, GuidedEvents
from edgen.domains.guided.machines.model import Machine, State
from edgen.evaluation.drawings import Drawing, Picture
from edgen.evaluation.measure import add_up, list_comparisons
from edgen.evaluation.measuring import ArmMeasures, list_measures, measure, render
from edgen.evaluation.panels import ArmResult
from edgen.evaluation.sample import DataSet, Sample, Words
from edgen.evaluation.views import list_blocks
from edgen.expressions.conversation import ConversationNames, Facts
from edgen.expressions.language import Expression
from edgen.families.dialogue import DIALOGUE
from edgen.report.canvas import configure_drawing
from edgen.report.charts import draw
from edgen.space import load_space
from edgen.stats.ranks import superiority
from edgen.validation.schema import conforms
from tests.domains.guided.records import ITEMS, LEADS, SAYS, records, sample, turns_of

ONLY = ("endings", "subtasks", "guidance", "acts", "ratings")


def measured(samples: list[Sample]) -> ArmMeasures:
    data = DataSet(name="planted", samples=lambda: iter(samples), family=DIALOGUE, roles=())
    return measure(data, ONLY)


PLANTED, TRUTH = records(200)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return measured([sample(one, place) for place, one in enumerate(PLANTED)]).values


def test_planted_records_are_records() -> None:
    assert all(conforms(one, "dialogue") for one in PLANTED)


def test_ends_and_times_are_those_that_were_planted(found: dict[str, Any]) -> None:
    endings = found["endings"]
    assert endings.reasons == dict(TRUTH.reasons)
    assert endings.success.value == TRUTH.successes / 200
    assert endings.success.low < endings.success.value < endings.success.high
    assert endings.duration.mean == pytest.approx(sum(map(round, TRUTH.durations)) / 200)
    assert {*found["subtasks"]} == {*TRUTH.subtasks}
    for name, spent in TRUTH.subtasks.items():
        one = found["subtasks"][name]
        assert one.reached.value == len(spent) / 200
        assert one.seconds.mean == pytest.approx(sum(map(round, spent)) / len(spent))
    turns = [found["subtasks"][name].turns["Wizard"] for name in TRUTH.subtasks]
    assert sum(one.mean * one.n for one in turns) == pytest.approx(sum(TRUTH.by.values()))


def test_choices_and_acts_are_those_that_were_planted(found: dict[str, Any]) -> None:
    guidance, total = found["guidance"], sum(TRUTH.by.values())
    assert guidance.choices == total
    assert guidance.typed.value == TRUTH.by["free"] / total
    assert guidance.fixed.value == TRUTH.by["fixed"] / total
    assert guidance.offered.value == TRUTH.by["state"] / total
    assert guidance.hinted.value == TRUTH.hints / total
    assert guidance.followed.value == TRUTH.followed / TRUTH.hints
    wizard = found["acts"].roles["Wizard"]
    assert wizard.counts == dict(TRUTH.acts)
    assert {*found["acts"].roles} == {"Wizard"}
    assert {*found["acts"].a_conversation} == {*ACTS}


def test_ratings_are_tested_and_all_tests_counted(found: dict[str, Any]) -> None:
    ratings = found["ratings"]
    assert ratings.tests == 2 * len(ITEMS) * (1 + len(ACTS))
    for one in ratings.ratings:
        assert one.success.test.value > 0.7
        assert one.success.p_holm < 0.001
    (easy,) = [one for one in ratings.ratings if (one.role, one.item) == ("Operator", "easy")]
    with_, without = (
        [(index, said["easy"]) for done, index, _, said in TRUTH.ratings if done is success]
        for success in (True, False)
    )
    assert easy.success.test == superiority(
        [rating for _, rating in with_], [rating for _, rating in without],
        [index for index, _ in with_], [index for index, _ in without],
    )  # fmt: skip
    # the closing words of a failed operator come sooner, so only the planted act is correlated
    assert max(easy.acts, key=lambda act: easy.acts[act].test.value) == "Action"


def test_ratings_that_are_chance_are_seldom_findings() -> None:
    """Without any correlation, the chance of a finding is at most 5%: one of 20 data sets by expectation."""
    wrong = 0
    for seed in range(20):
        planted, rng = records(24, seed)[0], random.Random(seed)
        for one in planted:
            for event in one["events"]:
                if event["event"] == "questionnaire":
                    event["answers"] = {"easy": rng.randint(1, 7)}
        value = measured([sample(one, place) for place, one in enumerate(planted)]).values["ratings"]
        tests = [test for one in value.ratings for test in (one.success, *one.acts.values()) if test]
        assert len(tests) == value.tests > 4
        wrong += any(test.p_holm < 0.05 for test in tests)
    assert wrong <= 4


def test_what_is_measured_of_half_is_of_half() -> None:
    """Conversations of other protocols do not count."""
    other = Sample(
        id="o", source="o", split=None, scenario=Scenario(999, {}), entries=1, turns=(Turn("A", "x", ("Action",)),)
    )  # fmt: skip
    samples = [sample(one, place) for place, one in enumerate(PLANTED[:30])]
    assert msgspec.to_builtins(measured([*samples, other]).values) == msgspec.to_builtins(
        measured(samples).values
    )
    nothing = measured([other])
    assert list(render(nothing, ONLY)) == ["planted: 1 conversation", *_nothing()]
    assert [line for line in render(nothing) if line in ONLY] == []


def _nothing() -> list[str]:
    lines: list[str] = []
    for one in list_measures(ONLY):
        lines += ["", one.name, f"  {one.nothing}"]
    return lines


def test_lines_fit_a_terminal() -> None:
    long = [
        msgspec.json.decode(msgspec.json.encode(one).replace(b"look", b"look_" * 12)) for one in PLANTED[:20]
    ]
    for given_ in (PLANTED, long):
        lines = list(render(measured([sample(one, place) for place, one in enumerate(given_)]), ONLY))
        assert len(lines) > 40
        assert max(map(len, lines)) <= 80


def test_what_the_report_shows_is_drawn_and_escaped(found: dict[str, Any]) -> None:
    """Every picture occurs once an arm or once for all arms, with its text escaped for any state names."""
    evil = "</svg><script>alert(1)</script>&\"'"
    states = {
        name: State(name=name, formulations=(SAYS.get(name, evil),), transitions=tuple(to))
        for name, to in {**LEADS, evil: ["bye"]}.items()
    }
    machine = Machine(name=evil, description=evil, states=states, subtasks=("greet", "look", "repair"))
    data = DataSet(
        name="planted", samples=lambda: map(sample, PLANTED, range(200)), family=DIALOGUE, roles=(), find_guide=lambda: machine
    )  # fmt: skip
    covered = measure(data, ("states",)).values["states"]
    assert covered.never == tuple(sorted([evil, "never", "start"]))
    assert (covered.covered, covered.transitions) == (len(TRUTH.moves), sum(map(len, LEADS.values())) + 1)
    assert {(before, to): count for before, to, count in covered.taken} == dict(TRUTH.moves)
    values = {**found, "states": covered}
    names: list[str] = []
    with configure_drawing():
        for one in list_measures(values):
            arms = [ArmResult(arm, arm, values[one.name], {}, machine) for arm in ("a", evil)]
            for block in list_blocks(one, arms):
                if isinstance(block, Picture):
                    assert ElementTree.fromstring(draw(block)).tag == "svg"
                    names.append(block.name)
                elif isinstance(block, Drawing):
                    drawn = ElementTree.fromstring(block.svg)
                    assert not [node for node in drawn.iter() if node.tag.endswith("script")]
                    names.append(block.name)
    assert len(names) == len({*names}) >= 11


def test_what_compare_adds_up_is_what_stats_finds(found: dict[str, Any]) -> None:
    sums: dict[str, float] = {}
    for one in PLANTED:
        said = Sample(
            id="x", source="x", split=None, scenario=Scenario(0, {}), turns=turns_of(one), entries=1,
            events=tuple(one["events"]),
        )  # fmt: skip
        for each in list_measures(("endings", "guidance")):
            for name, amount in add_up(each, said, Words(), None):  # type: ignore[arg-type]
                sums[f"{each.name}: {name}"] = sums.get(f"{each.name}: {name}", 0) + amount
    told = {
        spec.name: sums[f"{each.name}: {spec.top}"] / sums[f"{each.name}: {spec.bottom}"]
        for each in list_measures(("endings", "guidance"))
        for spec in list_comparisons(each, [name.partition(": ")[2] for name in sums])
    }
    assert told["task_done"] == found["endings"].success.value
    assert told["ended_time_out"] == TRUTH.reasons["time_out"] / 200
    assert told["typed"] == found["guidance"].typed.value
    assert told["hints_followed"] == found["guidance"].followed.value


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 400) | st.floats() | st.sampled_from(["ask", "any", "", "fire"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["state", "a", "role"]), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
KEYS = ("by", "state", "utterance", "followed_hint", "options", "from", "to", "reason", "success", "role", "token",
        "answers", "changes", "cause", "due", "target")  # fmt: skip
KINDS = (
    "offered",
    "hint",
    "chosen",
    "state",
    "subtask",
    "world",
    "lock",
    "unlock",
    "effect",
    "end",
    "questionnaire",
)


@st.composite
def any_events(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw events of the known kinds with any contents; time and turn are within what readers of files
    accept."""
    kinds = draw(st.lists(st.sampled_from(KINDS), max_size=8))
    return [
        {
            "event": kind,
            "time": draw(st.floats(0, 1e12)),
            "turn": draw(st.integers(0, 9)),
            **draw(st.dictionaries(st.sampled_from(KEYS), ANY, max_size=5)),
        }
        for kind in kinds
    ]


@settings(max_examples=30)
@example(
    [
        {"event": "offered", "time": 0.0, "turn": 0},
        {"event": "subtask", "time": 100_000.0, "turn": 0, "from": "ask"},
    ]
)
@given(any_events())
def test_nothing_that_a_file_may_say_upsets_the_measures(events: list[dict[str, Any]]) -> None:
    one = sample({**PLANTED[0], "events": events}, 3)
    quality = measured([one, sample(PLANTED[1], 4)])
    assert max(map(len, render(quality, ONLY))) <= 80
    assert msgspec.json.encode(quality.as_json())
    read = GuidedEvents(events, 4)
    assert all(span.start <= span.end and span.first_turn <= span.end_turn for span in read.subtasks)


def test_what_a_planted_record_says_of_a_choice_is_the_turn_s_text() -> None:
    for one in PLANTED[:10]:
        for choice in GuidedEvents(one["events"], len(one["conversation"])).choices:
            assert one["conversation"][choice.turn]["text"] == choice.utterance
            assert choice.state is None or SAYS.get(choice.state, "Yes.") == choice.utterance


def test_a_guided_conversation_without_a_choice_counts_nowhere() -> None:
    offered = [one for one in PLANTED[0]["events"] if one["event"] == "offered"]
    assert offered
    (guidance,) = list_measures(("guidance",))
    assert guidance.of_one(sample({**PLANTED[0], "events": offered}, 0), Words(), None) == {}


def test_a_conversation_that_nobody_guided_has_no_share_of_free_text() -> None:
    space = load_space(resources.find("preference_space", "lesson_plan"))
    told = Facts(Scenario(0, {}), Conversation((Turn("Teacher", "So it is."), Turn("Student", "So."))), "x")
    assert Expression("measures.guidance.free is None", ConversationNames(space)).holds(told)
