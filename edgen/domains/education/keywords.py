"""The keyword baseline of adherence: words for ways of learning and reactions.

`judge_by_keywords` answers five questions about one conversation, each yes, no, or None if undecidable:

- `student_asks`: a turn of the student about its preferred way also has a wish (`could we`,
  `I'd rather`). Undecidable if the way is of no known family.
- `student_reaction`, `teacher_reaction`: a turn of that side has words of its stated reaction. Decided only
  if the two prefer different ways, since otherwise there is nothing to react to. A student "tells it" by
  asking for its way; a teacher "adapts" by leaving its own.
- `teacher_keeps`, `teacher_leaves`: the teacher left its way if, in the last third of its turns (rounded up),
  more turns show the student's way than its own; otherwise it kept to its way. If no turn there shows either
  way, the last earlier turn that does decides. If both prefer the same way, the teacher cannot leave it, and
  keeps to it if the last third shows it.

A way shows in a turn by its words, or by its form. A lecture states something (a sentence of at least six
words about the subject, without `I`, `you`, `we`). A discussion and an assessment ask (a question beyond
courtesy). Hands-on work is acted out (`*jumps*`). A form that both ways share does not count. As a baseline
it ignores irony, negation and context. The questions follow the statements in Education Dialogue's scenarios
(arXiv 2405.14655); the words are English and edgen's own.

Accepts any text; linear in its length.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import msgspec

from edgen.domains.education.keyword_lists import NAMED, SOUGHT, STUDENT, TAUGHT, TEACHER, WISHES
from edgen.plugin import Sample, Scenario, Turn, Words
from edgen.plugin.families import Role
from edgen.plugin.statistics import Estimate, ShareCount
from edgen.reading import phrase_kinds

MEASURES = ("student_asks", "student_reaction", "teacher_reaction", "teacher_keeps", "teacher_leaves")

_SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*")
# Words to the other side or about the lesson, not about the subject matter.
_PERSONAL = re.compile(
    r"\b(?:i|me|my|mine|myself|you|your|yours|yourself|we|us|our|let's|learn\w*|lessons?|class|teach\w*"
    r"|today)\b"
)
_COURTESY = re.compile(
    r"\b(?:any (?:other |more |further )?(?:questions|wishes)|make sense|does (?:that|this) (?:help|clarify"
    r"|sound)|clarify things"
    r"|(?:is that|that's) (?:clear|better|okay|ok|right)|are you (?:following|having|ready|ok|okay|listening"
    r"|with me)"
    r"|do you (?:understand|follow|have|feel|want|need|see what)|how are you|would you like|shall we|okay|ok"
    r"|all right)\b"
)
_ACTED = re.compile(r"\*\s?\w[^*\n]*\*")
_LEAST_TOLD = 6  # minimum words of a sentence that states something


class Verdicts(NamedTuple):
    """The answers on one conversation; None if undecidable."""

    student_asks: bool | None
    student_reaction: bool | None
    teacher_reaction: bool | None
    teacher_keeps: bool | None
    teacher_leaves: bool | None


class KeywordIndex:
    """An index of words to find in `spoken` text (see `reading.detect`)."""

    def __init__(self, *tables: str) -> None:
        self._tables = tables

    @cached_property
    def _wanted(self) -> re.Pattern[str]:
        keywords = sorted({keyword for table in self._tables for keyword in table.split("|") if keyword})
        wanted = (
            re.escape(keyword[:-1]) if keyword.endswith("*") else re.escape(f"{keyword} ")
            for keyword in keywords
        )
        # Grouped by first letter: most positions fail at once, so it is six times as fast as an alternation.
        grouped = itertools.groupby(wanted, key=lambda keyword: keyword[0])
        branches = (f"{letter}(?:{'|'.join(keyword[1:] for keyword in same)})" for letter, same in grouped)
        return re.compile(f" (?:{'|'.join(branches)})")

    def has_match(self, spoken: str) -> bool:
        """Return whether any of the words occurs."""
        return self._wanted.search(spoken) is not None


def has_statement(text: str) -> bool:
    """Return whether a text states something about the subject: a sentence of at least six words, not a
    question, that mentions neither the speakers nor the lesson."""
    for found in _SENTENCE.finditer(text):
        sentence = found[0]
        if sentence.endswith("?") or len(sentence.split(maxsplit=_LEAST_TOLD)) < _LEAST_TOLD:
            continue
        if _PERSONAL.search(sentence.lower().replace("’", "'")) is None:
            return True
    return False


def has_question(text: str) -> bool:
    """Return whether a text has a question beyond courtesy."""
    if "?" not in text:
        return False
    return any(
        found[0].endswith("?") and _COURTESY.search(found[0].lower()) is None
        for found in _SENTENCE.finditer(text)
    )


def has_action(text: str) -> bool:
    """Return whether a text has an action, such as `*jumps*`."""
    return _ACTED.search(text) is not None


class SignFamily(NamedTuple):
    """The signs of a family in a student's and a teacher's turns: words, and a `form`."""

    sought: KeywordIndex
    taught: KeywordIndex
    form: Callable[[str], bool] | None


_WISH = KeywordIndex(WISHES)
_FORMS = {
    "lecture": has_statement,
    "discussion": has_question,
    "assessment": has_question,
    "hands_on": has_action,
}
_WAYS = {
    name: SignFamily(
        KeywordIndex(named, SOUGHT.get(name, "")), KeywordIndex(named, TAUGHT.get(name, "")), _FORMS.get(name)
    )
    for name, named in NAMED.items()
}
_REACTIONS: dict[Role, dict[str, KeywordIndex]] = {
    role: {kind: KeywordIndex(keywords) for kind, keywords in table.items()}
    for role, table in (("Student", STUDENT), ("Teacher", TEACHER))
}


class StatementKinds(NamedTuple):
    """The kinds of a scenario's statements. `match` is None if a statement has no keyword."""

    learning: tuple[str, ...]
    teaching: tuple[str, ...]
    match: bool | None
    student: str
    teacher: str


