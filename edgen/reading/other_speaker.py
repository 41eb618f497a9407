"""Detection of another speaker inside a turn.

Examples are `That is right. Student: But why?`, `<b>Lehrer:</b> …` and `“Why?” asks Anna's teacher`.

A turn that two sides share is the worst error of a reader, since nothing shows it. A finding is named as a
repair; the text stays. The detector searches for the roles' names, the words for them in every language, and
names with a title, where a label can stand: at the beginning of a turn, a line or a sentence. Most turns hold
no colon, no bracket and no quotation, and cost a few comparisons.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from edgen.core.text import compile_later
from edgen.core.values import Turn
from edgen.reading.roles import ARTICLES, RoleWords

_MOST = 400  # colons of a turn; what holds more is a table
_SHOWN = 2_000  # characters in which they are looked for
_LISTED = 3  # letters before colons that make a list: `a: 3`
_AROUND = " \t>#*_~`|•\"“”'‘’「『【[(-–—0123456789."
_REACH = 90  # characters before a colon in which its label begins
_NEAR = 40  # and before a sentence
_COLON = compile_later(r":(?=[\s\"“”‘’'«<*_(]|[^\x00-\u02ff]|\Z)|：")
_AFTER_COLON = frozenset(" \n\"“”‘’'«<*_(")
_BEGINS = (
    r"(?:\A|[\n\r.!?…。！？؟।\"“”„'’‘«»()\[\]]|\\n|<(?:br|/?p|/?div|/?li)\s?/?>|[,;—–-](?=\s{0,2}[\"“*]))"
)
_ROUND = (
    r"(?:[\s>#*_~`|•\"“”'‘’「『【\[(]|<[^<>\n]{1,20}>|\d{1,2}[.)]\s|[-–—]\s|\d{1,2}:\d\d\s"
    r"|(?:turn|line|exchange)\s\d{1,3}\s?[-–.:]\s)*"
)
_DECOR = r"(?:[\s*_~`\"”’」』】\])>-]|[–—]|</[^<>\n]{1,20}>)*"
_APART = r"(?:(?<!\w)|(?<=\\n))"
_BEFORE = "|".join(sorted(ARTICLES - {"l"}))
_WHICH = (
    rf"(?:(?:now|then|and|next)\s)?(?:(?:{_BEFORE}|the\sother|our|my|your|his|her|an?|another|other|one"
    r"|first|second|third|next|new|same)\s|[ld]['’])?"
)
_OVER = r"(?:(?!\w)|(?=[_\d甲乙丙丁])|(?<=[\u3000-\uffff])(?=[A-Z]))"  # `Student_2`, `学生甲`
_NUMBER = r"(?:(?:\s|[_-])?(?:\#|no\.?\s|number\s)?(?:\d{1,2}|[A-Z甲乙丙丁]|one|two|three)(?![\w]))?"
_NOTE = (
    r"(?:\s?[(（\[][^()（）\[\]\n]{1,50}[)）\]]|,\s\w{1,20}(?:ing|ly|ed)|['’]s\s(?:voice|reply|response|turn"
    r"|answer))?"
)
# Plain words that _NUMBER and _NOTE allow after a name.
_NUMBERS = frozenset(["one", "two", "three"])
_ENDINGS = ("ing", "ly", "ed")
_SPEAKS = (
    r"(?:says?|said|asks?|asked|repl(?:ies|ied|y)|answer(?:s|ed)?|respond(?:s|ed)?|adds?|added|exclaim(?:s"
    r"|ed)?|whisper(?:s|ed)?"
    r"|continue[sd]?|explain(?:s|ed)?|shout(?:s|ed)?|mutter(?:s|ed)?|murmur(?:s|ed)?|interrupt(?:s|ed)?"
    r"|speaks?|think(?:s)?|laugh(?:s|ed)?"
    r"|sagt(?:e)?|fragt(?:e)?|antwortet(?:e)?|meint(?:e)?|ruft|erwidert|dit|demande|répond(?:it)?|ajoute"
    r"|explique"
    r"|dice|dijo|pregunta|responde|contesta|explica|risponde|chiede|disse|diz|pergunta|zegt|vraagt|antwoordt"
    r"|говорит|спрашивает|отвечает|(?:сказал|спросил|ответил)а?|каже|питає|mówi|pyta|odpowiada|der|sorar|说"
    r"|说道|問|问|回答|言う|聞く|答える)"
)
# In the past, it is a report: `Student said: practise!`
_SAYS = (
    r"(?:says|asks|replies|answers|responds|adds|exclaims|whispers|continues|explains|speaks|thinks|sagt"
    r"|fragt|antwortet|dit|demande"
    r"|répond|dice|pregunta|responde|contesta|risponde|chiede|diz|pergunta|zegt|vraagt|antwoordt|говорит"
    r"|спрашивает|отвечает|каже|mówi|pyta|说|說|问|問|回答|言う|聞く)"
)
_AFTER_NAMES = frozenset(
    [*string.ascii_lowercase, "voice", "reply", "response", "turn", "answer", *re.findall(r"\w+", _SAYS)]
)
_GESTURES = (
    r"(?:nods|smiles|laughs|grins|sighs|shrugs|frowns|pauses|hesitates|raises|shakes|points|looks|stares"
    r"|thinks|writes|draws|leans"
    r"|stands|sits|walks|leaves|enters|waits|listens|scratches|blushes|claps|cries|yawns|interrupts|nickt"
    r"|lächelt|lacht|zögert"
    r"|sourit|rit|hésite|sonríe|asiente|sorride|annuisce|sorri|glimlacht|knikt|улыбается|кивает|uśmiecha)"
)
_PLAIN_TITLES = (
    "mr mrs ms miss mx dr prof mme mlle madame monsieur herr frau señor señora sr sra srta signor signora "
    "sig senhor senhora "
    "dott mevrouw meneer pan pani narrator classmate parent principal headmaster headmistress coach "
    "counselor counsellor interviewer moderator"
)
_TITLES = (
    r"(?:Mrs?\.?|Ms\.?|Miss|Mx\.?|Dr\.?|Prof\.?|Mme\.?|Mlle\.?|Madame|Monsieur|Herr|Frau|Señora?|Sra?\."
    r"|Srta\.|Signora?|Sig\.|Senhora?|Dott\.|Mevrouw|Meneer|Pan|Pani)"
)
_NAME = r"[^\W\d_a-z][\w'’-]{0,20}(?:\s[^\W\d_a-z][\w'’-]{0,20})?"
_OTHERS = (
    r"narrator|classmate|parent|principal|headmaster|headmistress|coach|counsell?or|interviewer|moderator"
)
# Words that mostly name no speaker: the text after their colon has to be a sentence.
_YOU = (
    r"you|me|human|ai|bot|usu[aá]ri[oa]|utilizador|utilisat(?:eur|rice)|benutzer(?:in)?|nutzer(?:in)?|utente"
    r"|gebruiker|użytkownik"
    r"|пользователь|користувач|kullanıcı|用户|用戶|ユーザー|사용자|(?:ال)?مستخدم|ה?משתמש|उपयोगकर्ता|người\sdùng"
    r"|asistente|assistente|assistant"
    r"|assistent|asystent|ассистент|помощник|асистент|помічник|asistan|助手|アシスタント|어시스턴트|(?:ال)?مساعد|ה?עוזר"
    r"|सहायक|trợ\slý"
)
_NUMBERED = (
    r"(?:speaker|person|participant|voice|character|interlocutor|user|pupil|child|kid)[\s_#-]{1,2}(?:\d{1,2}"
    r"|[A-Z])"
)
# A name of a program's kind, at the beginning of a line: `Senior_Dev`, `agent_2`.
_JOINED = r"[^\W\d_]{2,20}(?:_[^\W_]{1,20}){1,3}"
_GROUPS = (
    r"(?:the\s)?(?:whole\s|entire\s|other\s)?(?:class|all|everyone|everybody|others|both)(?:\stogether)?"
)
_LONE = (
    rf"(?P<joined>{_JOINED})|model|system|ta|tutee|kid|mom|mum|dad|mother|father|friend|st|stud?\.?|tea\.?"
    r"|tchr?\.?"
)
# The plain words that `_YOU`, `_LONE` and `_GROUPS` end with.
_PLAIN_LAST = frozenset(
    [
        "you",
        "me",
        "human",
        "ai",
        "bot",
        "usuario",
        "usuaria",
        "utilizador",
        "utilisateur",
        "utilisatrice",
        "benutzer",
        "benutzerin",
        "nutzer",
        "nutzerin",
        "utente",
        "gebruiker",
        "asistente",
        "assistente",
        "assistant",
        "assistent",
        "asystent",
        "asistan",
        "model",
        "system",
        "ta",
        "tutee",
        "kid",
        "mom",
        "mum",
        "dad",
        "mother",
        "father",
        "friend",
        "st",
        "stu",
        "stud",
        "tea",
        "tch",
        "tchr",
        "class",
        "all",
        "everyone",
        "everybody",
        "others",
        "both",
        "together",
    ]
)
_NOTE_WORDS = frozenset(["voice", "reply", "response", "turn", "answer"])  # that `_NOTE` ends with
_BEFORE_NOTES = (",", "'s", "’s")
_SENTENCE = compile_later(
    r"[\s*_\"“”„'‘’«「『]{0,6}(?:[^\W\d_a-z]|[¿¡])(?:[^\s.!?…。！？]{0,40}[?？！]"
    r"|\S{0,40}\s\S{1,40}[^\n.!?…。！？]{1,400}[.!?…。！？।؟]|[\u0590-\uffdc][^\n]{3,400}?[.!?…。！？।؟])"
)
_UTTERED = r"(?-i:[\"“„«]?[^\W\d_a-z]\S{0,40}\s\S[^\n]{1,400}[.!?…])"
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
_COLONS = frozenset(":：")
_MARKS = frozenset("\n<{[(\\*")
_QUOTES = frozenset('"“„«')
_DASHES = frozenset("—–")
_OPEN = frozenset("<([（")
_HINTS = _COLONS | _MARKS | _QUOTES | _DASHES | _OPEN
_DASH = compile_later(r"[,.!?…]\s?[—–]\s")
# What is said has two words, or ends as a sentence: `Lehrer: teacher` is a vocabulary.
_SPEECH = compile_later(r"[\W_]{0,40}\w(?:[^\n]{0,60}?(?:[^\S\n]\w|[.!?…。！？؟।\"”’])|[^\x00-\u2fff])")
_WORDS = compile_later(r"[^\W_]+")


class _Patterns(NamedTuple):
    """The patterns of speakers' names.

    Patterns are compiled at first use: each costs as much as reading a hundred replies, and few turns need
    one.
    """

    words: frozenset[str]  # words that a speaker's name holds, in lower case
    label: re.Pattern[str]  # labels before a colon
    short: re.Pattern[str]  # labels before a colon that count only before a sentence
    last: frozenset[str]  # plain words with which a label of `short` ends
    titled: re.Pattern[str]  # names with a title before a colon
    alone: re.Pattern[str]  # labels without a colon
    spoken: re.Pattern[str]  # a speaker and a verb of speech next to a quotation
    gesture: re.Pattern[str]  # gestures of a speaker between marks

    def names_somebody(self, text: str) -> bool:
        """Return whether a text holds a word of a speaker's name."""
        return not self.words.isdisjoint(_WORDS.findall(text.lower().replace("\\n", "\n")))

    def may_end(self, text: str) -> bool:
        """Return whether a text may end with a label. A plain word at its end has to belong to a name, or to
        be one that can follow a name."""
        *_, before, last = ["", "", *text.rsplit(None, 2)]
        plain = _is_plain_word(last) and _OPEN.isdisjoint(text)
        if plain and last in _NUMBERS:
            plain = before.lower() not in ("no", "no.", "number") and not self.names_somebody(before)
        elif plain:
            plain = not _may_follow(last, self.words)
        return not plain and self.names_somebody(text)


