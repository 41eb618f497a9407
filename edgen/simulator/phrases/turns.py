"""Turns about a scenario's own values, by the phrases of its space.

A role says its steps in order, but first answers certain words. Without phrases, a role says what it knows of
the scenario, asks about the dimensions that it does not see, and answers questions with the requested value.
Dimensions that describe a role's character are never said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from edgen.reading.detect import loops
from edgen.simulator.phrases.book import BOOK, PhraseSpeaker
from edgen.simulator.phrases.slots import (
    LONG_ENOUGH,
    find_last_example,
    fix_ends,
    names_item,
    read_slot,
    split_phrasing,
    split_words,
)
from edgen.space.model import Scene
from edgen.space.phrases import HEARD, KNOWLEDGE, RolePhrases

_ASKING = re.compile(r"[^.!?\n]+\?")  # a sentence that asks
_NOTHING = RolePhrases()
_NO_PHRASINGS: Mapping[str, tuple[str, ...]] = {}
_NO_FIELDS: Mapping[str, Any] = {}
_DEEPEST = 3  # nested phrasings
_REMEMBERED = 3  # others' turns that are searched for the item named last


class Talk:
    """One role's part in a talk about a scenario."""

    def __init__(self, scene: Scene, role: str, rng: Random) -> None:
        self.scene, self.role = scene, role
        self._scenario = scene.scenario
        self._sees = frozenset(scene.scenario.values if scene.role is None else scene.list_visible(role))
        self._depth = 0
        self._draw = rng.random
        self._voice = PhraseSpeaker(rng, {})
        self.phrases = scene.book.phrases.roles.get(role, _NOTHING)
        self._own: list[str] = []
        self._heard: list[str] = []
        self._said = ""
        self._knows_all = False
        self._places: dict[str, int] = {}  # by dimension: the present phrasing's place in its lists
        self._again = 0  # filled-in sentences that the role has said before

    def choose_turn(self, own: list[str], heard: list[str], *, last: bool, opened: bool) -> str:
        """Return the role's next turn, given its own and the others' so far. `opened`: it opens the talk."""
        self._own, self._heard, self._said = own, heard, "\n".join(own)
        if last:
            said = self._choose_phrasing(self.phrases.closes) or self.say_generic("v.close")
            return f"{answer} {said}" if (answer := self._answer(last=True)) else said
        return self._answer() or self._choose_step(opened=opened) or self._list_values()

    def is_through(self, own: list[str], heard: list[str], *, opened: bool) -> bool:
        """Return whether the role has said all its steps, or, without steps, everything that it knows."""
        self._own, self._heard, self._said = own, heard, "\n".join(own)
        if steps := self.phrases.says:
            return len(own) >= len(steps) + (opened and bool(self.phrases.opens))
        return not any(True for _ in self._list_unsaid()) and not self._list_unknown()

    @property
    def persona_labels(self) -> frozenset[str]:
        """The labels of the dimensions that are never said, as in briefs."""
        return self.scene.book.persona_labels

    def answer(self, own: list[str], heard: list[str]) -> str | None:
        """Return the role's answer to the last heard turn: by its phrases, or the value that the turn asks
        for; None if it has no answer."""
        self._own, self._heard, self._said = own, heard, "\n".join(own)
        return self._answer() or self._find_value_asked_for()

    def choose_phrasing(self, phrasings: Sequence[str], own: list[str], heard: list[str]) -> str | None:
        """Return one of the phrasings that the role can say, preferably one that it has not said."""
        self._own, self._heard, self._said = own, heard, "\n".join(own)
        return self._choose_phrasing(phrasings)

    def say_generic(self, rule: str, **slots: str) -> str:
        """Return a phrasing of a rule of the phrase book, preferably one that nobody has said."""
        voice, whole = self._voice, "\n".join([*self._own, *self._heard])
        voice.slots = slots
        for _ in BOOK[rule]:
            if (said := fix_ends(voice.say(rule))) not in whole:
                break
        return said

    def find_secret(self) -> str | None:
        """Return a value that the role may not know; None if it sees all."""
        sees = self.scene.list_visible(self.role)
        hidden = [value for name, value in self._scenario.values.items() if name not in sees]
        return hidden[int(self._draw() * len(hidden))] if hidden else None

    # ---- by the space's phrases

    def _answer(self, *, last: bool = False) -> str | None:
        """Return an answer to the last heard turn; in the role's last turn, an answer without a question."""
        if not self.phrases.answers or not self._heard:
            return None
        heard = self._heard[-1].lower()
        self._knows_all = True  # an answer may use values that the role has learned
        try:
            for one in self.phrases.answers:
                if one.when and not self._has(one.when):
                    continue
                for words in one.to:
                    before, slot, _ = split_words(words)
                    if before not in heard if slot is None else not self._holds(heard, words):
                        continue
                    phrasings = [text for text in one.says if not (last and text.endswith("?"))]
                    if (said := self._choose_fresh_phrasing(phrasings, anew=True)) and not (
                        last and said.endswith("?")
                    ):
                        return said
        finally:
            self._knows_all = False
        return None

    def _holds(self, heard: str, words: str) -> bool:
        """Return whether the heard text contains certain words; a slot in them stands for any item of its
        list."""
        before, slot, after = split_words(words)
        if slot is not None and after is not None:
            name, field, *_ = read_slot(slot)
            if field and isinstance(items := self._find_fact(name, field), (list, tuple)):
                if before not in heard or after not in heard:  # true of most turns
                    return False
                said = [str(item).lower() for item in items]
                return any(
                    f"{before}{one}{after}" in heard for item in said for one in (item, item.rstrip(".?!"))
                )
        wanted = self._fill(words)
        return bool(wanted) and str(wanted).lower() in heard

    def _has(self, wanted: Mapping[str, Sequence[str]]) -> bool:
        """Return whether the scenario has one of the values of each dimension."""
        values = self._scenario.values
        return all(values.get(name) in among for name, among in wanted.items())

    def _choose_step(self, *, opened: bool) -> str | None:
        phrases, number = self.phrases, len(self._own)
        if opened and phrases.opens:
            if number == 0:
                return self._choose_phrasing(phrases.opens)
            number -= 1
        if number < len(phrases.says) and (said := self._choose_fresh_phrasing(phrases.says[number])):
            return said
        fresh = map(self._choose_fresh_phrasing, phrases.says)
        return next(filter(None, fresh), None)  # the first unsaid step

    def _choose_fresh_phrasing(self, phrasings: Sequence[str], *, anew: bool = False) -> str | None:
        """Return one of the phrasings without repeating a turn; None if there is none. `anew`: without
        repeating a sentence either."""
        new, again, _ = self._choose(phrasings)
        return new if anew else new or again

    def _choose_phrasing(self, phrasings: Sequence[str]) -> str | None:
        return next(filter(None, self._choose(phrasings)), None)

    def _choose(self, phrasings: Sequence[str]) -> tuple[str | None, str | None, str | None]:
        """Return a phrasing that repeats nothing; or else, in second place, one that repeats a sentence, and
        in third place, one that repeats a turn."""
        if not phrasings:
            return None, None, None
        start, found, again = int(self._draw() * len(phrasings)), None, None
        for i in range(len(phrasings)):
            before = self._again
            text = self._fill(phrasings[(start + i) % len(phrasings)])
            if text and not (text in self._said or (self._depth == 0 and loops(text, self._own))):
                if self._again == before:
                    return text, None, None
                again = again or text
            found = found or text
        return None, again, found

    def _fill(self, phrasing: str) -> str | None:
        """Return a phrasing with its slots filled; None if a slot cannot be filled."""
        parts, sentence = split_phrasing(phrasing)
        if not self._depth:
            self._places = {}
        if sentence and sentence in self._said:
            self._again += 1
        if len(parts) == 1:
            return phrasing
        out = [parts[0]]
        for i in range(1, len(parts), 2):
            if (value := self._fill_slot(parts[i])) is None:
                return None
            out += (value, parts[i + 1])
        return fix_ends("".join(out))

    def _fill_slot(self, slot: str) -> str | None:
        name, field, lower, new = read_slot(slot)
        if name == HEARD:
            return self._note_place(find_last_example(self._heard))
        if name == KNOWLEDGE:
            return self._pick([*self._list_facts()])
        values = self._scenario.values
        if capital := name not in values:
            name = name[:1].lower() + name[1:]
            if name not in values:
                return None
        if name not in self._sees and not self._knows_all:
            return None
        if new and not self._note_unsaid(name, field):
            return None
        said = self._fill_field(name, field) if field else self._choose_value(name)
        if said and len(said) >= LONG_ENOUGH and said.rstrip(".?!") in self._said:
            self._again += 1
        if not said or not (lower or capital):
            return said
        return (said[:1].lower() if lower else said[:1].upper()) + said[1:]

    def _fill_field(self, name: str, field: str) -> str | None:
        value = self._find_fact(name, field)
        if isinstance(value, str):
            return value or None
        if isinstance(value, (list, tuple)):
            return self._fill_item(name, [one for one in value if isinstance(one, str)])
        return str(value) if isinstance(value, int | float) else None

    def _fill_item(self, name: str, texts: list[str]) -> str | None:
        """Return an item of a list. Lists of one entry belong together, so all items in a phrasing have the
        same place."""
        place = self._places.get(name)
        if place is None:
            place, latest = self._find_place(name)
            if place is None or place >= len(texts) or (self._has_just_said(texts[place]) and not latest):
                picked = self._pick(texts)
                place = texts.index(picked) if picked is not None else None
            if place is not None:
                self._places[name] = place
        return texts[place] if place is not None and place < len(texts) else None

    def _note_unsaid(self, name: str, field: str) -> bool:
        """Make the present phrasing use the place of an unsaid item. Return whether there is one."""
        items, whole = self._find_fact(name, field), "\n".join([*self._own, *self._heard])
        listed = items if isinstance(items, (list, tuple)) else ()
        unsaid = [i for i, one in enumerate(listed) if one.rstrip(".?!") not in whole]
        if unsaid:
            self._places[name] = unsaid[int(self._draw() * len(unsaid))]
        return bool(unsaid)

    def _note_place(self, said: str | None) -> str | None:
        """Return a heard example, and make the present phrasing use its place."""
        if said:
            for name in self._scenario.fields:
                if (place := self._find_place_in_text(name, said)) is not None:
                    self._places[name] = place
        return said

    def _find_fact(self, name: str, field: str) -> Any:
        """Return a field of the scenario's entry, or a fact of the phrases about its value."""
        value = self._scenario.fields.get(name, _NO_FIELDS).get(field)
        return self._find_facts(name).get(field) if value is None else value

    def _find_facts(self, name: str) -> Mapping[str, Any]:
        facts = self.scene.book.phrases.facts.get(name)
        return _NO_FIELDS if facts is None else facts.get(self._scenario.values.get(name, ""), _NO_FIELDS)

    def _choose_value(self, name: str) -> str | None:
        value, book = self._scenario.values[name], self.scene.book
        phrasings = book.phrases.said.get(name, _NO_PHRASINGS).get(value)
        if phrasings is None:
            return None if name in book.persona else value
        if self._depth >= _DEEPEST:  # phrasings may name each other
            return None
        self._depth += 1
        try:
            return self._choose_phrasing(phrasings)
        finally:
            self._depth -= 1

    def _has_just_said(self, text: str) -> bool:
        """Return whether the role's last turn has this text."""
        return bool(self._own) and names_item(self._own[-1], text)

    def _find_place(self, name: str) -> tuple[int | None, bool]:
        """Return the place of the entry's item that was heard last, and whether the latest turn has it."""
        for back, text in enumerate(self._heard[: -_REMEMBERED - 1 : -1]):
            if (place := self._find_place_in_text(name, text)) is not None:
                return place, not back
        return None, False

    def _find_place_in_text(self, name: str, text: str) -> int | None:
        """Return the place of an item of the entry's lists in a text. If several items are equal, return the
        one that the role itself named last."""
        fields = self._scenario.fields.get(name, _NO_FIELDS)
        for items in (*fields.values(), *self._find_facts(name).values()):
            if not isinstance(items, (list, tuple)):
                continue
            places = [i for i, item in enumerate(items) if isinstance(item, str) and names_item(text, item)]
            alike = len(places) > 1 and items[places[0]] == items[places[-1]]
            if alike and self._own and text != self._own[-1]:
                named = self._find_place_in_text(name, self._own[-1])
                return named if named in places else places[0]
            if places:
                return places[0]
        return None

    def _pick(self, texts: Sequence[str]) -> str | None:
        """Return one of the texts that the role has not said, or else the one that it said longest ago."""
        if not texts:
            return None
        fresh = [one for one in texts if one.rstrip(".?!") not in self._said]
        if not fresh:
            return min(texts, key=lambda one: self._said.rfind(one.rstrip(".?!")))
        return fresh[int(self._draw() * len(fresh))]

    # ---- without phrases

    def _list_values(self) -> str:
        labels, known = self.scene.book.labels, self._list_known_dimensions()
        if answer := self._find_value_asked_for():
            return answer
        if not self._own and not self._heard and known:
            return self.say_generic("v.open", value=str(self._choose_value(known[0])))
        unknown, unsaid = self._list_unknown(), next(self._list_unsaid(), None)
        if unknown and (unsaid is None or self._draw() < 0.45):
            return self.say_generic("v.ask", label=labels[unknown[int(self._draw() * len(unknown))]])
        if unsaid is None:
            return self._continue_talk()
        rule, text, name = unsaid
        return self.say_generic(rule, value=text, label=labels.get(name, name))

    def _continue_talk(self) -> str:
        """Return a turn about a value that was said, once everything is said."""
        whole = "\n".join([*self._own, *self._heard])
        persona, values = self.scene.book.persona, self._scenario.values
        named = [value for name, value in values.items() if name not in persona and value in whole]
        if not named or self._draw() < 0.2:
            return self.say_generic("v.nod")
        return self.say_generic("v.more", value=named[int(self._draw() * len(named))])

    def _find_value_asked_for(self) -> str | None:
        """Return the value of the dimension whose label the last question names."""
        labels, heard = self.scene.book.labels, self._heard[-1].lower() if self._heard else ""
        asked = " ".join(_ASKING.findall(heard))
        for name in self._list_known_dimensions() if asked else ():
            if labels[name].lower() in asked and self._scenario.values[name] not in self._said:
                return self.say_generic("v.answer", label=labels[name], value=str(self._choose_value(name)))
        return None

    def _list_known_dimensions(self) -> list[str]:
        """Return the dimensions that the role may say."""
        persona, values = self.scene.book.persona, self._scenario.values
        return [name for name in self.scene.list_visible(self.role) if name not in persona and name in values]

    def _list_unknown(self) -> list[str]:
        """Return the dimensions that others see and the role has not asked for."""
        book, mine = self.scene.book, {*self.scene.list_visible(self.role)}
        theirs = dict.fromkeys(
            name for role, sees in book.sees.items() if role != self.role for name in sees if name not in mine
        )
        asked, heard = self._said.lower(), "\n".join(self._heard)
        values = self._scenario.values
        return [
            name
            for name in theirs
            if name not in book.persona
            and name in values
            and book.labels[name].lower() not in asked
            and values[name] not in heard
        ]

    def _list_unsaid(self) -> Iterator[tuple[str, str, str]]:
        """Yield unsaid facts that the role knows, as (rule to say it by, text, dimension)."""
        whole = "\n".join([*self._own, *self._heard]).lower()
        for name in self._list_known_dimensions():
            if self._scenario.values[name].lower() not in whole and (value := self._choose_value(name)):
                yield "v.say", value, name
            for said in self._scenario.fields.get(name, {}).values():
                texts = said if isinstance(said, list | tuple) else [said]
                for text in texts:
                    if isinstance(text, str) and " " in text and text.lower().rstrip(".?!") not in whole:
                        yield "v.fact", text, name
        for fact in self._list_facts():
            if fact.lower() not in whole:
                yield "v.fact", fact, KNOWLEDGE

    def _list_facts(self) -> Iterator[str]:
        """Yield the facts of the knowledge file about the values that the role sees."""
        facts = self.scene.book.facts
        if not facts:
            return
        scenario = self._scenario
        seen = " ".join(
            f"{scenario.values[name]} {scenario.fields.get(name, '')}"
            for name in self.scene.list_visible(self.role)
            if name in scenario.values
        )
        yield from (fact for key, fact in facts.items() if key in seen)
