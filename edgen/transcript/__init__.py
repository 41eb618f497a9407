"""Raw replies to conversations and back: `read`, `dump`, and `clean_turn` for released files.

`read_turn` reads one turn of self-play; `leaked` and `loops` look at what it says. Nothing here raises
on any text, and everything is linear in its length.
"""

from edgen.transcript.cleaning import clean_turn
from edgen.transcript.detect import leaked, loops
from edgen.transcript.dumping import dump
from edgen.transcript.reading import read
from edgen.transcript.repairs import Repair
from edgen.transcript.turn import Said, read_turn

__all__ = ["Repair", "Said", "clean_turn", "dump", "leaked", "loops", "read", "read_turn"]
