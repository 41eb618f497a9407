"""The mailbox of a run: requests that wait for people, and their answers.

    people/waiting.db         of a run, in its folder
    FILE.people/people/       of requests about a file, next to it

A request is put in once, under a key of everything that shapes its answer, and answered once. An answer is on
disk before the page confirms it, and stays until the run's ledger has it. So a kill of either process loses
nothing, and nobody answers the same request twice. A person gets a seat in a conversation, and answers all
its requests to the role.

An ended conversation may be asked about again, by a run that resumes it or a judge with another question.
That is another sitting, with its own seats.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec

from edgen.core import values
from edgen.core.errors import RunError
from edgen.core.people.requests import PersonAnswer, PersonRequest
from edgen.core.values import TaskId
from edgen.store.people.shared_book import SharedBook, as_json

_DESK = ".people"  # suffix of the folder of requests about a file
_decode = msgspec.json.Decoder(PersonRequest).decode
_SITTINGS = """
CREATE TABLE IF NOT EXISTS seats (
    arm TEXT NOT NULL, scenario INTEGER NOT NULL, task TEXT NOT NULL, sitting INTEGER NOT NULL, role TEXT NOT NULL,
    person TEXT NOT NULL, token TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (arm, scenario, task, sitting, role)
);
CREATE INDEX IF NOT EXISTS seats_by_person ON seats (person, role, at);
CREATE TABLE IF NOT EXISTS ends (
    arm TEXT NOT NULL, scenario INTEGER NOT NULL, task TEXT NOT NULL, sitting INTEGER NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (arm, scenario, task, sitting)
);"""


class ConversationPlace(NamedTuple):
    """A conversation of the run: its arm, empty for a job without arms, scenario and task."""

    arm: str
    scenario: int
    task: TaskId

    @classmethod
    def of(cls, request: PersonRequest) -> ConversationPlace:
        return cls(request.arm, request.address.scenario, request.address.task)


class WaitingRequest(NamedTuple):
    """A request without an answer. `seen`: its page was shown. `typed`: the person has begun to write."""

    request: PersonRequest
    seen: bool
    typed: bool


class MailboxAnswer(NamedTuple):
    """The answer to a request, and the game token of its seat (empty without one). `text` is None if the
    person left."""

    request: PersonRequest
    text: str | None
    person: str
    token: str
    times: values.AnswerTimes


class Seat(NamedTuple):
    """A person's place in a sitting of a conversation."""

    conversation: ConversationPlace  # the conversation's place in the run
    role: str  # the role that the person plays
    person: str  # the person's name
    token: str  # the game's token, the same for all its seats
    at: float  # seconds since the epoch
    sitting: int  # number of the sitting, from 0


