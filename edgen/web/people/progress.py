"""Figures about people's answers, for the owner of a run: progress, agreement, attention, and position
bias."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from edgen.core.errors import EdgenError
from edgen.families.base import read_record_id
from edgen.store.people import People, UnitAnswer
from edgen.store.people.mailbox import ConversationPlace, MailboxAnswer
from edgen.store.votes import is_vote
from edgen.web.people.tasks import KNOWN, REPEAT, find_base, read_setup

_AT_LEAST = 2  # fewest people for agreement


class Progress(NamedTuple):
    """Figures of one task, ready to show."""

    task: str  # name of the task
    answers: int  # number of answers of all people
    units: int  # units with an answer
    complete: int  # units with as many answers as wanted
    per_unit: int  # wanted answers per unit
    people: list[dict[str, Any]]  # figures of each person
    agreement: dict[str, Any] | None  # agreement; None with too few answers
    position: dict[str, Any] | None  # choices by position of the sides; None for other tasks
    problem: str | None  # reason why there are no statistics; None if there are


def compute_progress(people: People, task: str) -> Progress:
    """Return the figures of a task."""
    setup = read_setup(people, task)
    latest = people.read_latest_answers(task)
    said = _collect_answers(latest)
    agreement = position = problem = None
    try:
        agreement = _compute_agreement(said)
        position = _compute_position(latest) if is_vote(task) else None
        rest = _compare_with_rest(said)
    except EdgenError as missing:  # numpy comes with an extra
        problem, rest = str(missing), {}
    names = dict.fromkeys(person for _, person in latest)
    return Progress(
        task=task,
        answers=sum(len(by) for by in said.values()),
        units=len(said),
        complete=sum(len(by) >= setup.per_unit for by in said.values()),
        per_unit=setup.per_unit,
        people=[_describe_person(name, latest, setup.known, rest.get(name)) for name in sorted(names)],
        agreement=agreement,
        position=position,
        problem=problem,
    )


def summarize_players(answers: Iterable[MailboxAnswer]) -> dict[str, list[dict[str, Any]]]:
    """Return figures of the people who played each role: conversations, answers, seconds per answer, and how
    often the person left."""
    by: dict[str, dict[str, list[MailboxAnswer]]] = {}
    for one in answers:
        if one.person:
            by.setdefault(one.request.role, {}).setdefault(one.person, []).append(one)
    return {
        role: [_describe_player(name, own) for name, own in sorted(people.items())]
        for role, people in by.items()
    }


def _describe_player(name: str, own: Sequence[MailboxAnswer]) -> dict[str, Any]:
    seconds = [one.times.seconds for one in own if one.text is not None and one.times.seconds is not None]
    return {
        "name": name,
        "conversations": len({ConversationPlace.of(one.request) for one in own}),
        "answers": sum(one.text is not None for one in own),
        "seconds": statistics.median(seconds) if seconds else None,
        "left": sum(one.text is None for one in own),
    }


def _read_label(value: Any) -> tuple[str, ...] | None:
    """Return an answer as a set of labels; None for a skip."""
    if isinstance(value, dict):
        value = value.get("choice", value.get("labels"))
    if isinstance(value, str):
        return (value,)
    return tuple(map(str, value)) if isinstance(value, list) else None


def _collect_answers(latest: Mapping[tuple[str, str], UnitAnswer]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return each person's answer about each unit, without skips and checks."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for (unit, person), answer in latest.items():
        if "#" not in unit and (label := _read_label(answer.value)) is not None:
            found.setdefault(unit, {})[person] = label
    return found


def _read_scenario(unit: str) -> int:
    first = unit.partition("~")[0].partition("@")[0]
    place = read_record_id(first.rpartition("/")[2])  # ids between runs of one name have the run before "/"
    return -1 if place is None else place[1]


def _compute_agreement(said: Mapping[str, Mapping[str, tuple[str, ...]]]) -> dict[str, Any] | None:
    from edgen.stats.annotators import AgreementCounts

    counts = AgreementCounts()
    for unit, by in said.items():
        counts.add(by, _read_scenario(unit))
    found = counts.result()
    if not found.units:
        return None
    return {
        "units": found.units,
        "alpha": found.alpha,
        "alpha_interval": found.alpha_interval,
        "between": [
            {
                "people": " and ".join(one.annotators),
                "n": one.n,
                "observed": one.observed,
                "kappa": one.kappa,
                "interval": one.kappa_interval,
            }
            for one in found.between
        ],
    }


def _compare_with_rest(said: Mapping[str, Mapping[str, tuple[str, ...]]]) -> dict[str, Any]:
    """Return the share of each person's answers that equal the most frequent answer of all others."""
    from edgen.stats.intervals import share

    rows: dict[str, list[tuple[float, int]]] = {}
    for unit, by in said.items():
        for person, label in by.items():
            others = Counter(frozenset(one) for name, one in by.items() if name != person)
            ranked = others.most_common(2)
            if ranked and (len(ranked) == 1 or ranked[0][1] > ranked[1][1]):
                alike = float(frozenset(label) == ranked[0][0])
                rows.setdefault(person, []).append((alike, _read_scenario(unit)))
    return {name: share(*map(list, zip(*values, strict=True))) for name, values in rows.items()}


def _compute_position(latest: Mapping[tuple[str, str], UnitAnswer]) -> dict[str, Any] | None:
    """Return how often people prefer the side shown first, for each person and for all, as for judges."""
    from edgen.stats.intervals import scale_estimate, share

    rows: dict[str, list[tuple[float, int]]] = {}
    for (unit, person), answer in latest.items():
        choice = answer.value.get("choice") if isinstance(answer.value, dict) else None
        first = answer.shown.get("first") if isinstance(answer.shown, dict) else None
        if "#" in unit or choice not in ("a", "b") or first not in ("a", "b"):
            continue
        for name in ("", person):
            rows.setdefault(name, []).append((float(choice == first), _read_scenario(unit)))
    found = {name: share(*map(list, zip(*values, strict=True))) for name, values in rows.items()}
    whole = found.pop("", None)
    return (
        None if whole is None else {"all": whole, "points": scale_estimate(whole, 200.0, -100.0), "by": found}
    )


def _describe_person(
    name: str, latest: Mapping[tuple[str, str], UnitAnswer], known: Mapping[str, Any], rest: Any
) -> dict[str, Any]:
    own = {unit: answer for (unit, person), answer in latest.items() if person == name}
    votes = {unit: answer for unit, answer in own.items() if "#" not in unit}
    seconds = [answer.seconds for answer in votes.values() if answer.seconds is not None]
    again = (
        _read_label(answer.value) == _read_label(own[find_base(unit)].value)
        for unit, answer in own.items()
        if unit.endswith(REPEAT) and find_base(unit) in own
    )
    right = (
        frozenset(_read_label(answer.value) or ()) == frozenset(_read_label(known[find_base(unit)]) or ())
        for unit, answer in own.items()
        if unit.endswith(KNOWN) and find_base(unit) in known
    )
    return {
        "name": name,
        "answered": sum(_read_label(answer.value) is not None for answer in votes.values()),
        "skipped": sum(_read_label(answer.value) is None for answer in votes.values()),
        "seconds": statistics.median(seconds) if seconds else None,
        "again": _describe_hits(again),
        "right": _describe_hits(right),
        "rest": rest,
    }


def _describe_hits(hits: Iterable[bool]) -> str:
    found = list(hits)
    return f"{sum(found)} of {len(found)}" if found else "–"
