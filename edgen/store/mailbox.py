"""The mailbox of a run: requests that wait for people, and the answers that they gave.

    people/waiting.db

A request is put in once, under a key of all that shapes its answer, and answered once: an answer is on the
disk before the page confirms it, and stays until the run's ledger has it. So a kill of either process loses
nothing, and nobody is asked the same thing twice. A person gets a seat in a conversation, and answers all its
requests to the role.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec

from edgen.core import values
from edgen.core.person_requests import PersonAnswer, PersonRequest
from edgen.core.values import TaskId
from edgen.store.shared_book import SharedBook, as_json

_decode = msgspec.json.Decoder(PersonRequest).decode


class Conversation(NamedTuple):
    """A conversation of the run: its arm, empty for a job without arms, scenario and task."""

    arm: str
    scenario: int
    task: TaskId

    @classmethod
    def of(cls, request: PersonRequest) -> Conversation:
        return cls(request.arm, request.address.scenario, request.address.task)


class Waiting(NamedTuple):
    """A request without an answer; `since`: when it was put in, in seconds since the epoch."""

    request: PersonRequest
    since: float


class Given(NamedTuple):
    """The answer to a request. `text` is None if the person left. Times are in seconds since the epoch;
    `seconds`: between page and answer."""

    request: PersonRequest
    text: str | None
    person: str
    since: float
    at: float
    seconds: float | None


class Seat(NamedTuple):
    """A person's place in a conversation. `token`: a word for the game, the same for all its seats."""

    conversation: Conversation
    role: str
    person: str
    token: str
    at: float


