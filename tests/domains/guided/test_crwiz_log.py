"""Logs of CRWIZ's rooms, from edgen and from other programs, read as conversations."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.api.validating import validate
from edgen.core.errors import DataError
from edgen.domains.guided.crwiz_files import find_inconsistencies, read
from edgen.domains.guided.export.log import RoomLog
from edgen.domains.guided.read_crwiz import READER as CRWIZ_LOGS
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measuring import measure
from edgen.evaluation.sample import DataSet
from edgen.families.dialogue import DIALOGUE
from edgen.families.reader import find_reader_of_record
from edgen.validation.schema import conforms
from tests.domains.guided.records import records, sample, turns_of

PLANTED, TRUTH = records(30)
LOGS = [RoomLog(one["id"], turns_of(one), one["events"]).as_dict() for one in PLANTED]
ONLY = ("endings", "subtasks", "guidance", "states")


def write(folder: Path, logs: list[dict[str, Any]]) -> Path:
    for log in logs:
        (folder / f"{log['name']}.json").write_text(json.dumps(log, indent=4, ensure_ascii=False))
    return folder


def test_a_log_says_what_the_record_said(tmp_path: Path) -> None:
    (data,) = open_data_sets([write(tmp_path, LOGS)])
    assert data.family is CRWIZ_LOGS
    records_ = DataSet(
        name="x", samples=lambda: map(sample, PLANTED, range(30)), family=DIALOGUE, roles=()
    )  # fmt: skip
    assert measure(data, ONLY).values == measure(records_, ONLY).values
    for one, log in zip(PLANTED, LOGS, strict=True):
        found = read(log)
        assert [(turn.role, turn.text) for turn in found.speech.turns] == [
            (turn["role"], turn["text"]) for turn in one["conversation"]
        ]
        assert found.outcome == one["outcome"]


def test_a_log_is_valid_in_either_layout_of_its_file(tmp_path: Path) -> None:
    assert all(conforms(log, "crwiz_log") for log in LOGS)
    report = validate([write(tmp_path, LOGS)])
    assert (report.records, report.valid, report.sound) == (30, 30, True)
    (tmp_path / "one.json").write_text(json.dumps(LOGS[0]))
    assert validate([tmp_path / "one.json"]).valid == 1


def test_what_is_wrong_with_a_log_is_told(tmp_path: Path) -> None:
    log = copy.deepcopy(LOGS[0])
    moves = [place for place, one in enumerate(log["logs"]) if one["event"] == "fsa_state_change"]
    log["logs"][moves[2]]["data"]["previous_state"] = "elsewhere"
    log["logs"][5]["id"] = 2
    told = dict(find_inconsistencies(log))
    assert told[f"$.logs[{moves[2]}].data.previous_state"].endswith("not in 'elsewhere'")
    assert "2 comes after 5" in told["$.logs[5].id"]
    assert list(find_inconsistencies(LOGS[0])) == []
    del log["logs"][3]["user"]
    (tmp_path / "log.json").write_text(json.dumps(log, indent=1))
    problems = [one.path for file in validate([tmp_path / "log.json"]).files for one in file.problems]
    assert "$.logs[3].user" in problems


def test_the_shape_that_was_published_is_a_log_without_words(shared_data: Path, tmp_path: Path) -> None:
    """The published example has no message; with a message added, it is a conversation without texts by
    edgen."""
    example = json.loads((shared_data / "crwiz_log_shape_example.json").read_bytes())
    assert find_reader_of_record(example) is CRWIZ_LOGS
    assert conforms(example, "crwiz_log")
    with pytest.raises(ValueError, match="nobody says anything"):
        read(example)
    said = {
        "event": "text_message",
        "data": {"receiver": None, "message": "Hello world!", "seconds_since_start": 2},
    }
    example["logs"].insert(3, {**example["logs"][0], **said})
    example["logs"].append(
        {
            **said,
            **{k: example["logs"][0][k] for k in ("id", "date_created")},
            "user": {"id": 4, "name": "Operator"},
        }
    )
    example["logs"].append({**said, "user": {"id": 2, "name": "HelperBot"}})
    found = read(example)
    assert [turn.role for turn in found.speech.turns] == ["Fred", "Operator"]
    (chosen,) = [one for one in found.events if one["event"] == "chosen"]
    assert (chosen["by"], chosen["state"], chosen["followed_hint"]) == ("state", "intro_hello", None)


def test_a_log_that_is_cut_off_is_a_sentence(tmp_path: Path) -> None:
    text = json.dumps(LOGS[0], indent=4)
    for end in (len(text) // 3, len(text) - 2):
        (tmp_path / "cut.json").write_text(text[:end])
        with pytest.raises(DataError, match="it is not valid JSON"):
            open_data_sets([tmp_path / "cut.json"])


def _has_words(one: dict[str, Any]) -> bool:
    data, user = one.get("data"), one.get("user")
    number = user.get("id") if isinstance(user, dict) else None
    said = data.get("message") if isinstance(data, dict) else None
    return isinstance(said, str) and said != "" and type(number) is int and number > 2


@pytest.mark.parametrize("wrong", [None, True, 3, "", [], {}])
def test_an_event_of_any_kind_may_have_anything_under_any_key(wrong: Any) -> None:
    kinds = {one["event"]: place for place, one in enumerate(LOGS[0]["logs"])}
    for place in kinds.values():
        one = LOGS[0]["logs"][place]
        events = [{**one, key: wrong} for key in one]
        events += [{**one, "data": {**one["data"], key: wrong}} for key in one["data"]]
        for event in events:
            logs = [*LOGS[0]["logs"]]
            logs[place] = event
            log = {**LOGS[0], "logs": logs}
            assert read(log).speech.turns
            list(find_inconsistencies(log))


@settings(max_examples=15)
@given(st.data())
def test_whatever_stands_in_a_log_it_is_read_or_refused(data: st.DataObject) -> None:
    log = copy.deepcopy(LOGS[data.draw(st.integers(0, 29))])
    anything = (
        st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3) | st.just([]) | st.just({})
    )
    for _ in range(data.draw(st.integers(1, 4))):
        one = log["logs"][data.draw(st.integers(0, len(log["logs"]) - 1))]
        if not isinstance(one, dict):
            continue
        inner = one.get(data.draw(st.sampled_from(["data", "user"])))
        target = data.draw(st.sampled_from([one, inner if isinstance(inner, dict) and inner else one]))
        if target:
            target[data.draw(st.sampled_from(sorted(target)))] = data.draw(anything)
    try:
        found = read(log)
    except ValueError:
        assert not any(one.get("event") == "text_message" and _has_words(one) for one in log["logs"])
    else:
        assert measure(DataSet(name="x", samples=lambda: iter([sample({**PLANTED[0], "events": found.events}, 0)]),
                               family=DIALOGUE, roles=()), ONLY)  # fmt: skip
    list(find_inconsistencies(log))
