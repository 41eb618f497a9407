"""Detection of another speaker inside a turn: `That is right. Student: But why?`, `<b>Lehrer:</b> …`, `“Why?” asks Anna's teacher`.

A turn that two sides share is the worst error of a reader, since nothing shows it. A finding is named as a repair; the
text stays. Looked for are the roles' names, the words for them in every language, and names with a title, where a label can
stand: at the beginning of a turn, a line or a sentence. Most turns hold no colon, no bracket and no quotation, and cost a
few comparisons.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from edgen.core.lazy_patterns import compile_later
from edgen.core.values import Turn
from edgen.reading.roles import ARTICLES, RoleWords

_MOST = 400  # colons of a turn; what holds more is a table
_REACH = 90  # characters before a colon in which its label begins
_COLON = re.compile(r":(?=[\s\"“”‘’'«<*_(]|[^\x00-\u02ff]|\Z)|：")
_BEGINS = (
    r"(?:\A|[\n\r.!?…。！？؟।\"“”„'’‘«»()\[\]]|\\n|<(?:br|/?p|/?div|/?li)\s?/?>|[,;—–-](?=\s{0,2}[\"“*]))"
)
_ROUND = r"(?:[\s>#*_~`|•\"“”'‘’「『【\[(]|<[^<>\n]{1,20}>|\d{1,2}[.)]\s|[-–—]\s)*"
_DECOR = r"(?:[\s*_~`\"”’」』】\])>-]|[–—]|</[^<>\n]{1,20}>)*"
_APART = r"(?:(?<!\w)|(?<=\\n))"
_BEFORE = "|".join(sorted(ARTICLES - {"l"}))
_WHICH = rf"(?:(?:now|then|and|next)\s)?(?:(?:{_BEFORE}|the\sother|our|my|your|his|her|an?|another|other|one|first|second|third|next|new|same)\s|[ld]['’])?"
_NUMBER = r"(?:\s?\#?(?:\d{1,2}|[A-Z])(?![\w]))?"
_NOTE = (
    r"(?:\s?[(（\[][^()（）\[\]\n]{1,50}[)）\]]|,\s\w{1,20}(?:ing|ly)|['’]s\s(?:voice|reply|response|turn))?"
)
_SPEAKS = (
    r"(?:says?|said|asks?|asked|repl(?:ies|ied|y)|answer(?:s|ed)?|respond(?:s|ed)?|adds?|added|exclaim(?:s|ed)?|whisper(?:s|ed)?"
    r"|continue[sd]?|explain(?:s|ed)?|shout(?:s|ed)?|mutter(?:s|ed)?|murmur(?:s|ed)?|interrupt(?:s|ed)?|speaks?|think(?:s)?|laugh(?:s|ed)?"
    r"|sagt(?:e)?|fragt(?:e)?|antwortet(?:e)?|meint(?:e)?|ruft|erwidert|dit|demande|répond(?:it)?|ajoute|explique"
    r"|dice|dijo|pregunta|responde|contesta|explica|risponde|chiede|disse|diz|pergunta|zegt|vraagt|antwoordt"
    r"|говорит|спрашивает|отвечает|(?:сказал|спросил|ответил)а?|каже|питає|mówi|pyta|odpowiada|der|sorar|说|说道|問|问|回答|言う|聞く|答える)"
)
# In the past, it is a report: `Student said: practise!`
_SAYS = (
    r"(?:says|asks|replies|answers|responds|adds|exclaims|whispers|continues|explains|speaks|thinks|sagt|fragt|antwortet|dit|demande"
    r"|répond|dice|pregunta|responde|contesta|risponde|chiede|diz|pergunta|zegt|vraagt|antwoordt|говорит|спрашивает|отвечает|каже"
    r"|mówi|pyta|说|說|问|問|回答|言う|聞く)"
)
_GESTURES = (
    r"(?:nods|smiles|laughs|grins|sighs|shrugs|frowns|pauses|hesitates|raises|shakes|points|looks|stares|thinks|writes|draws|leans"
    r"|stands|sits|walks|leaves|enters|waits|listens|scratches|blushes|claps|cries|yawns|interrupts|nickt|lächelt|lacht|zögert"
    r"|sourit|rit|hésite|sonríe|asiente|sorride|annuisce|sorri|glimlacht|knikt|улыбается|кивает|uśmiecha)"
)
_PLAIN_TITLES = (
    "mr mrs ms miss mx dr prof mme mlle madame monsieur herr frau señor señora sr sra srta signor signora sig senhor senhora "
    "dott mevrouw meneer pan pani narrator classmate parent principal headmaster headmistress coach counselor counsellor "
    "interviewer moderator"
)
_TITLES = (
    r"(?:Mrs?\.?|Ms\.?|Miss|Mx\.?|Dr\.?|Prof\.?|Mme\.?|Mlle\.?|Madame|Monsieur|Herr|Frau|Señora?|Sra?\.|Srta\.|Signora?|Sig\.|Senhora?"
    r"|Dott\.|Mevrouw|Meneer|Pan|Pani)"
)
_NAME = r"[^\W\d_a-z][\w'’-]{0,20}(?:\s[^\W\d_a-z][\w'’-]{0,20})?"
_OTHERS = (
    r"narrator|classmate|parent|principal|headmaster|headmistress|coach|counsell?or|interviewer|moderator"
)
_TOKENS = re.compile(r"<\|(?:im_start|start_header_id|user|assistant)\|>|<start_of_turn>|\[/?INST\]")
_HINT = re.compile(r"[:：\n<{\[(\\*\"“„«—–]").search  # most turns hold none
_MARK = re.compile(r"[\n<{\[(\\*]").search
_QUOTE = re.compile(r"[\"“„«]").search
_DASH = re.compile(r"[,.!?…]\s?[—–]\s").search
# What is said has two words, or ends as a sentence: `Lehrer: teacher` is a vocabulary.
_SPEECH = re.compile(r"[\W_]{0,40}\w(?:[^\n]{0,60}?(?:[^\S\n]\w|[.!?…。！？؟।\"”’])|[^\x00-\u2fff])").match
_WORDS = re.compile(r"[^\W_]+").findall


class _Patterns(NamedTuple):
    """Words that a speaker's name holds; labels before a colon; names with a title; labels without a colon; speech with
    a verb; gestures between marks. Patterns are compiled at first use: each costs as much as reading a hundred replies, and few turns need one."""

    words: frozenset[str]
    label: re.Pattern[str]
    titled: re.Pattern[str]
    alone: re.Pattern[str]
    spoken: re.Pattern[str]
    gesture: re.Pattern[str]

    def names_somebody(self, text: str) -> bool:
        """Return whether a text holds a word of a speaker's name."""
        return not self.words.isdisjoint(_WORDS(text.lower().replace("\\n", "\n")))


