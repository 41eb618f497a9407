"""The people of a run: invitations, sessions and answers, in a separate SQLite file.

    people/people.db

Only digests of the secrets of invitations and sessions are stored. Answers are append-only: of a person's
answers to the same unit the latest counts, and an answer without a value withdraws it. An answer is on disk
before `answer` returns. The file has its own lock, so people answer while the run is read, generated or asked
about.
"""

from __future__ import annotations

import hashlib
import math
import re
import secrets
import sqlite3
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec

from edgen.core.errors import UsageError
from edgen.core.text import escape_for_terminal
from edgen.store.people.shared_book import SharedBook, as_json

_LONGEST_NAME = 60
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")  # also valid for annotators of layers
_TABLES = """
CREATE TABLE IF NOT EXISTS invitations (
    n INTEGER PRIMARY KEY, person TEXT NOT NULL, task TEXT NOT NULL, secret TEXT UNIQUE NOT NULL,
    made REAL NOT NULL, revoked REAL
);
CREATE TABLE IF NOT EXISTS sessions (secret TEXT PRIMARY KEY, invitation INTEGER NOT NULL, made REAL NOT NULL);
CREATE TABLE IF NOT EXISTS assigned (
    task TEXT NOT NULL, unit TEXT NOT NULL, person TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (task, person, unit)
);
CREATE INDEX IF NOT EXISTS assigned_by_unit ON assigned (task, unit);
CREATE TABLE IF NOT EXISTS answers (
    n INTEGER PRIMARY KEY AUTOINCREMENT, task TEXT NOT NULL, unit TEXT NOT NULL, person TEXT NOT NULL,
    form TEXT UNIQUE NOT NULL, value TEXT, shown TEXT NOT NULL, seconds REAL, at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS answers_by_person ON answers (task, person, n);
CREATE TABLE IF NOT EXISTS settings (task TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class Invitation(NamedTuple):
    """One person's invitation to one task, such as "vote", "label dialogue_acts" or "play student"."""

    n: int
    person: str
    task: str
    made: float
    revoked: float | None


class UnitAnswer(NamedTuple):
    """One person's answer to one unit."""

    n: int  # number of the answer, in the order of arrival
    task: str  # such as "vote" or "label dialogue_acts"
    unit: str  # the unit's id
    person: str  # the person's name
    value: Any  # None for a withdrawn answer
    shown: Any  # details of the display, such as the order of two sides
    seconds: float | None  # between page and answer; None if the page did not measure them
    at: float  # seconds since the epoch


