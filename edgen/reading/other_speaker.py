"""Detection of another speaker inside a turn.

Examples are `That is right. Student: But why?`, `<b>Lehrer:</b> …` and `“Why?” asks Anna's teacher`.

Two speakers in one turn are the worst error of a reader, since no other check reports it. A finding becomes
a repair; the text stays as it is. The detector searches for the roles' names, the words for them in every
language, and names with a title at the places of labels: the beginning of a turn, a line or a sentence. Most
turns hold no colon, no bracket and no quotation, and cost a few comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from edgen.core.text import compile_later
from edgen.core.values import Turn
from edgen.reading.roles import RoleWords
from edgen.reading.speaker_patterns import (
    ENDINGS,
    OPENING,
    SpeakerPatterns,
    is_plain_word,
    make_speaker_patterns,
)
from edgen.reading.text.characters import find_marks

_MANY = 10  # marks, for which names are searched in all turns at once
_MOST = 400  # colons of a turn; what holds more is a table
_SHOWN = 2_000  # characters in which they are looked for
_LISTED = 3  # letters before colons that make a list: `a: 3`
_AROUND = " \t>#*_~`|•\"“”'‘’「『【[(-–—0123456789."
_REACH = 90  # characters before a colon in which its label begins
_NEAR = 40  # and before a sentence
_COLON = compile_later(r":(?=[\s\"“”‘’'«<*_(]|[^\x00-\u02ff]|\Z)|：")
_AFTER_COLON = frozenset(" \n\"“”‘’'«<*_(")
_NOTE_WORDS = frozenset(["voice", "reply", "response", "turn", "answer"])  # that notes after a name end with
_BEFORE_NOTES = (",", "'s", "’s")
_SENTENCE = compile_later(
    r"[\s*_\"“”„'‘’«「『]{0,6}(?:[^\W\d_a-z]|[¿¡])(?:[^\s.!?…。！？]{0,40}[?？！]"
    r"|\S{0,40}\s\S{1,40}[^\n.!?…。！？]{1,400}[.!?…。！？।؟]|[\u0590-\uffdc][^\n]{3,400}?[.!?…。！？।؟])"
)
# A speaker's letter at the beginning of a line, without a colon: `[S1] But why?`
_LETTERED = compile_later(
    r"\n[^\S\n]*(?:[\[<(](?P<inside>[A-Z])\d?[\])>]|(?P<before>[A-Z])\d?[^\S\n]?(?:[>)]"
    r"|[-–—](?=\s)))[^\S\n]{1,3}(?=\S)"
)
# After a letter there may be a definition, too: `T: The temperature.`
_PERSONAL = compile_later(
    r"(?i)[?!]|(?<!\w)(?:i|we|you|me|my|our|your|yes|no|oh|ok|okay|but|well|hmm+|thanks?|sorry)(?!\w)"
)
_AT_LINE = compile_later(r"(?:\n|\\n)[\W\d]{0,12}\Z")
# Before a dialogue that a turn shows: `Read this dialogue:`
_CITES = compile_later(
    r"(?i)(?:[:：]\s*|\b(?:dialog|conversation|role-?\s?play|read\s(?:this|these|it)"
    r"|practi[sc]e)[^\n]{0,60}\n\s*)\Z"
)
_LETTER = compile_later(r"(?m)^[^\w\n]{0,6}([^\W\d_])\d?[^\w\n]{0,4}[:：]")
_TOKENS = compile_later(
    r"\n(?:user|assistant|model|human)\n(?=\S)|<\|(?:im_start|start_header_id|user|assistant)\|>"
    r"|<start_of_turn>|\[/?INST\]"
)
_DASH = compile_later(r"[,.!?…]\s?[—–]\s")
# What is said has two words, or ends as a sentence: `Lehrer: teacher` is a vocabulary.
_SPEECH = compile_later(r"[\W_]{0,40}\w(?:[^\n]{0,60}?(?:[^\S\n]\w|[.!?…。！？؟।\"”’])|[^\x00-\u2fff])")


def holds_other_speaker(turns: Sequence[Turn], roles: RoleWords, marks: str | None = None) -> bool:
    """Return whether a role other than a turn's own seems to speak in any turn.

    `marks`: `find_marks` of all texts together, if the caller has it.
    """
    if marks is None:
        marks = find_marks("".join([turn.text for turn in turns]))
    hints = HINTS.intersection(marks)
    if not hints:  # most conversations
        return False
    patterns = make_speaker_patterns(roles)
    bracketed = not hints.isdisjoint(OPENING)
    detectors = _DETECTORS
    many = len(marks) > _MANY and sum(map(marks.count, hints - _COLONS)) > _MANY
    if many and not patterns.names_somebody(" ".join([turn.text for turn in turns])):
        detectors = _WITHOUT_NAME
    for mark in hints:
        held = [turn for turn in turns if mark in turn.text]
        if mark == ":":
            held = [
                turn
                for turn in held
                if (bracketed and not OPENING.isdisjoint(turn.text)) or _may_label(turn.text, patterns)
            ]
        for turn in held:
            for detect in detectors[mark]:
                if detect(turn.text, turn.role, roles, patterns):
                    return True
    return False


def _may_label(text: str, patterns: SpeakerPatterns) -> bool:
    """Return whether a word that may end a label stands before a colon of a text without brackets."""
    parts = text.split(":")[:-1]
    if patterns.unlabelling.have_all([part.rpartition(" ")[2] for part in parts]):
        return False
    return not all(map(patterns.ends_as_speech, parts))


def speaks_for_another(text: str, role: str, roles: RoleWords) -> bool:
    """Return whether another role seems to speak in a role's turn."""
    return holds_other_speaker((Turn(role, text),), roles)


