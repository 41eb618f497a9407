"""The statements of prose: which of two sides a sentence calls the better one, by a list of known wordings.

A sentence counts if it has one of these wordings from its start, or after a clause that takes nothing back,
and ends there or gives a reason: `Interaction 2 is better because …`, `I would choose the first one.` Better
at one thing, for one kind of student, on the surface, perhaps, or in the eyes of others is no statement.

Sentences have one character for each side they mention (`mark_sides`), so the patterns are about sides and
words, not about spelling. Every repetition in a pattern is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from edgen.core.text import compile_later

Choice = Literal[1, 2]


def compile_words(expression: str) -> re.Pattern[str]:
    """Return a pattern of words that ignores case."""
    return compile_later(expression, re.IGNORECASE)


# A side as a bare number and as a name; of private use in Unicode.
BARE = "[\ue001\ue002]"
NAME = "[\ue011\ue012]"
SIDE = "[\ue001\ue002\ue011\ue012]"
PRIVATE_USE = compile_later("[\ue001-\ue032]")
_SIDES: dict[str, Choice] = {"\ue001": 1, "\ue002": 2, "\ue011": 1, "\ue012": 2}
_BARES: dict[str, str] = {"1": "\ue001", "2": "\ue002"}
_NAMES = {**dict.fromkeys(("1", "one", "first"), "\ue011"), **dict.fromkeys(("2", "two", "second"), "\ue012")}
_BACK = {"former": "\ue031", "latter": "\ue032"}

_SHOWN = "interaction|response|conversation|dialogue|dialog|option|transcript|lesson|exchange|teacher"
NOUN = f"(?:{_SHOWN}|answer|reply|candidate|choice|sample|number)"
# Not in 10, 1.5, -1, 1/2, 2%, 1 > 2, 2 out of 10, and not `Interaction 1's teacher`.
_START = r"(?<![^\W_\u3040-\u30ff\u4e00-\u9fff])(?<![0-9][.,:/–—-])(?<![-–+/<>~≈.,€£¥^])(?<!/ )"
_END = r"(?![^\W_]|[.,:]{1,3}[0-9]|'s\b| ?[/%<>=~≈+×€£¥^]|[-–—][0-9]| (?:out )?of\b)"
_MENTION = compile_words(
    rf"\b(?:the )?{NOUN} ?(?:[#-] ?)?(?P<named>[12]|one\b|two\b){_END}"
    rf"|\b(?:the )?{NOUN} ?\((?P<inside>[12])\)"
    rf"|\b(?:the )?(?P<ordinal>first|second) (?:(?:{_SHOWN})\b|one\b)(?!'s)"
    r"|\bthe (?P<the>first|second)(?= (?:is|wins|has|will|would|over)\b| ?[.,;!)\"]| ?\Z)"
    rf"|\bthe (?P<back>former|latter)\b(?: (?:{_SHOWN}|one)\b)?(?!'s)|{_START}(?P<bare>[12]){_END}"
)
_REACH = 300  # characters that a sentence is looked back into
_BACK_MARK = compile_later("[\ue031\ue032]")
_ANY_SIDE = compile_later(SIDE)
_SENTENCE_END = compile_later(r"(?<=[.!?])[\"')\]]{0,2} |\n")


def read_side(mark: str) -> Choice:
    """Return the side that a character of a marked text stands for."""
    return _SIDES[mark]


def mark_sides(text: str) -> str:
    """Return the text with one character for each side that it mentions."""
    text = _MENTION.sub(_mark, text)
    return _BACK_MARK.sub(_resolve_reference, text) if _BACK_MARK.search(text) else text


def _mark(match: re.Match[str]) -> str:
    if match["bare"]:
        return _BARES[match["bare"]]
    if match["back"]:
        return _BACK[match["back"].lower()]
    return _NAMES[(match["named"] or match["inside"] or match["ordinal"] or match["the"]).lower()]


def _resolve_reference(match: re.Match[str]) -> str:
    """`The latter` is the second of the two that its sentence named, or of the two that were shown."""
    before = match.string[max(0, match.start() - _REACH) : match.start()]
    second = match.group() == "\ue032"
    if not _ANY_SIDE.search(match.string, 0, match.start()):
        return "\ue012" if second else "\ue011"
    named = _ANY_SIDE.findall(_SENTENCE_END.split(before)[-1])
    if len(named) == 2 and read_side(named[0]) != read_side(named[1]):
        return "\ue012" if read_side(named[second]) == 2 else "\ue011"
    return "\ue030"


def split_sentences(lines: Sequence[str]) -> list[str]:
    """Return the sentences of a text; a line ends one."""
    return [part.strip() for line in lines for part in _SENTENCE_END.split(line) if part.strip()]


_ADVERBS = (
    r"(?:(?:clearly|overall|much|far|by far|slightly|a (?:little|bit)|definitely|certainly|significantly"
    r"|considerably"
    r"|substantially|noticeably|markedly|ultimately|therefore|thus|still|simply|indeed|in my (?:view"
    r"|opinion)),? ){0,3}"
)
_ONE = rf"(?:one|choice|option|(?:{_SHOWN})\b)"
_GOOD = r"(?:better|best|preferable|superior|stronger|strongest|preferred)"
_ALL_IN_ALL = r"(?:,? (?:overall|in every way|by far|all in all|of the two|here)\b){0,2}"
_VERB = r"(?:choose|pick|prefer|select|go with|vote for|opt for|output)"
LABEL = (
    r"(?:(?:the|my) )?(?:(?:final|overall) )?(?:verdict|choice|decision|output|preference|winner|selection"
    r"|pick"
    r"|judge?ment|conclusion|vote|(?:better|best|preferred|superior|stronger|winning|chosen|selected)(?: "
    rf"{_ONE}| {NOUN})?)(?: (?:of the two|overall))?(?: {NOUN})?"
)
# What a sentence may say; each has its side in a group of its own.
STATEMENT = (
    rf"(?:(?P<is>{SIDE}),? (?:however, |though, |overall, )?(?:is {_ADVERBS}(?:the )?{_ADVERBS}{_GOOD}\b(?: "
    rf"{_ONE})?|(?:would be|stands out as) (?:the|my) {_GOOD} (?:one|choice|option)){_ALL_IN_ALL}"
    rf"|(?P<wins>{SIDE}) (?:{_ADVERBS}wins|has the edge)\b{_ALL_IN_ALL}(?:,? by a \w{{1,12}} margin)?"
    rf"|(?P<leads>{SIDE}) (?:will|would|is)(?: (?:most |more |very )?(?:likely|probably))?(?: to)? lead to "
    r"(?:a|the) (?:much )?better"
    rf" (?:interaction|conversation|dialogue|lesson)\b{_ALL_IN_ALL}"
    rf"|i(?:'d| would| will|'ll)?(?: (?:therefore|thus|clearly|definitely|still|have to|must))? {_VERB} "
    rf"(?P<chosen>{SIDE})(?: as the (?:better|best|stronger|preferred) {_ONE})?{_ALL_IN_ALL}"
    rf"|(?:{LABEL} is:? {_ADVERBS}|{LABEL}: |(?:final )?answer: )(?P<named>{SIDE})|(?:the|my) (?:final "
    rf")?answer is (?P<answer>{NAME}))"
)
_CRITERIA = (
    r"(?:criteria|criterion|elements|analysis|factors|characteristics|considerations|comparison|evaluation"
    r"|points)"
)
_CONCLUSIONS = (
    r"(?:and )?(?:therefore|thus|hence|so|overall|ultimately|finally|consequently|accordingly|in conclusion"
    r"|in summary"
    r"|to conclude|to sum up|all in all|on balance|all things considered|for (?:these reasons|this reason)"
    r"|as a result)"
)
CONCLUSION = rf"(?:{_CONCLUSIONS},? )"
CONCLUDED = compile_words(rf"(?:{_CONCLUSIONS}[,:]? |i (?:therefore|thus) )")
_OPENING = (
    rf"(?:{_CONCLUSIONS}[,:]? |(?:{LABEL}|(?:final )?answer) ?: |(?:sure|okay|ok|yes|clearly|definitely|in "
    r"my (?:view|opinion))[,.!]? "
    r"|(?:i (?:think|believe|feel|would say)|i'd say)(?: that)?,? |of the two(?: \w{1,20})?, "
    r"|(?:based on|considering|given|by) (?:the|these|those|all|all the|all these|this|your) "
    rf"(?:[\w']{{1,20}} ){{0,3}}?{_CRITERIA}"
    r"(?: (?:above|given|listed|provided))?, "
    rf"|compared (?:to|with) {SIDE}, |(?:between|comparing) {SIDE} (?:and|with|to) {SIDE}, "
    r"|after (?:(?:careful|some|much|due|further) )?(?:consideration|thought|reflection|analysis|(?:weighing"
    r"|comparing|reading|considering) [^,;.?!:]{1,80}), "
    r"|if i (?:had|have) to (?:choose|pick|decide)(?: one)?, |assuming [^,;.?!:]{1,120} "
    r"continue[^,;.?!:]{0,80}, ){0,3}"
)
_CLAUSE = (
    r"(?:[^;.?!]{3,300}(?:[,;] but|[,;] so|, and so|[,;] (?:therefore|thus|hence),?|;) |(?:although|though"
    r"|even though|while|whereas) [^;.?!]{3,300}, )?"
)
OPENED = rf"(?P<opening>{_OPENING}){STATEMENT}"
_REASON = (
    rf"(?:,? \(?because\b|,? (?:since|as) (?:{SIDE}|it|its|he|she|they|the (?:teacher|student)|there (?:is"
    rf"|are)|in {SIDE})(?!\w)"
    r"|,? for (?:the following|these|several|many|two|three|a few) reasons\b|,? due to\b)"
)
_OTHER = rf"(?:(?P<other>{SIDE})|the other(?: one| {NOUN})?)"
_TAIL = rf"(?:,? (?:than|over|to|rather than|instead of|and not|not) {_OTHER}{_ALL_IN_ALL})?"
_SENTENCE = compile_words(
    rf"(?P<clause>{_CLAUSE}){OPENED}{_TAIL}(?: ?[.!,)]{{0,3}}|(?P<reason>{_REASON}[^\n]{{0,1500}}))"
)
# `1 because …` at the start of a reply.
_BECAUSE = compile_words(rf"(?P<is>{BARE})(?P<reason>{_REASON}[^\n]{{6,1500}})")
# `2 - the student asks more.`, where that is the whole reply.
_REMARK = compile_words(
    rf"(?P<is>{BARE}) ?(?:(?:[-–—:;]|, as) (?=\w{{1,20}} \w{{1,20}} \w)"
    r"|\((?=[^\W\d]))(?P<reason>[^\n]{0,1500})"
)

# Said of a preference, these take something of it back, or say whose or of what it is.
_HEDGED = compile_words(
    r"\b(?:ties?|tied|draw|toss-?up|equal|equally|on (?:a )?par|identical|neither|wait|actually|correction"
    r"|scratch that"
    r"|kidding|perhaps|maybe|possibly|arguably|might|seems?|seemed|appears?|unless|depend\w{0,4}|whether"
    r"|almost|nearly"
    r"|tempt\w{0,4}|surface|glance|impression|initial\w{0,2}|in terms of|when it comes to|for clarity|at "
    r"least|only|alone|except|aside from"
    r"|apart from|otherwise|until|graders|readers?|raters|students would|many people|on paper"
    r"|hypothetical\w{0,2}|not sure|supposedly)\b"
    r"|\b(?:if|suppose|supposing|provided (?:that|the|it|he|she|you))\b"
)
_REPORTED = compile_words(
    r"\b(?:would|could|may|should|says?|said|saying|thinks?|thought|argues?|claims?|concludes?|believes?"
    r"|feels?|wonders?|prefers?"
    r"|suggests?|asks?|asked|replied|replies|answer(?:s|ed)|told|tells?|explains?|explained|some|others|many"
    r"|most people|nobody|no one|whoever|anyone|false|wrong|untrue|mistake|doubt|judged by)\b|[\"“”]"
)
_MINE = compile_words(r", but my \w{1,12} is")
_CONTRAST = compile_words(r"\b(?:but|however|although|though|yet|nevertheless|nonetheless|despite|still)\b")
_WINS = compile_words(
    r"\b(?:better|best|superior|preferable|prefer\w{0,5}|stronger|strongest|wins?|winner|ahead|edge"
    r"|advantage|decisive|tips?|nod"
    r"|pick|choose|chosen|choice|favou?r\w{0,4}|instead|outperform\w{0,2}|excellent|excels?|richer|warmer"
    r"|clearer|leads|criteri\w{1,3}|more \w{1,20}|is\W{0,3}\Z)(?!\w)"
)
_TAKEN_BACK = compile_words(
    r"(?:\A(?:but|however|yet|no|still|nevertheless|nonetheless|hmm|though|although|except|or|if|unless"
    r"|provided|only|that is|at least)\b"
    r"|\b(?:wait|actually|on (?:first|second) thoughts?|on reflection|correction|scratch that|kidding"
    r"|changed? my mind|disagree|opposite"
    r"|reconsider\w{0,3}|i mean|mistaken|not so|(?:is|was) (?:not|wrong|false|untrue)|isn't|tied?|draw"
    r"|toss-?up|equally|equal|on (?:a )?par|neither"
    r"|not really|not quite|looking closer|the reverse|vice versa|misleading|superficial\w{0,3}|alone"
    r"|irrelevant|beside the point|the other|i take (?:that|it) back)\b)"
)
_RETRACTED = compile_words(
    r"\b(?:wait|actually,|on (?:first|second) thoughts?|on reflection|correction|scratch that|kidding"
    r"|changed? my mind|reconsider\w{0,3}|i mean,|i take (?:that|it) back|i (?:now )?disagree|sorry|no, it)\b"
)
_IS_BETTER = compile_words(
    rf"({SIDE}) (?:is|was|wins|would be) {_ADVERBS}(?:the )?{_GOOD}\b(?: {_ONE})?{_ALL_IN_ALL} ?(?:[.!,;]|\Z)"
)
_OTHER_SIDE = compile_words(r"\bthe other\b")


_SHORTEST = len("1 wins")
# `Said nobody.`, `For beginners, that is.`: after a statement these take it back.
_FRAGMENT = compile_words(
    r"[^\s]{1,30}(?: [^\s]{1,30})?|(?:in|for|on|at|as|by|with|when|where)(?: [^\s]{1,30}){1,4}"
)


def find_stated(sentence: str, *, opens: bool = False, alone: bool = False) -> Choice | None:
    """Return the side that a sentence says is the better one; `opens` the reply, `alone` is all of it."""
    if len(sentence) < _SHORTEST or not _ANY_SIDE.search(sentence):
        return None
    match = _SENTENCE.fullmatch(sentence)
    if match is None and opens:
        match = _BECAUSE.fullmatch(sentence)
        if match is None and alone:
            match = _REMARK.fullmatch(sentence)
            if match is not None and re.search(r"\bboth\b", sentence, re.IGNORECASE):
                return None
    if match is None:
        return None
    groups = match.groupdict()
    choice = next(read_side(groups[name]) for name in STATEMENT_GROUPS if groups.get(name))
    if groups.get("other") and read_side(groups["other"]) == choice:
        return None
    # An idiom of answering, not a condition.
    spoken = re.sub(r"\bif i ha(?:d|ve) to\b", "", sentence, flags=re.IGNORECASE)
    if _HEDGED.search(spoken) or '"' in sentence:
        return None
    clause = groups.get("clause") or ""
    # What others may say before it is no matter where the judge speaks of itself.
    reported = "" if groups.get("chosen") or _MINE.search(sentence) else clause
    if _praises_other(clause, choice) or _REPORTED.search(reported):
        return None
    return choice if _holds(groups.get("reason") or "", choice) else None


STATEMENT_GROUPS = ("is", "wins", "leads", "chosen", "named", "answer")


def _holds(reason: str, choice: Choice) -> bool:
    """Return whether a reason speaks for this side alone."""
    # `because unlike Interaction 1 …` names the other and praises this one.
    clauses = re.split(r"[,;]|\b(?:while|whereas)\b", reason)
    against = any(_mentions_other(clause, choice) and _WINS.search(clause) for clause in clauses)
    return not against and _CONTRAST.search(reason) is None


def _mentions_other(text: str, choice: Choice) -> bool:
    return any(read_side(mark) != choice for mark in _ANY_SIDE.findall(text)) or bool(
        _OTHER_SIDE.search(text)
    )


def states_other(said: Sequence[str], choice: Choice) -> bool:
    """Return whether any of the sentences states the other side."""
    return any(find_stated(sentence) not in (None, choice) for sentence in said)


def is_retracted(said: Sequence[str], choice: Choice) -> bool:
    """Return whether any sentence after an answer takes it back or gives the other one."""
    retracted = (_RETRACTED.search(sentence) or _praises_other(sentence, choice) for sentence in said)
    return any(retracted) or states_other(said, choice)


def _praises_other(text: str, choice: Choice) -> bool:
    return any(read_side(mark) != choice for mark in _IS_BETTER.findall(text))


def _is_disputed(said: Sequence[str], at: int, choice: Choice) -> bool:
    """Return whether another sentence than the one at `at` speaks for the other side or takes this one
    back."""
    behind = said[at + 1 :]
    if any(map(_TAKEN_BACK.search, behind)):
        return True
    if behind and _FRAGMENT.fullmatch(behind[0]) and not _ANY_SIDE.search(behind[0]):
        return True
    if any(_mentions_other(one, choice) and _WINS.search(one) for one in (*said[:at], *behind)):
        return True
    return states_other(said, choice)


_VERDICT = compile_words(
    r"(?:\b(?:answer|verdict|better|best|choice|decision|output|winner|conclusion|overall|final|result"
    rf"|preferred|summary|sure|ok|okay|yes|certainly)\b|{SIDE}|\|)"
)


def is_heading(before: str) -> bool:
    """Return whether the line before a statement is a heading (`Clarity`), which says what it is about."""
    if len(before) > 80 or _VERDICT.search(before):
        return False
    return before[-1:] not in (".", "!", ")", ";") or len(before.split()) <= 2


def find_preferred(said: Sequence[str]) -> Choice | None:
    """Return the side that the first or the last sentence states and that nothing else disputes."""
    if not said:
        return None
    found: set[Choice] = set()
    for at in {0, len(said) - 1}:
        choice = find_stated(said[at], opens=at == 0, alone=len(said) == 1)
        if choice is None or (at and is_heading(said[at - 1])):
            continue
        if _is_disputed(said, at, choice):
            return None
        found.add(choice)
    return found.pop() if len(found) == 1 else None
