"""Keyword tables that classify a scenario's phrases: ways of learning and teaching, and reactions.

`direct instruction/lecture-based learning` is of the family `lecture`, `and gets rude otherwise` of the kind
`rude`. Unmatched phrases are `other`. Matching is on lower-case text and uses only these tables, which the
simulator shares, so measures based on them are too good on simulated data. A domain has the kinds' signs in
conversations.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from edgen.core.text import compile_later

OTHER = "other"
MOST = 500  # characters of a phrase that are looked at

_METHODS = {
    "hands_on": r"hands.?on|experien|experiment|real.?(?:world|life|problem|data)|everyday|\bdoing|build"
    r"|touch|lab(?:s|oratory)?\b|movement|moving|physical|kinesth|outdoor|demonstrat|field ?trip|excursion"
    r"|manipulat|craft",
    "creative": r"creativ|stor(?:y|ies)|\bgam|\bplay|role.?play|drama|\barts?\b|music|song|imagin|humou?r"
    r"|invent|puzzle",
    "assessment": r"assess|quiz|\btests?\b|testing|exam\b|exams|being asked|graded|checkpoint|retriev|recall"
    r"|flash.?card",
    "visual": r"visual|diagram|(?<!big )picture|drawing|chart|\bmaps?\b|mapping|mind.?map|sketch|\bgraph"
    r"|illustrat|infographic|colou?r",
    "reading": r"\bread|\btext|book|written|writing|note.?taking|taking notes|summar|literature|article|essay"
    r"|journal|\bsource",
    "peer": r"peer|group|partner|team|collab|cooperat|jigsaw|classmate|tutoring others|teach(?:ing)? (?:it "
    r")?to (?:others|each)|pairs?\b",
    "independent": r"independ|self.?(?:paced|directed|study|guided)|own pace|alone|autonom|research|explor"
    r"|discover(?!ed)|by (?:him|her|them)sel|flipped|choice",
    "project": r"project|problem.?(?:based|solving|first)|\bcases?\b|case.?stud|challenge|authentic|apprentic"
    r"|maker",
    "practice": r"practi[cs]|drill|exercis|worked example|step.?by.?step|repet|repeat|mastery|rehears|spaced"
    r"|scaffold|(?<!to )\bexamples?\b|mistake|correct",
    "technology": r"technolog|video|simulation|computer|\bapps?\b|online|digital|software|animation"
    r"|multimedia|tablet|podcast|audio",
    "coaching": r"coach|one.?(?:on|to).?one|feedback|mentor|individual|guid|hint|encourag|differentiat"
    r"|conferenc|\binterests",
    "discussion": r"interactiv|discuss|debat|dialog|conversation|question|inquir|enquir|socratic|seminar"
    r"|talking|argu|\bback\b",
    "lecture": r"lectur|direct instruction|explicit instruction|explain(?!ed|.*\bback\b)|explanation|explicit"
    r"|listen|present(?:ing|ation)|expos|frontal|teacher.?led",
}

_STUDENT_REACTIONS = {
    "adapts": r"adapt|adjust|go(?:es)? along|gives? it a (?:try|chance)|flexib|open to|accept|tries anyway"
    r"|compromis|makes the best|willing|persua|convinc|won over",
    "rude": r"rude|insult|disrespect|swear|hostile|aggress|mean\b|mock|sarcas|cheek|offen|impolite|talks? "
    r"back|snap|pointless",
    "anxious": r"anxi|nervous|afraid|scared|worr|panic|stress|insecure|overwhelm|fear|shy|embarrass|doubts? "
    r"(?:him|her|them)sel|self.?doubt|tears|\bcr(?:y|ies)\b",
    "frustrated": r"frustrat|angry|anger|annoy|irritat|impatien|upset|cross\b|temper|exasperat|confus"
    r"|discourag",
    "argues": r"argu|challeng|contradict|disagree|debat|\bobjects|questions (?:every|the|why)|defian|resist"
    r"|refus|rebel|provok|stubborn",
    "jokes": r"jok|clown|funny|silly|distract(?:s|ing)? (?:the )?(?:other|class)|fool|prank|laugh|humou?r",
    "tells": r"tell|\bsays?\b|says so|speak|\basks?\b|voice|suggest|request|explain|point(?:s)? out|mention"
    r"|negotiat|complain",
    "disengaged": r"disengag|bored|boring|withdraw|quiet|silent|silence|daydream|distract|zon|doodl|passive"
    r"|inattent"
    r"|stops? (?:listening|trying|paying)|\blos(?:e|es|ing)\b|drift|\btun(?:es?|ing) out|shut|minimal"
    r"|one.?word|short answers|phone|gives? up|sleep|indifferent|detach|pretend|stop",
}

_TEACHER_REACTIONS = {
    "adapts": r"adapt|adjust|flexib|accommodat|chang(?:es?|ing) (?:his|her|their|the)? ?(?:method|approach"
    r"|way|plan|style)|meets? (?:him|her|them|the student)|tries? (?:an)?other|compromis|asks? (?:what|how)"
    r"|open to|switch|blend|differentiat|\bmix|willing|persua|convinc|won over",
    "insists": r"insist|stick|stubborn|refus|persist|continu|keeps? (?:on|going|to)|ignor|rigid|no matter"
    r"|unchang|carr(?:y|ies) on|repeat|doubles? down|return|argu",
    "blames": r"blam|accus|fault|critici[sz]|scold|reproach|compar",
    "gives_up": r"gives? up|giving up|abandon|stops? (?:trying|teaching|the lesson)|resign|\bquits?\b"
    r"|withdraw|disengag|lose(?:s)? interest|walks? (?:out|away)|cuts? .*short|ends? the lesson|lower",
    "frustrated": r"frustrat|angry|anger|annoy|irritat|impatien|upset|temper|exasperat|snap|short.?tempered"
    r"|rais(?:es|ing) (?:his|her|their)? ?voice",
    "sarcastic": r"sarcas|\biron|mock|cynic|condescend|patroni|belittl|dismiss|joke",
    "hurries": r"hurr|rush|quick|\bfast|speed|skip|\btime|less room",
    "strict": r"strict|punish|threat|rule|disciplin|authorit|warn|detention|\bcold|formal|control",
    "doubts": r"doubt|anxi|nervous|insecure|worr|unsure|flustered|apolog|confus|hesita|overwhelm|embarrass"
    r"|sad\b|disappoint|patience",
}


_METHOD_WORDS = tuple((name, compile_later(words)) for name, words in _METHODS.items())
_PLAIN = compile_later("[a-z ]+")
_APART = compile_later(r"\|(?![^(]*\))")  # between alternatives, but not within a group

METHODS = (*_METHODS, OTHER)
STUDENT_KINDS = (*_STUDENT_REACTIONS, OTHER)
TEACHER_KINDS = (*_TEACHER_REACTIONS, OTHER)


@lru_cache(maxsize=4096)
def find_methods(phrase: str) -> tuple[str, ...]:
    """Return the families of a way of learning or teaching, in the order of its words."""
    text = phrase.lower()
    found = [(match.start(), name) for name, words in _METHOD_WORDS if (match := words.search(text))]
    return tuple(name for _, name in sorted(found))


@lru_cache(maxsize=4096)
def split_parts(phrase: str) -> tuple[str, ...]:
    """Return the parts of `a/b/c`, each a separate preference."""
    pieces = tuple(piece.strip() for piece in phrase.split("/"))
    return tuple(piece for piece in pieces if piece) or (phrase,)


def find_families(preference: str) -> tuple[str, ...]:
    """Return the families of all parts of a preference, each once."""
    return tuple(
        dict.fromkeys(name for part in split_parts(preference[:MOST]) for name in find_methods(part))
    )


def do_preferences_match(learning: str, teaching: str) -> bool | None:
    """Return whether a student and a teacher prefer the same way; None where either is of no known family."""
    if learning.strip() and learning.strip().lower() == teaching.strip().lower():
        return True
    likes, has = find_families(learning), find_families(teaching)
    return any(name in has for name in likes) if likes and has else None


@lru_cache(maxsize=4096)
def match(learning: str, teaching: str) -> bool:
    """Return whether a teacher who likes `teaching` serves a student who likes `learning`."""
    theirs = find_methods(teaching)
    return learning.lower() == teaching.lower() or any(name in theirs for name in find_methods(learning))


@lru_cache(maxsize=4096)
def find_student_reaction(phrase: str) -> str:
    """Return the kind of a student's reaction."""
    return _find_first_kind(_STUDENT_REACTIONS, phrase)


