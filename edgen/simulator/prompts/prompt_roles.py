"""Speakers in prompts that were not written for the simulator.

`find_roles` searches the shown layout first, then expected names, then sentences: "between a doctor and a
patient", "Roles: seller, buyer", "Anna explains … to Ben". Roles keep the prompt's names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from edgen.core.text import compile_later
from edgen.reading.role_words import LANGUAGES
from edgen.reading.roles import CHAT_OTHER, CHAT_SELF, TEACHER_STUDENT, RoleWords
from edgen.simulator.prompts.shown_names import NAME, find_shown_names, is_name

# Words whose stem differs between cases.
_CHANGED_STEMS = {"uczeń": "ucz(?:eń|ni)", "учень": "уч(?:ень|н)"}

# Readers' words for roles that prompts also use for others.
_CHAT = frozenset({*CHAT_SELF, *CHAT_OTHER, "t", "s"})

_ARTICLE = (
    r"(?:an?|the|one|two|his|her|their|its|your|some|de[rmsn]|die|das|eine[rmnrs]?|ein|une?|uma?|una|uno"
    r"|l[aeo]s?|els?|il|gli|os?|he[tr]|een)"
)
_BETWEEN = compile_later(
    r"\b(?:between|among|of|by|involving|featuring|with|zwischen|entre|tra|fra|tussen|między|между"
    r"|mellan)\s+([^.;:\n]{3,200})",
    re.IGNORECASE,
)
_LISTED = compile_later(
    r"(?im)^[^\w\n]{0,8}(?:the )?(?:roles|speakers|characters|participants|people|personas|cast|parts"
    r"|voices)[^:\n]{0,40}[:=][ \t]*((?:[^\n]*\S[^\n]*)?(?:\n[ \t]*(?:[-*•]|\d+[.)])[^\n]*)*)"
)
_AND = compile_later(r",?\s+(?:and|with|vs\.?|versus|&|to|und|et|y|e|en|i|и|och)\s+", re.IGNORECASE)
_HEAD_ENDS = compile_later(
    r"\s+(?:in|at|of|from|who|whose|that|which|about|on|for|with|named|called|during|as|is|are|has|will|when"
    r"|where|while|over|before|after|trying|learning|speaking|working|using|über|von|"
    r"sur|sobre|su|à|o|про|о|об|over)\b|[,(–—]",
    re.IGNORECASE,
)
_ITEM = compile_later(
    rf"(?:^|\n|[,;])[ \t]*(?:[-*•]|\d+[.)])?[ \t]*(?:\b(?:and|{_ARTICLE})\s+)*[*_`\"“']{{0,3}}({NAME})",
    re.IGNORECASE,
)
_SAYS = (
    r"(?:asks?|answers?|explains?|helps?|teach(?:es)?|tells?|says?|talks?|speaks?|wants|knows|interviews"
    r"|coaches|trains|advises|meets|comes|needs|learns|does|replies|responds)"
)
_SPEAKING = compile_later(
    rf"\b(?:an?|the|one|each)\s+(?:[\w-]+\s+){{0,2}}?([^\W\d_]{{3,20}})\s+{_SAYS}\b"
    rf"|\b(?:{_SAYS}|to|with|for)\s+(?:an?|the"
    r"|one)\s+(?:[\w-]+\s+){0,2}?([^\W\d_]{3,20})\b(?=[.,;:!?\s])",
    re.IGNORECASE,
)
_SPOKEN = compile_later(rf"(?m)^[^\w\n]{{0,8}}({NAME})[*_\])>]{{0,3}}[ ]?[:：]")
# Words for people that no suffix reveals, and some that a sentence may use without an article.
_PERSON = (
    r"nurse|client|guest|host|child|parent|boss|judge|coach|pupil|chef|pilot|expert|novice|friend|clerk"
    r"|guide|apprentice|tenant|landlord|king|queen|hero|spy|thief|monk|priest|mentee|teen"
)
_TRADE = (
    r"doctor|patient|teacher|student|tutor|learner|trainer|trainee|mentor|manager|employee|customer|agent"
    r"|buyer|seller|athlete|player|tourist|"
    r"driver|passenger|lawyer|librarian|reader|interviewer|candidate|journalist|mother|father|son|daughter"
    r"|sister|brother|"
    r"farmer|waiter|baker|sailor|soldier|scientist|engineer|programmer|developer|reviewer|author|editor"
    r"|moderator|visitor|"
    r"officer|citizen|pharmacist|therapist|counsellor|counselor|plumber|architect|jester|neighbour|neighbor"
)
_PLURALS = {
    "children": "child",
    "women": "woman",
    "men": "man",
    "wives": "wife",
    "spies": "spy",
    "thieves": "thief",
}
_ROLE_NOUN = compile_later(
    r"\b(?:an?|the|one)\s+(?:[\w-]+\s+){0,3}?([a-z]{2,20}(?:er|or|ist|ant|ent|ee|ian|eur|man|woman)"
    rf"|{_PERSON})\b",
    re.IGNORECASE,
)
_PEOPLE = compile_later(
    rf"\b(?:({_PERSON}|{_TRADE})(?:s|es)?|({'|'.join(_PLURALS)}))(?:['’]s?)?\b", re.IGNORECASE
)
_CAPITALS = compile_later(r"\b([A-Z]{3,20})(?: and | with | vs\.? |, )([A-Z]{3,20})\b")
_NO_NOUNS = compile_later(
    "other|another|either|answer|number|letter|order|paper|matter|chapter|computer|center|centre|character"
    "|speaker|writer|never|ever|over|under|after|whether|manner|together|former|latter|content|moment|argument"
    "|document|statement|student's|different|current|recent|present|excellent|sufficient|consistent|independent"
    "|error|factor|important|relevant|instant|constant|significant|assignment|environment|element|comment"
    "|agreement|gender|corner|winter|summer|dinner|power|water|offer|layer|marker|color|colour|minor|major"
    "|prior|humor|humour|author|reader|narrator|human|german|question|transition",
    re.IGNORECASE,
)
_PROPER = compile_later(
    r"(?<![.!?:\n] )(?<![^\s(“\"'])\b([A-Z][a-zäöüéèáíóúñç'’-]{1,20})\b(?! (?:Theory|Law|War|Revolution))"
)
_NO_PROPER = compile_later(
    "Write|Create|Generate|Simulate|Invent|Make|Give|Use|Answer|Output|Return|Topic|Format|End|Start|Each|The"
    "|This|That|They|Both|Please|Markdown|English|German|French|Spanish|JSON|XML|YAML|I|Then|Begin|Keep|Add|Do"
    "|Let|In|At|On|When|If|It|You|Your|Here|Once|No|Not"
)


def find_roles(text: str, expected: Sequence[tuple[str, ...]] = ()) -> tuple[str, ...]:
    """Return the names of the speakers, as the prompt writes them; empty if it names fewer than two.

    `expected`: the possible roles, if known, each with synonyms. Other roles are then found only in a shown
    layout.
    """
    shown = tuple(find_shown_names(text))
    if expected:
        words = _list_words(tuple(expected))
        if (
            len(
                known := [name for name in shown if any(name.lower() in map(str.lower, one) for one in words)]
            )
            > 1
        ):
            return tuple(known)
        if all(found := [_find_expected(text, one) for one in words]):
            return tuple(name for name in found if name)
    if len(shown) > 1 or expected:
        return shown if len(shown) > 1 else ()
    for find in (
        _find_between,
        _find_listed,
        _find_known,
        _find_line_names,
        _list_nouns,
        _list_capitals,
        _list_people,
        _list_proper_names,
        _list_speaking,
    ):
        if len(names := tuple(dict.fromkeys(find(text)))) > 1:
            return names[:6]
    return ()


def find_missing_roles(text: str, expected: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the expected roles that a prompt does not name."""
    lists = _list_words(tuple(expected))
    return tuple(
        role for (role, *_), words in zip(expected, lists, strict=True) if not _find_expected(text, words)
    )


