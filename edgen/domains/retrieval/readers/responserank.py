"""A reader of MSDialog-ResponseRank's contexts (Yang et al., SIGIR 2018): lines of label, utterances and a
reply, separated by tabs. The lines of one context follow each other.

A context is read as a conversation that ends with its true reply, with other true ones as alternatives. The
file gives only the speakers of the first and the last utterance, which are both a user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from edgen.plugin import RecordContents, ReportWords, Scenario, Turn
from edgen.plugin.families import FiledRecord, KindDefaults, LayoutChecks
from edgen.plugin.protocols import SpaceRole
from edgen.plugin.readers import DataSetReader, Piece, TextLayout, make_verbatim_record

_AGENT = "<<<AGENT>>>:"


class ResponseRank(LayoutChecks, RecordContents, ReportWords, KindDefaults, TextLayout, DataSetReader):
    """The reader of MSDialog-ResponseRank."""

    name = "msdialog-responserank"
    title = "MSDialog-ResponseRank"
    schema = "responserank"
    unit = "context"
    units_depend = "begin with the same utterance, so they are cut from one dialog"
    tags = ("response-selection",)
    roles = (SpaceRole("User", ()), SpaceRole("Agent", ()), SpaceRole("Unknown", ()))
    precedence = 33
    marks_ends = False

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded value is a context with its replies, as made by `cut_text`."""
        if not isinstance(record, dict) or record.keys() != {"context", "replies"}:
            return False
        context, replies = record["context"], record["replies"]
        return (
            isinstance(context, list)
            and all(isinstance(text, str) for text in context)
            and isinstance(replies, list)
            and all(_is_reply(one) for one in replies)
        )

    def recognizes_text(self, head: str) -> bool:
        """Return whether the first line has a label, and a reply with the mark of an agent."""
        columns = next((line for line in head.split("\n") if line.strip()), "").split("\t")
        return len(columns) > 2 and columns[0].strip() in ("0", "1") and _AGENT in columns[-1]

    def cut_text(self, lines: Iterable[tuple[int, str]]) -> Iterator[Piece]:
        """Yield the contexts."""
        context: list[str] = []
        replies: list[dict[str, str]] = []
        begin = 1
        for number, line in lines:
            if not line.strip():
                continue
            label, *before, reply = columns if len(columns := line.split("\t")) > 2 else ("", "", "")
            if label.strip() not in ("0", "1"):
                raise ValueError(
                    f"line {number} is not 'label TAB utterance … TAB reply' with a label of 0 or 1"
                )
            if before != context and replies:
                yield _make_piece(context, replies, begin)
                replies = []
            if not replies:
                context, begin = before, number
            replies.append({"label": label.strip(), "reply": reply.strip().removeprefix(_AGENT).strip()})
        if replies:
            yield _make_piece(context, replies, begin)

    def read_file(self, record: Any) -> FiledRecord:
        """Return the conversation of a context."""
        if not self.recognizes(record) or not record["context"]:
            raise ValueError("no context with replies")
        context, replies = record["context"], record["replies"]
        true = [one["reply"] for one in replies if one["label"] == "1" and one["reply"]]
        turns = [
            Turn("User" if place in (0, len(context) - 1) else "Unknown", text)
            for place, text in enumerate(context)
        ]
        if not true:
            raise ValueError("a context without a true reply")
        turns.append(Turn("Agent", true[0], alternatives=tuple(Turn("Agent", text) for text in true[1:])))
        return make_verbatim_record(None, Scenario(-1, {}), tuple(turns), cluster=context[0])

    def more_findings(self, record: Any) -> Iterator[tuple[str, str]]:
        """Yield replies that occur twice, and contexts without a true reply."""
        if not self.recognizes(record):
            return
        replies = [one["reply"] for one in record["replies"]]
        if not any(one["label"] == "1" for one in record["replies"]):
            yield "$.replies", "none of them is true"
        if len({*replies}) < len(replies):
            yield "$.replies", "one of them occurs twice"


def _is_reply(value: Any) -> bool:
    keys = ("label", "reply")
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in keys)


def _make_piece(context: list[str], replies: list[dict[str, str]], line: int) -> Piece:
    return Piece(msgspec.Raw(msgspec.json.encode({"context": context, "replies": replies})), None, line)


READER = ResponseRank()
