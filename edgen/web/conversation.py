"""One conversation, or all of one scenario side by side, with all facts that the run or data set has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from edgen.core.errors import UsageError
from edgen.core.pair import Pair
from edgen.core.text import describe_value
from edgen.core.values import Event, Scenario, Turn
from edgen.evaluation.data_sets.one_conversation import ConversationDetails, find_conversations
from edgen.evaluation.sample import Sample
from edgen.preferences.pair_lines import describe_pairs
from edgen.space import load_space
from edgen.store.layers import LabelsByLayer
from edgen.store.run_folder import RunFolder
from edgen.web.answers import NO_RUN, SOURCES, answer_html, find_source, run_of
from edgen.web.marked_texts import TextMark, mark_reply, mark_text_differences
from edgen.web.rendering import render
from edgen.web.sent_requests import read_sent_requests
from edgen.web.sources import IndexedFiles, IndexedRun

_SIDES = 6  # colours for the speakers
_MOST_VALUE = 2_000  # most characters of a value of a scenario or an event


class EventLine(NamedTuple):
    """An event as a line: its name, and its other facts."""

    name: str
    rest: str


class Details(NamedTuple):
    """The content of a page: conversations, and the facts about all of them."""

    shown: list[dict[str, Any]]
    scenario: list[tuple[str, str]]
    knowledge: list[tuple[str, list[str]]]
    pairs: list[tuple[int, str]]
    notes: list[str]


async def show_conversation(request: web.Request) -> web.Response:
    """Show one conversation, or all of one scenario side by side, with all known facts."""
    run = await asyncio.to_thread(find_source, request)
    others = request.app[SOURCES].list_names()
    return answer_html(
        await asyncio.to_thread(render_conversation_page, run, request.match_info["id"], others)
    )


def render_conversation_page(
    run: IndexedRun, named: str, others: Sequence[tuple[str, str]] = (), root: str = "/"
) -> str:
    """Return the page of a conversation, or of all of one scenario. Raises UsageError for an unknown name."""
    details = read_details(run, named)
    index = run.open_index()
    several = len(details.shown) > 1
    before = after = None
    similar: list[Any] = []
    if index is not None and not several and details.shown:
        identifier = details.shown[0]["id"]
        before, after = index.find_neighbours(identifier)
        similar = index.find_similar(identifier)
    return render(
        "conversation.html.j2",
        run=run,
        root=root,
        named=named,
        several=several,
        before=before,
        after=after,
        similar=similar,
        others=others,
        tree=_build_tree(details.shown) if several else [],
        **details._asdict(),
    )


async def show_requests(request: web.Request) -> web.Response:
    """Show every request of a conversation, as it was sent."""
    run = await asyncio.to_thread(run_of, request)
    found, *_ = await asyncio.to_thread(find_conversations, RunFolder(run.path), request.match_info["id"])
    one = found[0]
    sent, note = await asyncio.to_thread(
        read_sent_requests, run.path, one.arm, one.scenario.index, one.replicate
    )
    return answer_html(render("requests.html.j2", run=run, root="/", one=one, sent=sent, note=note))


async def show_side_by_side(request: web.Request) -> web.Response:
    """Show two conversations or scenarios, of any runs and data sets, side by side."""
    sources = request.app[SOURCES]
    halves: list[tuple[IndexedRun, dict[str, Any]]] = []
    for side in ("left", "right"):
        slug, _, named = request.query.get(side, "").partition(":")
        named = request.query.get(f"{side}_id", named)[:300]
        run = await asyncio.to_thread(sources.find, slug[:40])
        if run is None:
            raise UsageError(NO_RUN)
        details = await asyncio.to_thread(read_details, run, named)
        halves += [(run, one) for one in details.shown]
    mark_differences([one for _, one in halves])
    return answer_html(render("beside.html.j2", halves=halves, root="/"))


def read_details(run: IndexedRun, named: str) -> Details:
    """Return the details of a conversation or a scenario. Raises UsageError for an unknown name."""
    if isinstance(run, IndexedFiles):
        return _read_details_of_file(run, named)
    rundir = RunFolder(run.path)
    found, pairs, rollouts, notes = find_conversations(rundir, named)
    shown = [_describe_details(one) for one in found]
    mark_differences(shown)
    evidence: Sequence[Pair] = pairs
    return Details(
        shown,
        _list_scenario_rows(found[0].scenario) if found else [],
        _read_knowledge(rundir),
        [line for line in describe_pairs(evidence, rollouts) if line[0]],
        notes,
    )


def _read_details_of_file(run: IndexedFiles, named: str) -> Details:
    index = run.wait()
    body = None if index is None else index.read_body(named)
    if body is None:
        why = f": {run.problem}" if run.problem else "; open its list to find one"
        raise UsageError(f"{run.name}: there is no conversation {named} in this data set{why}.")
    sample = msgspec.json.decode(body, type=Sample)
    made = {
        "file": sample.source,
        "split": sample.split,
        "defects": sample.defects,
        "repairs": sample.repairs,
    }
    facts = {
        **_describe_conversation(sample.id, sample.turns, sample.events, sample.labels),
        "probability": sample.probability,
        "ended_by": sample.ended_by,
        "simulated": sample.simulated,
        "outcome": _list_rows(sample.outcome or {}),
        "made": _list_rows(made),
    }
    return Details([facts], _list_scenario_rows(sample.scenario), [], [], [])


def _describe_conversation(
    identifier: str, turns: Sequence[Turn], events: Sequence[Event], labels: LabelsByLayer
) -> dict[str, Any]:
    """Return the shown content of a conversation of any origin."""
    speakers = list(dict.fromkeys(turn.role for turn in turns))
    by_turn: dict[int, list[EventLine]] = {}
    for event in events:
        at = event.get("turn")
        by_turn.setdefault(min(at, len(turns)) if isinstance(at, int) else len(turns), []).append(
            _describe_event(event)
        )
    return {
        "id": identifier,
        "arm": "",
        "replicate": 0,
        "status": "",
        "reason": None,
        "detail": None,
        "probability": None,
        "ended_by": None,
        "simulated": False,
        "branch": None,
        "scenario": None,
        "turns": [
            {
                "number": place + 1,
                "role": turn.role,
                "side": speakers.index(turn.role) % _SIDES,
                "parts": [TextMark(turn.text)],
                "text": turn.text,
                "labels": [*turn.labels, *_list_labels(labels, place)],
                "data": _list_rows(turn.data),
                "alternatives": [
                    {"text": other.text, "labels": other.labels, "data": _list_rows(other.data)}
                    for other in turn.alternatives
                ],
                "events": by_turn.get(place, []),
            }
            for place, turn in enumerate(turns)
        ],
        "last_events": by_turn.get(len(turns), []),
        "labels": _list_labels(labels, None),
        "outcome": [],
        "repairs": [],
        "flags": [],
        "replies": [],
        "made": [],
    }


def _describe_event(event: Event) -> EventLine:
    rest = ", ".join(
        f"{key.replace('_', ' ')} {_format_value(value)}"
        for key, value in event.items()
        if key not in ("event", "turn") and value is not None
    )
    name = str(event.get("event", "event")).replace("_", " ")
    return EventLine(name, rest)


def _describe_details(one: ConversationDetails) -> dict[str, Any]:
    """Return the further facts of a conversation of a run."""
    made: Mapping[str, Any] = one.provenance or {}
    texts = [turn.text for turn in one.turns]
    last = len(one.replies) - 1
    return {
        **_describe_conversation(one.id, one.turns, one.events, one.labels),
        "arm": one.arm,
        "replicate": one.replicate,
        "status": one.status,
        "reason": one.reason,
        "detail": one.detail,
        "probability": one.probability,
        "ended_by": one.ended_by,
        "simulated": one.simulated,
        "branch": made.get("branch"),
        "scenario": one.scenario.index,
        "outcome": _list_rows(one.outcome or {}),
        "repairs": [*made.get("repairs", ())],
        "flags": [*made.get("flags", ())],
        "replies": [
            {
                "step": stored.step,
                "attempt": stored.attempt,
                "model": stored.reply.model or "unknown model",
                "finish": stored.reply.finish_reason,
                "parts": mark_reply(
                    stored.reply.refusal or stored.reply.text,
                    texts,
                    one.reason if place == last else None,
                    one.detail,
                ),
            }
            for place, stored in enumerate(one.replies)
        ],
        "made": _list_rows(made),
    }


def _list_scenario_rows(scenario: Scenario) -> list[tuple[str, str]]:
    return [
        (name.replace("_", " "), describe_value(value)[:_MOST_VALUE])
        for name, value in scenario.as_row().items()
        if name != "index" and value is not None
    ]


def _read_knowledge(rundir: RunFolder) -> list[tuple[str, list[str]]]:
    """Return each role with the dimensions that it knows; empty if the run's space cannot be read."""
    path = rundir.inputs / "space.yaml"
    if not path.is_file():
        return []
    return [(role.name, [name.replace("_", " ") for name in role.sees]) for role in load_space(path).roles]


