"""`edgen show`: one conversation of a run, or one scenario under every arm, with what became of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgen.cli.columns import GAP, beside, wrapped
from edgen.cli.options import JsonOption
from edgen.cli.output import note, print_json, print_line, safe
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.pairing.model import Pair
    from edgen.samples.one import Answer, Seen

_NARROWEST = 44  # of a column
_ROLE = 9
_FIELDS = (
    ("topic", "topic"), ("subject", "subject"), ("level", "level"), ("student prefers", "student_preference"),
    ("otherwise", "student_reaction"), ("teacher prefers", "teacher_preference"), ("otherwise", "teacher_reaction"),
)  # fmt: skip


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    named: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="A conversation as the shards call it (quickstart-000137-r0), or the number of a scenario (137).",
            show_default=False,
        ),
    ],
    raw: Annotated[bool, typer.Option("--raw", help="Also the raw replies, as the model gave them.")] = False,
    json: JsonOption = False,
) -> None:
    """Show a conversation: its scenario, what was said, what it came to, and the pairs it is in.

    A scenario's number shows all its conversations, those of a run's arms side by side. What was rejected or
    failed is shown with the reason and the last reply.

    Example: edgen show outputs/quickstart 137

    Example: edgen show outputs/quickstart quickstart-000137-r0 --raw
    """
    from edgen.samples.one import seen

    found, pairs, notes = seen(RunDir(run), named)
    if json:
        print_json(_as_json(run, found, pairs, raw=raw))
    else:
        for line in _lines(found, pairs, raw=raw, width=shutil.get_terminal_size().columns):
            print_line(line)
    for words in notes:
        note(f"edgen: {words}")


def _as_json(run: Path, found: Sequence[Seen], pairs: Sequence[Pair], *, raw: bool) -> dict[str, Any]:
    import msgspec

    conversations = msgspec.to_builtins(list(found))
    for one in conversations:
        if not raw and one["status"] == "accepted":
            del one["replies"]
    return {"run": str(run), "conversations": conversations, "pairs": msgspec.to_builtins(list(pairs))}


def _lines(found: Sequence[Seen], pairs: Sequence[Pair], *, raw: bool, width: int) -> Iterator[str]:
    """What is printed; conversations of several arms beside each other where there is room."""
    arms = list(dict.fromkeys(one.arm for one in found))
    column = (width - GAP * (len(arms) - 1)) // len(arms)
    if len(arms) > 1 and column >= _NARROWEST:
        for replicate in dict.fromkeys(one.replicate for one in found):
            row = [one for one in found if one.replicate == replicate]
            same = all(one.scenario == row[0].scenario for one in row)
            if same:
                yield from _scenario(row[0], width)
                yield ""
            yield from beside([list(_one(one, column, raw=raw, told=same)) for one in row], column)
            yield ""
    else:
        for number, one in enumerate(found):
            if number:
                yield ""
            yield from _one(one, width, raw=raw, told=False)
    yield from _paired(pairs, width)


def _one(one: Seen, width: int, *, raw: bool, told: bool) -> Iterator[str]:
    """One conversation. `told`: its scenario stands above already."""
    what = [one.id, one.status, *(["simulated"] if one.simulated else [])]
    yield from wrapped(safe(" · ".join(what)), width)
    if one.reason is not None:
        detail = f": {one.detail}" if one.detail else ""
        yield from wrapped(safe(f"{one.reason}{detail}"), width, first="  ", rest="  ")
    yield ""
    if not told:
        yield from _scenario(one, width)
        yield ""
    for turn in one.turns:
        # what continues a turn stands in, so that no text passes for the next one
        yield from wrapped(safe(turn.text), width, first=f"{turn.role:<{_ROLE}}", rest=" " * _ROLE)
    if one.turns:
        yield ""
        yield from wrapped(safe(" · ".join(_facts(one))), width)
    shown = one.replies if raw else one.replies[-1:] if one.status in ("rejected", "failed") else ()
    for reply in shown:
        yield ""
        yield from _reply(reply, width)


def _scenario(one: Seen, width: int) -> Iterator[str]:
    for label, name in _FIELDS:
        value = getattr(one.scenario, name)
        if value is not None:
            yield from wrapped(safe(value), width, first=f"  {label:<17}", rest=" " * 19)


def _facts(one: Seen) -> Iterator[str]:
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


def _reply(answer: Answer, width: int) -> Iterator[str]:
    reply = answer.reply
    made = f"{reply.model or 'unknown model'}, {reply.finish_reason}"
    yield from wrapped(safe(f"reply to step {answer.step}, attempt {answer.attempt} ({made})"), width)
    for text in (reply.refusal, reply.text):
        if text:
            yield from wrapped(safe(text), width, first="  │ ", rest="  │ ")


def _paired(pairs: Sequence[Pair], width: int) -> Iterator[str]:
    if pairs:
        yield ""
        yield "pairs"
    for pair in pairs:
        if pair.label is None:
            label = f"no label ({pair.left_out or 'nobody compared them'})"
        else:
            chosen = pair.a if pair.label.chosen == "a" else pair.b
            label = f"chosen {chosen.id} by {pair.label.by}, p {pair.label.p:.2f}"
        yield from wrapped(safe(f"{pair.a.id} and {pair.b.id}: {label}"), width, first="  ", rest="    ")
        for line in _signals(pair):
            yield from wrapped(safe(line), width, first="    ", rest="      ")


def _signals(pair: Pair) -> Iterator[str]:
    """What each source says of a pair: for whom, and of a judge its verdicts in both orders."""
    names = {"a": pair.a.id, "b": pair.b.id}
    for one in pair.signals.oracle:
        verdicts = ", ".join(
            f"{verdict.order} {'unread' if verdict.choice is None else names[verdict.choice]}"
            for verdict in one.verdicts
        )
        yield f"judge {one.model}: {_stand(one.p, tie=one.tie)} ({verdicts})"
    likely = pair.signals.probability
    if likely.p is not None:
        yield f"probability: {_stand(likely.p, tie=likely.tie)}"
    if (human := pair.signals.human) is not None:
        yield f"people: {_stand(human.p, tie=human.tie)} of {len(human.votes)} votes"


def _stand(p: float | None, *, tie: bool) -> str:
    return "abstains" if p is None else f"p {p:.2f} for the first{', a tie' if tie else ''}"
