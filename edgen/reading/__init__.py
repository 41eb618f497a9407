"""Read models' raw replies: conversations, single turns, verdicts, labels and other short answers.

- `conversation.py`: `read`, from a reply to a conversation. Start there; its docstring lists the steps.
- `lines/`, `loose_json/`, `text/markup.py`: turns in lines, in JSON, and in XML, HTML and other markup.
- `foreign_words.py`, `role_words.py`: replies in other languages.
- `learned/`: the short way for a layout that earlier replies had.
- `one_turn/`: one turn of self-play. `released_turns.py`: one turn of a released data set.
- `answers/`: probabilities, verdicts, choices, scores, labels and lists.
- `detect.py`, `hollow.py`, `other_speaker.py`: faults of turns that were read without an error.
- `verbatim.py`: `dump`, the inverse of `read`.

No reader raises an exception on any text, and the work is linear in the length of the text.
"""

from edgen.reading.conversation import read
from edgen.reading.released_turns import are_plain, clean_turn, is_plain
from edgen.reading.repairs import Repair
from edgen.reading.verbatim import dump

__all__ = ["Repair", "are_plain", "clean_turn", "dump", "is_plain", "read"]