class Mailbox(SharedBook):
    """The mailbox of the run in `folder`."""

    NAME: ClassVar[str] = "waiting.db"
    ABOUT: ClassVar[str] = "edgen's mailbox of a run"
    APPLICATION_ID: ClassVar[int] = 0x65646D62  # "edmb"
    TABLES: ClassVar[str] = """
CREATE TABLE IF NOT EXISTS requests (
    n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE NOT NULL, role TEXT NOT NULL,
    arm TEXT NOT NULL, scenario INTEGER NOT NULL, task TEXT NOT NULL, together TEXT NOT NULL,
    request TEXT NOT NULL, put REAL NOT NULL,
    answer TEXT, person TEXT, seconds REAL, done REAL
);
CREATE INDEX IF NOT EXISTS waiting_requests ON requests (role, n) WHERE done IS NULL;
CREATE INDEX IF NOT EXISTS answered_requests ON requests (done) WHERE done IS NOT NULL;
CREATE INDEX IF NOT EXISTS requests_of_conversations ON requests (arm, scenario, task);
CREATE TABLE IF NOT EXISTS seats (
    arm TEXT NOT NULL, scenario INTEGER NOT NULL, task TEXT NOT NULL, role TEXT NOT NULL,
    person TEXT NOT NULL, token TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (arm, scenario, task, role)
);
CREATE INDEX IF NOT EXISTS seats_by_person ON seats (person, role, at);
CREATE TABLE IF NOT EXISTS ends (
    arm TEXT NOT NULL, scenario INTEGER NOT NULL, task TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (arm, scenario, task)
);
CREATE TABLE IF NOT EXISTS lobby (role TEXT NOT NULL, person TEXT NOT NULL, came REAL NOT NULL, seen REAL NOT NULL,
    PRIMARY KEY (role, person));
"""

    # -- the side that asks

    def put(self, request: PersonRequest, now: float) -> None:
        """Put a request in, unless it is there."""
        row = (*_place(Conversation.of(request)), request.key, request.role, as_json(request.together))
        with self._writing() as book:
            book.execute(
                "INSERT OR IGNORE INTO requests (arm, scenario, task, key, role, together, request, put)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, as_json(request), now),
            )

    def done(self, key: str) -> tuple[bool, PersonAnswer | None]:
        """Return whether a request is done, and its answer; None if the person left."""
        rows = self._read(
            "SELECT answer, done, seconds FROM requests WHERE key = ? AND done IS NOT NULL", key
        )
        if not rows:
            return False, None
        text, at, seconds = rows[0]
        return True, None if text is None else PersonAnswer(text, values.Given(at, seconds or None))

    def version(self) -> int:
        """Return a number that changes whenever another process or connection changed the mailbox."""
        return int(self._read("PRAGMA data_version")[0][0])

    def overdue(self, now: float) -> list[str]:
        """Return the keys of requests whose person has had longer than the request's `wait`."""
        rows = self._read(
            "SELECT request, max(put, at) FROM requests JOIN seats USING (arm, scenario, task, role) WHERE done IS NULL"
        )
        requests = [(_decode(request), since) for request, since in rows]
        return [request.key for request, since in requests if now > since + request.wait]

    def give_up(self, key: str, now: float) -> None:
        """Note that the person left whom a request waits for, unless it is answered."""
        with self._writing() as book:
            book.execute("UPDATE requests SET done = ? WHERE key = ? AND done IS NULL", (now, key))

    def has_left(self, conversation: Conversation, role: str) -> bool:
        """Return whether the person of a role left a conversation."""
        return bool(
            self._read(
                "SELECT 1 FROM requests WHERE arm = ? AND scenario = ? AND task = ? AND role = ? AND done IS NOT NULL"
                " AND answer IS NULL LIMIT 1",
                *_place(conversation),
                role,
            )
        )

    def end(self, conversation: Conversation, now: float) -> None:
        """Note that nothing more is asked about a conversation."""
        with self._writing() as book:
            book.execute("INSERT OR IGNORE INTO ends VALUES (?, ?, ?, ?)", (*_place(conversation), now))

    # -- the side that answers

    def has_ended(self, conversation: Conversation) -> bool:
        """Return whether nothing more is asked about a conversation."""
        return bool(
            self._read(
                "SELECT 1 FROM ends WHERE arm = ? AND scenario = ? AND task = ?", *_place(conversation)
            )
        )

    def waiting(self, role: str) -> list[Waiting]:
        """Return the requests to a role without an answer, the oldest first."""
        rows = self._read(
            "SELECT request, put FROM requests WHERE role = ? AND done IS NULL ORDER BY n", role
        )
        return [Waiting(_decode(request), put) for request, put in rows]

    def request(self, conversation: Conversation, role: str) -> Waiting | None:
        """Return the request of a conversation that waits for a role; None if none does."""
        rows = self._read(
            "SELECT request, put FROM requests WHERE arm = ? AND scenario = ? AND task = ? AND role = ? AND done IS NULL"
            " ORDER BY n LIMIT 1",
            *_place(conversation),
            role,
        )
        return Waiting(_decode(rows[0][0]), rows[0][1]) if rows else None

    def last(self, conversation: Conversation, role: str) -> Given | None:
        """Return the last request of a conversation that the role answered; None before the first."""
        rows = self._read(
            f"SELECT {_GIVEN} FROM requests WHERE arm = ? AND scenario = ? AND task = ? AND role = ? AND done IS NOT NULL"  # noqa: S608
            " ORDER BY n DESC LIMIT 1",
            *_place(conversation),
            role,
        )
        return Given(_decode(rows[0][0]), *rows[0][1:]) if rows else None

    def answer(self, key: str, text: str, person: str, seconds: float | None, now: float) -> bool:
        """Store the answer to a request; return False if it was answered before, or waits no more."""
        with self._writing() as book:
            done = book.execute(
                "UPDATE requests SET answer = ?, person = ?, seconds = ?, done = ? WHERE key = ? AND done IS NULL",
                (text, person, seconds, now, key),
            )
            return done.rowcount == 1

    def given(self) -> list[Given]:
        """Return all requests that are done, in the order in which they were put in."""
        rows = self._read(f"SELECT {_GIVEN} FROM requests WHERE done IS NOT NULL ORDER BY n")  # noqa: S608
        return [Given(_decode(request), *rest) for request, *rest in rows]

    # -- seats

    def seat(self, person: str, role: str) -> Seat | None:
        """Return the person's latest seat in the role; None without one."""
        rows = self._read(
            f"SELECT {_SEAT} FROM seats WHERE person = ? AND role = ? ORDER BY at DESC, rowid DESC LIMIT 1",  # noqa: S608
            person,
            role,
        )
        return _seat(*rows[0]) if rows else None

    def seats(self) -> list[Seat]:
        """Return all seats, in the order in which they were taken."""
        return [_seat(*row) for row in self._read(f"SELECT {_SEAT} FROM seats ORDER BY at, rowid")]  # noqa: S608

    def take_seat(self, person: str, role: str, now: float, patience: float = 15.0) -> Seat | None:
        """Give a person a seat in a conversation that waits for somebody; None while there is none.

        If people play several roles of it, all are seated at once, each role by the person who has waited
        longest and was seen within `patience` seconds.
        """
        if not self._comes_anew(person, role, now, patience / 3) and not self._free(person, role):
            return None
        with self._writing() as book:
            book.execute(
                "INSERT INTO lobby VALUES (?, ?, ?, ?) ON CONFLICT (role, person) DO UPDATE SET seen = excluded.seen,"
                " came = CASE WHEN seen < ? THEN excluded.came ELSE came END",
                (role, person, now, now, now - patience),
            )
            for arm, scenario, task, together in book.execute(_FREE, (role, role, role, person)).fetchall():
                seated = {role: person}
                for one in (
                    one for one in msgspec.json.decode(together) if role in msgspec.json.decode(together)
                ):
                    found = book.execute(_LONGEST_WAITING, (one, now - patience)).fetchall()
                    others = [name for (name,) in found if one == role or name not in seated.values()]
                    if not others:
                        break
                    if one == role and others[0] != person:
                        return None  # somebody came before
                    seated[one] = others[0]
                else:
                    token = secrets.token_hex(4).upper()
                    for one, who in seated.items():
                        row = (arm, scenario, task, one, who, token, now)
                        book.execute("INSERT INTO seats VALUES (?, ?, ?, ?, ?, ?, ?)", row)
                        book.execute("DELETE FROM lobby WHERE role = ? AND person = ?", (one, who))
                    return _seat(arm, scenario, task, role, person, token, now)
        return None

    def is_in_lobby(self, person: str, role: str) -> bool:
        """Return whether a person waits for a conversation."""
        return bool(self._read("SELECT 1 FROM lobby WHERE role = ? AND person = ?", role, person))

    def _comes_anew(self, person: str, role: str, now: float, often: float) -> bool:
        """Return whether the lobby has not seen a person for a while."""
        seen = self._read("SELECT seen FROM lobby WHERE role = ? AND person = ?", role, person)
        return not seen or seen[0][0] < now - often

    def _free(self, person: str, role: str) -> bool:
        return bool(self._read(_FREE, role, role, role, person))

    def partners(self, seat: Seat) -> list[Seat]:
        """Return the other seats of a conversation."""
        rows = self._read(
            f"SELECT {_SEAT} FROM seats WHERE arm = ? AND scenario = ? AND task = ? AND role != ?",  # noqa: S608
            *_place(seat.conversation),
            seat.role,
        )
        return [_seat(*row) for row in rows]

    def roles(self) -> list[str]:
        """Return the roles that requests waited for."""
        return [role for (role,) in self._read("SELECT DISTINCT role FROM requests ORDER BY role")]


