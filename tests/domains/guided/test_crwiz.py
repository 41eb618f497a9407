"""CRWIZ's logs and dialogue acts, from records with known contents. CRWIZ's own programs read them in
tests/rl/apart."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core import resources
from edgen.core.pair import Candidate
from edgen.core.values import Scenario, Turn
from edgen.domains.guided.crwiz_files import read
from edgen.domains.guided.export.log import START, RoomLog
from edgen.domains.guided.machines.load import load_machine
from edgen.evaluation.comparison.run_arms import open_comparison
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measuring import measure
from edgen.export.write import export
from edgen.families.dialogue import DIALOGUE
from edgen.space import Dimension, Entry, Space, SpaceRole
from edgen.store.run_parts import AcceptedConversation
from tests.domains.guided.records import ITEMS, LEADS, records, turns_of
from tests.export.runs import FORMATS, MemoryRun

SPACE = Space(
    name="harbour",
    dimensions=(Dimension("place", (Entry("harbour"),)),),
    roles=(SpaceRole("Wizard", ("place",)), SpaceRole("Operator", ())),
)
PLANTED, TRUTH = records(60)


def accepted(index: int, record: dict[str, Any]) -> AcceptedConversation:
    turns = turns_of(record)
    found = Candidate(
        id=record["id"], scenario=index, replicate=0, turns=turns, ended_by=None, simulated=True
    )
    side = "test" if index % 5 == 0 else "train"
    return AcceptedConversation(found, Scenario(index, record["scenario"]), side, record, turns, {})  # type: ignore[arg-type]


RUN: Any = MemoryRun([accepted(*one) for one in enumerate(PLANTED)], None, space=SPACE, family=DIALOGUE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crwiz") / "out"
    exported = export(RUN, FORMATS["crwiz"], path)
    assert exported.rows == {
        "logs": {"train": 48, "test": 12}, "questionnaires": {"train": 96, "test": 24}
    }  # fmt: skip
    return path


@pytest.fixture(scope="module")
def logs(folder: Path) -> list[dict[str, Any]]:
    paths = sorted((folder / "logs").glob("*/*.json"), key=lambda path: path.name)
    assert [path.stem for path in paths] == [one["id"] for one in PLANTED]
    return [json.loads(path.read_bytes()) for path in paths]


def events(logs: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for log in logs for event in log["logs"] if event["event"] == kind]


def test_a_log_is_laid_out_as_the_example(logs: list[dict[str, Any]], shared_data: Path) -> None:
    example = json.loads((shared_data / "crwiz_log_shape_example.json").read_bytes())
    known = {event["event"]: event for event in example["logs"]}
    for log in logs:
        assert log.keys() >= example.keys() - {"_note"}
        assert log["type"] == example["type"]
        assert log["description"] == example["description"]
        for event in log["logs"]:
            assert [*event] == [*example["logs"][0]]
            if shape := known.get(event["event"]):
                assert event["data"].keys() == shape["data"].keys(), event["event"]
    (first,) = [event for event in logs[0]["logs"] if event["event"] == "start_task"]
    assert first["data"]["users"] == known["start_task"]["data"]["users"] == {"3": "Fred", "4": "Operator"}


def test_what_was_planted_is_logged(logs: list[dict[str, Any]]) -> None:
    changes = Counter(
        (one["data"]["previous_state"], one["data"]["current_state"])
        for one in events(logs, "fsa_state_change")
    )
    assert changes == TRUTH.moves + Counter({("", "start"): 60})
    hints = events(logs, "fsa_request_task_hint") + events(logs, "fsa_request_task_hint_again")
    assert len(hints) == TRUTH.hints
    assert events(logs, "fsa_request_task_hint_again"), "asked for again in the same state"
    assert {one["data"]["probability"] for one in hints} == {1.0, 0.5}
    for one in events(logs, "fsa_get_state_transitions"):
        offered = [option["state_name"] for option in one["data"]["possible_utterances"]]
        assert offered == LEADS[one["data"]["current_state"]]
    assert Counter(one["data"]["reason_id"] for one in events(logs, "end_task")) == TRUTH.reasons
    fixes = TRUTH.moves["report", "fix"]
    for kind in ("perform_action_triggered", "perform_action_response", "status_update"):
        assert len(events(logs, kind)) == fixes, kind
    assert len(events(logs, "disable_user_input")) == len(events(logs, "enable_user_input")) > 0
    assert len(events(logs, "generate_game_token")) == 120


def test_messages_are_the_turns_in_their_order(logs: list[dict[str, Any]]) -> None:
    users = {"Wizard": (3, "Fred"), "Operator": (4, "Operator")}
    for log, record in zip(logs, PLANTED, strict=True):
        said = [event for event in log["logs"] if event["event"] == "text_message"]
        assert [(one["user"]["id"], one["user"]["name"], one["data"]["message"]) for one in said] == [
            (*users[turn["role"]], turn["text"]) for turn in record["conversation"]
        ]
        assert [event["id"] for event in log["logs"]] == [*range(1, len(log["logs"]) + 1)]
        dates = [event["date_created"] for event in log["logs"]]
        assert all(a <= b for a, b in pairwise(dates))
        assert dates[0] == START
        assert log["date_extracted"] == dates[-1]
        # the guided role's text comes right before the state that it leads to
        for one, next_ in pairwise(log["logs"]):
            if next_["event"] == "fsa_state_change" and next_["data"]["previous_state"]:
                assert one["data"]["message"] == next_["data"]["utterance"]


def test_the_analysis_adds_up(logs: list[dict[str, Any]]) -> None:
    found = [log["logs"][-1]["data"] for log in logs]
    assert sum(one["mission_successful"] for one in found) == TRUTH.successes
    assert sum(one["participant_wizard"]["typed_turns"] for one in found) == TRUTH.by["free"]
    assert sum(one["participant_wizard"]["total_turns"] for one in found) == sum(TRUTH.by.values())
    for name, spent in TRUTH.subtasks.items():
        told = [one[f"subtask_{name}"] for one in found if one.get(f"subtask_{name}")]
        assert [one["subtask_elapsed_time"] for one in told] == pytest.approx(spent)
    for one, took in zip(found, TRUTH.durations, strict=True):
        assert one["mission_elapsed_time"] == pytest.approx(took)
        assert one["overall_messages"]["total_turns"] == len(one["dialogue_summary"])


@pytest.mark.parametrize("success", [True, False, None])
@pytest.mark.parametrize("subtask", ["look", "assess_damage", None])
def test_success_is_what_the_last_sub_task_says(success: bool | None, subtask: str | None) -> None:
    """CRWIZ's analysis has one rule: the last sub-task is assess_damage."""
    told: list[dict[str, Any]] = [{"event": "chosen", "time": 0, "turn": 0, "by": "free", "state": None}]
    if subtask is not None:
        told += [{"event": "subtask", "time": 1, "turn": 0, "from": None, "to": subtask}]
    told += [{"event": "end", "time": 5, "turn": 1, "reason": "over", "success": success}]
    log = RoomLog("room", (Turn("Wizard", "Hello."),), told).as_dict()
    advances = [one for one in log["logs"] if one["event"] == "advance_subtask"]
    last = advances[-1]["data"]["current_subtask"] if advances else "inspect"
    expected = subtask == "assess_damage" if success is None else success
    assert (last == "assess_damage") == expected
    analysis = log["logs"][-1]["data"]
    assert (analysis["mission_subtask"], analysis["mission_successful"]) == (last, expected)
    found = read(log)
    assert found.outcome == {"reason": "over", "success": success}
    read_back = [one["to"] for one in found.events if one["event"] == "subtask"]
    assert read_back == ([] if subtask is None else [subtask])


