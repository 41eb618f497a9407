"""The pages of people who play a role: the facts that the role sees, and a place to answer.

A page works without JavaScript: it shows the state of the person's conversation at the time of the request,
and its form sends the answer. A script requests the state twice a second, and replaces changed parts.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from edgen.config import load_kept_job
from edgen.core.errors import RunError, UsageError
from edgen.core.people.requests import Field, PersonRequest, list_fields, write_answer
from edgen.protocols.reasons import find_reason
from edgen.providers.human.config import HumanConfig
from edgen.runtime.players import (
    PlayerForm,
    find_form_after,
    find_form_before,
    find_players,
    find_role,
    make_task_name,
    read_person_answers,
)
from edgen.store.people import UnitAnswer
from edgen.store.people.mailbox import Mailbox, Seat, WaitingRequest
from edgen.store.run_folder import RunFolder
from edgen.web.answers import answer_html, redirect
from edgen.web.guard import VISITOR, Route
from edgen.web.people.invited_pages import InvitedTask
from edgen.web.rendering import render
from edgen.web.sources import IndexedRun

_TYPES = 4.0  # seconds for which a person counts as typing
_HEADINGS = {"default": "Your answer is needed"}  # headings for roles whose name has no meaning
TYPING = web.AppKey("typing", dict[tuple[str, str], float])
"""The time at which somebody last typed, by game token and role."""


class _Player(NamedTuple):
    """An invited person, and the mailbox of the run; None before the first request."""

    run: IndexedRun
    person: str
    role: str
    mailbox: Mailbox | None


class _Stage(NamedTuple):
    """A person's place: `state` is `consent`, `before`, `lobby`, `answer`, `wait`, `after` or `over`. `paper`
    is the text to agree to or the questionnaire, outside the conversation."""

    state: str
    seat: Seat | None = None
    waiting: WaitingRequest | None = None
    paper: PlayerForm | None = None


def _list_tasks(run: IndexedRun) -> list[str]:
    """Return the roles that people play in a run."""
    roles: dict[str, None] = dict.fromkeys(_read_settings(run))
    if (mailbox := run.open_mailbox()) is not None:
        roles |= dict.fromkeys(mailbox.list_roles())
    return [make_task_name(role) for role in roles]


def _read_settings(run: IndexedRun) -> dict[str, HumanConfig]:
    """Return the settings of the roles that people play in a run, by role."""
    try:
        changed = RunFolder(run.path).job.stat().st_mtime_ns
    except OSError:
        return {}
    return _read_settings_at(run.path, changed)


@functools.lru_cache(maxsize=256)
def _read_settings_at(path: Path, _changed: int) -> dict[str, HumanConfig]:
    return find_players(path)


def _find_player(request: web.Request) -> _Player:
    """Return the visitor as a player. Raises UsageError for an invitation to another task."""
    visitor = request[VISITOR]
    assert visitor.run is not None
    assert visitor.invitation is not None
    role = find_role(visitor.invitation.task)
    if role is None:
        raise UsageError("Your invitation is to another task.")
    if not visitor.run.path.is_dir():
        raise RunError(f"{visitor.run.path}: there is no run here any more.")
    return _Player(visitor.run, visitor.invitation.person, role, visitor.run.open_mailbox())


def _read_answers(player: _Player) -> dict[str, UnitAnswer]:
    return read_person_answers(player.run.open_people(), player.role, player.person)


def _find_stage(player: _Player, *, again: bool) -> _Stage:
    """Return the state of a person, with a seat if one is free. `again`: after a conversation, take the next
    one."""
    config = _read_settings(player.run).get(player.role, HumanConfig())
    if (paper := find_form_before(config, _read_answers(player))) is not None:
        return _Stage(paper.name, paper=paper)
    mailbox, now = player.mailbox, time.time()
    if mailbox is None:
        return _Stage("lobby")
    seat = mailbox.find_seat(player.person, player.role)
    if seat is not None and mailbox.is_over(seat):
        if not again and _is_played_in(mailbox, seat) and not mailbox.is_in_lobby(player.person, player.role):
            if (paper := find_form_after(config, _read_answers(player), seat.token)) is not None:
                return _Stage(paper.name, seat, paper=paper)
            return _Stage("over", seat)
        seat = None
    if seat is None:
        seat = mailbox.take_seat(player.person, player.role, now)
    if seat is None:
        return _Stage("lobby")
    waiting = mailbox.find_request(seat)
    if waiting is not None and not waiting.seen:
        mailbox.note_seen(waiting.request.key, now)
    return _Stage("wait" if waiting is None else "answer", seat, waiting)


def _is_played_in(mailbox: Mailbox, seat: Seat) -> bool:
    """Return whether a person speaks in a conversation. A person who only judges or labels continues with the
    next one."""
    last = mailbox.read_last_request(seat)
    return last is None or bool(last[0].view.role)


def _show(
    request: web.Request,
    player: _Player,
    stage: _Stage,
    problem: str = "",
    given: Mapping[str, list[str]] | None = None,
) -> dict[str, Any]:
    """Return the values of the page's template. After a problem, fields keep what was `given`."""
    mailbox, seat, waiting = player.mailbox, stage.seat, stage.waiting
    view, again, own = None, "", ""
    kept = {f"f:{name}": values for name, values in (given or {}).items() if values}
    last = None if seat is None or mailbox is None else mailbox.read_last_request(seat)
    paper = stage.paper
    asked = None if paper is None else paper.request
    pending = waiting.request if waiting is not None else asked
    if waiting is not None:
        view, again = waiting.request.view, waiting.request.again
        kept = kept or (_refill_text(waiting.request, last) if again else {})
    elif last is not None:
        view, own = last[0].view, _read_answer_words(*last)
    turns = [] if view is None else [(speaker, text, speaker == view.role) for speaker, text in view.turns]
    if view is not None and view.role and own:
        turns.append((view.role, own, True))
    return {
        "token": request[VISITOR].token,
        "role": view.role
        if view is not None and view.role
        else _HEADINGS.get(player.role, player.role.capitalize()),
        "state": stage.state,
        "game": "" if seat is None else seat.token,
        "view": view,
        "turns": turns,
        "sides": [] if view is None else [_number_speakers(side) for side in view.sides],
        "again": _explain_again(player.run, again),
        "left": stage.state in ("after", "over") and last is not None and last[1] is None,
        "paper": "" if paper is None else paper.text or (asked.view.text if asked is not None else ""),
        "fields": [] if pending is None else [_describe_field(field) for field in list_fields(pending)],
        "key": "" if waiting is None else waiting.request.key,
        "problem": problem,
        "kept": kept,
    }


