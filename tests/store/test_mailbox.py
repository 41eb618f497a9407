"""The mailbox of a run: sittings of a conversation, assignment of seats, times, and older files."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.core.errors import RunError
from edgen.core.people.requests import PersonRequest, View
from edgen.core.values import Address
from edgen.store.people.mailbox import ConversationPlace, Mailbox

BEFORE = """
CREATE TABLE requests (
    n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE NOT NULL, role TEXT NOT NULL,
    arm TEXT NOT NULL, scenario INTEGER NOT NULL, task TEXT NOT NULL, together TEXT NOT NULL,
    request TEXT NOT NULL, put REAL NOT NULL,
    answer TEXT, person TEXT, seconds REAL, done REAL
);
CREATE TABLE seats (
    arm TEXT NOT NULL, scenario INTEGER NOT NULL, task TEXT NOT NULL, role TEXT NOT NULL,
    person TEXT NOT NULL, token TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (arm, scenario, task, role)
);
CREATE INDEX seats_by_person ON seats (person, role, at);
CREATE TABLE ends (
    arm TEXT NOT NULL, scenario INTEGER NOT NULL, task TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (arm, scenario, task)
);
CREATE TABLE lobby (role TEXT NOT NULL, person TEXT NOT NULL, came REAL NOT NULL, seen REAL NOT NULL,
    PRIMARY KEY (role, person));
"""


def ask(key: str, role: str = "student", task: Any = 0, **more: Any) -> PersonRequest:
    return PersonRequest(key=key, address=Address(3, task), role=role, view=View(role), **more)


def test_a_conversation_that_ended_is_asked_about_again_in_another_sitting(tmp_path: Path) -> None:
    with Mailbox(tmp_path) as mailbox:
        first = ask("one")
        mailbox.put(first, 1.0)
        ann = mailbox.take_seat("ann", "student", 2.0)
        assert ann is not None
        assert mailbox.answer("one", "yes", "ann", 3.0)
        mailbox.end(ConversationPlace.of(first), 4.0)
        mailbox.end(ConversationPlace.of(first), 4.5)
        assert mailbox.is_over(ann)
        assert mailbox.take_seat("ben", "student", 5.0) is None  # nothing waits
        mailbox.put(first, 6.0)  # it is answered: no new sitting
        assert mailbox.take_seat("ben", "student", 7.0) is None
        mailbox.put(ask("two"), 8.0)
        assert mailbox.is_over(ann)  # ann may have left
        ben = mailbox.take_seat("ben", "student", 30.0)
        assert ben is not None
        waiting = mailbox.find_request(ben)
        assert waiting is not None
        assert waiting.request.key == "two"
        assert mailbox.find_request(ann) is None
        assert mailbox.answer("two", "no", "ben", 31.0)
        assert [(one.person, one.token) for one in mailbox.list_done_requests()] == [
            ("ann", ann.token),
            ("ben", ben.token),
        ]


def test_a_person_who_left_is_asked_no_more_until_the_conversation_ended(tmp_path: Path) -> None:
    with Mailbox(tmp_path) as mailbox:
        one = ask("one")
        mailbox.put(one, 1.0)
        ann = mailbox.take_seat("ann", "student", 2.0)
        assert ann is not None
        mailbox.give_up("one", 3.0)
        assert mailbox.has_left(ConversationPlace.of(one), "student")
        assert not mailbox.has_left(ConversationPlace.of(one), "teacher")
        assert mailbox.is_over(ann)
        mailbox.end(ConversationPlace.of(one), 4.0)
        assert not mailbox.has_left(ConversationPlace.of(one), "student")


def test_nobody_answers_one_question_for_two_annotators(tmp_path: Path) -> None:
    with Mailbox(tmp_path) as mailbox:
        for arm in ("a", "b"):
            mailbox.put(ask(f"{arm}1", "annotator", "r0/3", arm=arm), 1.0)
        ann = mailbox.take_seat("ann", "annotator", 2.0)
        assert ann is not None
        mailbox.answer("a1", "x", "ann", 3.0)
        assert mailbox.take_seat("ann", "annotator", 4.0) is None
        ben = mailbox.take_seat("ben", "annotator", 20.0)
        assert ben is not None
        assert (ann.conversation.arm, ben.conversation.arm) == ("a", "b")
        for arm in ("a", "b"):  # arms of a run: a person may talk in both
            mailbox.put(ask(f"{arm}2", "student", 0, arm=arm), 30.0)
        found = [mailbox.take_seat("ann", "student", 40.0 + 10 * n) for n in range(2)]
        assert {seat.conversation.arm for seat in found if seat is not None} == {"a", "b"}


def test_times_are_in_order_whatever_the_clocks_say(tmp_path: Path) -> None:
    with Mailbox(tmp_path) as mailbox:
        mailbox.put(ask("one"), 100.0)
        seat = mailbox.take_seat("ann", "student", 101.0)
        assert seat is not None
        mailbox.note_typing(seat, 90.0)  # never shown: no person can have typed
        mailbox.note_seen("one", 99.0)  # a clock that was set back
        mailbox.note_seen("one", 120.0)  # a reload
        mailbox.note_typing(seat, 98.0)
        mailbox.note_typing(seat, 130.0)
        mailbox.answer("one", "yes", "ann", 97.0)
        (given,) = mailbox.list_done_requests()
        times = given.times
        assert (times.asked, times.seen, times.typed, times.at) == (100.0, 100.0, 100.0, 100.0)
        assert times.seconds == 0.0


def test_a_mailbox_by_an_earlier_version_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "people"
    folder.mkdir()
    book = sqlite3.connect(folder / "waiting.db")
    book.executescript(f"{BEFORE} PRAGMA application_id = {Mailbox.APPLICATION_ID}")
    for key, answer in (("old", "yes"), ("new", None)):
        done = None if answer is None else 9.0
        book.execute(
            "INSERT INTO requests (key, role, arm, scenario, task, together, request, put, answer, person, seconds, done)"
            " VALUES (?, 'student', '', 3, '0', '[]', ?, 1.0, ?, 'ann', 2.5, ?)",
            (key, msgspec.json.encode(ask(key)).decode(), answer, done),
        )
    book.execute("INSERT INTO seats VALUES ('', 3, '0', 'student', 'ann', 'WORD', 1.0)")
    book.execute("INSERT INTO ends VALUES ('', 4, '0', 1.0)")
    book.commit()
    book.close()
    for _ in range(2):
        with Mailbox(tmp_path) as mailbox:
            seat = mailbox.find_seat("ann", "student")
            assert seat is not None
            waiting = mailbox.find_request(seat)
            assert waiting is not None
            assert waiting.request.key == "new"
            (given,) = mailbox.list_done_requests()
            assert (given.token, given.times.seconds, given.times.at, given.times.seen) == (
                "WORD",
                2.5,
                9.0,
                None,
            )
    with sqlite3.connect(folder / "waiting.db") as book:
        book.execute("PRAGMA user_version = 99")
    book.close()
    with pytest.raises(RunError, match="a newer edgen wrote this file"):
        Mailbox(tmp_path)