def _is_plain_word(word: str) -> bool:
    return word.isascii() and word.isalpha() and word.islower()


def _may_follow(last: str, words: frozenset[str]) -> bool:
    """Return whether a plain word before a colon is one of a name's, or can follow a name."""
    return last in words or last in _AFTER_NAMES or last.endswith(_ENDINGS)


def holds_other_speaker(turns: Sequence[Turn], roles: RoleWords) -> bool:
    """Return whether any turn looks as if another than its role speaks in it."""
    whole = "".join([turn.text for turn in turns])
    hints = [mark for mark in _HINTS if mark in whole]
    if not hints:  # most conversations
        return False
    patterns = _patterns(roles)
    for turn in turns if len(hints) > 1 else [turn for turn in turns if hints[0] in turn.text]:
        text = turn.text
        held = [mark for mark in hints if mark in text]
        if held and _speaks(text, held, turn.role, roles, patterns):
            return True
    return False


def speaks_for_another(text: str, role: str, roles: RoleWords) -> bool:
    """Return whether a turn of a role looks as if another speaks in it."""
    return _speaks(text, [mark for mark in _HINTS if mark in text], role, roles, _patterns(roles))


def _speaks(text: str, held: Sequence[str], role: str, roles: RoleWords, patterns: _Patterns) -> bool:
    """Return whether a turn that holds these marks looks as if another than its role speaks in it."""
    if not _COLONS.isdisjoint(held) and _has_label(text, held, role, roles, patterns):
        return True
    marked = not _MARKS.isdisjoint(held)
    lined = "\n" in held
    if (lined or "<" in held or "[" in held) and _TOKENS.search(text):
        return True
    if lined and _has_letter_label(text, role, roles):
        return True
    quoted = not _QUOTES.isdisjoint(held) or (not _DASHES.isdisjoint(held) and _DASH.search(text) is not None)
    if not (marked or quoted) or not patterns.names_somebody(text):
        return False
    if marked and (patterns.alone.search(text) or _gestures(text, role, roles, patterns)):
        return True
    return quoted and patterns.spoken.search(text) is not None


