"""CRWIZ's own programs on the export: its analysis of a log, and its reader of states, both as they are in its repository.

JChiyah/crwiz is no package: `git clone https://github.com/JChiyah/crwiz`, then `PYTHONPATH=crwiz python -m pytest
tests/rl/apart/test_crwiz.py`. What they import of the server, which runs on Flask and a database, is put in their place
here: the logs of one room.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from edgen.core import resources
from edgen.domains.guided.export.log import RoomLog
from edgen.domains.guided.machines.dump import dump_for_crwiz, write_files
from edgen.domains.guided.machines.load import load_machine
from tests.domains.guided.records import records, turns_of

_FOUND = importlib.util.find_spec("app")
ROOT = Path(next(iter(_FOUND.submodule_search_locations or ()))) if _FOUND is not None else Path()
_SUBTASKS = {"look": "inspect", "greet": "greet", "repair": "assess_damage"}  # by the names that it knows


def module(name: str, **members: Any) -> ModuleType:
    """A module of that name with these members; a package, too."""
    made = ModuleType(name)
    made.__dict__.update(members, __path__=[])
    sys.modules[name] = made
    return made


class Server:
    """What the analysis asks CRWIZ's database for, out of one log."""

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


def test_its_analysis_finds_what_ours_says(server: Server) -> None:
    analysis = importlib.import_module("app.crwiz.utils.post_task_analysis")
    compared = 0
    for one in records(40)[0]:
        for event in one["events"]:
            for key in ("from", "to"):
                if event["event"] == "subtask" and event[key]:
                    event[key] = _SUBTASKS[event[key]]
        log = RoomLog(one["id"], turns_of(one), one["events"]).as_dict()
        *server.logs, last = log["logs"]
        assert last["event"] == "post_task_analysis"
        theirs, ours = analysis.perform_post_task_analysis(one["id"]), last["data"]
        if theirs["subtask_inspect"]:
            # it takes the first message for one before the task
            theirs["subtask_inspect"]["messages"]["wizard_turns"] -= 1
        for key, value in theirs.items():
            if key.startswith("subtask_") and not value:
                assert key not in ours
            elif isinstance(value, dict) and key != "dialogue_summary":
                assert {name: ours[key][name] for name in value} == approximately(value), key
            else:
                assert ours[key] == approximately(value), key
            compared += 1
    assert compared > 400
    assert len(server.written) == 40


def test_its_reader_of_states_reads_ours(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = load_machine(resources.find("machines", "incident_response"))
    write_files(dump_for_crwiz(machine), tmp_path / "states")
    monkeypatch.chdir(tmp_path)  # it copies what it reads to the folder at hand
    read = importlib.import_module("app.crwiz.dialogue_state").load_dialogue_states(str(tmp_path / "states"))
    assert {*read} == {*machine.states, *machine.fixed}
    for name, state in machine.states.items():
        theirs = read[name]
        assert tuple(theirs.formulations) == state.formulations
        assert tuple(theirs.transitions) == state.transitions
        assert theirs.subtask == state.subtask
        for target in state.transitions:
            assert theirs.get_transition_probability(target) == pytest.approx(
                state.weights(state.transitions)[target]
            )


def approximately(value: Any) -> Any:
    """The value; numbers may differ by what adding to a date rounds away."""
    if isinstance(value, dict):
        return {key: approximately(one) for key, one in value.items()}
    return pytest.approx(value, abs=1e-5) if isinstance(value, float) else value