def holds_other_speaker(turns: Sequence[Turn], roles: RoleWords) -> bool:
    """Return whether any turn looks as if another than its role speaks in it."""
    return any(_HINT(turn.text) and speaks_for_another(turn.text, turn.role, roles) for turn in turns)


def speaks_for_another(text: str, role: str, roles: RoleWords) -> bool:
    """Return whether a turn of a role looks as if another speaks in it."""
    patterns = _patterns(roles)
    if (":" in text or "：" in text) and _labelled(text, role, roles, patterns):
        return True
    marked, quoted = _MARK(text), _QUOTE(text)
    if marked and _TOKENS.search(text):
        return True
    quoted = quoted or _DASH(text)
    if not (marked or quoted) or not patterns.names_somebody(text):
        return False
    if marked and (patterns.alone.search(text) or _gestures(text, role, roles, patterns)):
        return True
    return bool(quoted and patterns.spoken.search(text))


def _gestures(text: str, own: str, roles: RoleWords, patterns: _Patterns) -> bool:
    """Return whether a stage direction shows another role: `*Student nods* I see.`"""
    actors = [found["actor"] for found in patterns.gesture.finditer(text)]
    return any((roles.by_name.get(actor.lower()) or roles.called(actor)) != own for actor in actors)


def _labelled(text: str, own: str, roles: RoleWords, patterns: _Patterns) -> bool:
    """Return whether a label stands before one of the text's colons; the speaker's own at its beginning is none."""
    for colon in islice(_COLON.finditer(text), _MOST):
        place = colon.start()
        begin = max(0, place - _REACH)
        if not patterns.names_somebody(text[begin:place]) or not _SPEECH(text, place + 1):
            continue
        found = patterns.label.search(text, begin, place)
        if found is not None:
            who = found["who"] or found["called"]
            if found.start() > 0 or (roles.by_name.get(who.lower()) or roles.called(who)) != own:
                return True
        elif patterns.titled.search(text, begin, place):
            return True
    return False