@pytest.mark.parametrize(
    ("reason", "known", "more"),
    [
        ("partner_left", "user_triggered", [("user_end_task", 4, set())]),
        ("user_triggered", "user_triggered", [("user_end_task", 3, set())]),
        (
            *("user_disconnected", "user_disconnected"),
            [("disconnect", 4, set()), ("disconnect_end_task", 2, {"disconnected_user_id"})],
        ),
        ("time_out", "time_out", []),
        ("fire_out", "unspecified", []),
    ],
)
def test_who_ends_a_task_is_logged_as_crwiz_does(
    reason: str, known: str, more: list[tuple[str, int, set[str]]]
) -> None:
    turns = (Turn("Wizard", "Hello."), Turn("Operator", "Yes?"), Turn("Wizard", "Are you there?"))
    told = [
        {"event": "chosen", "time": 0, "turn": 0, "by": "free", "state": None},
        {"event": "end", "time": 9, "turn": 3, "reason": reason, "success": None},
    ]
    *logs, analysis = RoomLog("room", turns, told).as_dict()["logs"]
    (end,) = [place for place, one in enumerate(logs) if one["event"] == "end_task"]
    assert (logs[end]["data"]["reason_id"], logs[end]["data"]["reason"]) == (known, reason)
    before = [one for one in logs[:end] if "disconnect" in one["event"] or "user_end" in one["event"]]
    assert [
        (one["event"], one["user"]["id"], {*one["data"]} - {"seconds_since_start"}) for one in before
    ] == more
    gone = analysis["data"]["participant_operator"]["disconnected"]
    assert gone == (reason == "user_disconnected")
    assert not analysis["data"]["participant_wizard"]["disconnected"]


