"""Conversations of a run with their outcomes; those of several arms are side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
from rich.cells import cell_len, chop_cells, set_cell_size

from edgen.core.pair import Pair
from edgen.core.space_layouts import find_layout
from edgen.core.text import describe_value, escape_for_terminal
from edgen.evaluation.data_sets.one_conversation import ConversationDetails, StoredReply
from edgen.preferences.pair_lines import Rollouts, describe_pairs

_GAP = 3  # between columns
_NARROWEST = 44  # of a column
_ROLE = 9  # columns of a speaker, with the space after it; more for a longer name
_LABEL = 17  # least columns of a dimension's name and the blank after it
_LONGEST_ROLE = 24


def describe_as_json(
    run: Path,
    found: Sequence[ConversationDetails],
    pairs: Sequence[Pair],
    rollouts: Rollouts,
    *,
    raw: bool,
) -> dict[str, Any]:
    """Return the output of --json. `raw`: include the replies of accepted conversations; `rollouts`: those of
    labels, by the pair's id."""
    conversations = msgspec.to_builtins(list(found))
    for one, shown in zip(conversations, found, strict=True):
        one["scenario"] = shown.scenario.as_row()
        one["arm"] = one["arm"] or None
        if not one["labels"]:
            del one["labels"]
        if not raw and one["status"] == "accepted":
            del one["replies"]
    facts = {"run": str(run), "conversations": conversations, "pairs": msgspec.to_builtins(list(pairs))}
    return facts | ({"rollouts": msgspec.to_builtins(dict(rollouts))} if rollouts else {})


def render_conversations(
    found: Sequence[ConversationDetails],
    pairs: Sequence[Pair],
    rollouts: Rollouts,
    *,
    raw: bool,
    width: int,
) -> Iterator[str]:
    """Yield conversations; those of several arms are side by side if there is room."""
    arms = list(dict.fromkeys(one.arm for one in found))
    column = (width - _GAP * (len(arms) - 1)) // len(arms)
    if len(arms) > 1 and column >= _NARROWEST:
        for replicate in dict.fromkeys(one.replicate for one in found):
            row = [one for one in found if one.replicate == replicate]
            same = all(one.scenario == row[0].scenario for one in row)
            if same:
                yield from _render_scenario(row[0], width)
                yield ""
            yield from join_blocks(
                [list(_render_one(one, column, raw=raw, above=same)) for one in row], column
            )
            yield ""
    else:
        for number, one in enumerate(found):
            if number:
                yield ""
            yield from _render_one(one, width, raw=raw, above=False)
    yield from _render_pairs(pairs, rollouts, width)


