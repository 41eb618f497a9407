"""The roles of a conversation as data: what turns call them, and which words may name them.

Every reader takes a `RoleWords`; `TEACHER_STUDENT` is the default. A pattern that names roles is a
`RolePattern`, compiled once for each `RoleWords`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache

from edgen.core.text import compile_later
from edgen.reading.role_words import LANGUAGES

_ARTICLES = "the der die das le la les el los il lo un una o a os as de het l ein eine een une um uma bir"
ARTICLES = frozenset(_ARTICLES.split())
TITLES = (
    "mr",
    "mrs",
    "ms",
    "mx",
    "miss",
    "mme",
    "dr",
    "prof",
)  # in front of a name, perhaps with a full stop
# A job's own words for each role, in the order of the roles.
OwnWords = tuple[tuple[str, tuple[str, ...]], ...]


class _Names(dict[str, str]):
    """Roles by their names in lower case.

    A pattern that ignores case also matches ſ for s, and İ and ı for i, so these find the role as well.
    """

    def __missing__(self, name: str) -> str:
        plain = name.upper().lower().replace("\u0307", "")
        if plain == name:
            raise KeyError(name)
        return self[plain]


@dataclass(frozen=True, eq=False)
class RoleWords:
    """The roles of a conversation, two or more. Compared by identity: make one and keep it."""

    names: tuple[str, ...]  # roles as turns carry them
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Roles by other words for them, in lower case; used only if a reply does not speak of the roles by
    name."""
    languages: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """By language, words for each role in the order of `names`."""
    titled: str | None = None  # role of a person who is called Mr. or Ms.; None if it is unknown
    own: OwnWords = ()  # a job's own words, which come before all others
    patterns: dict[object, re.Pattern[str]] = field(default_factory=dict)
    """Compiled patterns by RolePattern, or by it and a role. None depends on a job's own words."""

    @cached_property
    def by_name(self) -> dict[str, str]:
        """The roles by their names in lower case."""
        return _Names({name.lower(): name for name in self.names})

    @cache  # noqa: B019 - as many as there are jobs with words of their own
    def with_own(self, own: OwnWords) -> RoleWords:
        """Return the same roles with a job's own words for them."""
        return replace(self, own=own)

    @lru_cache(maxsize=1024)  # noqa: B019 - names repeat within a reply and from reply to reply
    def find_role_in(self, name: str) -> str | None:
        """Return the one role that a name speaks of: `teacher`, `Ms. R (Teacher)`, `Student 1`."""
        found = {match[1].lower() for match in _NAMED.of(self).finditer(name[:200])}
        return self.by_name[found.pop()] if len(found) == 1 else None

    def alias(self, name: str) -> str | None:
        """Return the role that a name stands for which is not one of the roles' own."""
        return self.aliases.get(name[:40].strip().lower())

    def look_up_role(self, name: str) -> str | None:
        """Return the role that a name stands for in any language, with or without an article; or None.

        Examples are `tutor`, `the student`, `Der Lehrer` and `l’élève`. A role's own name counts only with an
        article.
        """
        word = name.lower().replace("’", "'")
        article, _, noun = word.partition("'" if word.startswith("l'") else " ")
        found = self._others.get(word)
        return (
            found
            if found is not None or article not in ARTICLES
            else self._others.get(noun) or self.by_name.get(noun)
        )

    @cached_property
    def _others(self) -> dict[str, str]:
        """Words for the roles besides their names, of two letters or more, in any language."""
        foreign = {word: self.names[i] for i, words in enumerate(self.foreign()) for word in words}
        return {**foreign, **{word: role for word, role in self.aliases.items() if len(word) > 1}}

    def is_bare(self, name: str) -> bool:
        """Return whether a name is a role's own, marks of the layout aside."""
        return _BARE.of(self).match(name[:200]) is not None

    def foreign(self) -> list[list[str]]:
        """Return every language's words for each role that no role is named or called here, longer ones
        first."""
        each = []
        for i, _ in enumerate(self.names):
            words = {word for by_role in self.languages.values() for word in by_role[i]}
            words -= {*self.by_name, *self.aliases}
            each.append(sorted(words, key=lambda word: (-len(word), word)))
        return each

    def find_other_role(self, role: str) -> str:
        """Return the first role that is another one."""
        return next(name for name in self.names if name != role)


