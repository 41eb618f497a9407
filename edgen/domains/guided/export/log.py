"""A guided conversation in the log layout of CRWIZ's server: all events of a room, and at the end the
analysis.

The names of events and of their data are those of JChiyah/crwiz (Chiyah Garcia, Lopes, Liu and Hastie, LREC
2020): `log_utils`, `active_room`, `finite_state_machine` and `post_task_analysis`. Conversations have no
dates, so each begins at START. In CRWIZ the guided role is called Fred and the other one Operator, and its
programs look for these names.

In CRWIZ's analysis, a task is successful if its last sub-task is `assess_damage`. So before the end, the
helper bot advances to that sub-task after a success, and leaves it after a failure (`_mark_success`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from edgen.domains.guided import events as guided
from edgen.domains.guided.course import PARTNER_LEFT
from edgen.domains.guided.events import Event, GuidedEvents
from edgen.domains.guided.export.analysis import HELPER, PARTNER, SUCCESS, WIZARD, analyse
from edgen.plugin import Turn

START = 1_577_836_800.0
"""Start of each conversation, in seconds since 1970: 2020-01-01T00:00:00Z."""
COMPLETED, UNSPECIFIED, BY_USER = "dialogue_completed", "unspecified", "user_triggered"
DISCONNECTED = "user_disconnected"
REASONS = (COMPLETED, "time_out", UNSPECIFIED, BY_USER, DISCONNECTED)
"""Why a task ends, as CRWIZ knows it."""
_LAST_SUBTASK = "finish"  # the last sub-task of CRWIZ's released code

Entry = tuple[float, str, int, dict[str, Any]]  # seconds, the event, the user's number, the event's data


class RoomLog:
    """The log of one conversation. `turns` have no end marker. `time_limit` is in seconds; None without one.
    `subtasks` are the machine's, in order; empty if unknown."""

    def __init__(
        self,
        name: str,
        turns: Sequence[Turn],
        events: Sequence[Event],
        *,
        time_limit: float | None = None,
        subtasks: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._turns = turns
        self._events = GuidedEvents(events, len(turns))
        self._limit = time_limit
        self._subtasks = subtasks or tuple(dict.fromkeys(span.name for span in self._events.subtasks))
        wizard = next((turns[one.turn].role for one in self._events.choices if one.turn < len(turns)), None)
        roles = dict.fromkeys(turn.role for turn in turns)
        others = [role for role in roles if role != wizard]
        self.roles = {WIZARD: wizard, **dict(enumerate(others, PARTNER))}
        self.users = {WIZARD: "Fred", PARTNER: "Operator", **dict(enumerate(others[1:], PARTNER + 1))}
        self._ids = {role: number for number, role in self.roles.items()}
        # the state that CRWIZ's server keeps of a room
        self._state = ""
        self._moves = 0
        self._subtask: str | None = None
        self._hinted: str | None = None
        self._said = 0
        self._begun: set[str | None] = set()  # states whose effects have begun
        self._offered: dict[str, Any] = {}
        self._chosen = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the log as JSON values. `roles` maps users' numbers to roles of the conversation."""
        logs = [self._make_entry(place, *entry) for place, entry in enumerate(self._iterate_entries(), 1)]
        analysis = self._make_entry(
            len(logs) + 1, self._events.duration, "post_task_analysis", HELPER, analyse(logs, self._events)
        )
        return {
            "name": self.name,
            "type": "log_room",
            "description": "Logs of all the events and messages in a room",
            "date_extracted": _format_date(self._events.duration),
            "roles": {str(number): role for number, role in self.roles.items() if role is not None},
            "logs": [*logs, analysis],
        }

    def _make_entry(
        self, number: int, time: float, event: str, user: int, data: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "event": event,
            "user": {"id": user, "name": self.users.get(user, "HelperBot")},
            "room": self.name,
            "data": data if event in ("join", "post_task_analysis") else {**data, "seconds_since_start": round(time, 3)},
            "id": number,
            "date_created": _format_date(time),
            "date_modified": _format_date(time),
        }  # fmt: skip

    def _iterate_entries(self) -> Iterator[Entry]:
        for number in self.users:
            yield 0.0, "join", number, {}
        users = {str(number): name for number, name in self.users.items()}
        yield 0.0, "start_task", WIZARD, {"task_start": START, "users": users}
        first = next(iter(self._events.subtasks), None)
        if first is not None and first.start == 0:
            yield from self._advance(0.0, first.name)
        for event in self._events.events:
            time = guided.read_time(event)
            yield from self._iterate_messages(time, guided.read_turn(event))
            if (write := _WRITERS.get(event["event"])) is not None:
                yield from write(self, time, event)
        yield from self._list_unlogged_turns(self._events.duration)

    def _iterate_messages(self, time: float, until: int) -> Iterator[Entry]:
        """Yield the turns before number `until` that were said by `time` and are not in the log yet."""
        for turn in self._turns[self._said : until]:
            said: Any = turn.data.get("time")
            at = float(said) if type(said) in (int, float) else time
            if at > time:
                return
            self._said += 1
            yield self._make_message(at, turn)

    def _list_unlogged_turns(self, time: float, until: int | None = None) -> Iterator[Entry]:
        """Yield the turns before number `until`, or all, that are not in the log yet."""
        for turn in self._turns[self._said : until]:
            self._said += 1
            yield self._make_message(time, turn)

    def _make_message(self, time: float, turn: Turn) -> Entry:
        return time, "text_message", self._ids[turn.role], {"receiver": None, "message": turn.text}

    def _advance(self, time: float, subtask: str) -> Iterator[Entry]:
        if subtask != self._subtask:
            self._subtask = subtask
            yield time, "advance_subtask", WIZARD, {"current_subtask": subtask}

    def _offer(self, time: float, event: Event) -> Iterator[Entry]:
        state, options = guided.read_text(event, "state"), event.get("options")
        found = [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []
        if state is None:
            return
        if not self._moves:  # the initial state
            yield from self._move(time, {"to": state})
        self._offered = {str(one.get("state")): one.get("probability") for one in found}
        utterances = [{"utterance": one.get("utterance"), "state_name": one.get("state")} for one in found]
        yield time, "fsa_get_state_transitions", WIZARD, {
            "current_state": state,
            "possible_utterances": utterances,
        }  # fmt: skip

    def _log_hint(self, time: float, event: Event) -> Iterator[Entry]:
        state, target = guided.read_text(event, "state"), guided.read_text(event, "target")
        kind = "fsa_request_task_hint_again" if self._hinted == state else "fsa_request_task_hint"
        self._hinted = state
        yield time, kind, WIZARD, {
            "current_state": state,
            "utterance_id": target,
            "probability": self._offered.get(str(target)) or 0,
        }  # fmt: skip

    def _choose(self, time: float, event: Event) -> Iterator[Entry]:
        """Yield the utterance; the change of the state follows it."""
        place = guided.read_turn(event)
        yield from self._list_unlogged_turns(time, place)
        if self._said == place < len(self._turns):
            self._chosen = self._turns[place].text
            self._said = place + 1
            _, kind, user, data = self._make_message(time, self._turns[place])
            yield time, kind, user, {**data, "state_name": guided.read_text(event, "state") or ""}

    def _move(self, time: float, event: Event) -> Iterator[Entry]:
        target = guided.read_text(event, "to")
        if target is None:
            return
        before, self._state = self._state, target
        self._moves += 1
        self._hinted = None
        data = {"previous_state": before, "utterance": self._chosen, "current_state": target}
        yield time, "fsa_state_change", WIZARD, data

    def _begin_subtask(self, time: float, event: Event) -> Iterator[Entry]:
        if (name := guided.read_text(event, "to")) is not None:
            yield from self._advance(time, name)

    def _begin_action(self, time: float, event: Event) -> Iterator[Entry]:
        self._begun.add(guided.read_text(event, "state"))
        yield time, "perform_action_triggered", WIZARD, {
            "action_name": guided.read_text(event, "state"),
            "state_name": self._state,
            "state_count": self._moves,
            "trigger": "on_state_change",
            "callback": None,
        }  # fmt: skip

    def _change_world(self, time: float, event: Event) -> Iterator[Entry]:
        if (cause := guided.read_text(event, "cause")) is not None:
            if cause not in self._begun:  # the effect happens at once
                yield from self._begin_action(time, {"state": cause})
            yield time, "perform_action_response", WIZARD, {"action_name": cause, "action_performed": True}
        limit = self._limit
        done = self._subtasks.index(self._subtask) if self._subtask in self._subtasks else 0
        yield time, "status_update", WIZARD, {
            "start_time": START,
            "remaining_seconds": None if limit is None else max(0, int(limit - time)),
            "can_finish_task": False,
            "task_progress": round(100 * done / max(len(self._subtasks), 1), 1),
            "users": {str(number): name for number, name in self.users.items()},
            "user_turns": False,
            "source": cause,
            "changes": event.get("changes"),
        }  # fmt: skip

    def _lock(self, time: float, event: Event) -> Iterator[Entry]:
        kind = "disable_user_input" if event["event"] == "lock" else "enable_user_input"
        yield time, kind, HELPER, {"room_name": self.name, "user_id": WIZARD}

    def _log_end(self, time: float, _event: Event) -> Iterator[Entry]:
        """Yield the end with one of CRWIZ's five reasons, and the machine's own as its description."""
        yield from self._list_unlogged_turns(time)
        end = self._events.end
        if end is None:
            return
        known = end.reason if end.reason in REASONS else COMPLETED if end.success else UNSPECIFIED
        if end.reason == PARTNER_LEFT:
            known = BY_USER
        speaker = self._ids[self._turns[-1].role] if self._turns else WIZARD
        if known == BY_USER:
            yield time, "user_end_task", PARTNER if end.reason == PARTNER_LEFT else speaker, {}
        elif known == DISCONNECTED:  # of the user who did not answer the last turn
            gone = PARTNER if speaker == WIZARD else WIZARD
            yield time, "disconnect", gone, {}
            yield time, "disconnect_end_task", HELPER, {"disconnected_user_id": gone}
        yield from self._mark_success(time, end.success)
        yield time, "end_task", HELPER, {"reason_id": known, "reason": end.reason, "success": end.success}

    def _mark_success(self, time: float, success: bool | None) -> Iterator[Entry]:
        """Advance to the sub-task that marks a success in CRWIZ's analysis, or leave it."""
        if success is not None and success != (self._subtask == SUCCESS):
            yield time, "advance_subtask", HELPER, {"current_subtask": SUCCESS if success else _LAST_SUBTASK}

    def _log_quiz(self, time: float, event: Event) -> Iterator[Entry]:
        """Yield the token of a role, and the operator's answers to the questionnaire."""
        yield from self._give_token(time, event)
        user, answers = self._ids.get(str(event.get("role"))), event.get("answers")
        if user != PARTNER:
            return
        yield time, "operator_quiz_trigger", user, {}
        if isinstance(answers, dict):
            yield time, "operator_quiz_response", user, {"answers": answers}
        else:
            yield time, "operator_quiz_timeout", user, {}

    def _give_token(self, time: float, event: Event) -> Iterator[Entry]:
        user, token = self._ids.get(str(event.get("role"))), guided.read_text(event, "token")
        if user is not None and token is not None:
            yield time, "generate_game_token", user, {"game_token": token}


_WRITERS: Mapping[str, Callable[[RoomLog, float, Event], Iterator[Entry]]] = {
    "offered": RoomLog._offer,
    "hint": RoomLog._log_hint,
    "chosen": RoomLog._choose,
    "state": RoomLog._move,
    "subtask": RoomLog._begin_subtask,
    "effect": RoomLog._begin_action,
    "world": RoomLog._change_world,
    "lock": RoomLog._lock,
    "unlock": RoomLog._lock,
    "end": RoomLog._log_end,
    "questionnaire": RoomLog._log_quiz,
    "unanswered": RoomLog._log_quiz,
}


def _format_date(time: float) -> float:
    return START + round(time, 3)
