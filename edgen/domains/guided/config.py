"""The job's key `guided`, and the variables of its templates."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edgen.plugin.protocols import FENCED, Share, Text

PARAPHRASER = "paraphrase"  # the role whose backend rewords utterances

# Variables of templates besides the values of the scenario that the role sees.
OF_BOTH = ("about", "world", "role", "partner")
OF_CHOICE = (
    *OF_BOTH,
    "conversation",
    *FENCED,
    "options",
    "replies",
    "hint",
    "free",
    "subtask",
    "seconds_left",
)
OF_PARTNER = (*OF_BOTH, "labels")
OF_PARAPHRASE = ("conversation", *FENCED, "utterance", "keep", "role")
OF_QUESTIONNAIRE = (*OF_BOTH, "conversation", *FENCED, "items", "reason", "success", "form")


class Guided(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a conversation in which a state machine offers what one role may say."""

    machine: Text | None = None
    """A shipped machine or a folder."""
    chooser: Literal["model", "chance", "likeliest"] = "model"
    """Choice of an utterance: by the role's backend, by chance and probabilities, or always the likeliest."""
    hints: bool = True
    """Suggest one offered utterance, drawn by the probabilities."""
    free_text: Share = 0.2
    """Maximum share of turns written freely by the guided role."""
    paraphrase: bool = False
    """The backend `paraphrase` rewords each utterance."""
    turns_in_a_row: Annotated[int, Meta(ge=1, le=20)] = 1
    """Maximum turns of the guided role in a row."""
    clock: Literal["words", "answers"] = "words"
    """Length of a turn: by its `words`, or by the key `"seconds"` of a JSON answer or a person's own time."""
    turns: Annotated[int, Meta(ge=2, le=1000)] = 60
    """Maximum turns."""
    questionnaire: Text | None = "machine"
    """`machine`: the machine's own; or a shipped one or a file; null: none."""