def test_a_questionnaire_without_readable_answers_times_out() -> None:
    told = [
        {"event": "chosen", "time": 0, "turn": 0, "by": "free", "state": None},
        {"event": "end", "time": 9, "turn": 2, "reason": "over", "success": True},
        {"event": "unanswered", "time": 9, "turn": 2, "role": "Operator", "token": "AB"},
    ]
    log = RoomLog("room", (Turn("Wizard", "Hello."), Turn("Operator", "Yes.")), told).as_dict()
    kinds = [one["event"] for one in log["logs"]]
    assert kinds[-4:-1] == ["generate_game_token", "operator_quiz_trigger", "operator_quiz_timeout"]


def test_answers_are_joined_to_logs_by_tokens(folder: Path, logs: list[dict[str, Any]]) -> None:
    lines = [
        json.loads(line)
        for split in ("train", "test")
        for line in (folder / "questionnaires" / f"{split}.jsonl").read_text().splitlines()
    ]
    tokens = {one["data"]["game_token"]: one["room"] for one in events(logs, "generate_game_token")}
    assert {one["game_token"]: one["room"] for one in lines} == tokens
    assert all([a["item"] for a in one["answers"]] == [*ITEMS] for one in lines)
    assert {a["answer"] for one in lines for a in one["answers"]} == {2, 3, 4, 5, 6, 7}
    assert all(one["remarks"] == [{"item": "more", "answer": "Went well."}] for one in lines)
    by_token = {one["game_token"]: one for one in lines if one["role"] == "Operator"}
    for log in logs:
        mine = [event for event in log["logs"] if event["user"]["id"] == 4]
        (token,) = [one["data"]["game_token"] for one in mine if one["event"] == "generate_game_token"]
        said = [one for one in mine if one["event"].startswith("operator_quiz_")]
        assert [one["event"] for one in said] == ["operator_quiz_trigger", "operator_quiz_response"]
        told = {a["item"]: a["answer"] for key in ("answers", "remarks") for a in by_token[token][key]}
        assert said[1]["data"]["answers"] == told


def test_the_same_run_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    export(RUN, FORMATS["crwiz"], tmp_path / "again")
    for path in folder.rglob("*.json*"):
        assert (tmp_path / "again" / path.relative_to(folder)).read_bytes() == path.read_bytes()


def test_a_third_role_is_another_user_and_nobody_s_turn_is_lost() -> None:
    turns = (Turn("Guide", "Hello."), Turn("A", "Hi."), Turn("B", "Yes."), Turn("Guide", "Bye."))
    told = [
        {"event": "chosen", "time": 0, "turn": 0, "by": "state", "state": "hello", "utterance": "Hello."},
        {"event": "chosen", "time": 9, "turn": 3, "by": "state", "state": "bye", "utterance": "Bye."},
    ]
    log = RoomLog("room", turns, told).as_dict()
    assert log["roles"] == {"3": "Guide", "4": "A", "5": "B"}
    said = [one for one in log["logs"] if one["event"] == "text_message"]
    assert [(one["user"]["name"], one["data"]["message"]) for one in said] == [
        ("Fred", "Hello."), ("Operator", "Hi."), ("B", "Yes."), ("Fred", "Bye."),
    ]  # fmt: skip