def _has_marked_label(text: str, own: str, roles: RoleWords, patterns: SpeakerPatterns) -> bool:
    """Return whether another speaks under a label between marks, or is shown by a stage direction."""
    if not patterns.names_somebody(text):
        return False
    near = patterns.drop_far_lines(text)
    return patterns.alone.search(near) is not None or _shows_other_role(near, own, roles, patterns)


def _has_token(text: str, own: str, roles: RoleWords, patterns: SpeakerPatterns) -> bool:  # noqa: ARG001
    """Return whether a text holds a chat template's token for a speaker."""
    return ("\n" in text or "<" in text or "INST]" in text) and _TOKENS.search(text) is not None


def _has_quotation(text: str, own: str, roles: RoleWords, patterns: SpeakerPatterns) -> bool:  # noqa: ARG001
    """Return whether a speaker and a verb of speech stand next to a quotation."""
    return patterns.names_somebody(text) and patterns.spoken.search(text) is not None


def _has_dashed_speech(text: str, own: str, roles: RoleWords, patterns: SpeakerPatterns) -> bool:
    """Return the same for dashes in place of quotation marks."""
    return _DASH.search(text) is not None and _has_quotation(text, own, roles, patterns)


def _has_letter_label(text: str, own: str, roles: RoleWords, patterns: SpeakerPatterns) -> bool:  # noqa: ARG001
    """Return whether a line begins with another role's letter and goes on as somebody speaks."""
    return any(
        roles.aliases.get((found["inside"] or found["before"]).lower(), own) != own
        and _SENTENCE.match(text, found.end())
        and _PERSONAL.search(text, found.end(), found.end() + _REACH)
        for found in islice(_LETTERED.finditer(text), _MOST)
    )


def _shows_other_role(text: str, own: str, roles: RoleWords, patterns: SpeakerPatterns) -> bool:
    """Return whether a stage direction shows another role: `*Student nods* I see.`"""
    actors = [found["actor"] for found in patterns.gesture.finditer(text)]
    return any((roles.by_name.get(actor.lower()) or roles.look_up_role(actor)) != own for actor in actors)