def _list_rows(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (key.replace("_", " "), _format_value(value))
        for key, value in values.items()
        if value not in (None, [], (), {}, "")
    ]


def _format_value(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _MOST_VALUE else f"{text[:_MOST_VALUE]}…"


def _list_labels(labels: LabelsByLayer, place: int | None) -> list[str]:
    return [
        f"{layer}: {'tie' if unit.tie else ', '.join(unit.labels)}"
        for layer, units in labels.items()
        for unit in units
        if unit.turn == place
    ]


def mark_differences(conversations: Sequence[dict[str, Any]]) -> None:
    """Mark the words in which conversations differ from the first one; if there are two, also in the
    first."""
    if len(conversations) < 2:
        return
    first = [turn["text"] for turn in conversations[0]["turns"]]
    for one in conversations[1:]:
        _mark(one["turns"], first, lambda text, other: mark_text_differences(text, other, "added"))
    if len(conversations) == 2 and conversations[1]["turns"]:
        others = [turn["text"] for turn in conversations[1]["turns"]]
        _mark(
            conversations[0]["turns"],
            others,
            lambda text, other: mark_text_differences(text, other, "removed"),
        )


def _mark(
    turns: Sequence[dict[str, Any]], others: Sequence[str], compare: Callable[[str, str], list[TextMark]]
) -> None:
    if not others:
        return
    for place, turn in enumerate(turns):
        turn["parts"] = compare(turn["text"], others[place] if place < len(others) else "")


def _build_tree(shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the conversations of each arm from which others branched, each with the branches by turn."""
    if not any(one["branch"] is not None for one in shown):
        return []
    roots = [one for one in shown if one["branch"] is None]
    return [
        {
            "root": root,
            "branches": [one for one in shown if one["branch"] is not None and one["arm"] == root["arm"]]
            if root["replicate"] == 0
            else [],
        }
        for root in roots
    ]
