"""Pages on which people answer the units of a task, by plain forms: voting and labelling."""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from aiohttp import web

from edgen.core.errors import EdgenError, UsageError
from edgen.preferences.vote_units import make_key
from edgen.store.people import Invitation, People
from edgen.web.answers import SOURCES, answer_html, redirect
from edgen.web.guard import NOT_NOW, VISITOR, Route, Visitor, render_problem_page
from edgen.web.people.tasks import (
    Queue,
    RunUnits,
    Setup,
    count_answered,
    find_base,
    read_own_answers,
    read_setup,
    skip_of,
)
from edgen.web.rendering import render
from edgen.web.sources import IndexedRun

QUEUES = web.AppKey("queues", dict[tuple[str, str], "PeopleTask"])
_UNSTORED = "This answer could not be stored. Go back and send it again, or tell the person who invited you."
_FORM = re.compile(r"[A-Za-z0-9_-]{8,64}")
_LONGEST_REASON = 300
_LONGEST_TIME = 86_400.0  # seconds


class PeopleTask(NamedTuple):
    """A task that people answer in a run."""

    people: People
    units: RunUnits[Any, Any]
    queue: Queue


class TaskKind(NamedTuple):
    """A kind of task. `units` finds the units of a task in its runs. `shown` returns the template's variables
    for a unit and a person. `read` returns the answer in a form, and the content that the person saw; it
    raises UsageError."""

    word: str
    template: str
    units: Callable[[Sequence[IndexedRun], Setup], RunUnits[Any, Any]]
    shown: Callable[[str, Any, str, Setup], Mapping[str, Any]]
    read: Callable[[Mapping[str, Any], str, str, Setup, list[str]], tuple[Any, Any]]

    @property
    def routes(self) -> tuple[Route, ...]:
        """The pages of the task, and its changes."""
        pages = _Pages(self)
        return (
            Route("GET", f"/{self.word}", pages.show, "person"),
            Route("POST", f"/{self.word}", pages.answer, "person"),
            Route("POST", f"/{self.word}/undo", pages.undo, "person"),
        )


class _Pages:
    def __init__(self, asking: TaskKind) -> None:
        self._asking = asking

    def _find_task(self, request: web.Request) -> tuple[PeopleTask, Invitation]:
        """Return the task of the visitor. Raises HTTPForbidden for a task of another kind, HTTPConflict if it
        cannot be read now."""
        visitor: Visitor = request[VISITOR]
        run, invitation = visitor.run, visitor.invitation
        if run is None or invitation is None or invitation.task.split(" ")[0] != self._asking.word:
            raise web.HTTPForbidden(text="This page is not for you.")
        people = run.open_people()
        if people is None or not people.path.exists():
            raise web.HTTPConflict(text=NOT_NOW)
        known = request.app[QUEUES]
        place = (run.slug, invitation.task)
        if place not in known:
            setup = read_setup(people, invitation.task)
            try:
                units = self._asking.units(request.app[SOURCES].find_with_others(run, setup.against), setup)
            except EdgenError:  # whose message may contain paths of this machine
                raise web.HTTPConflict(text=NOT_NOW) from None
            known[place] = PeopleTask(people, units, Queue(people, invitation.task, units))
        return known[place], invitation

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show the person's next unit."""
        try:
            return answer_html(await asyncio.to_thread(self._show, request, request[VISITOR]))
        except EdgenError:  # whose message may contain paths of this machine
            return render_problem_page(NOT_NOW, 409, "/task")

    def _show(self, request: web.Request, visitor: Visitor) -> str:
        asked, invitation = self._find_task(request)
        person, now = invitation.person, time.time()
        setup = read_setup(asked.people, invitation.task)
        unit = asked.queue.choose_unit(person, now)
        own = read_own_answers(asked.people, invitation.task, person)
        facts: dict[str, Any] = {
            "word": self._asking.word,
            "task": invitation.task,
            "token": visitor.token,
            "form": secrets.token_urlsafe(12),
            "since": f"{now:.1f}",
            "person": person,
            "again": "again" in request.query,
            "guidelines": setup.guidelines,
            "answered": count_answered(own),
            "can_undo": bool(own),
            "all_units": len(asked.units.list_order()),
            "per_unit": setup.per_unit,
        }
        content = None if unit is None else asked.units.read_content(find_base(unit))
        if unit is None or content is None:
            return render("answered.html.j2", **facts)
        shown = self._asking.shown(unit, content, person, setup)
        return render(self._asking.template, **facts, key=make_key(unit), **shown)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Store an answer, then redirect to the next unit."""
        form = await request.post()
        fields = {
            name: str(form.get(name, "")) for name in ("unit", "form", "since", "choice", "skip", "reason")
        }
        several = [str(one) for one in form.getall("label", [])]
        return await asyncio.to_thread(self._answer, request, fields, several)

    def _answer(
        self, request: web.Request, fields: Mapping[str, str], several: list[str]
    ) -> web.StreamResponse:
        asked, invitation = self._find_task(request)
        person, now = invitation.person, time.time()
        try:
            unit = asked.queue.find_held_unit(person, fields["unit"])
            form = _find_form(fields, person)
            setup = read_setup(asked.people, invitation.task)
            value, shown = self._asking.read(fields, unit, person, setup, several)
            if fields["skip"]:
                value = skip_of(_clean_reason(fields["reason"]))
        except UsageError as problem:
            return render_problem_page(str(problem), 400, "/task")
        try:
            new = asked.people.answer(
                invitation.task,
                unit,
                person,
                form,
                value,
                shown=shown,
                seconds=_compute_seconds(fields["since"], now),
                now=now,
            )
        except EdgenError:
            return render_problem_page(_UNSTORED, 409, "/task")
        if new and fields["skip"]:
            asked.queue.give_back(unit, person)
        return redirect(f"/{self._asking.word}" if new else f"/{self._asking.word}?again=1")

    async def undo(self, request: web.Request) -> web.StreamResponse:
        """Withdraw the person's last answer; its unit is then shown again."""
        form = await request.post()
        return await asyncio.to_thread(self._undo, request, {"form": str(form.get("form", ""))})

    def _undo(self, request: web.Request, fields: Mapping[str, str]) -> web.StreamResponse:
        asked, invitation = self._find_task(request)
        try:
            form = _find_form(fields, invitation.person)
        except UsageError as problem:
            return render_problem_page(str(problem), 400, "/task")
        asked.queue.undo(invitation.person, form, time.time())
        return redirect(f"/{self._asking.word}")


def _find_form(fields: Mapping[str, str], person: str) -> str:
    """Return the id of the sent form, which must be the person's own. Raises UsageError."""
    if not _FORM.fullmatch(fields["form"]):
        raise UsageError("This page is incomplete; load it again.")
    return f"{person}/{fields['form']}"


def _clean_reason(text: str) -> str:
    if not text.strip() or len(text) > _LONGEST_REASON:
        raise UsageError(f"Give a reason for the skip, of 1 to {_LONGEST_REASON} characters.")
    return text.strip()


def _compute_seconds(since: str, now: float) -> float | None:
    """Return the seconds since a page was made; None if the form does not state the time."""
    try:
        spent = now - float(since)
    except ValueError:
        return None
    return round(spent, 1) if math.isfinite(spent) and 0 <= spent <= _LONGEST_TIME else None