def _has_letter_label(text: str, own: str, roles: RoleWords) -> bool:
    """Return whether a line begins with another role's letter and goes on as somebody speaks."""
    return any(
        roles.aliases.get((found["inside"] or found["before"]).lower(), own) != own
        and _SENTENCE.match(text, found.end())
        and _PERSONAL.search(text, found.end(), found.end() + _REACH)
        for found in islice(_LETTERED.finditer(text), _MOST)
    )


def _gestures(text: str, own: str, roles: RoleWords, patterns: _Patterns) -> bool:
    """Return whether a stage direction shows another role: `*Student nods* I see.`"""
    actors = [found["actor"] for found in patterns.gesture.finditer(text)]
    return any((roles.by_name.get(actor.lower()) or roles.look_up_role(actor)) != own for actor in actors)


def _has_label(text: str, held: Sequence[str], own: str, roles: RoleWords, patterns: _Patterns) -> bool:
    """Return whether a label stands before a colon, except the speaker's own at the beginning."""
    bracketed = not _OPEN.isdisjoint(held)
    for place in _find_colons(text):
        begin = max(0, place - _REACH)
        parts = text[begin:place].rsplit(None, 1)
        last = parts[-1:]
        if last and not bracketed and _is_no_label(last[0], roles):  # most
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
    if len(word) == 1 or not _is_plain_word(word) or word in _patterns(roles).last:
        return True
    return noted and (word.endswith(_ENDINGS) or word in _NOTE_WORDS)


