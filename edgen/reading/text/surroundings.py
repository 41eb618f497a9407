"""Read the text around the turns of a reply, and find their ends: fences, headings, brackets, probability.

Each function finds one thing and is linear in the length of its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

from edgen.core.text import compile_later
from edgen.reading.text.characters import fold, split_camel_case
from edgen.reading.text.quotes import CLOSERS, find_closing

_TITLE = (
    r"(?:[^\w\n]|_){0,16}(?:(?:the|simulated|full|final|complete|revised|sample|your)\s){0,3}"
    r"(?:conversation|dialogue|dialog|transcript)(?:\s\#?\d{1,3})?(?:[^\w\n]|_){0,8}"
)
HEADING = compile_later(rf"(?im)^{_TITLE}$")
HEADING_BELOW = compile_later(rf"(?i)\n{_TITLE}(?=\n|\Z)")
FENCE = compile_later(r"(?m)^[^\S\n]{0,12}(?:>[^\S\n]?)?(?:`{3,}|~{3,})([^\n`]{0,30})$")
# Code that opens at the end of a turn's first line.
_CODE = compile_later(r"(?:```|~~~)\w{0,20}[^\S\n]?\Z")
# Lines at which a turn may end, with the line break before them; `_stops` decides by the group.
_LIST = r"(?P<list>[\]}][\]},;]{0,9}[^\S\n]{0,9}(?=\n|\Z))"
_FENCED = r"(?P<fence>(?:```|~~~)[^\n]*)"
_RULE = (
    r"(?P<rule>(?:(?:[*#_]{1,6}[ ]?|\d{1,3}[.)][ ])?(?:turn|exchange|round)\s?\d{1,3}[*_:.]{0,4}|-{3,}|\|?={3,}|\*{3,}"
    r"|_{3,}|\#{1,6}|\[\[\w{1,30}\]\])[^\S\n]{0,9}(?=\n|\Z))"
)
_SPECIAL = r"(?P<special><\|[^\n|]{1,40}\|>|</s>|\[end\][^\S\n]{0,9}(?=\n|\Z))"
# Within a conversation.
STOP = compile_later(rf"(?i)\n[^\S\n]{{0,99}}+(?:{_LIST}|{_FENCED}|{_RULE}|{_SPECIAL})")
_RULE_LINE = compile_later(rf"(?i)\n[^\S\n]{{0,99}}+(?:{_RULE.replace('P<rule>', ':')}|\Z)")
# A number or a time before a label, and a mark after it: `[09:40] * `, `17 | `, `[9:40] <`.
_NUMBER = (
    r"(?:(?:(?:ts=|time=)?\d[\d:./T-]{0,20}Z?[\])]?(?:[ \t]{1,3}(?:[|*][ \t]{1,3})?|[|])){1,2}[<(*\[]{0,2})?"
)
# In its last turn.
LAST_STOP = compile_later(
    rf"(?i)\n[^\S\n]{{0,99}}+(?=\S)(?:{_LIST}|{_FENCED}|{_RULE}|{_SPECIAL}"
    rf"|(?P<likely>(?>(?:[^\w\n]|_){{0,16}})(?:(?<=\[!)\w{{1,20}}\][-+]?[ ]|(?<=\[)b\])?{_NUMBER}(?:[\w'’.,:%|?!*]{{1,20}}[ ]){{0,8}}"
    r"(?:(?:(?:\w{1,30}_)?(?:probability"
    r"|likelihood|chance)(?:(?![^\W_])|(?=(?-i:[A-Z])))|(?:likely|p(?:r|rob)?\((?:\\text\{)?\w{1,20})\b)|prob[.:]|p(?=\s?[=≈]\s?(?:[01]?\.\d|\d{1,3}\s?%)[^\n]{0,9}\s*\Z)))"
    r"|(?P<label>[^\w\n]{0,8}+(?:(?:final|the)\s)?(?:outcome|result|reasoning|reason|assessment|evaluation"
    r"|verdict)s?[*_ ]{0,4}(?::|(?=\n|\Z)))"
    r"|(?P<chatter>[^\w\n]{0,6}+(?:notes?|explanation|analysis|summary|disclaimer|commentary|rationale"
    r"|please\snote|would\syou\slike\sme"
    r"|i\shope\sthis|hope\sthis|let\sme\sknow\sif\syou(?:'d|’d|\swould|\swant|\sneed)|feel\sfree\sto"
    r"|(?:in\s)?th(?:is|e)\s(?:conversation|dialogue|simulat\w*)"
    r"|(?:the\send|end\sscene|curtain)(?=[^\w\n]*(?:\n|\Z))"
    r"|fade\s(?:out|to\sblack)|end\sof\s(?:output|simul\w*|resp\w*|transcr\w*|scene|script|lesson|session))\b)"
    r"|</(?P<closing>\w{1,20})>[^\S\n]{0,9}(?=\n|\Z)"
    # A number in a box, and a probability that breaks off.
    r"|(?P<stub>\${0,2}\\boxed\{[^{}\n]{1,9}\}\${0,2}[^\S\n]{0,9}(?=\n|\Z)|[*_#]{0,4}[ ]?prob[abilty]{0,6}\s*\Z))"
)
_LIKELY = compile_later(
    r"(?i)probability|likelihood|chance|\blikely\b|\bp(?:r|rob)?\s?(?:\(|(?=[=≈]))|\bprob[.:]"
)
_LAST_SENTENCE = compile_later(r"(?i)(?<=[.!][ ])[^.!]{0,30}(?:probability|likelihood)[^.!]{0,9}\Z")
_SEPARATORS = r"(?:[:：=≈]|\bis\b|\bwas\b|\bto(?=\s[01]?\.\d)|→|<-|\s[-–—|]\s)"
_SEPARATOR = compile_later(_SEPARATORS)
_NUMBERED = compile_later(_SEPARATORS + r"(?=[^\w\n]{0,12}\d)")
# A number at the end of the line needs no separator.
_AT_END = compile_later(r"[ (](?=[^\w\n]{0,4}(?:\d{1,3}(?:\.\d{1,3})?\s?%|[01]?\.\d{1,4})[^\w\n]{0,6}\Z)")
_CALL_OUT = compile_later(r"\A[\s>]{0,9}\[!\w{1,20}\][-+]?")  # of Markdown: `> [!info] Probability`
_INLINE_MARKUP = compile_later(r"(?<=\])\([^()\s]*\)|\[/?\w\]|</?\w(?![^<>]*(?:prob|likel))[^<>]*>")
_SCALE = compile_later(
    r"(?i)[(\[][^()\[\]\n\d]{0,30}\b0(?:\.0)?\s?%?\s?(?:-|–|—|to|and)\s?(?:1|1\.0|100)\s?%?[)\]]"
)
_INSIDE = compile_later(
    r"(?i)(?P<value>\d{1,3}(?:[.,]\d{1,6})?\s?(?:%|percent)?)\s(?:probability|likelihood|chance)\s(?:that"
    r"|of)\b"
    r"|(?:probability|likelihood|chance)\s(?:of\s|(?=[01]?\.\d))(?P<of>\d{1,3}(?:[.,]\d{1,6})?(?:\s?(?:%|per\s?cent|(?:out\sof"
    r"|in)\s\d{1,3}\b))?)|(?P<likely>\d{1,3}(?:[.,]\d{1,6})?\s?(?:%|per\s?cent))\slikely\s(?:that|to)\b"
    r"|\b(?:at|as|about|around|roughly)\s(?P<at>\d{1,3}(?:[.,]\d{1,6})?(?:\s?(?:%|per\s?cent|(?:out\sof"
    r"|in)\s\d{1,3}\b))?)"
)
# The last line after the turns: a number alone, or under a label about what was understood.
_VALUE = compile_later(r"\d[.,]\d|%")
_LAST_VALUE = compile_later(
    r"(?i)(?:\A|\n)[^\w\n]{0,12}(?:boxed\{)?(?:(?:const|let|final|estimated|overall|p|pr|prob|probability|answer"
    r"|understood|understanding|comprehension|learning|success|confidence|score|level|rate|estimate|value|result"
    r"|number|float|double|of|that|the|student(?:['’]s)?)(?:(?:\b|(?=_))(?:[^\w\n]|_){1,4}|(?=(?-i:[A-Z])))){0,6}"
    r"(?P<value>(?:(?:0?[.,]\d{1,4}|1\.0{1,4})(?:/1\b)?|\d{1,3}\s?(?:%|per\s?cent|(?:out\sof|/)\s?\d{1,3}\b))"
    r"(?:[ ]?\([^()\n]{1,20}\))?)[^\w\n]{0,8}(?:</\w{1,20}>)?(?:\n[`~]{3,9})?\s*\Z"
)
_LONGEST_VALUE = 250  # characters that it can match
_NEGATED = compile_later(
    r"(?i)(?<![^\W_])(?:not|no|never|without|un\w{0,20}ful|(?:fail|lack|mis)\w{0,20})(?![^\W_])|n['’]t\b"
)
_NEUTRAL = frozenset({
    "the", "a", "an", "of", "that", "this", "in", "my", "his", "her", "their", "s", "p", "student", "teacher",
    "final",
    "estimated", "overall", "approximate", "resulting", "simulated", "score", "value", "percent",
    "probability", "prob",
    "likelihood", "chance", "const", "export", "therefore", "thus", "hence", "so", "our", "estimate", "var", "let",
    "roughly", "decision", "double", "float", "val", "set", "static", "decimal",
    "result", "outcome",
})  # fmt: skip
_STEMS = ("underst", "success", "learn", "comprehen", "master", "grasp", "material")
_DECORATION = " \t\r\n#*_`~\"'“”‘’<>[](){},;.:|-–—=\\"
_EDGES = _DECORATION + "\u200b\u2060\ufeff"


def find_rules_start(text: str) -> int:
    """Return the place where the rules and blank lines at the end of a text begin, at a line break."""
    end = len(text)
    while (line := text.rfind("\n", 0, end)) >= 0 and _RULE_LINE.fullmatch(text, line, end) is not None:
        end = line
    return end


def may_head(words: str) -> bool:
    """Return whether a folded text can hold a heading of a conversation."""
    return "conversation" in words or "dialog" in words or "transcript" in words


def may_give(words: str) -> bool:
    """Return whether a folded text can hold a line under a label that gives a probability."""
    return "probability" in words or "likelihood" in words


def is_abbreviated(words: str) -> bool:
    """Return whether a folded text holds `Prob.` or `Prob:`."""
    return "prob." in words or "prob:" in words


def is_likely(words: str) -> bool:
    """Return whether folded words may speak of a probability."""
    return may_give(words) or "chance" in words or is_abbreviated(words)


def mentions(text: str) -> bool:
    """Return whether a text speaks of a probability at all."""
    words = fold(text)
    return (
        is_likely(words)
        or "likely" in words
        or (("(" in words or "=" in words) and _LIKELY.search(text) is not None)
    )


# A label, a mark and one number, without other words. Any mark separates, except the signs of numbers.
_PLAIN_VALUE = compile_later(
    rf"(?i)[^\w\n]{{0,16}}(?:\w{{1,30}}\()?{_NUMBER}probability[*_ \x22']{{0,4}}"
    r"(?:,{1,5}(?=[01]?\.\d)|[-=]{1,3}>|<-|>{1,3}|[|]{2}|[^\w\s.<>≤≥±≈−-]|\t|[ "
    r"](?=[^\w\n]{0,3}(?:[01]?\.\d|\d{1,3}\s?%))|-(?=[ ])|\.(?=[ ])"
    r"|\.[—–])[*_#]{0,3}([^\w\n*_]{0,9}\d[\d.,%/]{0,12}[^\w\n<]{0,9})(?:</\w{1,30}>)?[^\w\n]{0,3}\Z"
)


@lru_cache(maxsize=4)  # several rules read the same line of a reply
def read_value_of_line(line: str) -> str | None:
    """Return the value of a line about the probability that the student understood.

    Returns "" if the line has no value or is about the contrary (`did not understand`), and None if it is
    about something else.
    """
    if (plain := _PLAIN_VALUE.match(line)) is not None:
        return plain[1]
    if len(line) > 600 or not mentions(line):
        return None
    if " | " in line:  # `Turns: 10 | Probability: 0.3`
        line = next((part for part in line.split(" | ") if _SEPARATOR.search(part) and mentions(part)), line)
    if "[" in line or "<" in line:
        line = _INLINE_MARKUP.sub(" ", _CALL_OUT.sub("", line))
    line = _SCALE.sub("", line)
    likely = _LIKELY.search(line)
    if likely is None:
        return None
    separator = _NUMBERED.search(line, likely.end())
    if separator is None:
        separator = _SEPARATOR.search(line, likely.end())
        if _is_sentence(line):
            if (found := _INSIDE.search(line)) is not None:
                return "" if is_negated(line) else next(filter(None, found.groups()))
            if separator is None and _AT_END.search(line, likely.end()) is None:
                return ""
    if separator is None and (last := _AT_END.search(line, likely.end())) is not None:
        separator = last
    label, value = (line, "") if separator is None else (line[: separator.start()], line[separator.end() :])
    words = _list_telling_words(label)
    if words and not _is_about_success(words):
        last = _LAST_SENTENCE.search(label)
        if last is None or _list_telling_words(last[0]):
            return None
        words = set()
    if separator is None:
        return "" if not words or _is_label(line) else None
    return "" if is_negated(label) else value


def _list_telling_words(label: str) -> set[str]:
    """Return the words of a label that say what its number is about."""
    said = split_camel_case(label).lower().replace("got it", "understood")
    return {*re.findall(r"[a-z]+", said)} - _NEUTRAL


def is_negated(label: str) -> bool:
    """Return whether a label or a JSON key means the contrary: not understood, failed, lack of success."""
    return _NEGATED.search(label) is not None


def _is_sentence(line: str) -> bool:
    """Return whether a line is one such as `There is an 85% chance that the student understood`."""
    lowered = line.lower()
    told = "student" in lowered or " of understanding" in lowered
    return told and not _is_label(line) and _is_about_success(re.findall(r"[a-z]+", lowered))


def _is_about_success(words: Iterable[str]) -> bool:
    return any(word.startswith(_STEMS) for word in words)


def _is_label(line: str) -> bool:
    """Return whether a line is no sentence: a few words at most, without a full stop."""
    return len(line) < 80 and line.rstrip(_DECORATION.replace(".", ""))[-1:].isalnum() and "." not in line


def split_probabilities(text: str) -> tuple[list[Any], str]:
    """Return the probabilities that the lines of a text give, and the text without these lines."""
    values: list[Any] = []
    if not text or not mentions(text):
        return values, text
    rest: list[str] = []
    waiting = False
    for line in text.split("\n"):
        bare = line.strip(_DECORATION)
        if waiting and bare:
            values.append(line)
            waiting = False
            continue
        value = read_value_of_line(line) if bare else None
        if value is None:
            rest.append(line)
        elif value.strip(_DECORATION):
            values.append(value)
        else:
            waiting = _is_label(line) and not is_negated(line)
    return values, "\n".join(rest)


def find_last_value(text: str) -> list[Any]:
    """Return the number in a last line without the word "probability", in a list; or an empty list."""
    found = _LAST_VALUE.search(text := text.rstrip(), max(0, len(text) - _LONGEST_VALUE))
    return [] if found is None or _VALUE.search(text, 0, found.start()) else [found["value"]]


_LABEL = compile_later(r"(?im)^[^\w\n]{0,12}(?:turn|exchange|round)\s?\d{1,3}[^\w\n]{0,4}$")
_LANGUAGE = compile_later(r"(?m)^[^\S\n]{0,12}(?:`{3,}|~{3,})[^\n]{0,30}$")


_ONE_HEADING = compile_later(
    r"(?i)[\s#*_\[{\x22]{0,16}(?:conversation|dialogue|dialog"
    r"|transcript)(?:\s\#?\d{1,3})?[*_:]{0,8}[\s\[{]*\Z"
)


def has_words(text: str) -> bool:
    """Return whether a text around the conversation holds words other than headings and fences."""
    if not text.strip(_EDGES) or _ONE_HEADING.match(text):
        return False
    if "```" in text or "~~~" in text:
        text = _LANGUAGE.sub("", text)
    text = _LABEL.sub("", HEADING.sub("", text))
    return bool(text.strip(_EDGES))


def is_list_opened(head: str) -> bool:
    """Return whether the list that the turns stand in was opened."""
    return ("[" in head or "{" in head) and any(
        line.strip().endswith(("[", "{")) for line in head.split("\n")[-6:]
    )


def is_end_of_speech(said: str, after: str) -> bool:
    """Return whether the words before an end marker on its line are speech, not a probability."""
    line = said[said.rfind("\n") + 1 :]
    if not line.strip():
        return False
    return not read_value_of_line(line) or bool(split_probabilities(after)[0])


def find_end_of_turn(
    body: str, openers: Collection[str], *, last: bool, fenced: bool, bracketed: bool
) -> tuple[int, bool]:
    """Return the end of the turn in a body, and whether a closing quotation mark sets it.

    `openers`: opening quotation marks that belong to the layout. `last`: the turn is the last one. `fenced`:
    a code block is open where the turns begin. `bracketed`: the list that the turns stand in was opened.
    """
    stop = _find_stop(body, last, fenced, bracketed)
    stripped = body.lstrip()
    first = stripped[:1]
    if first in openers:
        at = len(body) - len(stripped) + 1
        end = _find_last_closing(body, CLOSERS[first], at, stop)
        if end < 0 and stop < len(body.rstrip()):
            end = _find_later_closing(body, CLOSERS[first], at, stop)
        if end >= 0:
            return end, True
    return stop, False


def _find_stop(body: str, last: bool, fenced: bool, bracketed: bool) -> int:
    """Return the start of the first line that cannot belong to the turn, or the body's length.

    Lines inside a closed code block can belong to it.
    """
    line_end = body.find("\n")
    said = body.rstrip()
    if line_end < 0 or line_end >= len(said):
        return len(body)
    in_code = _CODE.search(body, max(0, line_end - 24), line_end) is not None
    held_back = labelled = -1
    pattern = LAST_STOP if last else STOP
    for match in pattern.finditer(said, line_end):
        kind, at = match.lastgroup, match.start() + 1
        if kind == "fence":
            if fenced and last and not in_code and not match["fence"].strip("`~ \t\r"):
                return at
            in_code = not in_code
            held_back = -1
        elif held_back < 0 and _stops(kind, said, at, last, bracketed):
            if kind == "label":
                labelled = at if labelled < 0 else labelled
            elif not in_code:
                # An assessment under a label of its own leads up to the probability.
                return labelled if kind == "likely" and labelled >= 0 else at
            else:
                held_back = at
    return held_back if held_back >= 0 else len(body)


def _stops(kind: str | None, said: str, at: int, last: bool, bracketed: bool) -> bool:
    """Return whether the line that starts at `at`, found to be of this kind, ends the turn."""
    if kind == "list":
        return last or bracketed
    newline = said.find("\n", at)
    if kind == "rule":
        return last or at > find_rules_start(said)
    line = said[at : newline if newline >= 0 else len(said)]
    if kind == "closing":
        return last and f"<{line.strip(' </>')}" not in said[:at]
    if kind == "likely":
        return last and read_value_of_line(line) is not None
    if kind in ("chatter", "label"):
        return last and not said[said.rfind("\n", 0, at - 1) + 1 : at].strip()
    return kind in ("special", "stub")


def close_quotation(said: str, after: str, openers: Collection[str]) -> str:
    """Return the words before an end marker, with the closing quotation mark that stands after the marker."""
    start = len(said) - len(said.lstrip())
    first = said[start : start + 1]
    if first not in openers or _find_last_closing(said, CLOSERS[first], start + 1, len(said)) >= 0:
        return said
    line = after.partition("\n")[0]
    return said.rstrip() + next((closer for closer in CLOSERS[first] if closer in line), "")


def _find_later_closing(body: str, closers: str, start: int, stop: int) -> int:
    """Return the end of the first line from `stop` on that closes a turn opened before `start`, or -1.

    A line with quotation marks in pairs (`Probability: "0.2",`) closes nothing.
    """
    odd = sum(body.count(c, start, stop) for c in closers) % 2
    at = stop
    while at < len(body):
        newline = body.find("\n", at)
        end = len(body) if newline < 0 else newline
        odd ^= sum(body.count(c, at, end) for c in closers) % 2
        if odd and find_closing(body, closers, at, end) >= 0:
            return end
        at = end + 1
    return -1


def _find_last_closing(body: str, closers: str, start: int, stop: int) -> int:
    """Return the end of the last line of body[start:stop] that a closing quotation mark ends, or -1."""
    at = start + len(body[start:stop].rstrip(" \t\r\n,;.]}")) - 1
    if at >= start and body[at] in closers and body[at - 1] != "\\":
        newline = body.find("\n", at, stop)
        return stop if newline < 0 else newline
    marks = {closer: body.rfind(closer, start, stop) for closer in closers}
    end = stop
    while (at := max(marks.values())) >= 0:
        line = max(body.rfind("\n", start, at) + 1, start)
        newline = body.find("\n", at, end)
        line_end = end if newline < 0 else newline
        if find_closing(body, closers, line, line_end) >= 0:
            return line_end
        end = line
        for closer, mark in marks.items():
            if mark >= end:
                marks[closer] = body.rfind(closer, start, end)
    return -1