class Mailbox(SharedBook):
    """The mailbox of the run in `folder`."""

    NAME: ClassVar[str] = "waiting.db"
    ABOUT: ClassVar[str] = "edgen's mailbox of a run"
    APPLICATION_ID: ClassVar[int] = 0x65646D62  # "edmb"
    TABLES: ClassVar[str] = f"""
CREATE TABLE IF NOT EXISTS requests (
    n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE NOT NULL, role TEXT NOT NULL,
    arm TEXT NOT NULL, scenario INTEGER NOT NULL, task TEXT NOT NULL, together TEXT NOT NULL,
    request TEXT NOT NULL, put REAL NOT NULL,
    answer TEXT, person TEXT, seconds REAL, done REAL,
    sitting INTEGER NOT NULL DEFAULT 0, seen REAL, typed REAL
);
CREATE INDEX IF NOT EXISTS waiting_requests ON requests (role, n) WHERE done IS NULL;
CREATE INDEX IF NOT EXISTS answered_requests ON requests (done) WHERE done IS NOT NULL;
CREATE INDEX IF NOT EXISTS requests_of_conversations ON requests (arm, scenario, task);
{_SITTINGS}
CREATE TABLE IF NOT EXISTS lobby (role TEXT NOT NULL, person TEXT NOT NULL, came REAL NOT NULL, seen REAL NOT NULL,
    PRIMARY KEY (role, person));
"""
    CHANGES: ClassVar[tuple[str, ...]] = (
        f"""  -- sittings, and when a request was seen and its answer begun
ALTER TABLE requests ADD COLUMN sitting INTEGER NOT NULL DEFAULT 0;
ALTER TABLE requests ADD COLUMN seen REAL;
ALTER TABLE requests ADD COLUMN typed REAL;
DROP INDEX seats_by_person;
ALTER TABLE seats RENAME TO old_seats;
ALTER TABLE ends RENAME TO old_ends;
{_SITTINGS}
INSERT INTO seats SELECT arm, scenario, task, 0, role, person, token, at FROM old_seats ORDER BY rowid;
INSERT INTO ends SELECT arm, scenario, task, 0, at FROM old_ends;
DROP TABLE old_seats;
DROP TABLE old_ends;
""",  # noqa: S608
    )

    # -- the side that asks

    def put(self, request: PersonRequest, now: float) -> None:
        """Put a request in, unless it is already there."""
        place = _list_place_columns(ConversationPlace.of(request))
        row = (*place, request.key, request.role, as_json(request.together), as_json(request), now)
        with self._write_in_transaction() as connection:
            connection.execute(
                "INSERT INTO requests (arm, scenario, task, key, role, together, request, put, sitting)"  # noqa: S608
                f" VALUES (?, ?, ?, ?, ?, ?, ?, ?, {_NEXT_SITTING})"
                " ON CONFLICT (key) DO UPDATE SET sitting = excluded.sitting WHERE done IS NULL",
                (*row, *place),
            )

    def find_answer(self, key: str) -> tuple[bool, PersonAnswer | None]:
        """Return whether a request is done, and its answer; None if the person left."""
        rows = self._read(f"SELECT answer, {_TIMES} FROM requests WHERE key = ? AND done IS NOT NULL", key)  # noqa: S608
        if not rows:
            return False, None
        text, *times = rows[0]
        return True, None if text is None else PersonAnswer(text, values.AnswerTimes(*times))

    def read_version(self) -> int:
        """Return a number that changes whenever another process or connection changed the mailbox."""
        return int(self._read("PRAGMA data_version")[0][0])

    def list_overdue(self, now: float) -> list[str]:
        """Return the keys of requests whose person has exceeded the request's `wait`."""
        rows = self._read(
            "SELECT request, max(put, at) FROM requests JOIN seats USING (arm, scenario, task, sitting, role)"
            " WHERE done IS NULL"
        )
        requests = [(_decode(request), since) for request, since in rows]
        return [request.key for request, since in requests if now > since + request.wait]

    def give_up(self, key: str, now: float) -> None:
        """Mark the person of a request as gone, unless the request is answered."""
        with self._write_in_transaction() as connection:
            connection.execute("UPDATE requests SET done = ? WHERE key = ? AND done IS NULL", (now, key))

    def has_left(self, conversation: ConversationPlace, role: str) -> bool:
        """Return whether the person of a role left the conversation's present sitting."""
        return bool(
            self._read(f"{_LEFT} AND NOT EXISTS ({_ENDED})", *_list_place_columns(conversation), role)
        )

    def end(self, conversation: ConversationPlace, now: float) -> None:
        """Record that no more requests about a conversation follow."""
        with self._write_in_transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO ends SELECT arm, scenario, task, max(sitting), ? FROM requests"
                " WHERE arm = ? AND scenario = ? AND task = ? GROUP BY arm, scenario, task",
                (now, *_list_place_columns(conversation)),
            )

    # -- the side that answers

    def is_over(self, seat: Seat) -> bool:
        """Return whether no more requests to a seat follow: its sitting ended, or its person left."""
        place = _list_place_columns(seat.conversation)
        ended = "SELECT 1 FROM ends WHERE arm = ? AND scenario = ? AND task = ? AND sitting = ?"
        return bool(
            self._read(ended, *place, seat.sitting)
            or self._read(f"{_LEFT} AND sitting = ?", *place, seat.role, seat.sitting)
        )

    def list_waiting(self, role: str) -> list[WaitingRequest]:
        """Return the requests to a role without an answer, the oldest first."""
        rows = self._read(
            f"SELECT {_WAITING} FROM requests WHERE role = ? AND done IS NULL ORDER BY n",  # noqa: S608
            role,
        )
        return [WaitingRequest(_decode(request), bool(seen), bool(typed)) for request, seen, typed in rows]

    def find_request(self, seat: Seat) -> WaitingRequest | None:
        """Return the request that waits for a seat; None if there is none."""
        rows = self._read(
            f"SELECT {_WAITING} FROM requests WHERE {_OF_SEAT} AND done IS NULL ORDER BY n LIMIT 1",  # noqa: S608
            *_list_seat_values(seat),
        )
        return WaitingRequest(_decode(rows[0][0]), *map(bool, rows[0][1:])) if rows else None

    def read_last_request(self, seat: Seat) -> tuple[PersonRequest, str | None] | None:
        """Return a seat's last request that is done, and its answer; None before the first."""
        rows = self._read(
            f"SELECT request, answer FROM requests WHERE {_OF_SEAT} AND done IS NOT NULL ORDER BY n DESC "  # noqa: S608
            "LIMIT 1",
            *_list_seat_values(seat),
        )
        return (_decode(rows[0][0]), rows[0][1]) if rows else None

    def note_seen(self, key: str, now: float) -> None:
        """Note the time at which a request was first shown to its person."""
        with self._write_in_transaction() as connection:
            connection.execute(
                "UPDATE requests SET seen = max(?, put) WHERE key = ? AND seen IS NULL", (now, key)
            )

    def note_typing(self, seat: Seat, now: float) -> None:
        """Note the time at which a seat's person began to write the awaited answer."""
        with self._write_in_transaction() as connection:
            connection.execute(
                f"UPDATE requests SET typed = max(?, seen) WHERE {_OF_SEAT} AND done IS NULL AND typed IS "  # noqa: S608
                "NULL AND seen IS NOT NULL",
                (now, *_list_seat_values(seat)),
            )

    def answer(self, key: str, text: str, person: str, now: float) -> bool:
        """Store the answer to a request. Return False if it was answered before, or no longer waits. Its time
        is never before that of an earlier step, even if a clock was set back."""
        with self._write_in_transaction() as connection:
            done = connection.execute(
                "UPDATE requests SET answer = ?, person = ?, done = max(?, coalesce(typed, seen, put))"
                " WHERE key = ? AND done IS NULL",
                (text, person, now, key),
            )
            return done.rowcount == 1

    def list_done_requests(self) -> list[MailboxAnswer]:
        """Return all requests that are done, in the order in which they were put in."""
        rows = self._read(
            "SELECT request, answer, coalesce(requests.person, seats.person, ''), coalesce(token, ''), "  # noqa: S608
            f"{_TIMES}"
            " FROM requests LEFT JOIN seats USING (arm, scenario, task, sitting, role) WHERE done IS NOT "
            "NULL ORDER BY n"
        )
        return [
            MailboxAnswer(_decode(request), text, person, token, values.AnswerTimes(*times))
            for request, text, person, token, *times in rows
        ]

    # -- seats

    def find_seat(self, person: str, role: str) -> Seat | None:
        """Return the person's latest seat in the role; None without one."""
        rows = self._read(
            f"SELECT {_SEAT} FROM seats WHERE person = ? AND role = ? ORDER BY at DESC, rowid DESC LIMIT 1",  # noqa: S608
            person,
            role,
        )
        return _make_seat(*rows[0]) if rows else None

    def take_seat(self, person: str, role: str, now: float, patience: float = 15.0) -> Seat | None:
        """Give a person a seat in a conversation that waits for somebody; None if there is none yet.

        If people play several of its roles, all are seated at once. Each role gets the person who has waited
        longest and was seen within `patience` seconds.
        """
        if not self._has_returned(person, role, now, patience / 3) and not self._is_free(person, role):
            return None
        with self._write_in_transaction() as connection:
            connection.execute(
                "INSERT INTO lobby VALUES (?, ?, ?, ?) ON CONFLICT (role, person) DO UPDATE SET seen = "
                "excluded.seen, came = CASE WHEN seen < ? THEN excluded.came ELSE came END",
                (role, person, now, now, now - patience),
            )
            free = connection.execute(_FREE, (role, role, role, person, role, person)).fetchone()
            if free is not None:
                arm, scenario, task, sitting, together = free
                seated = {role: person}
                known = msgspec.json.decode(together)
                for one in known if role in known else ():
                    place = (one, now - patience, scenario, task, arm, sitting, arm)
                    found = connection.execute(_LONGEST_WAITING, place).fetchall()
                    others = [name for (name,) in found if one == role or name not in seated.values()]
                    if not others:
                        break
                    if one == role and others[0] != person:
                        return None  # another person came earlier
                    seated[one] = others[0]
                else:
                    token = secrets.token_hex(4).upper()
                    for one, who in seated.items():
                        row = (arm, scenario, task, sitting, one, who, token, now)
                        connection.execute("INSERT INTO seats VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
                        connection.execute("DELETE FROM lobby WHERE role = ? AND person = ?", (one, who))
                    return _make_seat(arm, scenario, task, sitting, role, person, token, now)
        return None

    def is_in_lobby(self, person: str, role: str) -> bool:
        """Return whether a person waits for a conversation."""
        return bool(self._read("SELECT 1 FROM lobby WHERE role = ? AND person = ?", role, person))

    def _has_returned(self, person: str, role: str, now: float, often: float) -> bool:
        """Return whether the lobby has not seen a person for over `often` seconds."""
        seen = self._read("SELECT seen FROM lobby WHERE role = ? AND person = ?", role, person)
        return not seen or seen[0][0] < now - often

    def _is_free(self, person: str, role: str) -> bool:
        return bool(self._read(_FREE, role, role, role, person, role, person))

    def list_roles(self) -> list[str]:
        """Return the roles of all requests."""
        return [role for (role,) in self._read("SELECT DISTINCT role FROM requests ORDER BY role")]


# Sittings in which the role has no seat and the person has none, the oldest first: they wait for this role,
# or for another role that people play in them. Nobody answers the same question for two annotators: their
# tasks are texts, and tasks of conversations are numbers.
_FREE = """
SELECT arm, scenario, task, sitting, together FROM requests WHERE done IS NULL
AND (role = ? OR EXISTS (SELECT 1 FROM json_each(together) WHERE value = ?))
AND NOT EXISTS (SELECT 1 FROM seats WHERE seats.arm = requests.arm AND seats.scenario = requests.scenario
    AND seats.task = requests.task AND seats.sitting = requests.sitting AND (seats.role = ? OR seats.person = ?))
AND NOT EXISTS (SELECT 1 FROM seats WHERE seats.arm != requests.arm AND seats.scenario = requests.scenario
    AND seats.task = requests.task AND seats.role = ? AND seats.person = ? AND seats.task LIKE '"%')
ORDER BY n LIMIT 1
"""
_LONGEST_WAITING = """
SELECT person FROM lobby WHERE role = ? AND seen >= ?
AND NOT EXISTS (SELECT 1 FROM seats WHERE seats.person = lobby.person AND scenario = ? AND task = ?
    AND ((arm = ? AND sitting = ?) OR (arm != ? AND seats.role = lobby.role AND task LIKE '"%')))
ORDER BY came, rowid
"""
_WAITING = "request, seen IS NOT NULL, typed IS NOT NULL"
_TIMES = "done, round(coalesce(seconds, done - seen), 2), put, seen, typed"
_SEAT = "arm, scenario, task, sitting, role, person, token, at"
_OF_SEAT = "arm = ? AND scenario = ? AND task = ? AND role = ? AND sitting = ?"
_LEFT = (
    "SELECT 1 FROM requests WHERE arm = ? AND scenario = ? AND task = ? AND role = ? AND done IS NOT NULL"
    " AND answer IS NULL"
)
_ENDED = (
    "SELECT 1 FROM ends WHERE ends.arm = requests.arm AND ends.scenario = requests.scenario"
    " AND ends.task = requests.task AND ends.sitting = requests.sitting"
)
# The sitting of a new request: the latest one, or the next one if that has ended.
_NEXT_SITTING = f"""(SELECT coalesce(max(sitting + EXISTS ({_ENDED})), 0) FROM requests
    WHERE arm = ? AND scenario = ? AND task = ?)"""  # noqa: S608


def has_mailbox(folder: Path) -> bool:
    """Return whether the run in `folder` ever had requests to people."""
    return (folder / "people" / Mailbox.NAME).exists()


def make_desk(out: Path) -> Path:
    """Make the folder of requests to people about the file `out`, next to it, and return its path. Raises
    RunError."""
    folder = out.with_name(f"{out.name}{_DESK}")
    try:
        (folder / "people").mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise RunError(f"{folder}: it cannot be made ({problem.strerror}).") from None
    return folder


def is_desk(folder: Path) -> bool:
    """Return whether a folder holds requests to people about a file."""
    return folder.name.endswith(_DESK) and (folder / "people").is_dir()


def _list_place_columns(conversation: ConversationPlace) -> tuple[str, int, str]:
    """Return the columns that identify a conversation."""
    return conversation.arm, conversation.scenario, as_json(conversation.task)


def _list_seat_values(seat: Seat) -> tuple[str, int, str, str, int]:
    """Return the values of `_OF_SEAT`."""
    return (*_list_place_columns(seat.conversation), seat.role, seat.sitting)


def _make_seat(
    arm: str, scenario: int, task: str, sitting: int, role: str, person: str, token: str, at: float
) -> Seat:
    return Seat(ConversationPlace(arm, scenario, msgspec.json.decode(task)), role, person, token, at, sitting)
