"""Rewrite turns in markup as lines: XML, HTML, BBCode, LaTeX and subtitles that name the speakers.

    <teacher>…</teacher>      <turn role="teacher">…</turn>      <b>Teacher:</b> …<br>
    <tr><td>Teacher</td><td>…</td></tr>      [b]Teacher:[/b] …      [TEACHER]…[/TEACHER]
    \\textbf{Teacher:} …      \\item[Teacher] …
    00:01,000 --> 00:04,000 over `Teacher: …` or `<v Teacher>…`

A text is rewritten only if its markup names two speakers and no plain line names one. So tags inside a turn
stay as they are. Linear in the length.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection
from functools import cache

from edgen.core.text import compile_later
from edgen.reading.roles import RolePattern, RoleWords
from edgen.reading.text.characters import holds_pair, list_marks, split_camel_case

_OPEN = r"<[^\W\d][\w-]{0,30}(?:\s[^<>\n]{0,200})?>"
_CLOSE = r"</[\w-]{1,30}>"
# An opening tag, and the text up to a closing tag if it is short enough to be a name.
_TAG = compile_later(
    r"<(?P<tag>[^\W\d][\w-]{0,30})(?P<attributes>\s[^<>\n]{0,200})?>"
    rf"(?P<rest>[ \t]*(?P<name>[^\W\d_][^<>:\n]{{0,40}}+):?[ \t]*(?:{_CLOSE}[ \t]*)+(?::|[-–—](?=\s))?)?"
)
# Tags around a number alone at the end of a text.
_NUMBER = compile_later(
    r"(?:\s*</?[\w-]{1,30}>)+\s*(\d[\d.,]{0,9}\s?%?)(?:\s*</?[\w-]{1,30}>)*\s*(?:```\s*)?\Z"
)
_CDATA = compile_later(r"<!\[CDATA\[|\]\]>")
_CLOSING = compile_later(r"</([\w-]{1,30})>")
_ATTRIBUTE = compile_later(
    r"(?i)\b(?:speaker|role|name|who|from|by|character|agent|class)\s?=\s?(?:[\"']([^\"'<>]{1,60})[\"']"
    r"|([^\s\"'<>]{1,40}))"
)
_GIVEN = compile_later(
    r"(?i)\s(?:value|score|p|prob\w{0,30}|likelihood|chance)\s?=\s?[\"']?(\d[\d.,]{0,9}%?)"
)
# In these tags, as in `<speaker type="teacher"/>`, any attribute may name the speaker.
_SPEAKER_TAGS = frozenset({"speaker", "role", "name", "who", "from", "character", "author"})
_ANY_ATTRIBUTE = compile_later(r"\b\w{1,20}\s?=\s?(?:[\"']([^\"'<>]{1,60})[\"']|([^\s\"'<>]{1,40}))")
_WORD = compile_later(r"[^\W\d_]+")
# A speaker's tag, perhaps with a number and a word for its turn: `teacher`, `student2`, `teacher_turn`.
_PART = compile_later(
    r"([^\W\d_]+)(?:_?\d{1,3})?(?:_(?i:turn|message|line|response|reply|speech|says|text)(?:_?\d{1,3})?)?"
)
_CHANCE = compile_later(r"(?i)\bprob\b|probab|likelihood|chance|\bp=[\"']?[01]?\.\d")
# A line that names a speaker without any markup.
_PLAIN = RolePattern(r"(?i)\n[^\w\n<\[\\]{0,20}(?:ROLE|CALLED)\b(?!['’]s\s)[^\n:<\[{]{0,30}[:：]")
# The beginning and the end of a label while tags are removed. Texts that can be stored hold neither.
_BEGIN, _END = "\ud800", "\ud801"
_ANY = r"<(?:/[\w-]{1,30}|[^\W\d][\w-]{0,30}(?:\s[^<>\n]{0,200})?/?)>"
_AROUND = compile_later(rf"{_ANY}(?:\s*{_ANY})*\s*(?={_BEGIN}|\Z)")
# Elements such as `<mood>calm</mood>` next to the element of a text.
_UNITS = ("Turn ", "Message ", "Line ", "The ")  # before a speaker's name
_TEXT_TAGS = (
    "text",
    "content",
    "message",
    "utterance",
    "line",
    "says",
    "said",
    "speech",
    "words",
    "dialogue",
    "body",
)
_SPOKEN = rf"(?:{'|'.join(_TEXT_TAGS)})"
_NAMES = "|".join(sorted(_SPEAKER_TAGS))
_NOTES = rf"(?:\s*<(?!(?:{_SPOKEN}|{_NAMES})\b)(?P<note>\w{{1,30}})>[^<>\n]{{0,80}}</(?P=note)>){{1,4}}"
_NOTES_AFTER = compile_later(rf"(?i)(</{_SPOKEN}>(?:\s*{_ANY}){{0,4}}?){_NOTES}(?=\s*(?:{_ANY}|{_BEGIN}|\Z))")
_AFTER_LABEL = compile_later(rf"(?i){_END}(?:{_NOTES}(?=\s*<{_SPOKEN}\b))?\s*(?:{_OPEN}\s*)*")
_ANY_TAG = compile_later(_ANY)
_CLOSING_NEXT = compile_later(rf"\s*{_CLOSE}")
_OPENING_NEXT = compile_later(rf"\s*{_OPEN}")
_STOPS = frozenset(".!?…。！？")
_BLANKS = 16  # characters between two tags
_FEW_LABELS = 3  # names after texts: fewer may sign a quotation
_ENTITY = compile_later(r"&(?:lt|gt|quot|apos|amp|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,5});")

_ESCAPED = RolePattern(r"(?i)&lt;(?:[a-z]{1,20}\s[^<>&\n]{0,60}[\"'])?(ROLE|CALLED)\b")
_BB = RolePattern(r"(?i)\n[^\w\n\[]{0,9}\[[biu]\](?:[^\n\[(]{1,40}\()?(ROLE|CALLED)\b")
_BB_TAG = compile_later(r"(?i)\[/?[biu]\]")
_BRACKETED = RolePattern(r"(?i)\[/(ROLE|CALLED)\]")
_BRACKETED_TAG = compile_later(r"\[(/?[^\W\d]\w{0,30})\]")
_LATEX_LABEL = RolePattern(
    r"(?i)\\[a-z]{1,20}\*?[ ]?[\[{](?:[^\n\]}(]{1,40}\()?(ROLE|CALLED)\b[^\[\]{}\n]{0,40}[\]}]"
)
_LATEX = compile_later(
    r"\n[ \t]*(?:\\(?:noindent|item)\s?)?\\(?:text(?:bf|it|sc)|emph|item|speak(?:er)?|paragraph"
    r"|(?:sub){0,2}section)\*?[ ]?[\[{]([^\[\]{}\n:]{1,60}):?[\]}]:?"
)
_LATEX_BLOCK = compile_later(
    r"\n[ \t]*\\(?:begin|end)\{[^{}\n]{1,40}\}(?:\[[^\[\]\n]{0,80}\])?[ \t]*(?=\n|\Z)"
)
_LATEX_QUOTES = compile_later(r"``([^\n`]*?)''(?=[^\S\n]*(?:\n|\\))")
_TIME = r"(?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3}"
# The times of a subtitle, with its number before them and the name of its voice after them.
_FEW = 2  # subtitles that may be spoken about
_CUE = compile_later(
    rf"\n(?:\d{{1,5}}[ \t]*\n)?[ \t]*{_TIME} --> {_TIME}[^\n]{{0,80}}\n(?:<v ([^<>\n:]{{1,60}})>)?"
)


def without_markup(text: str, roles: RoleWords) -> str:
    """Return the text with turns in markup as lines; unchanged if its turns are not in markup."""
    marks = list_marks(text)
    if "&" in marks and "<" not in marks and "&lt;" in text and _names_two(_ESCAPED, text, roles):
        text = html.unescape(text)
        marks = list_marks(text)
    if marks.count(">") > _FEW and text.count(" --> ") > _FEW:
        text = ("\n" + text).replace("\nNOTE ", "\n").replace("</v>", "")
        return _CUE.sub(lambda shown: f"\n{shown[1]}: " if shown[1] else "\n", text)[1:]
    if "<" in marks and holds_pair(text, "</") and (lines := _without_tags(text, roles)) is not text:
        return lines
    if "[" in marks and holds_pair(text, "[/"):
        if _names_two(_BB, "\n" + text, roles):
            return _BB_TAG.sub("**", text)
        if _names_two(_BRACKETED, text, roles):
            return _without_tags(_BRACKETED_TAG.sub(r"<\1>", text), roles)
    if "\\" in marks and _names_two(_LATEX_LABEL, text, roles):
        return _LATEX_QUOTES.sub(r"“\1”", _LATEX.sub(r"\n\1:", _LATEX_BLOCK.sub("", "\n" + text)))[1:]
    return text


def _names_two(pattern: RolePattern, text: str, roles: RoleWords) -> bool:
    """Return whether markup of one kind names two speakers."""
    return len({found.lower() for found in pattern.of(roles).findall(text)}) > 1


def _put_labels_first(text: str, known: frozenset[str]) -> str:
    """Return the text with each name that follows its text, in one element with it, before this element.

    An example is `<figure><p>…</p><figcaption>Teacher</figcaption></figure>`. A text in which names come
    first is returned unchanged.
    """
    named = (
        (match.start(), text.index(">", match.end("name")) + 1)
        for match in _TAG.finditer(text)
        if match["name"] and match["name"].strip().lower() in known
    )
    first = next(named, None)
    if first is None or not _ends_as_speech(text[: first[0]]):  # most
        return text
    labels = [first, *named]
    if len(labels) < _FEW_LABELS:
        return text
    cuts: list[int] = []  # ends of the elements, each between a label and the next one's text
    for (_, end), (start, _) in zip(labels, [*labels[1:], (len(text), 0)], strict=True):
        cut = _find_end_of_element(text, end, start)
        if cut is None:
            return text
        cuts.append(cut)
    begin = _find_begin_of_element(text, labels[0][0], text.count("</", labels[0][1], cuts[0]))
    pieces = [text[:begin]]
    for (start, end), cut in zip(labels, cuts, strict=True):
        pieces += (text[start:end], text[begin:start], text[end:cut])
        begin = cut
    return "".join((*pieces, text[begin:]))


def _find_end_of_element(text: str, start: int, stop: int) -> int | None:
    """Return the end of the element around a label that ends at `start`, if the element holds no words after
    the label; None otherwise. A label of the next element starts at `stop`."""
    end = start
    while (tag := _CLOSING_NEXT.match(text, end, stop)) is not None:
        end = tag.end()
    if end == start or (stop < len(text) and _OPENING_NEXT.match(text, end, stop) is None):
        return None
    closed = len(_CLOSING.findall(text, start, end))
    depth = 0
    for tag in _ANY_TAG.finditer(text, end, stop):
        depth += -1 if tag[0][1] == "/" else tag[0][-2] != "/"
        if depth < 1 and stop < len(text):  # an element for the words alone
            return None
    return end if stop == len(text) or depth == closed else None


def _find_begin_of_element(text: str, stop: int, depth: int) -> int:
    """Return the place where the element begins that is `depth` levels around the label at `stop`."""
    tags = [*_ANY_TAG.finditer(text, 0, stop)]
    level = 0
    for tag in reversed(tags):
        level += -1 if tag[0][1] == "/" else tag[0][-2] != "/"
        if level == depth:
            return tag.start()
    return 0


class _TagLabels:
    """Labels in place of tags that name a speaker or the probability, and what they were in place of."""

    def __init__(self, text: str, known: frozenset[str]) -> None:
        self.speakers: set[str] = set()
        self.elements: set[str] = set()
        self._text = text
        self._known = known  # words for the roles
        # The speaker of a tag, and whether its name or its attributes speak of a probability. Most tags repeat.
        self._named: dict[tuple[str, str | None], tuple[str | None, bool, bool]] = {}

    def replace_tag(self, match: re.Match[str]) -> str:
        """Return the label for a tag with the text that it holds, or the tag."""
        tag, attributes, rest, name = match.groups()
        if attributes and attributes[-1] == "/" and _is_next(self._text, tag, match.end()):
            return match[0]  # the turn's text is an attribute as well
        key = (tag, attributes)
        if key not in self._named:
            inside = bool(attributes and _CHANCE.search(attributes))
            self._named[key] = _find_speaker(*key, self._known), _CHANCE.search(tag) is not None, inside
        speaker, likely, likely_inside = self._named[key]
        if speaker is not None:
            self.speakers.add(speaker.lower())
            self.elements.add(tag)
            if name is not None and name.strip().lower() == speaker.lower():
                rest = ""  # the name is the tag's whole content
            return f"{_BEGIN}\n{speaker}:{_END}{rest or ''}"
        if name is not None and self._is_speaker(name):
            self.speakers.add(name.strip().lower())
            return f"{_BEGIN}\n{name.strip()}:{_END}"
        if name is None and _CHANCE.match(self._text, match.end()):
            return f"{_BEGIN}\n"
        chance = name if name and name[-1] not in _STOPS and _CHANCE.search(name) else None
        if (chance is None and likely) or likely_inside:
            chance = "Probability"
        if chance is None:
            return match[0]
        given = _GIVEN.search(attributes) if attributes else None
        said = given[1] if given else "" if name == chance else rest or ""
        return f"{_BEGIN}\n{chance}:{_END}{said}"

    def _is_speaker(self, name: str) -> bool:
        """Return whether the text in a tag begins with a word for a role, or has one in brackets."""
        words = _WORD.findall(name)[: 1 + name.startswith(_UNITS)]
        words += _WORD.findall(name.partition("(")[2])[:1]
        return not self._known.isdisjoint(map(str.lower, words))


def _without_tags(text: str, roles: RoleWords) -> str:
    known = _list_role_words(roles)
    text = _put_labels_first(text, known)
    labels = _TagLabels(text, known)
    rewritten = _TAG.sub(labels.replace_tag, text)
    if len(labels.speakers) < 2 or _PLAIN.of(roles).search("\n" + text):
        return text
    end = _find_last_closing(rewritten, (*_TEXT_TAGS, *labels.elements))
    if end >= 0 and (number := _NUMBER.match(rewritten, end)) is not None:
        rewritten = f"{rewritten[:end]}\nProbability: {number[1]}"
    if _follow_texts(rewritten):
        return text
    rewritten = _NOTES_AFTER.sub(r"\1", rewritten)
    for tag in labels.elements:
        rewritten = rewritten.replace(f"</{tag}>", "\n")
    before, label, last = _AFTER_LABEL.sub(_END, _AROUND.sub("", rewritten)).rpartition(_END)
    # Tags that close before a label are removed by now. Remove those that close after the last turn as
    # well, unless they were opened in the turn.
    last = _CLOSING.sub(lambda tag: tag[0] if -1 < last.find(f"<{tag[1]}") < tag.start() else "", last)
    rewritten = (before + label + last).replace(_BEGIN, "").replace(_END, " ")
    if "]]>" in rewritten or "<![" in rewritten:
        rewritten = _CDATA.sub("", rewritten)
    return _ENTITY.sub(lambda match: html.unescape(match[0]), rewritten) if "&" in rewritten else rewritten


def _find_last_closing(text: str, tags: Collection[str]) -> int:
    """Return the place where the last of these tags is closed, or -1."""
    at = text.rfind("</")
    while at >= 0 and ((tag := _CLOSING.match(text, at)) is None or tag[1] not in tags):
        at = text.rfind("</", 0, at)
    return at


def _is_next(text: str, tag: str, at: int) -> bool:
    """Return whether the same element follows at a place, blanks aside."""
    return text[at : at + _BLANKS + len(tag)].lstrip().startswith(f"<{tag}")


def _follow_texts(rewritten: str) -> bool:
    """Return whether the labels seem to follow their texts: a sentence stands before the first label, and
    only the probability after the last one."""
    if not _ends_as_speech(rewritten.partition(_BEGIN)[0]):  # most
        return False
    last = rewritten
    while last:
        last, _, rest = last.rpartition(_BEGIN)
        label, _, said = rest.partition(_END)
        if _CHANCE.search(label) is None:
            break
    below = _ANY_TAG.sub("", said).split("\n")
    return all(not line.strip() or _CHANCE.search(line) for line in below)


def _ends_as_speech(text: str) -> bool:
    """Return whether the last line of a text ends as a sentence does, its tags aside."""
    words = _ANY_TAG.sub(" ", text).strip()
    return words[-1:] in _STOPS


def _find_speaker(tag: str, attributes: str | None, known: frozenset[str]) -> str | None:
    """Return the speaker's word in the name or an attribute of an opening tag; None without one."""
    if (
        part := _PART.fullmatch(
            tag if tag.islower() and "-" not in tag else split_camel_case(tag).replace("-", "_")
        )
    ) is not None and part[1].lower() in known:
        return part[1]
    if attributes is None:
        return None
    given = _ANY_ATTRIBUTE if tag.lower() in _SPEAKER_TAGS else _ATTRIBUTE
    for value in given.finditer(attributes):
        word = next((word for word in _WORD.findall(value[1] or value[2]) if word.lower() in known), None)
        if word is not None:
            return str(word)
    return None


@cache
def _list_role_words(roles: RoleWords) -> frozenset[str]:
    """Return every word for a role, in any language, that is more than a letter."""
    words = {*roles.by_name, *roles.aliases}
    words |= {word for by_role in roles.languages.values() for some in by_role for word in some}
    return frozenset(word for word in words if len(word) > 1)
