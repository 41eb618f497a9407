"""An export format: each conversation as one text, as a play is printed."""

from __future__ import annotations

from collections.abc import Iterator

from edgen.export.format import Chat, Format, Item, Row, RunReader


def rows(run: RunReader, chat: Chat) -> Iterator[Item]:
    """A row a conversation."""
    for conversation in run.conversations():
        one = conversation.candidate
        lines = [f"{turn.role.upper()}. {turn.text}" for turn in one.turns]
        yield Row(conversation.split, {"id": one.id, "script": "\n".join(lines)})


FORMAT = Format(
    name="script",
    summary="Each conversation as one text, as a play is printed.",
    rows=rows,
    tables={"id": "the conversation", "script": "who speaks, in capitals, and what is said"},
    use='import datasets\ndatasets.load_dataset("THIS_FOLDER")',
    chat=False,
)
