"""Invitations: admission, each visitor's allowed pages, and valid answers."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from urllib.parse import urlencode

import pytest

from edgen.core.errors import RunError, UsageError
from edgen.store.people import People
from edgen.web.guard import TOKEN, Visitor
from tests.web.test_pages import Answer, Site, site

__all__ = ["site"]


def test_answers_are_appended_and_the_last_one_counts(tmp_path: Path) -> None:
    with People(tmp_path) as people:
        assert people.answer("vote", "u", "ann", "f1", "a", shown={"left": "a"}, seconds=3.5, now=1.0)
        assert not people.answer(
            "vote", "u", "ann", "f1", "b", shown=None, seconds=None, now=2.0
        )  # the same form, sent again
        assert people.answer("vote", "u", "ann", "f2", "tie", shown=None, seconds=None, now=3.0)
        assert people.answer("vote", "u", "ben", "f3", "b", shown=None, seconds=None, now=4.0)
        assert {key: one.value for key, one in people.read_latest_answers("vote").items()} == {
            ("u", "ann"): "tie",
            ("u", "ben"): "b",
        }
        assert people.answer("vote", "u", "ben", "f4", None, shown=None, seconds=None, now=5.0)  # withdrawn
    with People(tmp_path) as people:
        assert [one.value for one in people.list_answers("vote")] == ["a", "tie", "b", None]
        assert set(people.read_latest_answers("vote")) == {("u", "ann")}
        assert [one.value for one in people.list_answers("vote", "ben")] == ["b", None]


def test_a_unit_goes_to_as_many_people_as_asked_and_never_twice_to_one(tmp_path: Path) -> None:
    with People(tmp_path) as one, People(tmp_path) as other:
        got: list[str] = []

        def take(people: People, person: str) -> None:
            if people.assign("vote", "u", person, 2, 0.0):
                got.append(person)

        threads = [
            threading.Thread(target=take, args=((one, other)[number % 2], f"p{number}"))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 2
        assert one.assign("vote", "u", got[0], 2, 1.0)  # has it already
        one.release("vote", "u", got[0])
        assert [unit for unit, _, _ in other.list_assigned("vote", got[0])] == []
        assert other.assign("vote", "u", "late", 2, 2.0)


def test_secrets_are_kept_as_digests_alone(tmp_path: Path) -> None:
    with People(tmp_path) as people:
        secret = people.invite("ann", "vote", 0.0)
        session = people.open_session(secret, 1.0)
        assert session is not None
        found = people.find_invitation(session)
        assert found is not None
        assert (found.person, found.task) == ("ann", "vote")
        assert people.open_session("wrong", 1.0) is None
        people.revoke(found.n, 2.0)
        assert people.find_invitation(session) is None
        assert people.open_session(secret, 3.0) is None
        for name in ("", "  ", "x" * 101, "a\u202eb", "a\nb"):
            with pytest.raises(UsageError, match="person's name"):
                people.invite(name, "vote", 0.0)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "people").iterdir())
    assert secret.encode() not in kept
    assert session.encode() not in kept


@pytest.mark.parametrize("content", [b"no database", b"", None])
def test_a_file_that_is_no_book_of_people_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "people" / "people.db"
    path.parent.mkdir()
    if content is None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_bytes(b"")
        path.symlink_to(elsewhere)
    elif content:
        path.write_bytes(content)
    else:
        sqlite3.connect(path).executescript("PRAGMA application_id = 7; CREATE TABLE other (x)").close()
    with pytest.raises(RunError, match=r"people\.db"):
        People(tmp_path)


def post(site: Site, path: str, cookie: str, fields: dict[str, str], **headers: str) -> Answer:
    """Send a form as a page would."""
    return site.post(path, urlencode(fields), cookie=cookie, **headers)


def test_changes_need_the_token_of_a_page_and_this_origin(site: Site) -> None:
    run = site.runs()["experiment"].removeprefix("/run/")
    people = f"/people/{run}"
    assert site.get(people).status == 200
    held = Visitor(site.cookie.partition("=")[2]).token
    fields = {TOKEN: held, "n": "1"}
    assert post(site, f"{people}/revoke", site.cookie, fields).status == 303
    assert post(site, f"{people}/revoke", site.cookie, {"n": "1"}).status == 403
    assert post(site, f"{people}/revoke", site.cookie, fields | {TOKEN: held[:-1] + "x"}).status == 403
    assert post(site, f"{people}/revoke", "", fields).status == 403
    for origin in ("http://elsewhere.example", f"http://127.0.0.1:{site.port + 1}", "null"):
        assert post(site, f"{people}/revoke", site.cookie, fields, Origin=origin).status == 403, origin
    huge = fields | {"n": "1" * 1_100_000}
    refused = post(site, f"{people}/revoke", site.cookie, huge)
    assert refused.status == 413
    assert "shorten what you wrote" in refused.text
    assert (
        site.post(f"{people}/revoke", "{}", cookie=site.cookie, Content_Type="application/json").status == 415
    )
    assert post(site, "/run/x", site.cookie, fields).status in (404, 405)
