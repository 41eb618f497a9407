"""Raw replies to conversations and back: `read`, `dump`, and `clean_turn` for released files.

`turn.read_turn` reads one turn of self-play, `detect` looks at what it says; they are imported where they are
needed. Nothing here raises on any text, and everything is linear in its length.
"""

from edgen.reading.conversation import read
from edgen.reading.released_turns import are_plain, clean_turn, is_plain
from edgen.reading.repairs import Repair
from edgen.reading.verbatim import dump

__all__ = ["Repair", "are_plain", "clean_turn", "dump", "is_plain", "read"]
