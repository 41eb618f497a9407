"""The logs of CRWIZ (Chiyah Garcia, Lopes, Liu and Hastie, LREC 2020): a file for each room, the answers to
questionnaires, and the states, in the layouts that its programs read."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgen.domains.guided.events import GuidedEvents
from edgen.domains.guided.export.log import RoomLog
from edgen.domains.guided.machines.dump import dump_for_crwiz
from edgen.domains.guided.machines.model import Machine
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader
from edgen.plugin.formats import (
    AcceptedConversation,
    DataTable,
    JsonLines,
    Patterns,
    Tried,
    guide_of,
    write_new,
)

LOGS, ANSWERS = "logs", "questionnaires"
STATES = "dialogue_states"


def rows(run: RunReader, _chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a log for each guided conversation, and a row for each role that answered the questionnaire."""
    machines = _read_machines(run)
    for conversation in run.conversations():
        events = conversation.record.get("events") or ()
        found = GuidedEvents(events, len(conversation.candidate.turns))
        if not found:
            yield LeftOut("no_events")
            continue
        one, machine = conversation.candidate, machines.get(conversation.candidate.arm)
        limit, subtasks = (machine.time_limit, machine.subtasks) if machine else (None, ())
        log = RoomLog(one.id, one.turns, events, time_limit=limit, subtasks=subtasks)
        yield Row(conversation.split, log.as_dict(), table=LOGS)
        yield from _list_answer_rows(conversation, found)


def _read_machines(run: RunReader) -> dict[str, Machine]:
    """Return the machine of each arm that has one, by the arm's name; "" without arms."""
    jobs = {arm: run.job_of(arm) for arm in run.job.arm_names}
    found = {arm: guide_of(job) for arm, job in jobs.items()}
    return {arm: machine for arm, machine in found.items() if machine is not None}


def _list_answer_rows(conversation: AcceptedConversation, events: GuidedEvents) -> Iterator[Row]:
    for one in events.answers:
        value = {
            "game_token": one.token,
            "room": conversation.candidate.id,
            "role": one.role,
            "answers": [
                {"item": item, "answer": int(rating) if rating.is_integer() else rating}
                for item, rating in one.ratings.items()
            ],
            "remarks": [{"item": item, "answer": said} for item, said in one.texts.items()],
        }
        yield Row(conversation.split, value, table=ANSWERS)


class LogFiles(JsonLines):
    """A writer of a file for each log, of the answers as JSON Lines, and of the states."""

    def add(self, row: Row) -> None:
        """Write a log, or a row of answers."""
        if row.table != LOGS:
            super().add(row)
            return
        place = self.folder / LOGS / row.split
        place.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(row.value), indent=1)
        with (place / f"{row.value['name']}.json").open("xb") as file:
            file.write(text + b"\n")

    def finish(self) -> Patterns:
        """Finish the files and write the states; each arm's get a folder of their own if they differ.
        `datasets` cannot load the logs, since they are no table."""
        machines = _read_machines(self.staging.run)
        first = next(iter(machines.values()), None)
        alike = all(one == first for one in machines.values())
        for arm, machine in [*machines.items()][: 1 if alike else None]:
            place = self.folder / STATES if alike else self.folder / STATES / arm
            place.mkdir(parents=True)
            for name, text in dump_for_crwiz(machine).items():
                write_new(place / name, text)
        return super().finish()


FORMAT = Format(
    name="crwiz",
    summary="Guided conversations as CRWIZ logs them: a file for each room with all its events, and the "
    "states.",
    rows=rows,
    card=FormatCard(
        reasons={
            "no_events": "the record has no states and choices; records of `protocol: guided` have them"
        },
        notes=(
            (
                "Conversations have no dates: each log begins on 2020-01-01 at midnight (UTC), and continues "
                "by the simulated clock."
            ),
            (
                "CRWIZ's programs call the guided user Fred and the other one Operator, so these are the "
                "users' names; `roles` has the run's."
            ),
            (
                "A lock is logged as disable_user_input and enable_user_input, an effect as "
                "perform_action_triggered, a change of the world as perform_action_response and "
                "status_update."
            ),
            (
                "end_task has one of CRWIZ's reasons as `reason_id` (where none fits, dialogue_completed for a "
                "success and else "
                "unspecified) and the machine's own as `reason`. A partner who leaves is logged as "
                "user_end_task, the reason user_disconnected as disconnect and disconnect_end_task."
            ),
            (
                "In CRWIZ's analysis, a task is successful if its last sub-task is assess_damage. So the "
                "helper bot advances to this sub-task before end_task if the machine states a success, "
                "and from it to finish after a failure; such an advance_subtask of user 2 is not a "
                "sub-task of the machine. In CRWIZ's programs, the events operator_quiz_trigger, "
                "_response and _timeout have no contents; here they hold the operator's answers to the "
                "questionnaire."
            ),
        ),
        tags=("wizard-of-oz",),
        tried=(
            Tried(
                library="crwiz",
                version="28ee52c",
                day="2026-11-22",
                what="its post_task_analysis, with logs in the place of its database, found in each what the "
                "log's own analysis says; its load_dialogue_states read the states.",
            ),
        ),
    ),
    tables=(
        DataTable(
            {
                "name": "the room: the conversation",
                "type": "log_room",
                "description": "the kind of file",
                "date_extracted": "when the conversation ended, in seconds",
                "roles": "the role in the conversation of each user's number",
                "logs": (
                    "the events: event, user, room, data, id, date_created, date_modified. Of data, "
                    "`state_name` of "
                    "text_message, `changes` of status_update, `success` of end_task and `typed_turns` and "
                    "`typed_share` of post_task_analysis are edgen's"
                ),
            },
            LOGS,
        ),
        DataTable(
            {
                "game_token": "the token that joins it to the log",
                "room": "the log's name",
                "role": "who answered",
                "answers": "each rated item with its rating, a number",
                "remarks": "each item with a written answer, with its text",
            },
            ANSWERS,
        ),
    ),
    use="""\
import json, pathlib
logs = [json.loads(path.read_text("utf-8")) for path in pathlib.Path("THIS_FOLDER/logs").glob("*/*.json")]
# with CRWIZ: app.crwiz.dialogue_state.load_dialogue_states("THIS_FOLDER/dialogue_states")""",
    needs=("events",),
    layout=FormatLayout(files=LogFiles, by_range=True),
    chat=False,
)