@lru_cache(maxsize=4096)
def _is_no_label(word: str, roles: RoleWords) -> bool:
    """Return whether a plain word before a colon ends no label of any kind."""
    patterns = _patterns(roles)
    return (
        _is_plain_word(word)
        and word not in _NUMBERS
        and not _may_follow(word, patterns.words)
        and word not in patterns.last
    )


def _has_short_label(text: str, begin: int, place: int, own: str, roles: RoleWords) -> bool:
    """Return whether a letter, a number or a word that mostly names no speaker is a label: `S: But why?`

    It stands before the colon at `place`. A list of letters is no label, nor is a dialogue that the turn
    shows.
    """
    found = _patterns(roles).short.search(text, begin, place)
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
    speaker = rf"{_WHICH}{_APART}{who}{_OVER}{_NUMBER}{_NOTE}"
    plain = rf"{_WHICH}{_APART}(?:{words})(?!\w){_NUMBER}"
    whose = r"(?!(?:my|your|his|her|our)\s)"  # `My teacher said "practise"` is a report
    anyone = rf"(?:{plain}|(?-i:{_TITLES}\s?{_NAME}))"
    initials = {name[0].upper() for name in roles.names} | {
        word.upper() for word in roles.aliases if len(word) == 1
    }
    letters = "".join(re.escape(letter) for letter in sorted(initials - {"A", "B", "Q"}))
    plurals = rf"(?:the\s)?(?:{'|'.join(re.escape(name) for name in (*roles.by_name, *sorted(aliases)))})s"
    named = {part for word in {*roles.by_name, *foreign, *aliases, *own} for part in _WORDS.findall(word)}
    counted = (word + mark for word in named if word[-1] > "\u2fff" for mark in "甲乙丙丁123456789abcdef")
    return _Patterns(
        words=frozenset({*named, *_WORDS.findall(_PLAIN_TITLES), *counted}),
        label=compile_later(
            rf"(?i){_BEGINS}{_ROUND}(?:{speaker}|(?<!\w)[^\W\d_][\w.'’ -]{{0,30}}\s?\((?P<called>{words})\))"
            rf"(?:\s{_SAYS})?{_DECOR}\Z"
        ),
        short=compile_later(
            rf"{_BEGINS}{_ROUND}(?P<who>(?P<letter>[{letters}P]\d{{1,2}}|[{letters or 'P'}]\.?)|(?i:{_YOU}"
            rf"|{_NUMBERED})|(?P<lone>(?i:{_LONE}|{_GROUPS}|{plurals})))(?i:{_NOTE}){_DECOR}\Z"
        ),
        last=_PLAIN_LAST.union(f"{word}s".lower() for word in (*roles.by_name, *aliases)),
        titled=compile_later(
            rf"{_BEGINS}{_ROUND}(?:{_TITLES}\s?{_NAME}|(?i:{_OTHERS})){_NOTE}(?:\s{_SAYS})?{_DECOR}\Z"
        ),
        alone=compile_later(
            rf"(?im)(?:^|\\n|>)[^\S\n]*(?:[\[【<«#*_({{]{{1,4}}\s?{anyone}{_NOTE}\s?(?:[\])】>»*_}}#]{{1,4}}"
            rf"|$)|@{anyone}\s(?={_UTTERED})"
            rf"|{anyone}(?:\s-\s(?=\S+\s\S)|\s?(?:[;|]|=>?|[-=]>|→)\s(?={_UTTERED})|{_NOTE}\s?[—–>])"
            rf"|[-=~–—•|]{{1,80}}\s?{anyone}\s?(?:-{{2,}}|={{2,}}|~{{2,}}|[-–—•~|]\s{{1,3}}(?={_UTTERED})))"
            rf"|\n[^\S\n]*\n\s*{anyone}[^\S\n]*\n\s*(?=\S+[^\S\n]\S)"
            rf"|[\[(*]{anyone}\s{_SPEAKS}[^\n]{{0,20}}[\])*]|</?(?:{words})(?:[_ -]?\w{{1,3}})?\s?/?>"
            rf"|[\"'](?:role|speaker|name)[\"']\s{{0,2}}:\s{{0,2}}[\"']{anyone}[\"']"
        ),
        gesture=compile_later(
            rf"(?i)[\[(*]{_WHICH}{_APART}(?P<actor>{words})\s{_GESTURES}(?!\w)[^\n()\[\]*]{{0,60}}[\])*]"
        ),
        spoken=compile_later(
            rf"(?i){_BEGINS}\s*{whose}{anyone}(?:\s(?:\w+ly|then|now"
            rf"|also))?\s{_SPEAKS}(?:\s\w+ly)?\s?[,:：]?\s?[\"“„«]"
            rf"|[,.!?…，。！？](?:[\"”“»]\s?|\s?[—–]\s){_SPEAKS}\s{whose}{anyone}(?=\W|\Z)"
            rf"|[,.!?…，。！？][\"”“»]\s?{anyone}\s{_SPEAKS}(?=\W|\Z)"
        ),
    )
