"""The analysis that CRWIZ's server appends to a room's log, with the keys of its `post_task_analysis`.

Each figure equals what that program computes from the same log. It reports three sub-tasks by name; this
analysis reports every other sub-task of the machine, too. `typed_turns` and `typed_share` count the free text
of the guided role; CRWIZ has no such figures.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from edgen.domains.guided.events import GuidedEvents

HELPER, WIZARD, PARTNER = 2, 3, 4
"""The users' numbers: CRWIZ's programs take those up to 2 for its own bots."""
SUBTASKS = ("inspect", "extinguish", "assess_damage")
"""The sub-tasks that CRWIZ's analysis knows: it takes the first where none began, and the last for
success."""
SUCCESS = SUBTASKS[-1]
Logs = Sequence[Mapping[str, Any]]


def analyse(logs: Logs, events: GuidedEvents) -> dict[str, Any]:
    """Return the analysis of a room's logs, as `RoomLog` makes them, and of its conversation's events."""
    start, end = (
        next((one for one in logs if one["event"] == kind), None) for kind in ("start_task", "end_task")
    )
    advances = [one for one in logs if one["event"] == "advance_subtask"]
    last = advances[-1]["data"]["current_subtask"] if advances else SUBTASKS[0]
    wizard, partner = (_describe_participant(logs, user) for user in (WIZARD, PARTNER))
    typed = sum(one.by == "free" for one in events.choices)
    wizard |= {"typed_turns": typed, "typed_share": typed / max(wizard["total_turns"], 1)}
    overall = _describe_overall(wizard, partner)
    return {
        "mission_start_time": start["date_created"] if start else "",
        "mission_end_time": end["date_created"] if end else "",
        "mission_elapsed_time": round(end["date_created"] - start["date_created"], 3) if start and end else 0,
        **_describe_subtasks(logs, advances, end),
        "mission_end_reason": {
            "id": end["data"]["reason_id"] if end else "",
            "description": end["data"]["reason"] if end else "",
        },
        "participant_wizard": wizard,
        "participant_operator": partner,
        "dialogue_summary": {
            f"{_format_clock(one)}_{one['user']['name'][:4]}_{one['id']}": one["data"]["message"]
            for one in logs
            if one["event"] == "text_message"
        },
        "mission_subtask": last,
        "mission_successful": last == SUCCESS,
        **({"overall_messages": overall} if overall else {}),
    }


def _describe_participant(logs: Logs, user: int) -> dict[str, Any]:
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
        found |= {"first_message": _describe_message(said[0]), "last_message": _describe_message(said[-1])}
    gone = [one["data"]["disconnected_user_id"] for one in logs if one["event"] == "disconnect_end_task"]
    return {**found, "disconnected": gone[-1:] == [user]}


def _describe_message(message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "timestamp": message["date_created"],
        "seconds_since_start": message["data"]["seconds_since_start"],
        "message": message["data"]["message"],
        "message_log_id": message["id"],
    }


def _describe_overall(wizard: Mapping[str, Any], partner: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first message of the guided role, the last of either role, the seconds between them, and the
    number of turns; {} if the guided role wrote none."""
    if "first_message" not in wizard:
        return {}
    last = max((one for one in (wizard, partner) if "last_message" in one), key=_read_last_id)
    return {
        "first_message": {"user_id": wizard["user_id"], **wizard["first_message"]},
        "last_message": {"user_id": last["user_id"], **last["last_message"]},
        "first_last_elapsed_time": round(
            last["last_message"]["timestamp"] - wizard["first_message"]["timestamp"], 3
        ),
        "total_turns": wizard["total_turns"] + partner["total_turns"],
    }


def _read_last_id(participant: Mapping[str, Any]) -> int:
    found: int = participant["last_message"]["message_log_id"]
    return found


def _describe_subtasks(logs: Logs, advances: Logs, end: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the first visit of each sub-task; {} for a sub-task of CRWIZ that never began."""
    begun: dict[str, int] = {}
    for place, one in enumerate(advances):
        begun.setdefault(one["data"]["current_subtask"], place)
    found: dict[str, Any] = {f"subtask_{name}": {} for name in SUBTASKS}
    for name, place in begun.items():
        begin = advances[place]
        after = next(iter(advances[place + 1 :]), end or begin)
        found[f"subtask_{name}"] = _describe_span(logs, begin, after)
    if inspect := found["subtask_inspect"]:
        inspect["messages"]["wizard_turns"] += 1  # CRWIZ counts the greeting that leads to the inspection
    return found


def _describe_span(logs: Logs, begin: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    said = [one for one in logs if one["event"] == "text_message" and begin["id"] < one["id"] <= after["id"]]
    seconds = after["data"]["seconds_since_start"] - begin["data"]["seconds_since_start"]
    return {
        "subtask_elapsed_time": round(seconds, 3),
        "subtask_start_time": _read_times(begin),
        "subtask_end_time": _read_times(after),
        "messages": {
            "operator_turns": sum(one["user"]["id"] == PARTNER for one in said),
            "wizard_turns": sum(one["user"]["id"] == WIZARD for one in said),
        },
    }


def _read_times(log: Mapping[str, Any]) -> dict[str, float]:
    return {"timestamp": log["date_created"], "seconds_since_start": log["data"]["seconds_since_start"]}


def _format_clock(log: Mapping[str, Any]) -> str:
    return datetime.datetime.fromtimestamp(log["date_created"], datetime.UTC).strftime("%H:%M:%S")