def may_guess(text: str, expected: Sequence[tuple[str, ...]]) -> bool:
    """Return whether a model would use a teacher and a student for a prompt that names no roles."""
    if not expected:
        return True
    lists = _list_words(tuple(expected))
    didactic = all(any(name in words for words in lists) for name in ("teacher", "student"))
    return didactic and len(find_missing_roles(text, expected)) == len(expected)


def explain_unknown_speakers(text: str, expected: Sequence[tuple[str, ...]]) -> str:
    """Return a sentence that explains why the speakers are unknown."""
    missing = find_missing_roles(text, expected)
    if not missing:
        return "The prompt does not name two roles who talk."
    return f"The prompt does not name {' or '.join(missing)}."


def find_unknown_speakers(text: str, expected: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the speakers in a prompt that are not among the expected roles. Empty if the prompt shows how
    each role speaks, or if its names may not be speakers.

    `expected`: the roles, each with its synonyms. Their names in other languages count, too.
    """
    own = {word.lower() for words in expected for word in words}
    foreign = (
        {word.lower() for words in _list_words(tuple(expected)) for word in words}
        - _list_english_words()
        - _CHAT
    )
    shown = [*find_shown_names(text)]
    spoken = {name.lower() for name in shown}
    if all(any(word.lower() in spoken for word in words) for words in expected):
        return ()
    absent = [words for words in expected if not any(_is_in(text, word) for word in words)]
    if not shown and not absent:
        return ()
    people = {
        name.lower(): name for find in (_find_between, _find_listed, _find_known) for name in find(text)
    }
    told = {*people, *map(str.lower, _list_speaking(text))}
    likely = [name for name in shown if absent or name.lower() in told | _list_didactic_words()]
    names = likely if shown else [*people.values()]
    return tuple(name for name in names if name.lower() not in own | foreign)


def _is_in(text: str, word: str) -> bool:
    return re.search(_make_word_pattern(word, inflected=False), text, re.IGNORECASE) is not None


# ---- expected names


@lru_cache(maxsize=256)
def _list_words(expected: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Return the words for each role, the likeliest first: its name, then the aliases and other languages'
    words of edgen's readers."""
    from edgen.protocols.base import find_role_words

    roles: RoleWords = find_role_words(tuple(name for name, *_ in expected))
    lists = []
    for place, (name, *others) in enumerate(expected):
        aliases = [word for word, role in roles.aliases.items() if role == name and len(word) > 2]
        foreign = [word for by_role in roles.languages.values() for word in by_role[place]]
        own = [word for word in aliases if word not in _CHAT]
        lists.append(tuple(dict.fromkeys((name, *others, *own, *foreign, *aliases))))
    return tuple(lists)


def _find_expected(text: str, words: tuple[str, ...]) -> str | None:
    """Return the first of the words in a text: a role's name in its own spelling, other words capitalised."""
    for inflected in (False, True):
        for place, word in enumerate(words):
            if re.search(_make_word_pattern(word, inflected=inflected and place > 0), text, re.IGNORECASE):
                return word if not place else word[:1].upper() + word[1:]
    return None


@lru_cache(maxsize=1_024)
def _make_word_pattern(word: str, *, inflected: bool) -> str:
    """Return a pattern for a word: `support_agent` also as two words; other languages' words with their
    endings."""
    written = re.escape(word).replace("_", "[ _-]")
    if word[-1].lower() == word[-1].upper():  # a writing system without capitals, and often without blanks
        return written
    if not inflected or len(word) < 5:
        plurals = "".join(f"|{many}" for many, one in _PLURALS.items() if one == word.lower())
        return rf"(?<![^\W_])(?:{written}{plurals})(?:['’]?s)?(?![^\W_])"
    if (changed := _CHANGED_STEMS.get(word.lower())) is not None:
        written = changed
    stem = written[:-1] if word[-1] in "ьйaа" and not changed else written
    return rf"(?<![^\W_]){stem}[^\W\d_]{{0,{3 if changed else 2}}}(?:['’]?s)?(?![^\W_])"


# ---- names in sentences


def _find_between(text: str) -> Iterator[str]:
    for match in _BETWEEN.finditer(text):
        sides = _AND.split(match[1], maxsplit=1)
        names = [name for side in sides if (name := _find_head(side))]
        if len(names) == 2 and names[0].lower() != names[1].lower():
            yield from names
            return


def _find_head(phrase: str) -> str | None:
    """Return the name in a phrase such as `a patient teacher of grade 4`: Teacher. None if it is not a
    person."""
    phrase = phrase.strip(" *_`\"'“”")
    article = re.match(rf"{_ARTICLE}\s+", phrase, re.IGNORECASE)
    whole = phrase[article.end() :] if article else phrase
    if (ends := _HEAD_ENDS.search(whole)) is not None and ends.start() > 0:
        whole = whole[: ends.start()]
    words: list[str] = re.findall(NAME, whole)
    if not words or len(words) > 6:
        return None
    known: str | None = next((word for word in words if word.lower() in _list_didactic_words()), None)
    name = known or (words[-1] if article or not words[0][:1].isupper() else words[0])
    if not is_name(name) or (not article and not known and not name[:1].isupper()):
        return None
    return name[:1].upper() + name[1:]


def _find_listed(text: str) -> Iterator[str]:
    for match in _LISTED.finditer(text):
        listed = re.sub(r"\([^()\n]*\)", "", match[1])
        lines = [line for line in listed.split("\n") if line.strip()]
        parts = lines if len(lines) > 1 else re.split(r"[,;/]|\band\b|&", listed)
        for part in parts:
            if (item := _ITEM.search(part)) is not None and is_name(item[1]):
                yield item[1][:1].upper() + item[1][1:]


@lru_cache(maxsize=1)
def _list_english_words() -> frozenset[str]:
    return frozenset({*TEACHER_STUDENT.by_name, *TEACHER_STUDENT.aliases} - _CHAT)


@lru_cache(maxsize=1)
def _list_didactic_words() -> frozenset[str]:
    """Return every language's words for a teacher and a student."""
    return _list_english_words().union(
        word for by_role in LANGUAGES.values() for words in by_role for word in words
    )


def _find_known(text: str) -> Iterator[str]:
    """Yield a teacher and a student by the readers' words, in English or in one other language."""
    lower = text.lower()
    aliases = {**{name.lower(): name for name in TEACHER_STUDENT.names}, **TEACHER_STUDENT.aliases}
    own = tuple(
        tuple(word for word in aliases if aliases[word] == role and word in _list_english_words())
        for role in TEACHER_STUDENT.names
    )
    for by_role in (own, *LANGUAGES.values()):
        places = [_find_first_word(lower, words) for words in by_role]
        if all(places):
            yield from (word for _, word in sorted(place for place in places if place))
            return


def _find_first_word(text: str, words: Sequence[str]) -> tuple[int, str] | None:
    """Return the position of the first of some words, and the word with a capital."""
    found = [
        (match.start(), -len(word), word)
        for word in words
        if (match := re.search(_make_word_pattern(word, inflected=not word.isascii()), text))
    ]
    if not found:
        return None
    start, _, word = min(found)
    return start, word[:1].upper() + word[1:]


def _find_line_names(text: str) -> Iterator[str]:
    """Yield repeated names at the beginning of lines."""
    for name in dict.fromkeys(match[1] for match in _SPOKEN.finditer(text)):
        if is_name(name) and len(re.findall(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)) > 1:
            yield name


def _list_speaking(text: str) -> Iterator[str]:
    """Yield the people who act in the conversation, or for whom something is done."""
    for match in _SPEAKING.finditer(text):
        name = (match[1] or match[2]).lower()
        if is_name(name) and not _NO_NOUNS.fullmatch(name):
            yield name.capitalize()


def _list_nouns(text: str) -> Iterator[str]:
    for match in _ROLE_NOUN.finditer(text):
        if not _NO_NOUNS.fullmatch(match[1]):
            yield match[1].lower().capitalize()


def _list_people(text: str) -> Iterator[str]:
    """Yield people by common words for them, also without an article."""
    for match in _PEOPLE.finditer(text):
        yield (match[1] or _PLURALS[match[2].lower()]).lower().capitalize()


def _list_capitals(text: str) -> Iterator[str]:
    """Yield two names in capitals next to each other, as in a play."""
    for match in _CAPITALS.finditer(text):
        if all(map(is_name, match.groups())):
            yield from (name.capitalize() for name in match.groups())


def _list_proper_names(text: str) -> Iterator[str]:
    """Yield capitalised names that occur inside sentences more than once."""
    found = [match[1] for match in _PROPER.finditer(text) if not _NO_PROPER.fullmatch(match[1])]
    yield from (name for name in dict.fromkeys(found) if len(re.findall(rf"\b{name}\b", text)) > 1)
