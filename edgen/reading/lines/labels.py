"""The expressions that find labels: the text before a name, next to it, after it, and keys below it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgen.core.text import compile_later
from edgen.reading.lines.line import RoleLine, decode_text
from edgen.reading.roles import TITLES, RolePattern

_MARK = r"[^\w\n(\[:：]|_"  # what may decorate a name
# Before a name: decoration, a ticked box, a token of a chat template, numbers such as `Turn 2 -` and
# `[10:05]`, and a key such as `speaker:`.
_KEYS = "role|speaker|name|who|from|author|character"
_BEFORE = r"""
    (?>(?:_{1,9}+[^\w\n]{0,9}+)?)(?>(?:(?<=\[)x\][^\w\n]{1,9}+)?)(?>(?:(?<=<\|)(?:im_start|start|start_header_id)\|>\s?)?)
    (?>(?:(?=[\d\#tlerspm])(?>(?:(?:(?:turn|line|exchange|round|step|part|message)\s?)?\#?\d{1,4}(?>(?:[^\w\n]|_){1,8}|T(?=\d\d:)|Z[^\w\n]{1,4})){0,7}))?)
    (?>(?:(?:[①-⑳]|(?:[a-z]|[ivx]{1,5})[.)])[^\S\n]{1,3}[^\w\n]{0,4})?)
    (?:(?=[rsnwfac])(?:KEYS)["']?[^\S\n]{0,2}[:=][^\S\n]{0,2}["']?(?=[^\n:=]{1,40}(?:\n|\Z)|[^\n:|]{1,30}[ ][|][ ]))?
""".replace("KEYS", _KEYS)
_PREFIX = rf"\n([^\w\n]{{0,40}}+(?=\w)%s{_BEFORE})"
# The same before a role's name. A name at the beginning of the line shows that numbers and keys are missing.
_AHEAD = rf"(?=(?:ROLE)\b)(?!(?=[rsnwfac][oapuh])(?:{_KEYS}))"
_ROLE_PREFIX = rf"\n([^\w\n]{{0,40}}+(?=\w)(?:{_AHEAD}|(?!{_AHEAD}){_BEFORE}))"
_SPEAKS = (
    r"(?=[aceiorstw])(?:sa(?:ys|id)|tells|told|(?:speak|ask|repl|respond|answer|explain|add|continue|observe|wonder|exclaim"
    r"|whisper|admit|suggest|agree|repeat|insist|confirm)(?:s|ies|ied|e?d))"
    r"(?:[ ](?:[a-z]{2,12}ly|(?:with|without|after|in)(?:[ ][a-z'’-]{1,15}){1,4}(?=[:：,])))?"  # `with a smile:`
)
_CLOCK = r"(?:,?[ ]{1,3}(?:at[ ])?\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:[ ]?[ap]\.?m\b\.?)?)"
_NOTE = (
    rf"(?:{_CLOCK}|[ ](?:to|→|->)[ ](?:the[ ])?(?:ROLE)|[([](?![\"'“])[^()\[\]\n]{{1,60}}[)\]]|(?:,[ ]|/)\w[\w "
    rf".'’]{{0,29}}|[ ]{_SPEAKS})"
)
_COLON = r"[^\S\n]{0,3}[:：](?:(?!:)|:(?=\s))"
# The lookaheads at the beginning of notes and separators say which characters begin one.
_SEPARATOR = rf"""
    (?=[^\S\n]{{0,8}}+(?:[:：|→➜➔➤⇒➡›»>=「,;.—–~\n-]|\Z)|(?<=[\])】])|[ ][a-z]|\t)
    (?:({_COLON}(?:(?:\*{{1,3}}|__)(?=[^\S\n]))?)
    |([^\S\n]{{0,3}}+(?:[|→➜➔➤⇒➡›»]\ufe0f?|>{{1,3}}|[-=]{{1,2}}>|=(?=[ ]?["“«]))|(?<=[\])])[^\S\n]{{1,4}}(?=[^\s~–—-])|(?<=】)|(?=「)
        |[ ]{_SPEAKS},?[ ](?=["“«])|[^\S\n]{{0,2}}[,;][^\S\n]{{0,2}}(?=["“'])|\t|[,;](?=\S)|\.(?=[ ][^\s:：–—|>→=-]))
    |([^\S\n]{{1,3}}(?:[-–—]{{1,2}}|~)(?=[^\S\n])|[—;])
    |[^\S\n]{{0,8}}(?=\n|\Z))
"""
# The next word of a sentence that begins with a role's name: not `to`, not `at 9:00`, no verb of speech.
_GOES_ON = rf"(?:[*_]{{1,3}})?[ ](?=[^\W\d_]{{2}})(?!(?:to|at)[ ]|{_SPEAKS})"
# If a colon follows the name or a sentence continues, no other alternative is tried.
_BEFORE_NAME = rf"(?:the|(?:{'|'.join(TITLES)})\.?)[ ]"
_NAME = rf"""
    (?:({_BEFORE_NAME})|)((%s)(?:(?=[:：])|(?!{_GOES_ON})(?:(?=[\#\ds'’_]|[ ][\#\dA-Z])(?:[ ]?\#?\d{{1,2}}\b(?![:.]\d\d)|[ ][A-Z]\b|s\b|['’]s[ ](?:turn|reply|response|line)\b|_TURN(?:_\d{{1,3}})?\b))?))
    (?:(?=[:：])|(?:{_MARK}){{0,4}}?
    (?:(?=[,(\[/]|[ ][\w ,(\[/→-])([ ]?{_NOTE}))?
    (?:[*_"'”`\])】]){{0,4}})
"""
_WORD = r"[^\W\d_][\w.'’\u0300-\u036f\u0900-\u0963\u0981-\u09e3\u0b82-\u0bcd\u0e31-\u0e4e\u200c-]{0,24}+"
_BY_NAME = rf"""({_WORD}(?>(?:[ ]{_WORD}){{0,3}}))[ ]?
    [(\[][ ]?(ROLE)[ ]?[)\]](?:{_MARK}){{0,4}}"""
# The groups of a label: the whole label, the text before the name, an article or a title, the name, the role in it, a
# note, a person's name and the role in brackets after that name, the separators colon, tag and dash.
ROLE = RolePattern(
    rf"({_ROLE_PREFIX}(?:{_NAME % 'ROLE'}|{_BY_NAME}){_SEPARATOR})", re.VERBOSE | re.MULTILINE | re.IGNORECASE
)
# The same without people, for texts in which no role stands in brackets.
ROLE_ALONE = RolePattern(
    rf"({_ROLE_PREFIX}{_NAME % 'ROLE'}(?:((?!))())?{_SEPARATOR})", re.VERBOSE | re.MULTILINE | re.IGNORECASE
)
_COLON_AHEAD = r"(?=[^\n:：]{1,200}+[:：])"  # no other line is looked at
# Labels by a role's name or another word for it, and by another word alone.
ALIAS, ALIAS_ALONE = (
    RolePattern(
        rf"({_PREFIX % _COLON_AHEAD}{_NAME % names}{_COLON})", re.VERBOSE | re.MULTILINE | re.IGNORECASE
    )
    for names in ("ROLE|ALIAS", "ALIAS")
)
# Any other name at the start of a line. It counts only if the reply says whose name it is.
NAMED = compile_later(
    rf"({_PREFIX % ''}({_WORD}(?:[ ]{_WORD}){{0,3}})(?:[*_\"'”`\])]){{0,4}}[ ]?[:：])",
    re.VERBOSE | re.MULTILINE,
)
# The key of a text under a name, perhaps with the mark of a block; a rule under a name.
KEY = compile_later(
    r"(?i)\n[^\w\n]{0,12}(?:text|content|message|utterance|line|says|said|value|dialogue"
    r"|speech)[\"']?[^\S\n]{0,2}[:=](?:[^\S\n]*(?P<block>[|>])[-+]?[^\S\n]*(?=\n))?"
)
_ANY_KEY = compile_later(r"\n[^\w\n]{0,12}([A-Za-z_]{2,20})[\"']?[^\S\n]{0,2}[:=][^\S\n]+")
_LEAST = 3  # labels above one key: fewer may stand above speech
_BLOCK = compile_later(r"[^\S\n]*[|>][-+][^\S\n]*(?=\n)")  # of YAML: `|-`, `>-`
# Other keys above that of a text: `mood: calm`.
_OTHER_KEYS = compile_later(
    r"(?:\n[^\w\n]{0,12}[A-Za-z_]{1,20}[\"']?[^\S\n]{0,2}[:=][^\n]{0,60}){1,4}?(?=\n)"
)
UNDERLINE = compile_later(r"\n[^\S\n]{0,3}(?:-{3,80}|={3,80})[^\S\n]*(?=\n)")


def open_key(line: RoleLine) -> None:
    """Give the label the key of the text. A text that YAML wrote as a block loses its margin."""
    found = KEY.match(line.body)
    if found is None:
        for others in _OTHER_KEYS.finditer(line.body):
            found = KEY.match(line.body, others.end())
            break
    if found is None:
        return
    line.label += line.body[: found.end()]
    line.body = line.body[found.end() :]
    if found["block"] is not None and "\n" in line.body.strip():
        line.body = _without_margin(line.body)


def open_shared_key(lines: Sequence[RoleLine], *, unknown: bool) -> None:
    """Give the labels the key below all of them; an `unknown` one counts only above texts of one line."""
    if all(KEY.match(line.body) for line in lines):
        for line in lines:
            open_key(line)
        return
    if not unknown or len(lines) < _LEAST:
        return
    keys = [_ANY_KEY.match(line.body) for line in lines]
    if len({key and key[1] for key in keys}) > 1:
        return
    if any("\n" in line.body.strip() for line in lines[:-1]):
        return
    for line, key in zip(lines, keys, strict=True):
        if key is not None:
            line.label += key[0]
            line.body = line.body[key.end() :]
            decode_text(line)


def open_block(line: RoleLine) -> None:
    """Give the label the mark of a block of YAML below it, as in `teacher: >-`. The text loses its margin."""
    block = _BLOCK.match(line.body)
    if block is not None:
        line.label += block[0]
        line.body = _without_margin(line.body[block.end() :])


def _without_margin(block: str) -> str:
    """Return a block of YAML without its first line's margin; what stands below it may have less."""
    text = block.lstrip("\n")
    margin = text[: len(text) - len(text.lstrip(" \t"))]
    return text[len(margin) :].replace(f"\n{margin}", "\n")
