"""The source of a tutor's turn, in sessions whose students are served from a pool.

The turn's `data` has `served`, which is one of these:

* `pool`: a response to another turn. `from` is its conversation, `turn` and `response` its place there, and
  `exposure` how often it was served before.
* `template`: a template, by its drawn share.
* `dry`: a template, since no response in the pool fitted.
* `new`: a response to the turn before, since nothing else was left.

The tutors' responses to the turn before are its alternatives.
"""

from __future__ import annotations

from edgen.plugin import Turn

SOURCES = ("pool", "template", "dry", "new")
LABELLER = "labeller"  # the backend, the use of its template, and the key of its labels in a turn's data

Origin = tuple[
    str, int, int
]  # a conversation, the number of a turn in it, the number of a response to the turn before


def find_source(turn: Turn) -> str | None:
    """Return the source of a turn, one of `SOURCES`; None if students are not served."""
    source = turn.data.get("served")
    return source if source in SOURCES else None


def find_origin(turn: Turn) -> Origin | None:
    """Return the origin of a turn from the pool; None for other turns."""
    data = turn.data
    if data.get("served") != "pool":
        return None
    name, place, response = data.get("from"), data.get("turn"), data.get("response")
    if isinstance(name, str) and isinstance(place, int) and isinstance(response, int):
        return name, place, response
    return None


def list_responses(turn: Turn) -> tuple[Turn, ...]:
    """Return the tutors' responses to the turn before a tutor's turn. The turn itself is one of them, unless
    it was served from elsewhere."""
    return (
        turn.alternatives if find_source(turn) in ("pool", "template", "dry") else (turn, *turn.alternatives)
    )