@cache
def _patterns(roles: RoleWords) -> _Patterns:
    foreign = {word for each in roles.foreign() for word in each}
    aliases = {word for word in roles.aliases if len(word) > 2} - {
        "human",
        "model",
    }  # `Human: 46 chromosomes`
    own = {word.lower() for _, words in roles.own for word in words}
    words = "|".join(
        re.escape(word) for word in sorted({*roles.by_name, *foreign, *aliases, *own}, key=len, reverse=True)
    )
    who = rf"(?P<who>{words})"
    speaker = rf"{_WHICH}{_APART}{who}(?!\w){_NUMBER}{_NOTE}"
    plain = rf"{_WHICH}{_APART}(?:{words})(?!\w){_NUMBER}"
    whose = r"(?!(?:my|your|his|her|our)\s)"  # `My teacher said "practise"` is a report
    anyone = rf"(?:{plain}|(?-i:{_TITLES}\s?{_NAME}))"
    named = {part for word in {*roles.by_name, *foreign, *aliases, *own} for part in _WORDS(word)}
    return _Patterns(
        words=frozenset({*named, *_WORDS(_PLAIN_TITLES)}),
        label=compile_later(
            rf"(?i){_BEGINS}{_ROUND}(?:{speaker}|(?<!\w)[^\W\d_][\w.'’ -]{{0,30}}\s?\((?P<called>{words})\))"
            rf"(?:\s{_SAYS})?{_DECOR}\Z"
        ),
        titled=compile_later(
            rf"{_BEGINS}{_ROUND}(?:{_TITLES}\s?{_NAME}|(?i:{_OTHERS})){_NOTE}(?:\s{_SAYS})?{_DECOR}\Z"
        ),
        alone=compile_later(
            rf"(?im)(?:^|\\n|>)[^\S\n]*(?:[\[【<#*_({{]{{1,4}}\s?{anyone}{_NOTE}\s?(?:[\])】>*_}}]{{1,4}}|$)|{anyone}{_NOTE}\s?[—–>]"
            rf"|{anyone}\s-\s(?=\S+\s\S)|(?:-{{2,}}|={{2,}}|~{{2,}})\s?{anyone}\s?(?:-{{2,}}|={{2,}}|~{{2,}}))"
            rf"|\n[^\S\n]*\n\s*{anyone}[^\S\n]*\n\s*(?=\S+[^\S\n]\S)"
            rf"|[\[(*]{anyone}\s{_SPEAKS}[^\n]{{0,20}}[\])*]|</?(?:{words})(?:[_ -]?\w{{1,3}})?\s?/?>"
            rf"|[\"'](?:role|speaker|name)[\"']\s{{0,2}}:\s{{0,2}}[\"']{anyone}[\"']"
        ),
        gesture=compile_later(
            rf"(?i)[\[(*]{_WHICH}{_APART}(?P<actor>{words})\s{_GESTURES}(?!\w)[^\n()\[\]*]{{0,60}}[\])*]"
        ),
        spoken=compile_later(
            rf"(?i){_BEGINS}\s*{whose}{anyone}(?:\s(?:\w+ly|then|now|also))?\s{_SPEAKS}(?:\s\w+ly)?\s?[,:：]?\s?[\"“„«]"
            rf"|[,.!?…，。！？](?:[\"”“»]\s?|\s?[—–]\s){_SPEAKS}\s{whose}{anyone}(?=\W|\Z)"
            rf"|[,.!?…，。！？][\"”“»]\s?{anyone}\s{_SPEAKS}(?=\W|\Z)"
        ),
    )