def _render_one(one: ConversationDetails, width: int, *, raw: bool, above: bool) -> Iterator[str]:
    """Yield one conversation. `above`: its scenario is already printed."""
    what = [one.id, one.status, *(["simulated"] if one.simulated else [])]
    yield from wrap_text(escape_for_terminal(" · ".join(what)), width)
    if one.reason is not None:
        detail = f": {one.detail}" if one.detail else ""
        yield from wrap_text(escape_for_terminal(f"{one.reason}{detail}"), width, first="  ", rest="  ")
    yield ""
    if not above:
        yield from _render_scenario(one, width)
        yield ""
    longest = max((cell_len(turn.role) + 1 for turn in one.turns), default=0)
    column = max(_ROLE, min(longest, _LONGEST_ROLE, width // 3))
    for place, turn in enumerate(one.turns):
        # further lines of a turn are indented, so that no text looks like the next turn
        speaker = turn.role + " " * max(1, column - cell_len(turn.role))
        yield from wrap_text(escape_for_terminal(turn.text), width, first=speaker, rest=" " * column)
        for line in _describe_labels(one, place):
            yield from wrap_text(
                escape_for_terminal(line), width, first=f"{' ' * column}[", rest=" " * (column + 1)
            )
    if one.turns:
        yield ""
        for line in _describe_labels(one, None):
            yield from wrap_text(escape_for_terminal(line), width, first="[", rest=" ")
        yield from wrap_text(escape_for_terminal(" · ".join(_describe_facts(one))), width)
    shown = one.replies if raw else one.replies[-1:] if one.status in ("rejected", "failed") else ()
    for reply in shown:
        yield ""
        yield from _render_reply(reply, width)


def _render_scenario(one: ConversationDetails, width: int) -> Iterator[str]:
    """Yield every dimension and field. Those of the space's layout come first, in its order."""
    row = {
        name: value for name, value in one.scenario.as_row().items() if name != "index" and value is not None
    }
    layout = find_layout(one.scenario.values)
    laid_out = () if layout is None else layout.dimensions
    labels = {dimension.name: dimension.shown for dimension in laid_out if dimension.shown}
    first = [name for dimension in laid_out for name in (dimension.name, *dimension.fields)]
    order = (*(name for name in first if name in row), *(name for name in row if name not in first))
    shown = {name: labels.get(name, name.replace("_", " ")) for name in order}
    column = max(_LABEL, min(max(map(len, shown.values()), default=0) + 1, width // 3))
    for name, label in shown.items():
        yield from wrap_text(
            escape_for_terminal(describe_value(row[name])),
            width,
            first=f"  {label + ' ':<{column}}",
            rest=" " * (column + 2),
        )


def _describe_labels(one: ConversationDetails, place: int | None) -> Iterator[str]:
    """Yield the labels of a turn, or of the conversation, by each layer; also by each annotator, if they
    differ."""
    for layer, units in one.labels.items():
        for unit in (unit for unit in units if unit.turn == place):
            most = "no label has most" if unit.tie else ", ".join(unit.labels)
            said = [f"{name} {', '.join(labels)}" for name, labels in unit.annotators.items()]
            each = f" ({'; '.join(said)})" if len({*unit.annotators.values()}) > 1 else ""
            yield f"{layer}: {most}{each}]"


def _describe_facts(one: ConversationDetails) -> Iterator[str]:
    yield "no probability" if one.probability is None else f"probability {one.probability:g}"
    yield f"ended by {one.ended_by}" if one.ended_by else "no end marker"
    made = one.provenance or {}
    models = made.get("models") or {"": made.get("model")}
    yield ", ".join(f"{role} {model}".strip() for role, model in models.items())
    attempts = made.get("attempts", 0)
    yield f"{attempts} call{'' if attempts == 1 else 's'}"
    if made.get("branch") is not None:
        yield f"left replicate 0 at turn {made['branch']}"
    for key in ("repairs", "flags"):
        if made.get(key):
            yield f"{key}: {', '.join(made[key])}"


def _render_reply(answer: StoredReply, width: int) -> Iterator[str]:
    reply = answer.reply
    made = f"{reply.model or 'unknown model'}, {reply.finish_reason}"
    yield from wrap_text(
        escape_for_terminal(f"reply to step {answer.step}, attempt {answer.attempt} ({made})"), width
    )
    for text in (reply.refusal, reply.text):
        if text:
            yield from wrap_text(escape_for_terminal(text), width, first="  │ ", rest="  │ ")


def _render_pairs(pairs: Sequence[Pair], rollouts: Rollouts, width: int) -> Iterator[str]:
    for indent, line in describe_pairs(pairs, rollouts):
        yield from wrap_text(line, width, first=" " * indent, rest=" " * (indent + 2)) if line else [""]


def wrap_text(text: str, width: int, *, first: str = "", rest: str = "") -> Iterator[str]:
    """Yield the lines of a text, each no wider than `width`, with its leading white space. The first begins
    with `first`, all others with `rest`."""
    lead = first
    for line in text.split("\n"):
        for piece in _split_line(line.expandtabs(4), max(width - max(cell_len(first), cell_len(rest)), 8)):
            yield (lead + piece).rstrip()
            lead = rest


def _split_line(line: str, width: int) -> Iterator[str]:
    now: str | None = None
    for word in line.split(" "):
        longer = word if now is None else f"{now} {word}"
        if cell_len(longer) <= width:
            now = longer
            continue
        if now is not None:
            yield now
        *whole, now = chop_cells(word, width) or [""]
        yield from whole
    yield now or ""


def join_blocks(blocks: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of several blocks side by side, each `width` wide."""
    for lines in zip_longest(*blocks, fillvalue=""):
        yield (" " * _GAP).join(set_cell_size(line, width) for line in lines).rstrip()
