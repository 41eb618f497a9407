"""Build patterns that find names of speakers: roles' names, other words for the roles, names with a title."""

from __future__ import annotations

import re
import string
from functools import cache, partial
from typing import NamedTuple

from edgen.core.text import compile_later
from edgen.reading.roles import ARTICLES, TITLES, RoleWords
from edgen.reading.text.characters import WordMemory

_BEGINS = (
    r"(?:\A|[\n\r.!?…。！？؟।\"“”„'’‘«»()\[\]]|\\n|<(?:br|/?p|/?div|/?li)\s?/?>|[,;—–-](?=\s{0,2}[\"“*]))"
)
_ROUND = (
    r"(?:[\s>#*_~`|•\"“”'‘’「『【\[(]|<[^<>\n]{1,20}>|\d{1,2}[.)]\s|[-–—]\s|\d{1,2}:\d\d\s"
    r"|(?:turn|line|exchange)\s\d{1,3}\s?[-–.:]\s)*"
)
_LONG = 2_000  # characters of a turn, of which only lines near a name are searched
_RUN = compile_later(r"[\[(*<{_]+(?P<last>[\[(*<{_]{80})")  # 80 are more than any pattern counts
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
NUMBERS = frozenset(["one", "two", "three"])
ENDINGS = ("ing", "ly", "ed")
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
_MANNER = r"\s(?:with|without|after|in)(?:\s[\w'’-]{1,15}){1,4}(?=\s?[,:：])"  # `with a smile:`
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
    f"{' '.join(TITLES)} mlle madame monsieur herr frau señor señora sr sra srta signor signora "
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
_PLAIN_LAST = (
    "you me human ai bot usuario usuaria utilizador utilisateur utilisatrice benutzer benutzerin nutzer "
    "nutzerin utente gebruiker asistente assistente assistant assistent asystent asistan model system "
    "ta tutee kid mom mum dad mother father friend st stu stud tea tch tchr class all everyone "
    "everybody others both together"
)
_UTTERED = r"(?-i:[\"“„«]?[^\W\d_a-z]\S{0,40}\s\S[^\n]{1,400}[.!?…])"
OPENING = frozenset("<([（")
_WORDS = compile_later(r"[^\W_]+")


class SpeakerPatterns(NamedTuple):
    """The patterns of speakers' names.

    Patterns are compiled at first use: each costs as much as reading a hundred replies, and few turns need
    one.
    """

    words: frozenset[str]  # words that a speaker's name holds, in lower case
    nameless: WordMemory  # whether the text between two blanks holds no such word
    unlabelling: WordMemory  # whether a word before a colon ends no label of any kind
    label: re.Pattern[str]  # labels before a colon
    short: re.Pattern[str]  # labels before a colon that count only before a sentence
    last: frozenset[str]  # plain words with which a label of `short` ends
    titled: re.Pattern[str]  # names with a title before a colon
    alone: re.Pattern[str]  # labels without a colon
    spoken: re.Pattern[str]  # a speaker and a verb of speech next to a quotation
    gesture: re.Pattern[str]  # gestures of a speaker between marks

    def names_somebody(self, text: str) -> bool:
        """Return whether a text holds a word of a speaker's name."""
        return not self.nameless.have_all(text.split())

    def drop_far_lines(self, text: str) -> str:
        """Return a long text reduced to lines that are at most two lines from a speaker's name.

        Of more than 80 marks in a row, the last 80 remain.
        """
        if len(text) < _LONG:
            return text
        text = _RUN.sub(r"\g<last>", text)
        lines = text.split("\n")
        named = [number for number, line in enumerate(lines) if line and self.names_somebody(line)]
        kept, last = [], -1
        for place in sorted({place for number in named for place in range(number - 2, number + 3)}):
            if 0 <= place < len(lines):
                kept += ["."] if place > last + 1 else []  # these lines do not follow one another
                kept.append(lines[place])
                last = place
        return "\n".join(kept)

    def ends_as_speech(self, text: str) -> bool:
        """Return whether a text without brackets ends with a word that ends no label: any plain word but
        those of `may_end`, or a number after one that names nobody."""
        before, _, last = text.rpartition(" ")
        previous = before.rpartition(" ")[2]
        return self.unlabelling[last] or (
            last in NUMBERS
            and is_plain_word(previous)
            and previous not in ("no", "number")
            and self.nameless[previous]
        )

    def may_end(self, text: str) -> bool:
        """Return whether a text may end with a label. A plain word at its end has to belong to a name, or to
        be one that can follow a name."""
        *_, before, last = ["", "", *text.rsplit(None, 2)]
        plain = is_plain_word(last) and OPENING.isdisjoint(text)
        if plain and last in NUMBERS:
            plain = before.lower() not in ("no", "no.", "number") and not self.names_somebody(before)
        elif plain:
            plain = not may_follow(last, self.words)
        return not plain and self.names_somebody(text)


def is_plain_word(word: str) -> bool:
    """Return whether a word has lower-case ASCII letters alone."""
    return word.isascii() and word.isalpha() and word.islower()


def may_follow(last: str, words: frozenset[str]) -> bool:
    """Return whether a plain word before a colon is one of a name's, or can follow a name."""
    return last in words or last in _AFTER_NAMES or last.endswith(ENDINGS)


def _ends_no_label(words: frozenset[str], last: frozenset[str], word: str) -> bool:
    """Return whether a plain word before a colon ends no label: neither one of these words for speakers nor
    one of the `last` words of short labels. The end of the line above may stand before it."""
    word = word.rpartition("\n")[2]
    plain = is_plain_word(word) and word not in NUMBERS
    return plain and word not in last and not may_follow(word, words)


@cache
def make_speaker_patterns(roles: RoleWords) -> SpeakerPatterns:
    """Return the patterns for some roles."""
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
    held = frozenset({*named, *_WORDS.findall(_PLAIN_TITLES), *counted})
    last = frozenset([*_PLAIN_LAST.split(), *[f"{word}s".lower() for word in (*roles.by_name, *aliases)]])
    return SpeakerPatterns(
        words=held,
        unlabelling=WordMemory(partial(_ends_no_label, held, last)),
        nameless=WordMemory(lambda word: held.isdisjoint(_WORDS.findall(word.lower().replace("\\n", "\n")))),
        label=compile_later(
            rf"(?i){_BEGINS}{_ROUND}(?:{speaker}|(?<!\w)[^\W\d_][\w.'’ -]{{0,30}}\s?\((?P<called>{words})\))"
            rf"(?:\s{_SAYS})?{_DECOR}\Z"
        ),
        short=compile_later(
            rf"{_BEGINS}{_ROUND}(?P<who>(?P<letter>[{letters}P]\d{{1,2}}|[{letters or 'P'}]\.?)|(?i:{_YOU}"
            rf"|{_NUMBERED})|(?P<lone>(?i:{_LONE}|{_GROUPS}|{plurals})))(?i:{_NOTE}){_DECOR}\Z"
        ),
        last=last,
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
            rf"|also))?\s{_SPEAKS}(?:\s\w+ly|{_MANNER})?\s?[,:：]?\s?[\"“„«]"
            rf"|[,.!?…，。！？](?:[\"”“»]\s?|\s?[—–]\s){_SPEAKS}\s{whose}{anyone}(?=\W|\Z)"
            rf"|[,.!?…，。！？][\"”“»]\s?{anyone}\s{_SPEAKS}(?=\W|\Z)"
        ),
    )
