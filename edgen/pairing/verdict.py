"""What a judge that was asked to output 1 or 2 answered: 1, 2, or None.

All that a reply states has to agree: a line that is an answer, an answer with its label, a preference
said in a sentence. None where it states nothing, states both, declines, finds both alike, or is cut
off; what is praised for one aspect only, supposed, asked or denied is no statement. Never a guess: a
reply that a person would have to read twice is None. Never raises, and is linear in the text's length:
white space is collapsed first and every repetition in a pattern is bounded.

First each mention of a side (`Interaction 2`, `the second one`, a 2 that stands alone) becomes one
character, so that the patterns for statements are about sides and words and no longer about spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from edgen.model import FinishReason
from edgen.transcript.thinking import without_thinking

Choice = Literal[1, 2]


def _words(pattern: str) -> re.Pattern[str]:
    """A pattern in which a space means one white space character, so that it can be read."""
    return re.compile(pattern.replace(" ", r"\s"), re.IGNORECASE)


# A side as a bare number, as a noun with its number, and both at once; of private use in Unicode.
_BARE: dict[Choice, str] = {1: "\ue001", 2: "\ue002"}
_NAMED: dict[Choice, str] = {1: "\ue011", 2: "\ue012"}
_BOTH = "\ue020"
_SIDES: dict[str, Choice] = {_BARE[1]: 1, _BARE[2]: 2, _NAMED[1]: 1, _NAMED[2]: 2}
_NUMBERS: dict[str, Choice] = {"1": 1, "2": 2, "one": 1, "two": 2, "first": 1, "second": 2}
_ANY = "[\ue001\ue002\ue011\ue012]"
_SIDE = f"({_ANY})"
_PRIVATE_USE = re.compile("[\ue001\ue002\ue011\ue012\ue020]")

_NOUN = (
    "(?:interaction|response|conversation|dialogue|dialog|option|answer|candidate|exchange|sample|choice"
    r"|transcript|reply|teacher|number|no\.?|nr\.?|№)"
)
# Not in 10, 1.5, -1, 1/2, 2%, 1 > 2, 2 out of 10.
_START = r"(?<![^\W_])(?<![0-9][.,:/–—-])(?<![-–+/<>~≈.,])(?<!/ )"
_END = r"(?![^\W_]|[.,:]?[0-9]|\.\.| ?[/%<>=~≈+×]|[-–—:][0-9]| (?:out )?of\b)"
# A bare number is a side only where it ends something or is spoken of: not in `2 reasons`.
_FOLLOWS = (
    r"(?= ?(?:\Z|[\n.,;:!?()\]}|—–-]|(?:or|and|nor|vs|versus|to|because|since|as|over|overall|due|rather|instead|here"
    r"|is|isn't|was|wins|would|will|than|for|has)\b|&))"
)
_MENTION = _words(
    rf"\b(?:the )?{_NOUN} ?[#(–-]? ?(?P<named>[12]|one\b|two\b){_END}\)?"
    rf"|\b(?:the )?(?P<ordinal>first|second) (?:{_NOUN}|one\b)(?![^\W_])"
    r"|\bthe (?P<the>first|second)(?=(?: (?:is|was|wins|would|will|or|and|nor|has)\b| ?[.,;!\n]| ?\Z))"
    rf"|{_START}(?P<bare>[12]){_END}{_FOLLOWS}"
)
# `1 or 2`, `Interaction 1 and Interaction 2`: no side.
_JOINED = _words(
    rf"{_ANY} ?(?:/|&|\bor|\band|\bnor|\bvs\.?|\bversus) ?(?:the )?{_ANY}|[\ue001\ue002] ?(?:,|-|–|—|to) ?[\ue001\ue002](?= ?(?:[.!\n)\]}}]|\Z))"
)

_ADVERBS = (
    "(?:(?:an?|the|to|be|my|by|far|in|opinion|much|clearly|definitely|slightly|significantly|overall|likely|more|most"
    "|marginally|somewhat|generally|considerably|ultimately|still|also|just|therefore|thus|indeed|obviously|certainly"
    "|substantially|markedly|notably|arguably|noticeably|strictly|simply),? ){0,6}"
)
_GOOD = r"(?:better|best|superior|stronger|strongest|preferable|preferred|winner|favou?red|more effective)\b"
_BAD = r"(?:worse|worst|inferior|weaker|weakest|less (?:effective|good|preferable)|poorer|loser)\b"
_BE = (
    "(?:is|was|seems|appears|looks|would be|will be|makes|represents|proves|remains|comes out(?: as)?|stands out as"
    "|provides|offers|has|shows|demonstrates|creates|makes for|leads to|(?:would|will) (?:likely |probably )?lead to"
    "|is (?:more )?likely to lead to|exemplifies|fosters|results in)"
)
# Better at one thing is not better: with a qualification it is no statement.
_QUALIFIED = (
    r"(?! (?:(?:interaction|one|option|choice|response) )?(?:(?:only|just|mainly|mostly) )?(?:at|in|on|when|where|with|if|had"
    r"|without|regarding|concerning|unless|suited|structured|written|for|as far)\b"
    r"(?! (?:every|all|most|several|many|both|multiple|these|the following|general|total|my (?:view|opinion)|this case"
    r"|two|three|a (?:few|number)|terms of (?:overall|the overall|all)|encouraging|fostering|learning|(?:the )?(?:students?|learner)\b|it\b|the reasons)))"
)
_PREFER = (
    r"\b(?:prefer|choose|chose|pick|select|favou?r|vote for|go with|going with|opt for|lean towards?|side with"
    "|settle on|would say|'d say|recommend)"
)
_LABEL = (
    r"\b(?:answer|verdict|choice|decision|output|preference|winner|selection|pick|judge?ment|conclusion|vote|better|best"
    "|preferred|superior|winning|chosen|result)(?: (?:interaction|response|conversation|dialogue|option|one|choice|answer"
    "|id|number))?"
)
_STATED = _words(
    f"{_SIDE} ?,? ?(?:(?:however|overall|though|by contrast|in my (?:view|opinion)), )?(?:{_BE} {_ADVERBS}{_GOOD}|(?:clearly |overall )?wins\\b|has the (?:edge|advantage)\\b){_QUALIFIED}"
    f"|{_PREFER} {_SIDE}{_QUALIFIED}"
    f"|{_LABEL}(?: (?:is|was|would be) ?[:=]?| ?[:=]{{1,2}}>?| ?(?:->|→)) ?(?:[(\\[{{] ?){{0,2}}{_SIDE}{_QUALIFIED}"
    f"|\\b(?:therefore|thus|hence|so|in conclusion|ultimately|in summary|to conclude) ?[,:]? ?(?:it is |it's )?{_SIDE}(?= ?(?:[.!\\n]|\\Z))"
    f"|[.!?] {_SIDE}[.!]?\\Z"
)
_DENIED = _words(
    f"{_SIDE} (?:(?:is|was|does|did|would|has|can) ?)?(?:{_ADVERBS}{_BAD}|(?:not|never|no) (?:\\w{{1,20}} ){{0,3}}?{_GOOD})"
    f"|{_SIDE} (?:isn|wasn|wouldn|doesn)'?t (?:\\w{{1,20}} ){{0,3}}?{_GOOD}"
    f"|\\bnot {_SIDE}|{_BAD} (?:interaction|response|one|option) (?:is|was) {_SIDE}"
)
# A line that is nothing but an answer, perhaps with a label and marks around it.
_FILLER = (
    "(?:(?:therefore|thus|hence|so|overall|in conclusion|ultimately|definitely|clearly|finally|ok|okay|sure|i (?:think"
    "|believe|say|would say)|i'd say|it's|it is|that would be|my|final|the)[,:.!]? ){0,5}"
)
_LINE = _words(
    rf"(?:[(\[{{] ?){{0,3}}{_FILLER}(?P<label>{_LABEL} ?(?:is|was)? ?[:=–-]? ?)?(?:[(\[{{] ?){{0,2}}"
    rf"(?:{_NOUN} ?[:=] ?)?(?P<n>{_ANY}|(?:one|two|first|second)\b) ?(?:[)\]}}] ?){{0,4}}[.!,]? ?(?:[)\]}}] ?){{0,2}}"
)
# A reply that starts with its answer and goes on; `1.` may also start a list.
_OPENS = _words(rf"[(\[]? ?{_SIDE} ?[)\]]?(?:[.,;:!)—–-]|\n| (?=[—–(-]|because|since|as|over) ?)")
_LISTS: dict[Choice, re.Pattern[str]] = {
    1: re.compile("(?:\n|[.!?:;)] )(?:\ue002|2)[.):]"),
    2: re.compile("(?:\n|[.!?:;)] )(?:\ue001|[13])[.):]"),
}
_TIED = _words(
    r"\b(?:(?:it's|it is|is|call it|are|call this|as) (?:an? )?(?:exact |clear |perfect )?(?:tied?|draw|toss-?up|even)\b|tied\b"
    r"|on (?:a )?par\b|equally (?:good|bad|effective|strong|well|valid|matched|poor)(?! (?:at|in|on|with)\b)"
    r"|neither (?:\w{1,20} ){0,3}?(?:better|superior|preferable|stands out|wins|good|one)\b"
    r"|no (?:clear |real )?(?:winner|preference|difference)\b|both (?:\w{1,20} ){0,2}(?:equal|the same|identical|better)\b"
    r"|(?:are|is) (?:about |roughly )?(?:equal|identical|the same|indistinguishable|comparable)\b"
    r"|i (?:\w{1,20} ){0,2}(?:can ?not|can't|unable to|not able to|won't|refuse to|decline to|don't know)(?: \w{1,20}){0,2}? ?"
    r"(?:decide|determine|judge|choose|compare|assess|evaluate|tell|pick|provide|help|assist|comply|make|answer|give|fulfill?|which|\Z)"
    r"|(?:can ?not|can't|impossible to|unable to|hard to) (?:be )?(?:decided?|determined?|judged?|choose|compared?|pick|tell|say))"
)
# Behind this comes another answer, or none.
_RETRACTED = _words(
    r"\b(?:wait,|no, wait|actually,|on second thoughts?\b|correction:|scratch that|just kidding|i mean,|changed my mind)"
)
# These take a preference back if they stand before it in its clause; those, in its sentence, only suppose it.
_TAKEN_BACK = _words(
    r"\b(?:not|never|nobody|no one|doubt|false|wrong|incorrect|could|might|may|maybe|perhaps|possibly|hard|difficult|some"
    r"|others?|initially|at first|either|neither|nor|or|why|which|than|between)\b|n't\b"
)
_SUPPOSED = _words(
    r"\b(?:if(?! i (?:had|have|must|were)\b)|whether|unless|depend\w{0,4}|suppose|supposing|hypothetically)\b"
)
# A bare number behind this is what somebody in the lesson said, not the judge.
_QUOTES = _words(
    r"\b(?:student|teacher|he|she|they)\b[^\n]{0,40}?\b(?:says?|said|answer(?:s|ed)|asks?|asked|repl(?:ies|ied)|wr(?:ites|ote)|computes?"
    r"|gets?|got|finds?|found|calculate[sd]?|explain(?:s|ed))\b|(?:\A|\n)(?:student|teacher) ?:"
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|\Z)|\n")
_CLAUSE_END = re.compile(r"[,;:—–]|\b(?:but|so|thus|because|therefore)\b", re.IGNORECASE)
_REACH = 300  # a sentence is looked at so far before and behind a preference

_NEXT_KEY = re.compile(r',\s{0,9}"(?=[\w -]{1,40}"\s{0,3}:)')
_BOXED = re.compile(r"\\boxed\s{0,3}\{\s{0,3}(?:\\text\s{0,3}\{)?([^{}\n]{1,40})\}{1,2}")
_THOUGHTS = "(?:think|thinking|thought|thoughts|reasoning|reflection|analysis)"
_THOUGHT_ENDS = re.compile(f"</{_THOUGHTS}>", re.IGNORECASE)
_THOUGHT_STARTS = re.compile(f"<{_THOUGHTS}>", re.IGNORECASE)
_TAG = re.compile(r"<([A-Za-z][\w-]{0,30})>")
_CLOSING_TAG = re.compile(r"</[A-Za-z][\w-]{0,30}>|<\|[\w-]{1,30}\|>")
_MARKS = re.compile(
    r"""[*`"“”„«»$\\\u200b\ufeff\ufe0f\u20e3]|(?<![^\W_])'|'(?![^\W_])|^[>#]{1,6}|^\s?[-•]\s|#(?=\s?[12])""",
    re.MULTILINE,
)
_SPELLINGS = str.maketrans({"１": "1", "２": "2", "：": ":", "。": ".", "_": " ", "’": "'", "‘": "'"})


def read_verdict(
    text: str, *, finish_reason: FinishReason = "stop", refusal: str | None = None
) -> Choice | None:
    """Which of the two a judge's reply names, or None."""
    if refusal is not None or finish_reason in ("length", "content_filter"):
        return None
    plain = _marked(_plain(text))
    if not plain or _TIED.search(plain) or _RETRACTED.search(plain):
        return None
    stated = {*_lines(plain), *_opening(plain), *_preferences(plain)}
    if len(stated) != 1:
        return None
    choice = stated.pop()
    return None if any(_side(match) == choice for match in _DENIED.finditer(plain)) else choice


def _plain(text: str) -> str:
    """The reply without thinking, markup and quotation marks; "" if nothing is left of it."""
    text = without_thinking(_PRIVATE_USE.sub("", text), [])
    text = _THOUGHT_ENDS.split(text)[-1]
    if _THOUGHT_STARTS.search(text):
        return ""
    text = _BOXED.sub(r"\nanswer: \1\n", text)
    text = _NEXT_KEY.sub("\n", text)
    text = _CLOSING_TAG.sub("\n", _TAG.sub(r"\n\1: ", text))
    lines = (" ".join(line.split()) for line in text.translate(_SPELLINGS).splitlines())
    plain = _MARKS.sub("", "\n".join(line for line in lines if line))
    return "\n".join(line for line in (" ".join(line.split()) for line in plain.split("\n")) if line)


def _marked(text: str) -> str:
    """The text with one character for each side that it mentions."""
    return _JOINED.sub(_BOTH, _MENTION.sub(_character, text))


def _character(match: re.Match[str]) -> str:
    bare = match["bare"]
    if bare:
        return _BARE[_NUMBERS[bare]]
    named = match["named"] or match["ordinal"] or match["the"]
    return _NAMED[_NUMBERS[named.lower()]]


def _side(match: re.Match[str]) -> Choice:
    """The side in whichever group took part."""
    return next(_SIDES[group] for group in match.groups() if group in _SIDES)


def _lines(text: str) -> Iterator[Choice]:
    """The sides of lines that are nothing but an answer; where both head a part, those are no answers."""
    lines = text.split("\n")
    headings: list[Choice] = []
    for i, line in enumerate(lines):
        match = _LINE.fullmatch(line) if len(line) <= 120 else None
        if match is None:
            continue
        mention = match["n"]
        choice = _SIDES[mention] if mention in _SIDES else _NUMBERS[mention.lower()]
        if mention in _NAMED.values() and not match["label"]:
            headings.append(choice)
        elif mention in _SIDES or match["label"] or len(lines) == 1 or i == len(lines) - 1:
            yield choice
    if len(set(headings)) == 2:
        headings.remove(1)
        headings.remove(2)
    yield from headings


def _opening(text: str) -> Iterator[Choice]:
    """The bare number that the reply starts with, unless it numbers a list."""
    match = _OPENS.match(text)
    if match is not None and match[1] in _BARE.values():
        choice = _side(match)
        if not _LISTS[choice].search(text, match.end()):
            yield choice


def _preferences(text: str) -> Iterator[Choice]:
    """The sides that sentences prefer, unasked, without condition and without taking it back."""
    for match in _STATED.finditer(text):
        before = _SENTENCE_END.split(text[max(0, match.start() - _REACH) : match.start()])[-1]
        if _SUPPOSED.search(before) or _TAKEN_BACK.search(_CLAUSE_END.split(before)[-1]):
            continue
        bare = any(group in _BARE.values() for group in match.groups())
        if bare and _QUOTES.search(before):
            continue
        end = _SENTENCE_END.search(text, match.end(), match.end() + _REACH)
        if end is None or end.group() != "?":
            yield _side(match)
