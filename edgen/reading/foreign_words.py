"""Translate labels, probabilities and end markers of other languages: `Lehrer:`, `老师：`, a job's own names.

The translated words become the reader's own: `Teacher:`, `Probability:`, `[end of conversation]`. A word is
translated only as a label at the beginning of a line, and only if the reply names both sides by words of one
language, perhaps together with `Teacher:` or `Student:`. So a turn that mentions a maestro is not split.
Linear in the length.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from edgen.core.text import compile_later
from edgen.reading.roles import ARTICLES, RolePattern, RoleWords
from edgen.reading.text.characters import find_letters, fold, holds_foreign_letters, list_marks, split_letters

_ARTICLES = "|".join(sorted(ARTICLES - {"l"}))
_MOST = 20_000  # labels; no conversation has more
_OWN = "\0"  # the name of the job's own words among the languages

# Marks of the direction of writing, which are removed around labels and at the ends of lines.
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_DIRECTION = compile_later(
    rf"(?m)[{_BIDI}]+(?=[^\w\n]{{0,4}}[:：])|(?<=[:：])[{_BIDI}]+|^[{_BIDI}]+|[{_BIDI}]+$"
)
_MARKS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_MARK = r"(?:[^\w\n(\[:：]|_)"
_AT_LINES = r"\n(?>(?:[^\w\n]|_){0,40})(?:\#?\d{1,4}(?>(?:[^\w\n]|_){1,8})){0,2}"
_ELSEWHERE = r"""(?:[\[,"”][^\S\n]{1,9}(?=[^"“\n]{1,40}[:：][^\S\n]{0,3}["“])
        |"(?:role|speaker|name|who|from|author|character|rol|papel|rolle|ruolo|sprecher|hablante|falante)"\s{0,9}:\s{0,9}"(?=[^"\n]{1,60}")
        |[{,]\s{0,99}"(?=[^"\n]{1,60}"\s{0,9}:))
"""
_LABEL = r"""
    (?P<before>%s)
    (?=\w)(?P<article>(?:%s)[ ]|l['’])?(?P<word>%s)
    (?=(?P<number>[ ]?\#?\d{1,2})?
        (?:MARK{0,4}(?:[ ]?[(（][^()（）\n]{1,60}[)）])?MARK{0,4}[^\S\n]{0,3}[:：]
        |[\]】>|]|"[^\S\n]{0,9}[,}\n]
        |(?P<alone>[*_\#\])】>]{0,4}[^\S\n]{0,8}(?=\n|\Z))))
""".replace("MARK", _MARK)
_BRACKETED = RolePattern(r"【(NAME)】[ ]?[:：]?")

_CHANCE = (
    r"wahrscheinlichkeit|probabilités?|probabilidade?|probabilità|waarschijnlijkheid|prawdopodobieństwo"
    r"|olasılık|xác\ssuất|вероятность|ймовірність|概率|機率|机率|可能性|確率|확률|가능성|احتمال|संभावना|प्रायिकता|הסתברות|sannolikhet(?:en)?|sandsynlighed(?:en)?|sannsynlighet(?:en)?|todennäköisyys"
    r"|pravděpodobnost|πιθανότητα|kemungkinan|probabilitas|valószínűség|probabilitat(?:ea?)?"
    r"|ความน่าจะเป็น|நிகழ்தகவு|সম্ভাবনা|সম্ভাব্যতা|uwezekano|vjerojatnost|pravdepodobnosť|вероятност"
    r"|\b(?:kans|chans(?:en)?|sjansen?|szansa|esély|шанс)\b"
)
# Each of the words above holds one of these stems.
_STEMS = (
    "wahrsch", "probabilid", "probabilité", "probabilità", "waarsch", "prawdop", "น่าจะเป็น", "நிகழ்தகவு", "সম্ভাব", "uwezekano", "vjerojatnost", "pravdepodob", "olas", "xác su", "вероят", "ймовір", "概率", "率", "可能性", "확률",
    "sannolik", "sandsynlig", "sannsynlig", "todennäk", "pravděpod", "πιθανότ", "kemungkin", "probabilita", "valószín",
    "가능성", "احتمال", "संभाव",
    "प्रायिक", "הסתברות", "kans", "chans", "sjanse", "szansa", "esély", "шанс",
)  # fmt: skip
_EVERYDAY = frozenset({"kans", "chans", "sjanse", "szansa", "esély", "шанс"})  # in speech, too: no headings
_ASCII_STEMS = tuple(filter(str.isascii, _STEMS))
# The other stems, each with its rarest letter.
_RARE = {stem: max(stem) for stem in _STEMS if not stem.isascii()}
_FOOT = compile_later(
    rf"(?i)(?P<label>[^\w\n{{]{{0,16}}(?=[^:：=\n]{{0,160}}(?:{_CHANCE}))[^:：=\n]{{1,160}}?)(?:[:：=】]|\s[–—-]\s)"
    r"(?P<value>[^\d\n]{0,16}\d[\d.,٫]{0,9}\s?[%％٪]?(?:\s?/\s?\d{1,3})?)[^\w\n]{0,12}\Z"
)
_NUMBER_ALONE = compile_later(r"\d[\d.,٫]{0,9}\s?[%％٪]?(?:\s?/\s?\d{1,3})?")
_LINE = RolePattern(r"(?m)^[^\w\n]{0,40}(?:NAME)\b[^:：\n]{0,60}[:：]")
_OPENS = RolePattern(r"(?:\W{0,20}Conversation\b)?(?:[\W\d_]{0,40}(?:NAME)\b|\s*[{\[])")
# Escaped letters beyond ASCII; an escaped backslash begins none.
_ESCAPED = compile_later(r"\\\\|(?P<letters>(?:\\u(?!00[0-7])[0-9a-fA-F]{4})+)")
_HEADING = compile_later(
    r"(?im)^([^\w\n]{0,16})(?:das\s)?(?:gespräch|unterhaltung|dialog|dialogue|conversación|diálogo"
    r"|conversazione|dialogo|conversa|gesprek|(?:cuộc\s)?(?:hội|đối)\sthoại|cuộc\strò\schuyện"
    r"|разговор|диалог|对话|對話|会話|対話|대화|المحادثة|الحوار|बातचीत|वार्तालाप|संवाद|samtale?t?|keskustelu|rozhovor|συζήτηση|percakapan|beszélgetés"
    r"|conversați[ea])([^\w\n]{0,8})$"
)
_NOT = compile_later(
    r"(?i)(?<![^\W_])(?:nicht|kein\w{0,2}|un\w{0,20}verst\w+|pas|no|non|não|niet|geen|nie|не|không|değil|inte|ikke|δεν|tidak|nem"
    r"|לא)(?![^\W_])|不|没|未|ない|않|못|\bلم\b|\bلا\b|عدم|नहीं"
)
_SIGNS = str.maketrans({"٫": ".", "٪": "%", "％": "%"})
_END_WORDS = (
    r"(?:das\s)?ende\s(?:des\s|der\s)?(?:gesprächs?|unterhaltung|konversation|dialogs?|unterrichts?)"
    r"|gesprächsende|(?:das\s)?gespräch\s(?:ist\s)?(?:zu\sende|beendet|endet)"
    r"|fin\s(?:de\sla\s|du\s|del\s|de\sl['’])?(?:conversation|dialogue|discussion|conversación|diálogo"
    r"|charla)|fine\s(?:della\s|del\s)?(?:conversazione|dialogo)|fim\sd[ao]\s(?:conversa|conversação|diálogo)"
    r"|einde\s(?:van\s)?(?:het\s)?gesprek|конец\s(?:разговора|беседы|диалога)|кінець\sрозмови|koniec\srozmowy"
    r"|konuşma(?:nın)?\ssonu|kết\sthúc\s(?:cuộc\s)?(?:(?:hội|đối)\sthoại|trò\schuyện)|(?:对话|對話|会话|谈话"
    r"|对話)(?:结束|結束|到此结束|完)|结束对话|(?:会話|対話)の?(?:終了|終わり)"
    r"|(?:대화|수업)(?:의)?\s?(?:종료|끝)|نهاية\s(?:المحادثة|الحوار)|انتهت\sالمحادثة"
    r"|(?:बातचीत|वार्तालाप|संवाद)\s?(?:का\sअंत|समाप्त)|סוף\sהשיחה|slutt?\spå\ssamtalen?t?|samtalens?\sslutt?"
    r"|keskustelun\sloppu|keskustelu\späättyy|konec\srozhovoru|τέλος\s(?:της\s)?(?:συζήτησης|συνομιλίας)"
    r"|akhir\s(?:dari\s)?percakapan|(?:a\s)?beszélgetés\svége|sfârșitul\sconversației"
)
_ENDED = compile_later(rf"(?i)[\[(（【<]\s?(?:{_END_WORDS})\s?[.!。！]?\s?[\])）】>]")
_END = "[end of conversation]"
_BRACKETS = "[(（【<"  # that open an end marker
_FEW_COLONS = 60
_FEW_NAMES = 4  # of roles in the lines below the last turn
_HEADING_LENGTH = 60  # characters


class Translation(NamedTuple):
    """A reply in the reader's own words. `ended`: an end marker had other words."""

    text: str
    ended: bool


class _Word(NamedTuple):
    """The role that a word names, the languages of the word, and whether the reader knows the word itself."""

    role: str
    languages: frozenset[str]
    known: bool


class _Table(NamedTuple):
    """The patterns of labels at the beginnings of lines and elsewhere, and the role of each word."""

    at_lines: re.Pattern[str]
    elsewhere: re.Pattern[str]
    words: dict[str, _Word]
    unknown: frozenset[str]  # first letters of the words that the reader does not know itself


def translate_own(text: str, roles: RoleWords) -> str:
    """Return the text with a job's own words replaced by the roles' names.

    The text is unchanged unless it names two roles, at least one of them by a job's own word.
    """
    return (_translate_labels(_normalize_text(text), roles, (_OWN,)) or text) if roles.own else text


def translate_own_labels(text: str, roles: RoleWords) -> str:
    """Return the text with each label in a job's own words as a role's name, even if others speak too."""
    return _rename_labels(text, _find_labels(text, roles), {_OWN})


def translate(text: str, roles: RoleWords) -> Translation | None:
    """Return the text in the reader's words; None if it does not name two roles in another language."""
    text = _normalize_text(text)
    # Most texts have ASCII letters only. Listing their words takes a tenth of the time of a search for labels.
    if not holds_foreign_letters(text) and _build_table(roles).unknown.isdisjoint(find_letters(text)):
        return None
    labelled = _translate_labels(text, roles, tuple(roles.languages))
    if labelled is None:
        return None
    if "【" in labelled:
        labelled = _BRACKETED.of(roles).sub(r"\1: ", labelled)
    # The expression for end markers is slow, so it begins at the first bracket.
    first = min([at for bracket in _BRACKETS if (at := labelled.find(bracket)) >= 0], default=len(labelled))
    below, ends = _ENDED.subn(_END, labelled[first:])
    text = _HEADING.sub(r"\1Conversation\2", labelled[:first] + below)
    return Translation(translate_probability(text, roles) or text, ends > 0)


def translate_conversation(turn: str, roles: RoleWords) -> str:
    """Return a turn; in the reader's words if it is a whole conversation in another language."""
    translation = translate(turn, roles)
    return turn if translation is None or not _OPENS.of(roles).match(translation.text) else translation.text


def translate_probability(text: str, roles: RoleWords) -> str | None:
    """Return the text with its last line that gives a probability in the reader's words; None if there is no
    such line."""
    for start in dict.fromkeys((_find_last_label(text, roles), 0)):
        part = text[start:]
        foreign = not part.isascii()
        lower = part.lower() if foreign else fold(part)
        stems = [stem for stem in _ASCII_STEMS if stem in lower]
        if foreign:
            stems += [stem for stem, rare in _RARE.items() if rare in lower and stem in lower]
        if stems or "probab" in lower:
            found = _translate_lines(part.split("\n"), lower.split("\n"), stems, roles)
            return None if found is None else text[:start] + found
    return None


def _find_last_label(text: str, roles: RoleWords) -> int:
    """Return the place of the last line that a role's name labels: the probability mostly stands below it."""
    at = len(text)
    for _ in range(_FEW_NAMES):
        at = max(text.rfind(name, 0, at) for name in roles.names)
        start = text.rfind("\n", 0, max(at, 0)) + 1
        if at < 0 or _LINE.of(roles).match(text, start):
            return start
    return 0


def _translate_lines(lines: list[str], lowered: list[str], stems: list[str], roles: RoleWords) -> str | None:
    """Return the lines with the last one that gives a probability in the reader's words; None without one.

    `lowered`: the lines in lower case. `stems`: parts of words for it that are in them.
    """
    foot = None
    for place in reversed(range(len(lines))) if stems else ():
        if any(map(lowered[place].__contains__, stems)) and (foot := _FOOT.match(lines[place])) is not None:
            break
    if foot is None:
        return _translate_heading(lines, lowered, [*({*stems} - _EVERYDAY), "probab"])
    if _LINE.of(roles).search("\n".join(lines[place + 1 :])):
        return None
    given = unicodedata.normalize("NFKC", foot["value"]).translate(_SIGNS)
    value = "".join([str(unicodedata.digit(c)) if c.isdigit() else c for c in given])
    # Portuguese says `no` for "in the".
    about = (
        re.sub(r"\bno\b", "", foot["label"]) if "probabilidade" in foot["label"].lower() else foot["label"]
    )
    label = "Probability of not understanding" if _NOT.search(about) else "Probability"
    lines[place] = f"{label}: {value.strip()}"
    return "\n".join(lines)


def _translate_heading(lines: list[str], lowered: list[str], stems: list[str]) -> str | None:
    """Return the lines with their last heading of a probability in the reader's words; None without one."""
    for place in reversed(range(len(lines) - 1)):
        if not any(map(lowered[place].__contains__, stems)):
            continue
        at = next((at for at in range(place + 1, len(lines)) if lines[at].strip()), place)
        below = lines[at].strip('*_ >`"')
        if len(lines[place]) <= _HEADING_LENGTH and below[:1].isdigit() and not _NOT.search(lines[place]):
            if _NUMBER_ALONE.fullmatch(below):  # perhaps in a quotation, as the heading
                return "\n".join([*lines[:place], f"Probability: {below}", *lines[at + 1 :]])
            return "\n".join([*lines[:place], "Probability:", *lines[place + 1 :]])
        return None
    return None


def translate_marker(turn: str) -> str:
    """Return one turn; an end marker in another language at its end becomes the reader's own."""
    found = _ENDED.search(turn, max(0, len(turn) - 60))
    return turn if found is None or turn[found.end() :].strip() else turn[: found.start()] + _END


def ends_conversation(text: str) -> bool:
    """Return whether a text holds an end marker in another language."""
    return _ENDED.search(text) is not None


def _normalize_text(text: str) -> str:
    """Return the text with one kind of line end, no marks of direction around labels, and no escaped letters
    beyond ASCII."""
    marks = list_marks(text)
    if "\\" in marks and "{" in marks and "\\u" in text:
        text = _ESCAPED.sub(_unescape, text)
    if "\r" in text and "\n" not in text:
        text = text.replace("\r", "\n")
    return text if marks.isascii() or _MARKS.isdisjoint(marks) else _DIRECTION.sub("", text)


def _unescape(match: re.Match[str]) -> str:
    escapes = match["letters"]
    return match[0] if escapes is None else str(json.loads(f'"{escapes}"'))


def _translate_labels(text: str, roles: RoleWords, languages: tuple[str, ...]) -> str | None:
    """Return the text with the labels of the language that has most of them as the roles' names; None where
    none of the languages names a role, or fewer than two roles are named."""
    found = _find_labels(text, roles)
    words = [word for _, _, word in found]
    if all(not word.languages or (word.known and _OWN not in word.languages) for word in words):
        return None  # the reader knows all labels
    known = {word.role for word in words if word.known}
    best, most = None, 0
    present = {language for word in words for language in word.languages}
    for language in languages:
        if language in present:
            named = [word for word in words if language in word.languages or _OWN in word.languages]
            several = len(known | {word.role for word in named}) > 1
            if several and len(named) > most:
                best, most = language, len(named)
    return None if best is None else _rename_labels(text, found, {best, _OWN})


def _find_labels(text: str, roles: RoleWords) -> list[tuple[int, int, _Word]]:
    """Return (start, end, word) of the labels at the beginnings of lines, and in lists and objects."""
    table = _build_table(roles)
    quoted = _may_be_quoted(text)
    found = {}
    for pattern in (table.at_lines, table.elsewhere)[: 1 + quoted]:
        for match in islice(pattern.finditer("\n" + text), _MOST):
            before, word, alone = match.group("before", "word", "alone")
            # A word alone on its line is a label if it has the decoration of a heading or a tag.
            if alone is None or any(mark in before for mark in "*#[<_【"):
                start, end = match.span("word")
                article = match.start("article")
                found[end] = (
                    start - 1 if article < 0 else article - 1,
                    end - 1,
                    table.words[_make_key(word)],
                )
    return sorted(found.values(), key=lambda label: label[0])


def _may_be_quoted(text: str) -> bool:
    """Return whether a text may hold labels in lists and objects: a quotation mark next to a colon."""
    marks = list_marks(text)
    if '"' not in marks and "“" not in marks:
        return False
    if marks.count(":") + marks.count("：") > _FEW_COLONS:
        return True
    for colon in ":：":
        at = text.find(colon) if colon in marks else -1
        while at >= 0:
            if (
                text[at + 1 : at + 5].lstrip()[:1] in ('"', "“")
                or text[max(0, at - 10) : at].rstrip()[-1:] == '"'
            ):
                return True
            at = text.find(colon, at + 1)
    return False


def _rename_labels(text: str, found: Iterable[tuple[int, int, _Word]], languages: Collection[str]) -> str:
    """Return the text with each label in one of the languages, and its article, as a role's name."""
    pieces: list[str] = []
    at = 0
    for start, end, word in found:
        if start >= at and not word.languages.isdisjoint(languages):
            pieces += (text[at:start], word.role)
            at = end
    return "".join((*pieces, text[at:]))


@cache
def _build_table(roles: RoleWords) -> _Table:
    """Return the patterns of labels and the role of each word.

    A job's words come before a language's words, and these before the reader's own.
    """
    known = {**{word: role for word, role in roles.aliases.items() if len(word) > 2}, **roles.by_name}
    foreign: list[tuple[str, str, Iterable[str]]] = [(_OWN, role, words) for role, words in roles.own]
    for language, by_role in roles.languages.items():
        foreign += [(language, role, by_role[i]) for i, role in enumerate(roles.names)]
    named: dict[str, str] = {}
    languages: dict[str, set[str]] = {}
    for language, role, words in foreign:
        for key in map(_make_key, words):
            if named.setdefault(key, role) == role:
                languages.setdefault(key, set()).add(language)
    named = {**known, **named}
    spelt = {form for word in named for form in (word, unicodedata.normalize("NFD", word))}
    choices = _compile_alternatives(spelt)
    at_lines, elsewhere = (
        re.compile(_LABEL % (before, _ARTICLES, choices), re.VERBOSE | re.MULTILINE | re.IGNORECASE)
        for before in (_AT_LINES, _ELSEWHERE)
    )
    words = {
        key: _Word(role, frozenset(languages.get(key, ())), known.get(key) == role)
        for key, role in named.items()
    }
    unknown = {
        split_letters(form)[0]
        for form in spelt
        if (word := words[_make_key(form)]).languages and (not word.known or _OWN in word.languages)
    }
    return _Table(at_lines, elsewhere, words, frozenset(unknown))


def _compile_alternatives(words: Iterable[str]) -> str:
    """Return an expression for any of some words, longer ones first, that tries each beginning once."""
    by_first: dict[str, list[str]] = {}
    for word in words:
        by_first.setdefault(word[:1], []).append(word[1:])
    ends = by_first.pop("", None) is not None
    choices = [re.escape(first) + _compile_alternatives(rest) for first, rest in sorted(by_first.items())]
    if not choices:
        return ""
    return f"(?:{'|'.join(choices)}){'?' if ends else ''}"


@lru_cache(maxsize=1024)  # most labels repeat
def _make_key(word: str) -> str:
    return unicodedata.normalize("NFC", word).lower()