def _explain_again(run: IndexedRun, reason: str) -> str:
    """Return a clause for the person about why an answer cannot be used; empty without a reason."""
    if not reason:
        return ""
    found = find_reason(reason) or find_reason(reason, load_kept_job(RunFolder(run.path).job).protocol)
    return (found and found.personal) or reason.replace("_", " ")


def _refill_text(
    pending: PersonRequest, last: tuple[PersonRequest, str | None] | None
) -> dict[str, list[str]]:
    """Return the text of an unusable answer, for its field, so that the person can correct it there."""
    texts = [field for field in list_fields(pending) if field.kind == "text"]
    return {} if last is None or len(texts) != 1 else {f"f:{texts[0].name}": [_read_answer_words(*last)]}


def _number_speakers(turns: Sequence[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Return the turns of a text to compare, each with its speaker's number."""
    speakers = [*dict.fromkeys(speaker for speaker, _ in turns)]
    return [(speaker, text, speakers.index(speaker) % 2) for speaker, text in turns]


def _describe_field(field: Field) -> dict[str, Any]:
    """Return a field as the template shows it."""
    return {
        "name": f"f:{field.name}",
        "label": field.label,
        "kind": field.kind,
        "choices": [(msgspec.json.encode(one.value).decode(), one.words, one.hint) for one in field.choices],
        "least": field.least,
        "most": field.most if field.kind == "number" else field.most_characters,
        "worded": field.worded,
        "own": bool(field.own),
    }


def _read_answer_words(pending: PersonRequest, text: str | None) -> str:
    """Return the words of an answer, for the conversation on the page; empty if the person left."""
    if text is None:
        return ""
    said: list[str] = []
    try:
        answer = msgspec.json.decode(text) if pending.schema else {"": text}
    except msgspec.DecodeError:
        answer = {"": text}
    for field in list_fields(pending):
        value = answer.get(field.own or field.name) if isinstance(answer, dict) else None
        if field.own:
            value = value.get(field.inner) if isinstance(value, dict) else None
        if field.kind == "text" and isinstance(value, str) and value:
            said.append(value)
        elif field.worded and field.kind == "choice":
            said += [one.words for one in field.choices if one.value == value]
    return (said[0] if said else "").replace(pending.view.closing or "\0", "").strip()


async def show_page(request: web.Request) -> web.StreamResponse:
    """Show a person's conversation."""
    player = _find_player(request)
    stage = await asyncio.to_thread(_find_stage, player, again=False)
    return _render_page(request, player, stage)


def _render_page(
    request: web.Request,
    player: _Player,
    stage: _Stage,
    problem: str = "",
    given: Mapping[str, list[str]] | None = None,
) -> web.Response:
    values = _show(request, player, stage, problem, given)
    text = render("play.html.j2", version=_make_version(player, stage), **values)
    return answer_html(text, 400 if problem else 200)


def _make_version(player: _Player, stage: _Stage) -> str:
    """Return a text that changes whenever the page changes."""
    pending = "" if stage.waiting is None else stage.waiting.request.key
    seat = "" if stage.seat is None else f"{stage.seat.token}{stage.seat.conversation}"
    return hashlib.sha256(f"{player.role}/{stage.state}/{seat}/{pending}".encode()).hexdigest()[:16]


async def send_state(request: web.Request) -> web.StreamResponse:
    """Send the state of a person, with the part of the page if it changed."""
    player = _find_player(request)
    stage = await asyncio.to_thread(_find_stage, player, again=False)
    facts: dict[str, Any] = {"version": _make_version(player, stage), "typing": False}
    if stage.seat is not None:
        typing = request.app[TYPING].items()
        here = [when for (game, role), when in typing if game == stage.seat.token and role != player.role]
        facts["typing"] = any(time.monotonic() - when < _TYPES for when in here)
    if facts["version"] != request.query.get("seen"):
        facts["html"] = await asyncio.to_thread(
            lambda: render("play_part.html.j2", **_show(request, player, stage))
        )
    return web.json_response(facts)


def _read_fields(form: Any, fields: Sequence[Field]) -> dict[str, list[str]]:
    """Return the values of a form's fields by name."""
    return {field.name: [str(one) for one in form.getall(f"f:{field.name}", [])] for field in fields}


async def change_answer(request: web.Request) -> web.StreamResponse:
    """Store a person's answer. It is on disk before the page confirms it."""
    player, form, now = _find_player(request), await request.post(), time.time()
    stage = await asyncio.to_thread(_find_stage, player, again=False)
    waiting = stage.waiting
    if waiting is None or player.mailbox is None or form.get("key") != waiting.request.key:
        return redirect("/play")  # answered before, or it is over
    fields = list_fields(waiting.request)
    given = _read_fields(form, fields)
    if "close" in form and waiting.request.view.closing:
        text = next((field.name for field in fields if field.kind == "text"), "")
        given[text] = [f"{(given.get(text) or [''])[0].strip()} {waiting.request.view.closing}".strip()]
    try:
        answer = write_answer(fields, given)
    except UsageError as problem:
        return _render_page(request, player, stage, str(problem), given)
    await asyncio.to_thread(player.mailbox.answer, waiting.request.key, answer, player.person, now)
    if stage.seat is not None:
        request.app[TYPING].pop((stage.seat.token, player.role), None)
    return redirect("/play")


async def change_form(request: web.Request) -> web.StreamResponse:
    """Store a person's consent, or the answers to a questionnaire."""
    player, form, now = _find_player(request), await request.post(), time.time()
    stage = await asyncio.to_thread(_find_stage, player, again=False)
    people = player.run.open_people()
    if (paper := stage.paper) is None or form.get("paper") != stage.state or people is None:
        return redirect("/play")
    value: Any = True
    if paper.request is not None:
        fields = list_fields(paper.request)
        given = _read_fields(form, fields)
        try:
            value = msgspec.json.decode(write_answer(fields, given))
        except UsageError as problem:
            return _render_page(request, player, stage, str(problem), given)
    place = (
        make_task_name(player.role),
        paper.unit,
        player.person,
        paper.name_form(player.role, player.person),
    )
    await asyncio.to_thread(people.answer, *place, value, shown=paper.shown, seconds=None, now=now)
    return redirect("/play")


async def change_next(request: web.Request) -> web.StreamResponse:
    """Let a person into the lobby, for another conversation."""
    await asyncio.to_thread(_find_stage, _find_player(request), again=True)
    return redirect("/play")


async def change_leave(request: web.Request) -> web.StreamResponse:
    """End a person's conversation at the person's request."""
    player = _find_player(request)
    stage = await asyncio.to_thread(_find_stage, player, again=False)
    if stage.waiting is not None and player.mailbox is not None:
        await asyncio.to_thread(player.mailbox.give_up, stage.waiting.request.key, time.time())
    return redirect("/play")


async def change_typing(request: web.Request) -> web.StreamResponse:
    """Note that a person is typing, and since when."""
    player = _find_player(request)
    seat = await asyncio.to_thread(_find_typing_seat, player)
    if seat is not None:
        now, typing = time.monotonic(), request.app[TYPING]
        for key in [key for key, when in typing.items() if now - when > _TYPES]:
            del typing[key]
        typing[seat.token, player.role] = now
    return web.json_response({})


def _find_typing_seat(player: _Player) -> Seat | None:
    """Return the seat of a person who is typing; note the beginning."""
    if (mailbox := player.mailbox) is None or (seat := mailbox.find_seat(player.person, player.role)) is None:
        return None
    waiting = mailbox.find_request(seat)
    if waiting is not None and not waiting.typed:
        mailbox.note_typing(seat, time.time())
    return seat


FACE = InvitedTask(
    "play",
    _list_tasks,
    (
        Route("GET", "/play", show_page, "person"),
        Route("GET", "/play/state", send_state, "person"),
        Route("POST", "/play/answer", change_answer, "person"),
        Route("POST", "/play/paper", change_form, "person"),
        Route("POST", "/play/next", change_next, "person"),
        Route("POST", "/play/leave", change_leave, "person"),
        Route("POST", "/play/typing", change_typing, "person"),
    ),
    of_files=True,
)
