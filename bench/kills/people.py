"""A person in the campaign: answers a run's requests to people, through the run's mailbox."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from edgen.core.people.requests import PersonRequest
from edgen.store.people.mailbox import Mailbox

_PAUSE = 0.02  # seconds between two looks
_ROLES = ("student", "teacher", "judge", "annotator")


async def answer_requests(run: Path) -> None:
    """Answer every request in a run's mailbox until cancelled.

    An answer depends on its request alone.
    """
    while not (run / "people" / Mailbox.NAME).exists():  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(_PAUSE)
    with Mailbox(run) as mailbox:
        while True:
            for one in (one.request for role in _ROLES for one in mailbox.list_waiting(role)):
                mailbox.answer(one.key, _answer(one), "ann", time.time())
            await asyncio.sleep(_PAUSE)


def _answer(request: PersonRequest) -> str:
    """Return the answer to a request: by its form if it has one, else a sentence."""
    sentence = f"I counted {int(request.key[:6], 16)} of them; is that right?"
    if not request.schema:
        return sentence
    fields: dict[str, Any] = json.loads(request.schema).get("properties", {})
    return json.dumps({name: _choose(form, sentence) for name, form in fields.items()})


def _choose(form: dict[str, Any], sentence: str) -> Any:
    if "enum" in form:
        return form["enum"][0]
    if form.get("type") in ("number", "integer"):
        return form.get("minimum", 0)
    return sentence if form.get("type") == "string" else None
