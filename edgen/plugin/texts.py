"""Words and numbers in texts for people, and the parts of texts.

    from edgen.plugin.texts import percent, quantity

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

number, percent, quantity, format_signed, describe_counts: numbers. format_interval: an interval after its
value; BRACKETS: its form in the terminal. readable_name: a name without underscores. join_first: the first of
many names. shorten, excerpt, columns, escape_invisible, replace_surrogates: texts made safe to show. NONE:
the sign for no value. pictures_in, without_pictures: the pictures that a text names. words: the words of a
text, without case. join_words: words as one text, to search for phrases. loops: whether a side repeats
itself. hash64: a number from a text, for draws that do not depend on an order. DigestTable: a set of such
numbers, with few bytes each. shingles_of, are_alike, ALIKE: near-duplicates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgen import plugin
from edgen.core.digest import DigestTable as DigestTable
from edgen.core.digest import hash64 as hash64
from edgen.core.pictures import pictures_in as pictures_in
from edgen.core.pictures import without_pictures as without_pictures
from edgen.core.text import BRACKETS as BRACKETS
from edgen.core.text import NONE as NONE
from edgen.core.text import columns as columns
from edgen.core.text import describe_counts as describe_counts
from edgen.core.text import escape_invisible as escape_invisible
from edgen.core.text import format_interval as format_interval
from edgen.core.text import format_signed as format_signed
from edgen.core.text import join_first as join_first
from edgen.core.text import number as number
from edgen.core.text import percent as percent
from edgen.core.text import quantity as quantity
from edgen.core.text import readable_name as readable_name
from edgen.core.text import replace_surrogates as replace_surrogates
from edgen.core.text import shorten as shorten

if TYPE_CHECKING:
    from edgen.reading.detect import join_words as join_words
    from edgen.reading.detect import loops as loops
    from edgen.reading.detect import words as words
    from edgen.reading.similar_texts import ALIKE as ALIKE
    from edgen.reading.similar_texts import are_alike as are_alike
    from edgen.reading.similar_texts import shingles_of as shingles_of
    from edgen.reading.text.characters import excerpt as excerpt

_LATER = {
    "edgen.reading.detect": "join_words loops words",
    "edgen.reading.similar_texts": "ALIKE are_alike shingles_of",
    "edgen.reading.text.characters": "excerpt",
}
"""The names imported at their first use, by module: commands of domains need none of them to be listed."""

__getattr__, __dir__ = plugin.import_later(__name__, _LATER)
