"""Kinds of tasks for invited people, with the pages of each.

A task is a text: the word of its kind and, if there is a choice, its subject ("vote", "label dialogue_acts",
"play Student"). The page of a task is at the kind's word: /vote, /label, /play.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from aiohttp import web

from edgen.web.answers import redirect
from edgen.web.guard import VISITOR, Route
from edgen.web.sources import IndexedRun


class InvitedTask(NamedTuple):
    """A kind of task. `tasks` returns the tasks to which people can be invited in a run, empty if the run
    does not allow any; it may raise EdgenError. `hint` returns a sentence about the use of a task's answers
    in a run. `of_files`: it also answers requests about a file."""

    word: str
    tasks: Callable[[IndexedRun], Sequence[str]]
    routes: tuple[Route, ...]
    hint: Callable[[IndexedRun, str], str] | None = None
    of_files: bool = False


async def _redirect_to_task(request: web.Request) -> web.StreamResponse:
    """Redirect an invited person to the page of the task."""
    invitation = request[VISITOR].invitation
    assert invitation is not None
    return redirect(f"/{invitation.task.split(' ')[0]}")


ROUTES = (Route("GET", "/task", _redirect_to_task, "person"),)
