"""CRWIZ's own programs on the export: its analysis of a log, and its reader of states, both unchanged.

JChiyah/crwiz is no package: `git clone https://github.com/JChiyah/crwiz`, then `PYTHONPATH=crwiz python -m
pytest tests/rl/apart/test_crwiz.py`. These tests replace the modules that they import of the server, which
runs on Flask and a database: the logs of one room.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import edgen
from edgen.core import resources
from edgen.domains.guided.export.log import RoomLog
from edgen.domains.guided.machines.dump import dump_for_crwiz, write_files
from edgen.domains.guided.machines.load import load_machine
from edgen.evaluation.data_sets import open_data_sets
from tests.domains.guided.records import records, turns_of

_FOUND = importlib.util.find_spec("app")
ROOT = Path(next(iter(_FOUND.submodule_search_locations or ()))) if _FOUND is not None else Path()
_NAMES = (
    {},
    {"look": "inspect", "repair": "assess_damage"},
)  # the machine's sub-tasks, edgen's and those of CRWIZ


def module(name: str, **members: Any) -> ModuleType:
    """Return a module of that name with these members; a package, too."""
    made = ModuleType(name)
    made.__dict__.update(members, __path__=[])
    sys.modules[name] = made
    return made


class Server:
    """A replacement for CRWIZ's database that answers the analysis from one log."""

    def __init__(self) -> None:
        self.logs: list[dict[str, Any]] = []
        self.written: list[dict[str, Any]] = []

    def of_event(self, _room: str, event: str, order_desc: bool = True) -> list[dict[str, Any]]:
        found = [one for one in self.logs if one["event"] == event]
        return found[::-1] if order_desc else found

    def of_user(self, user: int, event: str, order_desc: bool = True) -> list[dict[str, Any]]:
        return [one for one in self.of_event("", event, order_desc) if one["user"]["id"] == user]

    def messages_of(self, user: int, order_desc: bool = True) -> list[dict[str, Any]]:
        return self.of_user(user, "text_message", order_desc)

    def messages_in(self, room: str, minimum_id: int = 0, bot_msgs: bool = False) -> list[dict[str, Any]]:
        found = [one for one in self.of_event(room, "text_message") if one["id"] > minimum_id]
        return [one for one in found if bot_msgs or one["user"]["id"] > 2]

    def user(self, number: int) -> SimpleNamespace:
        tokens = self.of_user(number, "generate_game_token")
        return SimpleNamespace(game_token=tokens[0]["data"]["game_token"] if tokens else "")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    made = Server()
    for name in ("app", "app.api", "app.models"):
        module(name)
    module("app.api.log", log_event=lambda *_, data, **__: made.written.append(data))
    module("app.models.log", get_room_logs_for_event=made.of_event, get_user_logs_for_event=made.of_user)
    module(
        "app.models.user",
        User=SimpleNamespace(query=SimpleNamespace(get=made.user)),
        get_user_messages=made.messages_of,
    )
    module(
        "app.models.room",
        Room=SimpleNamespace(query=SimpleNamespace(get=str)),
        get_room_user_messages=made.messages_in,
    )
    module("app.crwiz", logger_crwiz=logging.getLogger("crwiz")).__path__ = [str(ROOT / "crwiz")]
    yield made
    for name in [name for name in sys.modules if name.split(".")[0] == "app"]:
        del sys.modules[name]


@pytest.mark.parametrize("names", _NAMES)
def test_its_analysis_finds_what_ours_says(server: Server, names: dict[str, str]) -> None:
    analysis = importlib.import_module("app.crwiz.utils.post_task_analysis")
    compared = 0
    for one in records(60)[0]:
        for event in one["events"]:
            for key in ("from", "to"):
                if event["event"] == "subtask" and event[key]:
                    event[key] = names.get(event[key], event[key])
        log = RoomLog(one["id"], turns_of(one), one["events"]).as_dict()
        compared += compare(server, analysis, log)
        assert server.written[-1]["mission_successful"] == one["outcome"]["success"]
    assert compared > 600
    assert len(server.written) == 60


def test_its_analysis_agrees_about_success_of_conversations_that_edgen_made(
    server: Server, tmp_path: Path
) -> None:
    analysis = importlib.import_module("app.crwiz.utils.post_task_analysis")
    for machine in ("incident_response", "lesson_plan"):
        job = {
            "name": machine,
            "seed": 3,
            "conversations": 8,
            "space": machine,
            "protocol": "guided",
            "prompts": {"partner": "guided_partner", "questionnaire": "guided_questionnaire"},
            "guided": {"machine": machine, "chooser": "chance"},
            "backends": {"default": {"type": "simulator"}},
        }
        run = edgen.generate(job, output=tmp_path / machine, progress=False)
        run.export("crwiz", tmp_path / f"{machine}-logs")
        paths = [*(tmp_path / f"{machine}-logs" / "logs").glob("*/*.json")]
        logs = {path.stem: json.loads(path.read_bytes()) for path in paths}
        (data,) = open_data_sets([run.folder])
        outcomes = {one.id: one.outcome for one in data.samples()}
        assert logs.keys() == outcomes.keys()
        for name, log in logs.items():
            compare(server, analysis, log)
            assert server.written[-1]["mission_successful"] == (outcomes[name] or {})["success"], name
    assert len({one["mission_successful"] for one in server.written}) == 2


def compare(server: Server, analysis: ModuleType, log: dict[str, Any]) -> int:
    """Return the number of a log's figures that equal those of CRWIZ's program."""
    *server.logs, last = log["logs"]
    assert last["event"] == "post_task_analysis"
    theirs, ours = analysis.perform_post_task_analysis(log["name"]), last["data"]
    for key, value in theirs.items():
        if isinstance(value, dict) and key.startswith("participant_"):
            assert {name: ours[key][name] for name in value} == approximately(value), key
        else:
            assert ours[key] == approximately(value), key
    return len(theirs)


def test_its_reader_of_states_reads_ours(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = load_machine(resources.find("machines", "incident_response"))
    write_files(dump_for_crwiz(machine), tmp_path / "states")
    monkeypatch.chdir(tmp_path)  # it copies its input to the current folder
    read = importlib.import_module("app.crwiz.dialogue_state").load_dialogue_states(str(tmp_path / "states"))
    assert {*read} == {*machine.states, *machine.fixed}
    for name, state in machine.states.items():
        theirs = read[name]
        assert tuple(theirs.formulations) == state.formulations
        assert tuple(theirs.transitions) == state.transitions
        assert theirs.subtask == state.subtask
        for target in state.transitions:
            assert theirs.get_transition_probability(target) == pytest.approx(
                state.list_weights(state.transitions)[target]
            )


def approximately(value: Any) -> Any:
    """Return the value; numbers may differ by the rounding of sums with dates."""
    if isinstance(value, dict):
        return {key: approximately(one) for key, one in value.items()}
    return pytest.approx(value, abs=1e-5) if isinstance(value, float) else value