@lru_cache(maxsize=4096)
def find_teacher_reaction(phrase: str) -> str:
    """Return the kind of a teacher's reaction."""
    return _find_first_kind(_TEACHER_REACTIONS, phrase)


def _find_first_kind(table: dict[str, str], phrase: str) -> str:
    text = phrase.lower()
    return next((name for name, words in table.items() if _holds_any(words, text)), OTHER)


def _holds_any(words: str, text: str) -> bool:
    """Return whether a text holds one of some alternatives. Plain words need no pattern."""
    plain, pattern = _split_plain(words)
    return any(map(text.__contains__, plain)) or (pattern is not None and pattern.search(text) is not None)


@cache
def _split_plain(words: str) -> tuple[list[str], re.Pattern[str] | None]:
    """Return the plain words of some alternatives, and a pattern for the others."""
    alternatives = _APART.split(words)
    plain = [one for one in alternatives if _PLAIN.fullmatch(one)]
    others = "|".join([one for one in alternatives if one not in plain])
    return plain, compile_later(others) if others else None


@lru_cache(maxsize=4096)
def is_hedged(phrase: str) -> bool:
    """Return whether the phrase says that somebody *might* do it."""
    return (
        re.search(r"\b(?:might|may|can|could|sometimes|perhaps|tries|occasionally)\b", phrase.lower())
        is not None
    )


@lru_cache(maxsize=4096)
def make_stage_direction(phrase: str) -> str:
    """Return a reaction of an unknown kind as a stage direction: `and starts to hum otherwise` -> `*starts to
    hum*`."""
    text = re.sub(
        r"^(?:and|but|or|then|who|might|may|he|she|they|will|\W)+\b\s*", "", phrase.strip(), flags=re.I
    )
    text = re.sub(r"[\s,.;]*(?:\botherwise)?[\s,.;*]*$", "", text, flags=re.I)
    return f"*{text}*" if text else ""