_four_texts = operator.itemgetter(
    "student_preference", "teacher_preference", "student_reaction", "teacher_reaction"
)


def read_statements(scenario: Scenario) -> StatementKinds:
    """Return the preferences and reactions that a scenario states, as keywords read them."""
    return _read_stated(*[value[: phrase_kinds.MOST] for value in _four_texts(scenario.values)])


@lru_cache(maxsize=4096)
def _read_stated(learning: str, teaching: str, student: str, teacher: str) -> StatementKinds:
    match = phrase_kinds.do_preferences_match(learning, teaching)
    return StatementKinds(
        phrase_kinds.find_families(learning),
        phrase_kinds.find_families(teaching),
        match,
        phrase_kinds.find_student_reaction(student),
        phrase_kinds.find_teacher_reaction(teacher),
    )


def judge_by_keywords(scenario: Scenario, turns: Sequence[Turn], said: Sequence[str]) -> Verdicts:
    """Return the keywords' answers on one conversation. `said`: the words of its turns, from
    `reading.detect.split_words_of_turns`."""
    facts = read_statements(scenario)
    student = [text for turn, text in zip(turns, said, strict=True) if turn.role == "Student"]
    teacher = [(turn.text, text) for turn, text in zip(turns, said, strict=True) if turn.role == "Teacher"]
    asked = _asks(student, facts.learning)
    keeps, leaves = _stays(teacher, facts)
    shows = reacts = None
    if facts.match is False:
        shows = _shows("Student", facts.student, student)
        reacts = _shows("Teacher", facts.teacher, [text for _, text in teacher])
        if facts.student == "tells" and shows is not None:
            shows = shows or bool(asked)
        if facts.teacher == "adapts" and reacts is not None:
            reacts = reacts or bool(leaves)
    return Verdicts(asked, shows, reacts, keeps, leaves)


def _asks(student: Sequence[str], learning: Sequence[str]) -> bool | None:
    """Return whether a turn mentions one of the ways and has a wish."""
    if not student or not learning:
        return None
    whole = "|".join(student)
    sought = [way for name in learning if (way := _WAYS[name].sought).has_match(whole)]
    return any(way.has_match(text) and _WISH.has_match(text) for way in sought for text in student)