# Conversations without the role's seat in which the person has none: those that wait for this role, or for
# another one that people play in them. The oldest first.
_FREE = """
SELECT arm, scenario, task, together FROM requests WHERE done IS NULL
AND (role = ? OR EXISTS (SELECT 1 FROM json_each(together) WHERE value = ?))
AND NOT EXISTS (SELECT 1 FROM seats WHERE seats.arm = requests.arm AND seats.scenario = requests.scenario
    AND seats.task = requests.task AND (seats.role = ? OR seats.person = ?))
ORDER BY n LIMIT 1
"""
_LONGEST_WAITING = "SELECT person FROM lobby WHERE role = ? AND seen >= ? ORDER BY came, rowid"
_GIVEN = "request, answer, coalesce(person, ''), put, done, seconds"
_SEAT = "arm, scenario, task, role, person, token, at"


def has_mailbox(folder: Path) -> bool:
    """Return whether requests of the run in `folder` ever waited for people."""
    return (folder / "people" / Mailbox.NAME).exists()


def _place(conversation: Conversation) -> tuple[str, int, str]:
    """Return the columns that say which conversation."""
    return conversation.arm, conversation.scenario, as_json(conversation.task)


def _conversation(arm: str, scenario: int, task: str) -> Conversation:
    return Conversation(arm, scenario, msgspec.json.decode(task))


def _seat(arm: str, scenario: int, task: str, role: str, person: str, token: str, at: float) -> Seat:
    return Seat(_conversation(arm, scenario, task), role, person, token, at)