class RolePattern:
    """A regular expression that names roles.

    These words in its source stand for alternatives:

    ROLE: the roles' names in lower case; NAME: as they are; UPPER: in capitals.
    ALIAS: the aliases; CALLED: those of more than a letter.
    FOREIGN: a group `foreign_0`, `foreign_1` … of other languages' words for each role.
    OWN: the role asked for.
    """

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    def of(self, roles: RoleWords, own: str = "") -> re.Pattern[str]:
        """Return the pattern for these roles."""
        key = (self, own) if own else self
        pattern = roles.patterns.get(key)
        if pattern is None:
            pattern = roles.patterns[key] = self._compile_pattern(roles, own)
        return pattern

    def _compile_pattern(self, roles: RoleWords, own: str) -> re.Pattern[str]:
        choices = {
            "ROLE": _join_alternatives(sorted(roles.by_name, key=len, reverse=True)),
            "NAME": _join_alternatives(sorted(roles.names, key=len, reverse=True)),
            "UPPER": _join_alternatives(name.upper() for name in sorted(roles.names, key=len, reverse=True)),
            "ALIAS": _join_alternatives(roles.aliases),
            "CALLED": _join_alternatives(word for word in roles.aliases if len(word) > 1),
            "FOREIGN": "|".join(
                f"(?P<foreign_{i}>{_join_alternatives(words)})" for i, words in enumerate(roles.foreign())
            ),
            "OWN": re.escape(own.lower()),
        }
        return re.compile(_MARK.sub(lambda mark: choices[mark[0]], self._source), self._flags)


_MARK = compile_later("ROLE|NAME|UPPER|ALIAS|CALLED|FOREIGN|OWN")


def _join_alternatives(words: Iterable[str]) -> str:
    """Return any of some words; nothing at all where there are none."""
    return "|".join(map(re.escape, words)) or "(?!)"


_NAMED = RolePattern(r"(?i)(?<![^\W_])(ROLE)s?(?![^\W\d_])")
_BARE = RolePattern(r"(?i)[\W_]{0,16}+(ROLE)(?:[\W_]*\Z)")

# What chats call the two sides; the model itself is the assistant, whichever side it plays.
CHAT_SELF = frozenset({"assistant", "model", "ai"})
CHAT_OTHER = frozenset({"user", "human"})

TEACHER_STUDENT = RoleWords(
    names=("Teacher", "Student"),
    aliases={
        **dict.fromkeys(("tutor", "instructor", "professor", "educator", "lecturer", "trainer"), "Teacher"),
        **dict.fromkeys(("mentor", "coach", "assistant", "model", "ai", "t"), "Teacher"),
        **dict.fromkeys(("learner", "pupil", "trainee", "mentee", "user", "human", "s"), "Student"),
    },
    languages=LANGUAGES,
    titled="Teacher",
)


def find_words(names: tuple[str, ...]) -> RoleWords:
    """Return the words that the readers know for some roles, if one of them teaches and the other learns.

    For other roles these are the names alone.
    """
    if {*names} == {*TEACHER_STUDENT.names}:
        return TEACHER_STUDENT
    sides = [find_side(name) for name in names]
    if sorted(side or "" for side in sides) != sorted(TEACHER_STUDENT.names):
        return RoleWords(names)
    role_of = {side: name for side, name in zip(sides, names, strict=True) if side is not None}
    words = {**{side.lower(): side for side in TEACHER_STUDENT.names}, **TEACHER_STUDENT.aliases}
    order = [TEACHER_STUDENT.names.index(side) for side in sides if side is not None]
    return RoleWords(
        names,
        aliases={word: role_of[side] for word, side in words.items() if word not in map(str.lower, names)},
        languages={
            language: tuple(by_role[place] for place in order) for language, by_role in LANGUAGES.items()
        },
        titled=role_of["Teacher"],
    )


def teaches(name: str) -> bool:
    """Return whether a role's name means a teacher in any language."""
    return find_side(name) == TEACHER_STUDENT.names[0]


def learns(name: str) -> bool:
    """Return whether a role's name means a student in any language."""
    return find_side(name) == TEACHER_STUDENT.names[1]


@lru_cache(maxsize=256)
def find_side(name: str) -> str | None:
    """Return Teacher or Student if a role's name means one of them in any language, else None."""
    word = name.lower()
    if word in TEACHER_STUDENT.by_name or (
        word in TEACHER_STUDENT.aliases and word not in CHAT_SELF | CHAT_OTHER
    ):
        return TEACHER_STUDENT.by_name.get(word) or TEACHER_STUDENT.aliases[word]
    found = {
        side
        for by_role in LANGUAGES.values()
        for side, words in zip(TEACHER_STUDENT.names, by_role, strict=True)
        if word in words
    }
    return found.pop() if len(found) == 1 else None