def _shows(role: Role, kind: str, said: Sequence[str]) -> bool | None:
    keywords = _REACTIONS[role].get(kind)
    return None if keywords is None or not said else keywords.has_match("|".join(said))


def _stays(teacher: Sequence[tuple[str, str]], facts: StatementKinds) -> tuple[bool | None, bool | None]:
    """Return whether the teacher keeps to its way, and whether it changes to the student's."""
    if not teacher or not facts.teaching:
        return None, None
    start = len(teacher) - math.ceil(len(teacher) / 3)
    if facts.match is not False:
        return any(_shows_way(turn, facts.teaching, ()) for turn in teacher[start:]), None
    own, theirs = _count_turns(teacher[start:], facts)
    for turn in reversed(teacher[:start]):
        if own or theirs:
            break
        own, theirs = _count_turns([turn], facts)
    return own > 0 and own >= theirs, theirs > own


def _count_turns(teacher: Iterable[tuple[str, str]], facts: StatementKinds) -> tuple[int, int]:
    """Return how many turns show the teacher's way, and how many the student's."""
    own = theirs = 0
    for turn in teacher:
        own += _shows_way(turn, facts.teaching, facts.learning)
        theirs += _shows_way(turn, facts.learning, facts.teaching)
    return own, theirs


def _shows_way(turn: tuple[str, str], names: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether a teacher's turn shows one of the ways. Forms shared with `other` do not count."""
    text, words = turn
    taught, forms = _compile_signs(names, other)
    return any(keywords.has_match(words) for keywords in taught) or any(form(text) for form in forms)


@lru_cache(maxsize=4096)
def _compile_signs(
    names: Sequence[str], other: Sequence[str]
) -> tuple[tuple[KeywordIndex, ...], tuple[Callable[[str], bool], ...]]:
    """Return the words and the forms of these ways, without forms that the other ways share."""
    taken = {_WAYS[name].form for name in other}
    forms = dict.fromkeys(form for name in names if (form := _WAYS[name].form) and form not in taken)
    return tuple(_WAYS[name].taught for name in names), tuple(forms)


KEYWORDS = "keywords"


_NOTE = (
    "Keywords are a baseline: they know no irony, no negation and no context, and only English. On simulated "
    "conversations they flatter, since the simulator sorts preferences into families by the same table."
)


class AdherenceShares(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of conversations that keep to their scenarios, among the decidable ones."""

    by: str  # "keywords" or a judge's name
    n: int  # number of conversations
    student_asks: Estimate | None  # the student asks for the way it prefers
    student_reaction: Estimate | None  # the student's stated reaction shows
    teacher_reaction: Estimate | None  # the teacher's stated reaction shows
    teacher_keeps: Estimate | None  # the teacher's preferred way shows, to the end
    teacher_leaves: Estimate | None  # the teacher changes to the student's way
    untold: dict[str, int] = {}  # conversations that cannot be decided, by question
    agreement: dict[str, float | None] = {}  # Cohen's kappa of a judge with the keywords, by question
    note: str | None = None  # a sentence about limits


class VerdictCount:
    """Verdicts on conversations, by keywords or a judge, counted as shares."""

    def __init__(self) -> None:
        self._n = 0
        self._decided = {name: ShareCount() for name in MEASURES}

    def see(self, sample: Sample, words: Words) -> None:
        self.add(sample.scenario.index, judge_by_keywords(sample.scenario, sample.turns, words.spoken))

    def add(self, scenario: int, verdicts: Verdicts) -> None:
        """Count the verdicts on one conversation of a scenario."""
        self._n += 1
        for counted, yes in zip(self._decided.values(), verdicts, strict=True):
            counted.add(scenario, bool(yes), yes is not None)

    def result(self) -> tuple[AdherenceShares, ...]:
        return (self.compute_shares(KEYWORDS, _NOTE),)

    def compute_shares(
        self, by: str, note: str, agreement: Mapping[str, float | None] = {}
    ) -> AdherenceShares:
        """Return the shares, with their intervals."""
        return AdherenceShares(
            by=by,
            n=self._n,
            **{name: counted.result() for name, counted in self._decided.items()},
            untold={name: self._n - counted.of for name, counted in self._decided.items()},
            agreement=dict(agreement),
            note=note,
        )
