"""One conversation, or all of one scenario side by side, with all that the run knows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web

from edgen.core.errors import UsageError
from edgen.evaluation.data_sets.one_conversation import ConversationDetails, find_conversations
from edgen.preferences.pair_lines import pair_lines
from edgen.store.run_folder import RunFolder
from edgen.web.answers import NO_RUN, html_page, problem_page, run_of
from edgen.web.rendering import render


async def conversation(request: web.Request) -> web.Response:
    """Show one conversation, or all of one scenario side by side, with all that the run knows of it."""
    run = await asyncio.to_thread(run_of, request)
    if run is None:
        return problem_page(NO_RUN, 404)
    named = request.match_info["id"]
    try:
        shown, pairs, rollouts, notes = await asyncio.to_thread(
            find_conversations, RunFolder(run.path), named
        )
    except UsageError as problem:
        return problem_page(str(problem), 404)
    index = await asyncio.to_thread(run.index)
    before = after = None
    if index is not None and not named.isdecimal():
        before, after = await asyncio.to_thread(index.neighbours, named)
    return html_page(
        render(
            "conversation.html.j2",
            run=run,
            named=named,
            several=len(shown) > 1,
            shown=[_conversation_facts(one) for one in shown],
            scenario=_scenario_rows(shown),
            pairs=[line for line in pair_lines(pairs, rollouts) if line[0]],
            notes=notes,
            before=before,
            after=after,
        )
    )


def _scenario_rows(shown: Sequence[ConversationDetails]) -> list[tuple[str, str]]:
    from edgen.core.text import value_in_words

    row = shown[0].scenario.as_row() if shown else {}
    return [
        (name.replace("_", " "), value_in_words(value))
        for name, value in row.items()
        if name != "index" and value is not None
    ]


def _conversation_facts(one: ConversationDetails) -> dict[str, Any]:
    """Return what a page says of a conversation."""
    made: Mapping[str, Any] = one.provenance or {}
    speakers = list(dict.fromkeys(turn.role for turn in one.turns))
    return {
        "id": one.id,
        "arm": one.arm,
        "status": one.status,
        "reason": one.reason,
        "detail": one.detail,
        "probability": one.probability,
        "simulated": one.simulated,
        "scenario": one.scenario.index,
        "turns": [
            {
                "role": turn.role,
                "side": speakers.index(turn.role) % 4,
                "text": turn.text,
                "labels": [*turn.labels, *_labels_at(one, place)],
                "alternatives": [{"text": other.text, "labels": other.labels} for other in turn.alternatives],
            }
            for place, turn in enumerate(one.turns)
        ],
        "labels": list(_labels_at(one, None)),
        "replies": [
            {
                "step": stored.step,
                "attempt": stored.attempt,
                "model": stored.reply.model or "unknown model",
                "finish": stored.reply.finish_reason,
                "text": stored.reply.refusal or stored.reply.text or "(empty)",
            }
            for stored in one.replies
        ],
        "made": [
            (key.replace("_", " "), value if isinstance(value, str) else msgspec.json.encode(value).decode())
            for key, value in made.items()
            if value not in (None, [], {}, "")
        ],
    }


def _labels_at(one: ConversationDetails, place: int | None) -> list[str]:
    return [
        f"{layer}: {'tie' if unit.tie else ', '.join(unit.labels)}"
        for layer, units in one.labels.items()
        for unit in units
        if unit.turn == place
    ]