def _has_label(text: str, own: str, roles: RoleWords, patterns: SpeakerPatterns) -> bool:
    """Return whether a label stands before a colon, except the speaker's own at the beginning."""
    bracketed = any(map(text.__contains__, OPENING))
    for place in _find_colons(text):
        begin = max(0, place - _REACH)
        parts = text[begin:place].rsplit(None, 1)
        last = parts[-1:]
        if last and not bracketed and patterns.unlabelling[last[0]]:
            continue
        near = max(0, place - _NEAR)
        if (
            (bracketed or not last or _may_be_short(last[0], parts[0].endswith(_BEFORE_NOTES), roles))
            and _SENTENCE.match(text, place + 1)
            and _has_short_label(text, near, place, own, roles)
        ):
            return True
        if not patterns.may_end(text[begin:place]) or not _SPEECH.match(text, place + 1):
            continue
        found = patterns.label.search(text, begin, place)
        if found is not None:
            who = found["who"] or found["called"]
            if found.start() > 0 or (roles.by_name.get(who.lower()) or roles.look_up_role(who)) != own:
                return True
        elif patterns.titled.search(text, begin, place):
            return True
    return False


def _find_colons(text: str) -> list[int]:
    """Return the places of the first colons that may end a label."""
    if "：" in text:
        return [colon.start() for colon in islice(_COLON.finditer(text), _MOST)]
    places: list[int] = []
    place = text.find(":")
    while place >= 0 and len(places) < _MOST:
        after = text[place + 1 : place + 2]
        if not after or after in _AFTER_COLON or after > "\u02ff" or after.isspace():
            places.append(place)
        place = text.find(":", place + 1)
    return places


@lru_cache(maxsize=4096)
def _may_be_short(word: str, noted: bool, roles: RoleWords) -> bool:
    """Return whether a label of `short` may end with this word before a colon.

    `noted`: it stands where `_NOTE` has one, as in `You, smiling:`.
    """
    if len(word) == 1 or not is_plain_word(word) or word in make_speaker_patterns(roles).last:
        return True
    return noted and (word.endswith(ENDINGS) or word in _NOTE_WORDS)


def _has_short_label(text: str, begin: int, place: int, own: str, roles: RoleWords) -> bool:
    """Return whether a letter, a number or a word that mostly names no speaker is a label: `S: But why?`

    It stands before the colon at `place`. A list of letters is no label, nor is a dialogue that the turn
    shows.
    """
    found = make_speaker_patterns(roles).short.search(text, begin, place)
    if found is None:
        return False
    start = found.start("who")
    if found.start() == 0:
        return roles.aliases.get(found["who"].lower(), own) != own
    if found["lone"] is not None and not _AT_LINE.search(text[max(0, start - _REACH) : start]):
        return False
    if (found["letter"] or found["joined"]) and not _PERSONAL.search(text, place + 1, place + _REACH):
        return False
    return len({*_LETTER.findall(text[:_SHOWN])}) < _LISTED and not _CITES.search(
        text[max(0, start - _REACH) : start].rstrip(_AROUND)
    )


# Detectors by the mark that a turn must hold.
_DETECTORS = {
    **dict.fromkeys(":：", (_has_label,)),
    **dict.fromkeys("<[", (_has_token, _has_marked_label)),
    "\n": (_has_token, _has_letter_label, _has_marked_label),
    **dict.fromkeys("{(\\*", (_has_marked_label,)),
    **dict.fromkeys('"“„«', (_has_quotation,)),
    **dict.fromkeys("—–", (_has_dashed_speech,)),
}
# The same in texts that hold no word of a speaker's name.
_WITHOUT_NAME = {
    mark: tuple(detect for detect in found if detect in (_has_label, _has_token, _has_letter_label))
    for mark, found in _DETECTORS.items()
}
_COLONS = frozenset(":：")
HINTS = frozenset(_DETECTORS)