def test_dialogue_acts_are_a_row_a_turn(tmp_path: Path) -> None:
    exported = export(RUN, FORMATS["dialogue-acts"], tmp_path / "out")
    rows = [
        json.loads(line)
        for split in ("test", "train")
        for line in (tmp_path / "out" / f"{split}.jsonl").read_text().splitlines()
    ]
    assert (
        len(rows)
        == sum(exported.rows["default"].values())
        == sum(len(one["conversation"]) for one in PLANTED)
    )
    assert Counter(act for row in rows for act in row["acts"]) == TRUTH.acts
    by_id = {one["id"]: one["conversation"] for one in PLANTED}
    for row in rows:
        turn = by_id[row["conversation"]][row["turn"]]
        assert (row["role"], row["text"]) == (turn["role"], turn["text"])
        state = turn["data"].get("state", "") if turn["data"].get("by") != "fixed" else ""
        assert row["state"] == state


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    """Generate conversations with the protocol: one arm chooses at random, the other always the likeliest
    option."""
    job = {
        "name": "desk",
        "seed": 3,
        "conversations": 3,
        "space": "incident_response",
        "protocol": "guided",
        "prompts": {
            "partner": "guided_partner",
            "questionnaire": "guided_questionnaire",
        },
        "guided": {"machine": "incident_response", "chooser": "chance"},
        "backends": {"default": {"type": "simulator"}},
        "arms": {"chance": {}, "likeliest": {"guided": {"chooser": "likeliest"}}},
    }
    return edgen.generate(job, output=tmp_path_factory.mktemp("desk") / "run", progress=False)


def test_what_the_protocol_makes_is_logged_whole(run: edgen.Run, tmp_path: Path) -> None:
    run.export("crwiz", tmp_path / "out")
    made = {one.id: one for data in open_data_sets([run.folder]) for one in data.samples()}
    paths = [*(tmp_path / "out" / "logs").glob("*/*.json")]
    assert {path.stem for path in paths} == {*made}
    assert len(made) == 6
    for path in paths:
        log, one = json.loads(path.read_bytes()), made[path.stem]
        assert log["roles"] == {"3": "Dispatcher", "4": "Operator"}
        said = [event for event in log["logs"] if event["event"] == "text_message"]
        assert [event["data"]["message"] for event in said] == [turn.text for turn in one.turns]
        assert all(a["date_created"] <= b["date_created"] for a, b in pairwise(log["logs"]))
        (end,) = [event for event in log["logs"] if event["event"] == "end_task"]
        assert one.outcome is not None
        assert end["data"]["reason"] == one.outcome["reason"]
        analysis = log["logs"][-1]["data"]
        assert analysis["mission_elapsed_time"] == pytest.approx(one.outcome["seconds"])
        assert analysis["mission_successful"] == one.outcome["success"]
        assert (analysis["mission_subtask"] == "assess_damage") == one.outcome["success"]
        assert all(event["event"] == "end_task" for event in log["logs"] if event["data"].get("reason_id"))
    states = load_machine(tmp_path / "out" / "dialogue_states").states
    shipped = load_machine(resources.find("machines", "incident_response"))
    assert states.keys() == shipped.states.keys()
    for name, state in shipped.states.items():
        assert states[name].formulations == state.formulations
        assert states[name].list_weights(state.transitions) == pytest.approx(
            state.list_weights(state.transitions)
        )


def test_measures_and_comparison_of_what_the_protocol_makes(run: edgen.Run) -> None:
    chance, likeliest = ((run.folder / "arms" / arm) for arm in ("chance", "likeliest"))
    (data,) = open_data_sets([chance])
    assert data.guide is not None
    values = measure(data, ("states", "guidance", "endings", "acts", "ratings")).values
    states = values["states"]
    assert states.states == sum(bool(state.formulations) for state in data.guide.states.values())
    assert len(states.never) + len(states.visited) == states.states
    assert 0 < states.covered < states.transitions
    assert states.choices == sum(values["acts"].roles["Dispatcher"].counts.values())
    assert values["guidance"].typed.value == 0
    (always,) = open_data_sets([likeliest])
    assert len(measure(always, ("states",)).values["states"].visited) <= len(states.visited)
    with open_comparison([run.folder]) as found:
        metrics = {one.name: one for one in found.metrics}
        followed = metrics["hints_followed"].arms["chance"].value
        assert followed == pytest.approx(values["guidance"].followed.value, abs=1e-5)
        assert metrics["task_done"].arms["chance"].value == values["endings"].success.value
        assert metrics["duration"].arms["chance"].value == pytest.approx(
            values["endings"].duration.mean, abs=1
        )
