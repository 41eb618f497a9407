"""The job's key `guided`, and what its templates may use."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edgen.config.backends import Share
from edgen.plugin import Text
from edgen.plugin.protocols import FENCED

PARAPHRASER = "paraphrase"  # the role whose backend rewords

# What templates may use besides what their role sees of the scenario.
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
    """How a conversation is held in which a state machine offers what one role may say."""

    machine: Text | None = None
    """The state machine: the name of a shipped one, or the path of a folder. A run's own copy holds it as
    JSON."""
    chooser: Literal["model", "chance", "likeliest"] = "model"
    """Who chooses among what is offered: the role's backend, chance by the probabilities, or always the most
    probable. The last two make no calls."""
    hints: bool = True
    """Whether one of what is offered, drawn by the probabilities, is named to whoever chooses."""
    free_text: Share = 0.2
    """The share of its turns that the guided role may write freely, at most, where a model chooses."""
    paraphrase: bool = False
    """Whether a model rewords what is said, with the values of its slots kept."""
    turns_in_a_row: Annotated[int, Meta(ge=1, le=20)] = 1
    """Turns of the guided role before its partner's, at most, while no state waits for an answer."""
    clock: Literal["words", "answers"] = "words"
    """How long a turn takes: by its words, as the machine says, or as whoever answers says: `"seconds"` in an
    answer that is JSON, where a person or a function of Python tells it."""
    turns: Annotated[int, Meta(ge=2, le=1000)] = 60
    """Turns after which a conversation ends, whatever the machine says."""
    questionnaire: Text | None = "machine"
    """What both are asked afterwards: `machine` for what the machine names, the name of a shipped
    questionnaire, or the path of a file; null: nothing."""
