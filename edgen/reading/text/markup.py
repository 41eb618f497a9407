"""Turns in markup, rewritten as lines: XML, HTML, BBCode and LaTeX that say who speaks.

    <teacher>…</teacher>      <turn role="teacher">…</turn>      <b>Teacher:</b> …<br>
    <tr><td>Teacher</td><td>…</td></tr>      [b]Teacher:[/b] …      \\textbf{Teacher:} …

A text is rewritten only where markup names two speakers and no line does by itself, so that tags inside of what
somebody says stay as they are. Linear in the text's length.
"""

from __future__ import annotations

import re
from functools import cache

from edgen.core.lazy_patterns import compile_later
from edgen.reading.roles import RolePattern, RoleWords

_OPEN = r"<[^\W\d]\w{0,30}(?:\s[^<>\n]{0,200})?>"
_CLOSE = r"</\w{1,30}>"
# An opening tag, and what follows it up to a closing tag where that is short enough to be a name.
_TAG = re.compile(
    r"<(?P<tag>[^\W\d]\w{0,30})(?P<attributes>\s[^<>\n]{0,200})?>"
    rf"(?P<rest>[ \t]*(?P<name>[^\W\d_][^<>:\n]{{0,40}}+):?[ \t]*(?:{_CLOSE}[ \t]*)+:?)?"
)
_ATTRIBUTE = compile_later(
    r"(?i)\b(?:speaker|role|name|who|from|by|character|agent|class)\s?=\s?(?:[\"']([^\"'<>]{1,60})[\"']|([^\s\"'<>]{1,40}))"
)
_WORD = compile_later(r"[^\W\d_]+")
_CHANCE = compile_later(r"(?i)probab|likelihood|chance")
# A line that names a speaker without any markup.
_PLAIN = RolePattern(r"(?i)\n[^\w\n<\[\\]{0,20}(?:ROLE|CALLED)\b[^\n:<\[{]{0,30}[:：]")
# Where a label begins and ends while tags are taken away; neither stands in a text that can be stored.
_BEGIN, _END = "\ud800", "\ud801"
_ANY = r"<(?:/\w{1,30}|[^\W\d]\w{0,30}(?:\s[^<>\n]{0,200})?/?)>"
_AROUND = re.compile(rf"{_ANY}(?:\s*{_ANY})*\s*(?={_BEGIN}|\Z)")
_BEHIND = re.compile(rf"{_END}\s*(?:{_OPEN}\s*)*")
_ENTITY = compile_later(r"&(?:lt|gt|quot|apos|#39|amp);")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&#39;": "'", "&amp;": "&"}

_BB = RolePattern(r"(?i)\n[^\w\n\[]{0,9}\[[biu]\](?:ROLE|CALLED)\b")
_BB_TAG = compile_later(r"(?i)\[/?[biu]\]")
_LATEX_LABEL = RolePattern(r"(?i)\\[a-z]{1,20}\*?[ ]?[\[{](?:ROLE|CALLED)\b[^\[\]{}\n]{0,40}[\]}]")
_LATEX = compile_later(
    r"\n[ \t]*(?:\\noindent\s?)?\\(?:text(?:bf|it|sc)|emph|item|speaker|paragraph|(?:sub){0,2}section)\*?[ ]?[\[{]"
    r"([^\[\]{}\n:]{1,60}):?[\]}]:?"
)


def without_markup(text: str, roles: RoleWords) -> str:
    """Return the text with turns in markup as lines; the text itself where its turns are in none."""
    if "<" in text and "</" in text:
        return _without_tags(text, roles)
    if "[/" in text and _BB.of(roles).search("\n" + text):
        return _BB_TAG.sub("**", text)
    if "\\" in text and _LATEX_LABEL.of(roles).search(text):
        return _LATEX.sub(r"\n\1:", "\n" + text)[1:]
    return text


def _without_tags(text: str, roles: RoleWords) -> str:
    known = _known(roles)
    speakers: set[str] = set()
    elements: set[str] = set()

    def labelled(match: re.Match[str]) -> str:
        tag, attributes, rest, name = match.groups()
        if (speaker := _speaker(tag, attributes, known)) is None:
            if name is None or _WORD.match(name)[0].lower() not in known:  # type: ignore[index]
                if name is None and _CHANCE.match(text, match.end()):
                    return f"{_BEGIN}\n"
                if _CHANCE.search(tag):
                    return f"{_BEGIN}\nProbability:{_END}{rest or ''}"
                return f"{_BEGIN}\n{name}:{_END}" if name is not None and _CHANCE.search(name) else match[0]
            speakers.add(name.strip().lower())
            return f"{_BEGIN}\n{name.strip()}:{_END}"
        speakers.add(speaker.lower())
        elements.add(tag)
        return f"{_BEGIN}\n{speaker}:{_END}{rest or ''}"

    rewritten = _TAG.sub(labelled, text)
    if len(speakers) < 2 or _PLAIN.of(roles).search("\n" + text):
        return text
    for element in elements:
        rewritten = rewritten.replace(f"</{element}>", "\n")
    rewritten = _BEHIND.sub(" ", _AROUND.sub("", rewritten)).replace(_BEGIN, "")
    return _ENTITY.sub(lambda match: _ENTITIES[match[0]], rewritten) if "&" in rewritten else rewritten


def _speaker(tag: str, attributes: str | None, known: frozenset[str]) -> str | None:
    """Whom an opening tag names: by itself, or in an attribute, there perhaps among other words."""
    if tag.lower() in known:
        return tag
    if attributes is None:
        return None
    for quoted, bare in _ATTRIBUTE.findall(attributes):
        word = next((word for word in _WORD.findall(quoted or bare) if word.lower() in known), None)
        if word is not None:
            return str(word)
    return None


@cache
def _known(roles: RoleWords) -> frozenset[str]:
    """Return every word for a role, in any language, that is more than a letter."""
    words = {*roles.by_name, *roles.aliases}
    words |= {word for by_role in roles.languages.values() for some in by_role for word in some}
    return frozenset(word for word in words if len(word) > 1)
