"""The owner's page about a run's people: their invitations and tasks, new invitations, and revocations."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from aiohttp import web

from edgen.config import load_job
from edgen.core.errors import EdgenError, RunError, UsageError
from edgen.runtime.players import find_role
from edgen.store.people import Invitation, People
from edgen.store.people.mailbox import ConversationPlace, Mailbox, has_mailbox
from edgen.store.run_folder import RunFolder
from edgen.web.answers import answer_html, redirect, run_of
from edgen.web.guard import ENTER, VISITOR, Route
from edgen.web.people.answering import QUEUES
from edgen.web.people.invited_pages import InvitedTask
from edgen.web.people.progress import Progress, compute_progress, summarize_players
from edgen.web.rendering import render
from edgen.web.sources import IndexedRun

FACES = web.AppKey("faces", tuple[InvitedTask, ...])
_MOST_INVITED = 200  # most people invited at once


def list_tasks(app: web.Application, run: IndexedRun) -> tuple[list[str], str]:
    """Return every task to which people can be invited in a run, and why there may be others: a run that is
    beginning or damaged cannot be read. A data set in files has no tasks."""
    tasks: list[str] = []
    problem = ""
    is_run = RunFolder(run.path).exists
    for face in (one for one in app[FACES] if is_run or (one.of_files and run.kind == "asked")):
        try:
            tasks += face.tasks(run)
        except (EdgenError, OSError) as unreadable:
            problem = str(unreadable)
    return tasks, problem


def invite(run: IndexedRun, names: list[str], task: str, now: float) -> dict[str, str]:
    """Invite people to a task of a run; return the key of each link by name.

    Raises UsageError for no names, too many names, a repeated name or an invalid one, and RunError if nothing
    can be written.
    """
    if not 1 <= len(names) <= _MOST_INVITED or len(set(names)) != len(names):
        raise UsageError(f"Give 1 to {_MOST_INVITED} different names.")
    people = run.open_people(create=True)
    assert people is not None
    return {name: f"{run.slug}.{people.invite(name, task, now)}" for name in names}


async def show_people(request: web.Request) -> web.StreamResponse:
    """Show the people of a run."""
    return await _show(request, {})


async def _show(request: web.Request, keys: Mapping[str, str], problem: str = "") -> web.Response:
    run = await asyncio.to_thread(run_of, request)
    people = run.open_people()
    invitations: list[Invitation] = [] if people is None else people.list_invitations()
    base = f"{request.scheme}://{request.host}"
    tasks, unread = await asyncio.to_thread(list_tasks, request.app, run)
    roles = await asyncio.to_thread(_read_player_figures, run)
    text = render(
        "people.html.j2",
        run=run,
        token=request[VISITOR].token,
        tasks=tasks,
        unread=unread,
        invitations=[_describe_invitation(one, people, roles) for one in invitations],
        roles=roles,
        links=[(name, f"{base}{ENTER}?key={key}") for name, key in keys.items()],
        port=request.url.port,
        problem=problem,
        progress=[] if people is None else await asyncio.to_thread(_describe_progress, people, invitations),
        all_units=await asyncio.to_thread(_count_units, request.app, run),
        hint=_make_hints(request.app, run),
    )
    return answer_html(text, 400 if problem else 200)


def _describe_progress(people: People, invitations: list[Invitation]) -> list[Progress]:
    tasks = dict.fromkeys((*people.list_tasks_set(), *(one.task for one in invitations)))
    return [
        one for task in tasks if find_role(task) is None and (one := compute_progress(people, task)).people
    ]


def _count_units(app: web.Application, run: IndexedRun) -> dict[str, int]:
    """Return the number of units of each task that somebody has opened since the server started: listing
    them for this page alone would take long in a large run."""
    counts = {}
    for (slug, task), opened in [*app[QUEUES].items()]:
        if slug == run.slug:
            with contextlib.suppress(EdgenError):  # a run that cannot be read now
                counts[task] = len(opened.units.list_order())
    return counts


def _read_player_figures(run: IndexedRun) -> dict[str, list[dict[str, Any]]]:
    """Return the figures of the people who played each role in a run."""
    mailbox = run.open_mailbox()
    return {} if mailbox is None else summarize_players(mailbox.list_done_requests())


def _make_hints(app: web.Application, run: IndexedRun) -> Callable[[str], str]:
    """Return a function that describes the use of the answers to a task."""
    known = {face.word: face.hint for face in app[FACES]}

    def describe_hint(task: str) -> str:
        own = known.get(task.split(" ")[0])
        return own(run, task) if own is not None else ""

    return describe_hint


def _describe_invitation(
    one: Invitation, people: People | None, roles: Mapping[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    role = find_role(one.task)
    if role is not None:
        answers = sum(row["answers"] for row in roles.get(role, ()) if row["name"] == one.person)
    else:
        answered = {} if people is None else people.read_latest_answers(one.task, one.person)
        answers = sum("#" not in unit for unit, _ in answered)  # without checks
    return {
        "n": one.n,
        "person": one.person,
        "task": one.task,
        "made": time.strftime("%Y-%m-%d %H:%M", time.gmtime(one.made)),
        "revoked": one.revoked is not None,
        "answers": answers,
    }


async def change_invite(request: web.Request) -> web.StreamResponse:
    """Invite people, and show each link once."""
    form = await request.post()
    run, task = await asyncio.to_thread(run_of, request), str(form.get("task", ""))
    names = [
        name.strip() for name in str(form.get("names", "")).replace("\n", ",").split(",") if name.strip()
    ]
    try:
        if task not in (await asyncio.to_thread(list_tasks, request.app, run))[0]:
            raise UsageError("Choose one of the tasks that are listed.")
        keys = await asyncio.to_thread(invite, run, names, task, time.time())
    except (UsageError, RunError) as problem:
        return await _show(request, {}, str(problem))
    return await _show(request, keys)


async def send_answers(request: web.Request) -> web.StreamResponse:
    """Send everything that people answered, one JSON object per line: their turns with times, their consents
    and their other answers."""
    run = await asyncio.to_thread(run_of, request)
    lines = await asyncio.to_thread(lambda: [msgspec.json.encode(one) for one in _list_answers(run)])
    return web.Response(body=b"\n".join(lines) + b"\n", content_type="application/jsonl", charset="utf-8")


def _list_answers(run: IndexedRun) -> Iterator[dict[str, Any]]:
    from edgen.families.base import make_record_id

    if has_mailbox(run.path):
        with Mailbox(run.path) as mailbox:
            own = run_name(run)
            for one in mailbox.list_done_requests():
                arm, scenario, task = ConversationPlace.of(one.request)
                name = f"{own}.{arm}" if arm else own
                yield {
                    "conversation": make_record_id(name, scenario, task) if isinstance(task, int) else None,
                    "scenario": scenario,
                    "task": task,
                    "role": one.request.role,
                    "person": one.person,
                    "token": one.token or None,
                    "step": one.request.address.step,
                    "attempt": one.request.address.attempt,
                    "asked": one.times.asked,
                    "seen": one.times.seen,
                    "typed": one.times.typed,
                    "answered": one.times.at,
                    "seconds": one.times.seconds,
                    "left": one.text is None,
                    "answer": one.text,
                }
    if (people := run.open_people()) is not None:
        for one_answer in (one for task in people.list_tasks_answered() for one in people.list_answers(task)):
            yield msgspec.to_builtins(one_answer._asdict())


def run_name(run: IndexedRun) -> str:
    """Return the name of a run as in its records."""
    path = RunFolder(run.path).job
    return load_job(path).name if path.exists() else run.name


async def change_revoke(request: web.Request) -> web.StreamResponse:
    """Revoke an invitation."""
    run, number = await asyncio.to_thread(run_of, request), str((await request.post()).get("n", ""))
    people = run.open_people()
    if people is not None and number.isascii() and number.isdecimal() and len(number) < 10:
        await asyncio.to_thread(people.revoke, int(number), time.time())
    return redirect(f"/people/{run.slug}")


ROUTES = (
    Route("GET", "/people/{run}", show_people),
    Route("GET", "/people/{run}/answers.jsonl", send_answers),
    Route("POST", "/people/{run}/invite", change_invite),
    Route("POST", "/people/{run}/revoke", change_revoke),
)
