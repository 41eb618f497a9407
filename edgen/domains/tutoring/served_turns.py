"""The source that a turn of a tutor names, in sessions whose students are served from a pool.

Its `data` has `served`: `pool`, a response that some tutor gave to another turn, with the conversation that
it is `from`, its `turn` and number of the `response` there, and its `exposure`, how often it had been served
before; `template`, as was drawn; `dry`, a template since nothing in the pool fitted; `new`, a response to the
turn before it, since nothing else was left. What tutors responded to that turn are its alternatives.
"""

from __future__ import annotations

from edgen.plugin import Turn

SOURCES = ("pool", "template", "dry", "new")
LABELLER = "labeller"  # the backend, what its template is for, and the key of its labels in a turn's data

Origin = tuple[
    str, int, int
]  # a conversation, the number of a turn in it, the number of a response to the turn before


def find_source(turn: Turn) -> str | None:
    """Return the source of a turn, one of `SOURCES`; None where students are not served."""
    source = turn.data.get("served")
    return source if source in SOURCES else None


def find_origin(turn: Turn) -> Origin | None:
    """Return the origin of a turn from the pool; None for others."""
    data = turn.data
    if data.get("served") != "pool":
        return None
    name, place, response = data.get("from"), data.get("turn"), data.get("response")
    if isinstance(name, str) and isinstance(place, int) and isinstance(response, int):
        return name, place, response
    return None


def list_responses(turn: Turn) -> tuple[Turn, ...]:
    """Return the tutors' responses to the turn before a turn of the tutor: itself is one, unless it was
    served from elsewhere."""
    return (
        turn.alternatives if find_source(turn) in ("pool", "template", "dry") else (turn, *turn.alternatives)
    )
