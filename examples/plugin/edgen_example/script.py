"""An export format: each conversation as one text, printed as a play."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from edgen.plugin import Chat, Format, FormatOptions, LeftOut, Row, RunReader


class ScriptOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of the format: `edgen export RUN --to script --names plain`."""

    names: Annotated[Literal["capitals", "plain"], Meta(description="How the names of who speaks are written.")] = "capitals"  # fmt: skip


def rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield one row per conversation."""
    capitals = not isinstance(chat.own, ScriptOptions) or chat.own.names == "capitals"
    for conversation in run.conversations():
        one = conversation.candidate
        lines = [f"{turn.role.upper() if capitals else turn.role}. {turn.text}" for turn in one.turns]
        yield Row(conversation.split, {"id": one.id, "script": "\n".join(lines)})


FORMAT = Format(
    name="script",
    summary="Each conversation as one text, as a play is printed.",
    rows=rows,
    tables={"id": "the conversation", "script": "who speaks, in capitals, and what is said"},
    use='import datasets\ndatasets.load_dataset("THIS_FOLDER")',
    chat=False,
    Options=ScriptOptions,
)
