"""A reader of room logs in the layout of CRWIZ's server (`log_utils.get_room_logs` of JChiyah/crwiz), which
`edgen export --to crwiz` writes, too. It turns them into guided conversations, for counts and comparisons.

Users with numbers above 2 are people; the others are bots. A sub-task that a bot begins does not count. Logs
have no dialogue acts, and only the operator's answers to questionnaires. CRWIZ's own logs do not distinguish
a fixed reply from free text: without a change of the state after it, an utterance counts as free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgen.domains.guided.events import Event, read_text
from edgen.plugin import Scenario, Turn
from edgen.plugin.families import FiledRecord, make_filed_record

SCHEMA = "crwiz_log"
_BOTS = 2  # highest number of a bot
_HINTS = ("fsa_request_task_hint", "fsa_request_task_hint_again")
_CHANGES = ("fsa_state_change", "fsa_get_state_transitions", "start_task")


def is_log(record: Any) -> bool:
    """Return whether a decoded record has the layout of such a log."""
    return (
        isinstance(record, dict) and record.get("type") == "log_room" and isinstance(record.get("logs"), list)
    )


def read(record: Mapping[str, Any]) -> FiledRecord:
    """Return the conversation of a log. Raises ValueError with a clause about the problem if the log is
    invalid."""
    room = _Room(record)
    for one in _list_entries(record):
        room.read(one)
    if not room.turns:
        raise ValueError("a log in which nobody says anything")
    found = make_filed_record({}, Scenario(-1, {}), room.turns, marked=False)
    name, end = record.get("name"), room.end
    return msgspec.structs.replace(
        found,
        id=name if isinstance(name, str) else None,
        events=tuple(room.list_events()),
        outcome={"reason": end["reason"], "success": end["success"]} if end else None,
    )


def find_inconsistencies(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the inconsistencies of a log: (path, problem)."""
    state: str | None = None
    number = 0
    for place, one in enumerate(record["logs"]):
        if not isinstance(one, dict):
            continue
        if type(one.get("id")) is int:
            if one["id"] <= number:
                yield (
                    f"$.logs[{place}].id",
                    f"{one['id']} comes after {number}; events must be in the order of their numbers",
                )
            number = one["id"]
        data = one.get("data")
        if one.get("event") == "fsa_state_change" and isinstance(data, dict):
            before = data.get("previous_state")
            if state is not None and before != state:
                yield (
                    f"$.logs[{place}].data.previous_state",
                    f"it was in {state!r:.80}, and not in {before!r:.80}",
                )
            state = data.get("current_state") if isinstance(data.get("current_state"), str) else None


def _list_entries(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the events that have the keys which every event has."""
    for one in record["logs"]:
        if isinstance(one, dict) and isinstance(one.get("event"), str) and isinstance(one.get("data"), dict):
            yield one


class _Room:
    """A reader of one log, event by event."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        roles = record.get("roles")
        self._roles = roles if isinstance(roles, dict) else {}
        self._wizard = next(
            (_read_user(one) for one in _list_entries(record) if one["event"] in _CHANGES), None
        )
        self._subtask: str | None = None
        self._hint: str | None = None
        self._chosen: dict[str, Any] | None = None  # the last utterance, until its change of state
        self._place = 0  # number of the turn at which the current events began
        self._events: list[Event] = []
        self._success: bool | None = None
        self._told_success = False  # success stated by the end event
        self._tokens: dict[int | None, str] = {}
        self.turns: list[Turn] = []
        self.end: dict[str, Any] | None = None

    def read(self, one: Mapping[str, Any]) -> None:
        """Read an event of the log."""
        kind, data = one["event"], one["data"]
        if kind == "text_message":
            self._say(one, data)
        elif kind == "fsa_get_state_transitions":
            self._hint = None
            self._tell(data, "offered", state=data.get("current_state"), options=_read_options(data))
        elif kind in _HINTS:
            self._hint = read_text(data, "utterance_id")
            self._tell(data, "hint", state=data.get("current_state"), target=self._hint)
        elif kind == "fsa_state_change":
            self._move(data)
        elif kind == "advance_subtask" and not _is_bot(one) and (to := read_text(data, "current_subtask")):
            self._tell(data, "subtask", **{"from": self._subtask, "to": to})["turn"] = self._place
            self._subtask = to
        elif kind == "status_update" and isinstance(data.get("changes"), dict):
            self._tell(data, "world", changes=data["changes"], cause=data.get("source"))
        elif kind == "end_task":
            reason = read_text(data, "reason") or read_text(data, "reason_id") or "unspecified"
            self._told_success = "success" in data and isinstance(data["success"], bool | None)
            self.end = self._tell(data, "end", reason=reason, success=data.get("success"))
        elif kind == "generate_game_token" and (token := read_text(data, "game_token")):
            self._tokens[_read_user(one)] = token
        elif kind == "operator_quiz_response" and isinstance(answers := data.get("answers"), dict):
            token = self._tokens.get(_read_user(one))
            self._tell(data, "questionnaire", role=self._find_role(one), token=token, answers=answers)
        elif kind == "post_task_analysis" and isinstance(data.get("mission_successful"), bool):
            self._success = data["mission_successful"]

    def list_events(self) -> list[Event]:
        """Return the events. If the end states no success, the analysis does."""
        if self.end is not None and not self._told_success:
            self.end["success"] = self._success
        return self._events

    def _say(self, one: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        user, said = _read_user(one), read_text(data, "message")
        if user is None or user <= _BOTS or not said:
            return
        if user == self._wizard:
            named = read_text(data, "state_name")
            followed = None if self._hint is None else False
            by = {"by": "fixed" if named else "free", "state": named or None}
            self._chosen = self._tell(data, "chosen", **by, utterance=said, followed_hint=followed)
        self._place = len(self.turns) + (user != self._wizard)
        self.turns.append(Turn(self._find_role(one), said))

    def _find_role(self, one: Mapping[str, Any]) -> str:
        """Return the role of the user of an event."""
        user = _read_user(one)
        role = self._roles.get(str(user)) or (one["user"].get("name") if user is not None else None)
        return role if isinstance(role, str) and role else f"User {user}"

    def _move(self, data: Mapping[str, Any]) -> None:
        before, to = read_text(data, "previous_state"), read_text(data, "current_state")
        hint, self._hint = self._hint, None
        if not before or to is None:
            return
        if self._chosen is not None:
            self._chosen.update(by="state", state=to)
            if hint is not None:
                self._chosen["followed_hint"] = hint == to
            self._chosen = None
        self._tell(data, "state", **{"from": before, "to": to})["turn"] = self._place

    def _tell(self, data: Mapping[str, Any], event: str, **more: Any) -> dict[str, Any]:
        time: Any = data.get("seconds_since_start")
        since = float(time) if type(time) in (int, float) and time >= 0 else 0.0
        made = {"event": event, "time": since, "turn": len(self.turns), **more}
        self._events.append(made)
        return made


def _read_user(one: Mapping[str, Any]) -> int | None:
    user = one.get("user")
    number = user.get("id") if isinstance(user, dict) else None
    return number if type(number) is int else None


def _is_bot(one: Mapping[str, Any]) -> bool:
    user = _read_user(one)
    return user is not None and user <= _BOTS


def _read_options(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = data.get("possible_utterances")
    listed = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [{"state": one.get("state_name"), "utterance": one.get("utterance")} for one in listed]
