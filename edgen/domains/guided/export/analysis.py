"""The analysis that CRWIZ's server puts behind a room's log, by the names of its `post_task_analysis`.

It knows three sub-tasks by their names and takes the last for success; here every sub-task is told of, and
success is what the machine says of its end. The first thing said is no exception here, as every log begins
with its task. `typed_turns` and `typed_share` count what the one who is guided wrote freely; CRWIZ has no
such figures.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from edgen.domains.guided.events import GuidedEvents

HELPER, WIZARD, PARTNER = 2, 3, 4
"""The users' numbers: CRWIZ's programs take those up to 2 for its own bots."""
Logs = Sequence[Mapping[str, Any]]


def analyse(logs: Logs, events: GuidedEvents) -> dict[str, Any]:
    """What is found in the logs of a room, as `RoomLog` has them, and in its conversation's events."""
    start, end = (
        next((one for one in logs if one["event"] == kind), None) for kind in ("start_task", "end_task")
    )
    advances = [one for one in logs if one["event"] == "advance_subtask"]
    wizard, partner = (_participant(logs, user) for user in (WIZARD, PARTNER))
    typed = sum(one.by == "free" for one in events.choices)
    wizard |= {"typed_turns": typed, "typed_share": typed / max(wizard["total_turns"], 1)}
    return {
        "mission_start_time": start["date_created"] if start else "",
        "mission_end_time": end["date_created"] if end else "",
        "mission_elapsed_time": round(end["date_created"] - start["date_created"], 3) if start and end else 0,
        **_subtasks(logs, advances, end),
        "mission_end_reason": {
            "id": end["data"]["reason_id"] if end else "",
            "description": end["data"]["reason"] if end else "",
        },
        "participant_wizard": wizard,
        "participant_operator": partner,
        "dialogue_summary": {
            f"{_clock(one)}_{one['user']['name'][:4]}_{one['id']}": one["data"]["message"]
            for one in logs
            if one["event"] == "text_message"
        },
        "mission_subtask": advances[-1]["data"]["current_subtask"] if advances else None,
        "mission_successful": events.end.success if events.end else None,
        "overall_messages": _overall(wizard, partner),
    }


def _participant(logs: Logs, user: int) -> dict[str, Any]:
    said = [one for one in logs if one["event"] == "text_message" and one["user"]["id"] == user]
    token = next(
        (one for one in logs if one["event"] == "generate_game_token" and one["user"]["id"] == user), None
    )
    words = sum(len(one["data"]["message"].split(" ")) for one in said)
    found: dict[str, Any] = {
        "user_id": user,
        "game_token": token["data"]["game_token"] if token else "",
        "total_turns": len(said),
        "total_words": words,
        "mean_words_per_turn": words / len(said) if said else 0,
    }
    if said:
        found |= {"first_message": _told(said[0]), "last_message": _told(said[-1])}
    return {**found, "disconnected": False}


def _told(message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "timestamp": message["date_created"],
        "seconds_since_start": message["data"]["seconds_since_start"],
        "message": message["data"]["message"],
        "message_log_id": message["id"],
    }


def _overall(wizard: Mapping[str, Any], partner: Mapping[str, Any]) -> dict[str, Any]:
    """From the first message of the one who is guided to the last of either."""
    if "first_message" not in wizard:
        return {}
    last = max((one for one in (wizard, partner) if "last_message" in one), key=_last_id)
    return {
        "first_message": {"user_id": wizard["user_id"], **wizard["first_message"]},
        "last_message": {"user_id": last["user_id"], **last["last_message"]},
        "first_last_elapsed_time": round(
            last["last_message"]["timestamp"] - wizard["first_message"]["timestamp"], 3
        ),
        "total_turns": wizard["total_turns"] + partner["total_turns"],
    }


def _last_id(participant: Mapping[str, Any]) -> int:
    found: int = participant["last_message"]["message_log_id"]
    return found


def _subtasks(logs: Logs, advances: Logs, end: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return each sub-task, the first time."""
    found: dict[str, Any] = {}
    for begin, after in pairwise([*advances, end or logs[-1]]):
        said = [
            one for one in logs if one["event"] == "text_message" and begin["id"] < one["id"] <= after["id"]
        ]
        found.setdefault(
            f"subtask_{begin['data']['current_subtask']}",
            {
                "subtask_elapsed_time": round(
                    after["data"]["seconds_since_start"] - begin["data"]["seconds_since_start"], 3
                ),
                "subtask_start_time": _when(begin),
                "subtask_end_time": _when(after),
                "messages": {
                    "operator_turns": sum(one["user"]["id"] == PARTNER for one in said),
                    "wizard_turns": sum(one["user"]["id"] == WIZARD for one in said),
                },
            },
        )
    return found


def _when(log: Mapping[str, Any]) -> dict[str, float]:
    return {"timestamp": log["date_created"], "seconds_since_start": log["data"]["seconds_since_start"]}


def _clock(log: Mapping[str, Any]) -> str:
    return datetime.datetime.fromtimestamp(log["date_created"], datetime.UTC).strftime("%H:%M:%S")