class People(SharedBook):
    """The people of the run in `folder`."""

    NAME: ClassVar[str] = "people.db"
    ABOUT: ClassVar[str] = "edgen's file of people"
    APPLICATION_ID: ClassVar[int] = 0x65647070  # "edpp"
    TABLES: ClassVar[str] = _TABLES

    # -- invitations and sessions

    def invite(self, person: str, task: str, now: float) -> str:
        """Invite a person to a task. Return the invitation's secret, which is not stored.

        Raises UsageError for an invalid name.
        """
        if not _NAME.fullmatch(person):
            raise UsageError(
                f"{escape_for_terminal(person[:_LONGEST_NAME])!r} cannot be a person's name: give 1 to "
                f"{_LONGEST_NAME} letters, digits and signs of _ . -, with a letter or a digit first."
            )
        secret = secrets.token_urlsafe(24)
        with self._write_in_transaction() as connection:
            connection.execute(
                "INSERT INTO invitations (person, task, secret, made) VALUES (?, ?, ?, ?)",
                (person, task, _digest_secret(secret), now),
            )
        return secret

    def list_invitations(self) -> list[Invitation]:
        """Return every invitation, in the order in which they were made."""
        return [
            Invitation(*row)
            for row in self._read("SELECT n, person, task, made, revoked FROM invitations ORDER BY n")
        ]

    def revoke(self, n: int, now: float) -> None:
        """Revoke an invitation and its sessions. Answers that were given stay."""
        with self._write_in_transaction() as connection:
            connection.execute("UPDATE invitations SET revoked = ? WHERE n = ? AND revoked IS NULL", (now, n))
            connection.execute("DELETE FROM sessions WHERE invitation = ?", (n,))

    def open_session(self, secret: str, now: float) -> str | None:
        """Exchange an invitation's secret for that of a new session; None if it is unknown or revoked."""
        session = secrets.token_urlsafe(24)
        with self._write_in_transaction() as connection:
            found = connection.execute(
                "SELECT n FROM invitations WHERE secret = ? AND revoked IS NULL", (_digest_secret(secret),)
            ).fetchone()
            if found is None:
                return None
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?)", (_digest_secret(session), found[0], now)
            )
        return session

    def find_invitation(self, session: str) -> Invitation | None:
        """Return the invitation of a session; None for an unknown session."""
        rows = self._read(
            "SELECT n, person, task, invitations.made, revoked FROM sessions JOIN invitations"
            " ON n = invitation WHERE sessions.secret = ? AND revoked IS NULL",
            _digest_secret(session),
        )
        return Invitation(*rows[0]) if rows else None

    # -- units and answers

    def read_settings(self, task: str) -> Any:
        """Return the settings of a task; None if it has none."""
        rows = self._read("SELECT value FROM settings WHERE task = ?", task)
        return _read_value(rows[0][0]) if rows else None

    def list_tasks_set(self) -> list[str]:
        """Return the tasks that have settings."""
        return [task for (task,) in self._read("SELECT task FROM settings ORDER BY task")]

    def list_tasks_answered(self) -> list[str]:
        """Return the tasks with answers."""
        return [task for (task,) in self._read("SELECT DISTINCT task FROM answers ORDER BY task")]

    def set_up(self, task: str, value: Any) -> None:
        """Store the settings of a task, in place of earlier ones."""
        with self._write_in_transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (task, as_json(value)))

    def assign(
        self, task: str, unit: str, person: str, most: int, now: float, patience: float = math.inf
    ) -> bool:
        """Assign a unit to a person unless `most` other people have it. Return whether the person has it.

        A person who has had it for over `patience` seconds without an answer keeps it, but no longer counts.
        """
        with self._write_in_transaction() as connection:
            holders = [
                name
                for name, at in connection.execute(
                    "SELECT person, at FROM assigned WHERE task = ? AND unit = ?", (task, unit)
                )
                if name == person or now - at <= patience or _has_answered(connection, task, unit, name)
            ]
            if person in holders:
                return True
            if len(holders) >= most:
                return False
            connection.execute("INSERT INTO assigned VALUES (?, ?, ?, ?)", (task, unit, person, now))
            return True

    def list_assigned(self, task: str, person: str | None = None) -> list[tuple[str, str, float]]:
        """Return unit, person and time of the assignments, by time; of one person, or of all."""
        return self._read(
            "SELECT unit, person, at FROM assigned WHERE task = ? AND ? IN (person, '') ORDER BY at, rowid",
            task,
            person or "",
        )

    def release(self, task: str, unit: str, person: str) -> None:
        """Take back a unit that a person did not answer, so that others can get it."""
        with self._write_in_transaction() as connection:
            connection.execute(
                "DELETE FROM assigned WHERE task = ? AND unit = ? AND person = ?", (task, unit, person)
            )

    def answer(
        self,
        task: str,
        unit: str,
        person: str,
        form: str,
        value: Any,
        *,
        shown: Any,
        seconds: float | None,
        now: float,
    ) -> bool:
        """Store an answer on disk. Return False if this form was answered before.

        `form` identifies the page of the answer, so that repeated sending counts once.
        """
        row = (
            task,
            unit,
            person,
            form,
            as_json(value) if value is not None else None,
            as_json(shown),
            seconds,
            now,
        )
        with self._write_in_transaction() as connection:
            done = connection.execute(
                "INSERT OR IGNORE INTO answers (task, unit, person, form, value, shown, seconds, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            return done.rowcount == 1

    def list_answers(self, task: str, person: str | None = None) -> list[UnitAnswer]:
        """Return all answers to a task, in the order of arrival; of one person, or of all."""
        whose = "person = ?" if person else "? = ''"  # by the index, or everybody's
        rows = self._read(
            "SELECT n, task, unit, person, value, shown, seconds, at FROM answers"  # noqa: S608
            f" WHERE task = ? AND {whose} ORDER BY n",
            task,
            person or "",
        )
        return [
            UnitAnswer(n, task, unit, who, _read_value(value), _read_value(shown), seconds, at)
            for n, task, unit, who, value, shown, seconds, at in rows
        ]

    def read_latest_answers(self, task: str, person: str | None = None) -> dict[tuple[str, str], UnitAnswer]:
        """Return the latest answer by unit and person, without withdrawn ones."""
        found = {(one.unit, one.person): one for one in self.list_answers(task, person)}
        return {key: one for key, one in found.items() if one.value is not None}


def has_people(folder: Path) -> bool:
    """Return whether anybody was ever invited to the run in `folder`."""
    return (folder / "people" / "people.db").exists()


def _has_answered(connection: sqlite3.Connection, task: str, unit: str, person: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM answers WHERE task = ? AND person = ? AND unit = ? LIMIT 1", (task, person, unit)
    )
    return found.fetchone() is not None


def _digest_secret(secret: str) -> str:
    """Return the stored digest of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _read_value(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
