"""The two ways in which DSTC7's files name who speaks."""

from __future__ import annotations

from edgen.core.values import Turn
from edgen.export.chat import Chat
from edgen.export.formats.dstc7.options import Dstc7Options
from edgen.export.msdialog import actor_of


def speaker_of(turn: Turn, chat: Chat, options: Dstc7Options) -> str:
    """What the speaker of a turn is called."""
    if options.speakers == "roles":
        return turn.role.lower()
    return "participant_2" if actor_of(turn, chat) == "Agent" else "participant_1"
