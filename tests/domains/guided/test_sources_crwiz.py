"""Every feature of CRWIZ (Chiyah Garcia, Lopes, Liu and Hastie, LREC 2020), with a short check of each."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.domains.guided.course import Course
from edgen.domains.guided.export.log import RoomLog
from edgen.domains.guided.machines.check import check_machine
from edgen.domains.guided.machines.dump import dump_machine, write_files
from edgen.domains.guided.machines.learn import ChoiceCounts, learn
from edgen.domains.guided.machines.load import load_machine
from edgen.domains.guided.machines.model import Condition, Effect, Lock, Machine, State, Variable
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measuring import measure
from tests.domains.guided.test_guided import by_role, plan_for, play, text_of, write_machine


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    write_machine(folder)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    """Generate conversations of the shipped emergency desk, with random choices."""
    return made(tmp_path_factory.mktemp("run") / "run", "incident_response", 8)


@pytest.fixture(scope="module")
def lessons(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    """Generate lessons by the shipped plan, with random choices; some succeed."""
    return made(tmp_path_factory.mktemp("lessons") / "run", "lesson_plan", 30)


def made(folder: Path, name: str, conversations: int) -> edgen.Run:
    job = {
        "name": "t",
        "seed": 5,
        "conversations": conversations,
        "space": name,
        "protocol": "guided",
        "prompts": {"partner": "guided_partner", "questionnaire": "guided_questionnaire"},
        "guided": {"machine": name, "chooser": "chance"},
        "backends": {"default": {"type": "simulator"}},
    }
    return edgen.generate(job, output=folder, progress=False)


def machine(*states: State, **more: Any) -> Machine:
    return Machine(name="m", states={one.name: one for one in states}, **more)


def course(of: Machine, seed: str = "1", **values: Any) -> Course:
    return Course(of, values, seed, most_turns=50)


def names(of: Course) -> list[str]:
    return [one.state for one in of.offer().options]


def kinds(of: Course) -> list[str]:
    return [str(one["event"]) for one in of.events]


START = State(name="start", transitions=("hello", "ask"), probabilities={"hello": 0.9, "ask": 0.1})
HELLO = State(name="hello", formulations=("Hello.", "Hi."), transitions=("ask", "bye"))
ASK = State(name="ask", formulations=("Ready?",), transitions=("bye",), lock=Lock(says=("yes",)))
BYE = State(name="bye", formulations=("Bye.",), subtask="late")


def test_01_folders_of_states_are_loaded_and_checked(shared_data: Path) -> None:
    found = load_machine(shared_data / "crwiz_states")
    assert found.states["intro_hello"].transitions
    assert found.fixed
    broken = machine(State(name="start", transitions=("a", "gone")), State(name="a", formulations=("A",)))
    assert {"dangling"} <= {one.kind for one in check_machine(broken)}
    lonely = machine(START, HELLO, ASK, BYE, State(name="never", formulations=("No.",)))
    assert any("never" in str(one) for one in check_machine(lonely))


@pytest.mark.parametrize("chooser", ["model", "chance", "likeliest"])
def test_02_the_guided_role_chooses_among_what_is_offered_or_writes(desk: Path, chooser: str) -> None:
    settings = {"chooser": chooser, "free_text": 0.5 if chooser == "model" else 0}
    answers = {"helper": ["1", "Say: One moment.", "1"], "caller": ["Yes."]}
    result, asked = play(plan_for(desk, guided=settings), by_role(**answers))
    chosen = [one for one in result.events if one["event"] == "chosen"]
    offers = [one for one in result.events if one["event"] == "offered"]
    assert any(one.role == "helper" for one in asked) == (chooser == "model")
    assert any(one["by"] == "free" for one in chosen) == (chooser == "model")
    for one, offer in zip(chosen, offers, strict=True):
        if one["by"] == "state":
            assert one["state"] in [option["state"] for option in offer["options"]]


def test_03_formulations_have_slots_are_drawn_and_stay_until_the_state_changes() -> None:
    of = machine(
        State(name="start", transitions=("a",)),
        State(name="a", formulations=("At {place}.", "In {place}."), transitions=()),
    )
    said = {course(of, str(seed), place="the hall").offer().options[0].utterance for seed in range(20)}
    assert said == {"At the hall.", "In the hall."}
    one = course(machine(START, HELLO, ASK, BYE))
    before = one.offer().options[0].utterance
    one.say_freely("Well.")
    assert one.offer().options[0].utterance == before


def test_04_sub_tasks_gate_states_and_ends_have_reasons(lessons: edgen.Run) -> None:
    of = machine(
        State(name="start", transitions=("go", "bye")),
        State(name="go", formulations=("Go.",), transitions=("bye",), advances="late"),
        BYE,
        subtasks=("early", "late"),
    )
    one = course(of)
    assert names(one) == ["go"]
    one.say_state("go")
    assert names(one) == ["bye"]
    (data,) = open_data_sets([lessons.folder])
    outcomes = [sample.outcome or {} for sample in data.samples()]
    assert all(one["reason"] for one in outcomes)
    assert {one["success"] for one in outcomes} == {True, False}


def test_05_a_lock_waits_for_an_answer_and_its_way_out_unlocks() -> None:
    other = State(name="other", formulations=("Never mind.",), transitions=("bye",))
    lock = Lock(says=("yes",), otherwise=("other",))
    ask = State(name="ask", formulations=("Ready?",), transitions=("hello",), lock=lock)
    of = machine(START, HELLO, ask, other, BYE)
    for answer, offered in (("Yes!", ["hello"]), ("No.", ["other"])):
        one = course(of)
        one.say_state("ask")
        assert names(one) == []
        one.answer(answer)
        assert names(one) == offered
        one.say_state(offered[0])
        assert [kind for kind in kinds(one) if "lock" in kind] == ["lock", "unlock"]
        log = RoomLog("r", tuple(one.turns), one.events).as_dict()
        inputs = [event["event"] for event in log["logs"] if event["event"].endswith("_user_input")]
        assert inputs == ["disable_user_input", "enable_user_input"]


def test_06_actions_take_time_and_change_what_is_offered() -> None:
    effect = Effect(set={"robot": "there"}, after_seconds=5)
    of = machine(
        State(name="start", transitions=("send",)),
        State(name="send", formulations=("I send it.",), transitions=("wait", "seen"), effects=(effect,)),
        State(name="wait", formulations=("It is on its way.",), transitions=("seen",)),
        State(name="seen", formulations=("It is there.",), when={"robot": Condition(one_of=("there",))}),
        world={"robot": Variable(kind="text", initial="docked")},
    )
    one = course(of)
    one.say_state("send")
    assert names(one) == ["wait"]
    one.say_state("wait")
    assert one.now > 5
    assert names(one) == ["seen"]
    assert [event["time"] for event in one.events if event["event"] == "world"] == [0.0, 5.0]


def test_07_slots_have_the_world_s_values_of_now() -> None:
    of = machine(
        State(name="start", transitions=("tell",)),
        State(name="tell", formulations=("The level is {fire}.",), transitions=("tell",),
              effects=(Effect(add={"fire": 1}),)),
        world={"fire": Variable(kind="number", initial=2.0)},
    )  # fmt: skip
    one = course(of)
    assert one.offer().options[0].utterance == "The level is 2."
    one.say_state("tell")
    assert one.offer().options[0].utterance == "The level is 3."


def test_08_hints_are_drawn_by_the_probabilities_and_kept_in_a_state() -> None:
    hints = Counter(course(machine(START, HELLO, ASK, BYE), str(seed)).offer().hint for seed in range(300))
    assert hints["hello"] == pytest.approx(270, abs=20)
    one = course(machine(START, HELLO, ASK, BYE))
    first = one.offer().hint
    one.say_freely("Well.")
    assert one.offer().hint == first
    assert [event["target"] for event in one.events if event["event"] == "hint"] == [first]


def test_09_the_partner_writes_freely_and_sees_a_part(desk: Path) -> None:
    _, asked = play(plan_for(desk), by_role(helper=["1"], caller=["I see."]))
    shown = "\n".join(text_of(one) for one in asked if one.role == "caller")
    assert "door" in shown.lower()
    for hidden in ("hidden code 55", "622", "secret plan 77"):
        assert hidden not in shown


def test_10_a_log_has_every_event_with_times(run: edgen.Run, tmp_path: Path) -> None:
    run.export("crwiz", tmp_path / "out")
    logs = [json.loads(path.read_bytes()) for path in (tmp_path / "out" / "logs").glob("*/*.json")]
    seen = {event["event"] for log in logs for event in log["logs"]}
    assert seen >= {
        "join", "start_task", "advance_subtask", "fsa_get_state_transitions", "fsa_state_change", "text_message",
        "fsa_request_task_hint", "perform_action_triggered", "perform_action_response", "status_update",
        "disable_user_input", "enable_user_input", "end_task", "generate_game_token", "operator_quiz_trigger",
        "operator_quiz_response", "post_task_analysis",
    }  # fmt: skip
    for log in logs:
        times = [event["date_created"] for event in log["logs"]]
        assert times == sorted(times)
        (status, *_) = [event["data"] for event in log["logs"] if event["event"] == "status_update"]
        assert status["remaining_seconds"] == 480
        assert status["changes"]


def test_11_the_analysis_is_appended(run: edgen.Run, tmp_path: Path) -> None:
    run.export("crwiz", tmp_path / "out")
    (data,) = open_data_sets([run.folder])
    made = {sample.id: sample for sample in data.samples()}
    for path in (tmp_path / "out" / "logs").glob("*/*.json"):
        found = json.loads(path.read_bytes())["logs"][-1]["data"]
        turns, outcome = made[path.stem].turns, made[path.stem].outcome or {}
        for key, role in (("participant_wizard", "Dispatcher"), ("participant_operator", "Operator")):
            own = [turn.text for turn in turns if turn.role == role]
            assert found[key]["total_turns"] == len(own)
            assert found[key]["total_words"] == sum(len(text.split(" ")) for text in own)
            assert found[key]["disconnected"] is False
        assert found["mission_elapsed_time"] == pytest.approx(outcome["seconds"])
        assert found["mission_end_reason"]["description"] == outcome["reason"]
        assert found["mission_successful"] == outcome["success"]
        assert found["participant_wizard"]["typed_share"] == 0
        assert found["subtask_inspection"]["subtask_elapsed_time"] > 0


def test_12_both_answer_the_questionnaire_joined_by_a_token(desk: Path) -> None:
    plan = plan_for(desk, guided={"questionnaire": "crwiz"})
    result, asked = play(plan, by_role(helper=["1"], caller=["Yes."]))
    answers = result.outcome["questionnaire"]
    assert answers.keys() == {"Helper", "Caller"}
    for said in answers.values():
        rated = [said[item] for item in ("partner", "information", "task", "expected")]
        assert all(type(one) is int and 1 <= one <= 7 for one in rated)
        assert isinstance(said["remarks"], str)
    log = RoomLog("r", result.turns, result.events).as_dict()
    tokens = {event["data"].get("game_token") for event in log["logs"]} - {None}
    assert tokens == {result.outcome["token"]}
    assert any("7 = very difficult" in text_of(one) for one in asked)


def test_13_turns_have_dialogue_acts_of_four_types(run: edgen.Run) -> None:
    (data,) = open_data_sets([run.folder])
    acts = Counter(
        label
        for sample in data.samples()
        for turn in sample.turns
        for label in turn.labels
        if turn.role == "Dispatcher"
    )
    assert acts.keys() == {"Request", "Interaction", "Action", "Update"}
    counted = measure(data, ("acts",)).values["acts"].roles["Dispatcher"].counts
    assert dict(counted) == dict(acts)


def test_14_ratings_are_tested_by_success_and_by_acts(lessons: edgen.Run) -> None:
    (data,) = open_data_sets([lessons.folder])
    value = measure(data, ("ratings",)).values["ratings"]
    by_item = {(one.role, one.item): one for one in value.ratings}
    well, hard = (by_item["Student", item].success for item in ("partner", "task"))
    assert well is not None
    assert hard is not None
    assert well.test.value > 0.5 > hard.test.value, "after a success, 7 for the task is rarer"
    assert by_item["Student", "partner"].acts


def test_15_probabilities_are_learned_and_written_back(tmp_path: Path) -> None:
    of = machine(START, HELLO, ASK, BYE)
    counts = ChoiceCounts()
    for seed in range(200):
        one = course(of, str(seed))
        one.say_state(str(one.offer().hint))
        counts.see(one.events)
    start = learn(of, counts, smoothing=0.0).machine.states["start"]
    assert start.list_weights(("hello", "ask"))["hello"] == pytest.approx(0.9, abs=0.06)
    write_files(dump_machine(learn(of, counts, smoothing=0.0).machine), tmp_path / "m")
    assert load_machine(tmp_path / "m").states["start"].probabilities == start.probabilities
