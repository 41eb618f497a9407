"""Layouts learned from replies that `conversation.read` has read.

Most replies to one prompt have the same layout: the same characters before the first turn, before each role's
other turns (numbers apart), and after the last turn. Once two replies begin with the same characters, these
strings are kept. A later reply is cut at them, without any rule. Where the texts between turns have no such
regularity (headings, speakers named after their words), they are kept in their order: a reply with as many
turns is cut at them.

This path is taken only if the general reader would give exactly the same result: nothing in a turn can belong
to a layout, name a speaker, end the conversation or give a probability. A turn of dots is dropped, as
`assembly.assemble` does. In doubt the general reader reads the reply. So neither the learned layouts nor
their order change a result (`tests/reading/test_learned.py` compares both readers).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from edgen.core.text import compile_later
from edgen.core.values import Conversation, Turn
from edgen.reading.learned.asides import is_aside
from edgen.reading.learned.finder import find_layout
from edgen.reading.learned.given_values import split_head
from edgen.reading.learned.layout import LEAST, MOST, Layout
from edgen.reading.learned.texts import DIGITS, KEY
from edgen.reading.learned.turn_places import LONGEST
from edgen.reading.lines.role_lines import split_lines
from edgen.reading.repairs import Repair
from edgen.reading.roles import RoleWords
from edgen.reading.speaker_patterns import make_speaker_patterns
from edgen.reading.text.characters import TOKEN, TurnWords

_WORDS = compile_later(r"[ ,'’0-9-]+")  # what is left of words and numbers in a head
_MOST_LAYOUTS = 256  # for some roles
_MOST_ORDERED = 8  # that begin alike and are kept in an order
_MOST_HEADS = 256  # beginnings that were seen
_TRIES = 40  # replies with the same beginning that are examined for a layout
_OFTEN = 16  # of further ones, one in so many is examined


class Layouts:
    """The layouts learned for some roles."""

    def __init__(self, words: RoleWords) -> None:
        self._words = words
        foreign = [word for some in words.foreign() for word in some]
        tokens = {
            token
            for word in (*words.by_name, *words.aliases, *foreign)
            if len(word) > 1
            for token in TOKEN.findall(word)
        }
        self._vocabulary = TurnWords(
            words,
            frozenset({*tokens, *[f"{token}s" for token in tokens], "inst"}),  # `[INST]` is a template's
            make_speaker_patterns(words).words,
        )
        # By the first characters of a reply, the latest first; under "" those with fewer before the first
        # turn.
        self._known: dict[str, list[Layout]] = {}
        self._count = 0
        self._last: Layout | None = None  # of the latest reply
        # Beginnings, values in them apart, with the number of replies, the latest with its values, and the
        # first reply until the second comes.
        self._seen: dict[str, tuple[int, str, tuple[str, Conversation] | None]] = {}

    def read(self, text: str) -> Conversation | None:
        """Return the conversation in a text of a known layout; None for any other."""
        found = self.find(text)
        return None if found is None else found[0]

    def find(self, text: str) -> tuple[Conversation, list[Turn]] | None:
        """Return the same with the turns in which another speaker may be shown."""
        for key, place, layout in self._list_layouts(text):
            if (found := layout.read(text, self._vocabulary)) is not None:
                if key is not None:
                    known = self._known[key]
                    self._last = layout
                    self._known[key] = [layout, *known[:place], *known[place + 1 :]]
                return found
        return None

    def _list_layouts(self, text: str) -> Iterator[tuple[str | None, int, Layout]]:
        """Yield the confirmed layouts that may read a text, with their places: the latest reply's first,
        without a key."""
        last = self._last
        if last is not None and last.may_read(text):
            yield None, 0, last
        for key in (text[:KEY], ""):
            for place, layout in enumerate(self._known.get(key, [])):
                if layout.confirmed and layout is not last and layout.may_read(text):
                    yield key, place, layout

    def _cut_alike(self, layout: Layout, text: str, result: Conversation) -> bool:
        """Return whether a layout cuts a text as it was read, plain turns or not."""
        again = layout.read(text, self._vocabulary, checked=False)
        return again is not None and again[0] == result

    def learn(self, text: str, result: Conversation) -> None:
        """Learn the layout of a text that was read as `result`, if another text began the same way.

        A text that a known layout cuts into the same turns teaches nothing: one of its turns is not plain.
        """
        if any(self._cut_alike(layout, text, result) for _, _, layout in self._list_layouts(text)):
            return
        at = text.find(result.turns[0].text.partition("\n")[0])
        if not 0 <= at <= LONGEST or not LEAST <= len(result.turns) <= MOST:
            return
        head, _ = split_head(text[:at], result)
        aside, _, label = head.rpartition("\n\n")
        head = label if is_aside(aside, self._vocabulary) else head
        line = head.rstrip().rfind("\n") + 1
        head = head[:line] + DIGITS.sub("0", head[line:])
        key = self._find_key(head)
        tries, last, first = self._seen.get(key, (0, head, None))
        if len(self._seen) >= _MOST_HEADS and not tries:
            self._seen.clear()
        self._seen[key] = tries + 1, head, None if tries else (text, result)
        if not tries or (tries > _TRIES and tries % _OFTEN):
            return
        if first is not None:
            self._learn_layout(*first, vary=last != head)
        layout = self._learn_layout(text, result, vary=last != head)
        if layout is not None and not layout.order and last == head:
            self._seen[key] = 1, head, None

    def _learn_layout(self, text: str, result: Conversation, *, vary: bool) -> Layout | None:
        """Keep the layout of a text; return it if anything about it is new."""
        at = text.find(result.turns[0].text.partition("\n")[0])
        layout = find_layout(text, result, at, self._words, self._vocabulary, vary=vary)
        if layout is None or not self._cut_alike(layout, text, result):
            return None
        if Repair.LAYOUT in result.repairs and not (layout.turns.tagged or layout.turns.translated):
            layout.turns.framed = len(split_lines(text, self._words).lines) < len(result.turns)
        return layout if self._keep(layout) else None

    def _find_key(self, head: str) -> str:
        """Return a text before the first turn without its words and numbers, except for speakers' names."""
        plain = self._vocabulary.plain
        return _WORDS.sub(" ", TOKEN.sub(lambda word: " " if plain[word[0]] else word[0], head))

    def _keep(self, layout: Layout) -> bool:
        """Keep a layout; return whether anything about it is new."""
        key = "" if layout.aside or len(layout.begin) < KEY else layout.begin[:KEY]
        known = self._known.get(key, [])
        if (same := next((one for one in known if one.is_like(layout)), None)) is not None:
            extended = same.extend(layout) or not same.confirmed
            same.confirmed = True
            return extended
        if self._count >= _MOST_LAYOUTS:
            self._known.clear()
            self._count, known = 0, []
        if layout.order:
            ordered = [one for one in known if one.order]
            for one in ordered[_MOST_ORDERED - 1 :]:
                known = [other for other in known if other is not one]
                self._count -= 1
        self._known[key] = [layout, *known]
        self._count += 1
        return True


@cache
def find_layouts(roles: RoleWords) -> Layouts:
    """Return the layouts learned for these roles, in this process."""
    return Layouts(roles)
