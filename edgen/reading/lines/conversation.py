"""Read the turns of a text in lines, and the text around them: heading, probability, end marker, chatter.

`find_in_lines` cuts a text at its labels; `read_cut_lines` reads a text that was cut. Linear in the length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from edgen.core.text import compile_later
from edgen.reading.assembly import FoundParts
from edgen.reading.lines.foot import split_foot
from edgen.reading.lines.line import (
    Inside,
    LineGroup,
    Lines,
    RoleLine,
    cut_at_end,
    drop_nested,
    have_two_speakers,
    look_inside,
    split_groups,
    strip_half_marks,
    take_note,
)
from edgen.reading.lines.role_lines import cut_at_other_words, split_lines
from edgen.reading.lines.shared_marks import drop_shared_marks, without_quote_marks
from edgen.reading.repairs import Repair
from edgen.reading.roles import RolePattern, RoleWords
from edgen.reading.text import surroundings
from edgen.reading.text.characters import fold
from edgen.reading.text.marker import find_marker, may_mark
from edgen.reading.text.quotes import (
    CLOSING_MARKS,
    ODD_ENDS,
    find_layout_openers,
    holds_invisible,
    is_silent,
    note_words_after,
    strip_tokens,
    unwrap,
    unwrap_plain,
)

# A list of quoted turns that stands on one line.
_INLINE = RolePattern(r"(?i)(?:(?<=[\[,\"”])[^\S\n]{1,9}|(?<=\[))(?=(?:NAME):[^\S\n]{0,9}[\"“])")
# The second of two turns on one line.
_PAIRED = RolePattern(r"(?<=[.!?…\"”)])[^\S\n]{1,3}(?=(?:NAME|UPPER):[^\S\n]\S)")
# Labels inside of a line, what may separate them, and the marks before and after them.
_SEPARATED = RolePattern(
    r"(?i)(?:^|[ ]?(?:[|/;•·]{1,3}|<\w{1,5}>|[-–—]{1,3})?[ ])(?:\[(?=(?:ROLE):))?(?P<before>[^\w\s]{0,3})(?P<name>ROLE|probability)"
    r"(?P<after>[^\w\s]{1,5})(?=[ ])"
)
_FEW_BELOW = 3  # labels below their texts, the last one aside
_FEW_LINES = 6  # of a reply with several turns on a line
_LEAST_SEPARATED, _MOST_SEPARATED = 4, 400  # such labels
_STOPPERS = frozenset("]}`~-=*_#<[tTeErR")  # first characters of a line that may end a turn
_HALVES = frozenset("*_|")  # last characters of a turn that may be the other half of a mark before its role
_STAGES = frozenset("([*")  # first characters of a stage direction
_FOOT = compile_later(r"(?i)\][^\S\n]{1,9}Probability")
_DELIMITERS = (",", ";", "\t")  # between the cells of a table
_LABELS, _LONGEST_LABEL = 2, 40  # the last labels, and characters of the beginning of one
_COUNT = compile_later(r"\d+")
MAX_CONVERSATIONS = 100  # of a reply; later ones are ignored


@dataclass(slots=True)
class LineConversation(FoundParts):
    """One conversation in a text; `head` is the text before its first turn."""

    head: str = ""
    finished: bool = False  # an end marker or a probability stands after its turns

    @property
    def speakers(self) -> int:
        """Return the number of roles that say something."""
        return len({role for role, text, _ in self.entries if not is_silent(text)})


def find_in_lines(text: str, roles: RoleWords) -> LineConversation | None:
    """Return the first conversation of two roles in a text; None if the text has no turns.

    A conversation under a heading comes before others.
    """
    found, inline = _cut_text(text, roles)
    return None if not found.lines or _follow_texts(found) else read_cut_lines(found, roles, inline=inline)


def _cut_text(text: str, roles: RoleWords) -> tuple[Lines, bool]:
    """Return a text cut at the lines that start a turn, and whether two turns stood on one line."""
    found = split_lines(text, roles)
    if have_two_speakers(found.lines):
        return found, False
    if text.count("\n") <= _FEW_LINES and (broken := _break_line(text, roles)) is not None:
        return split_lines(broken, roles), True
    second = _PAIRED if found.lines[1:] else _INLINE
    labelled = found.lines[1:] or any(f"{name}:" in text for name in roles.names)
    if not labelled or second.of(roles).search(text) is None:
        return found, False
    return split_lines(_FOOT.sub("]\nProbability", second.of(roles).sub("\n", text)), roles), True


def _break_line(text: str, roles: RoleWords) -> str | None:
    """Return a text with a line for each turn, if labels inside of lines have one form and alternate."""
    found = [*islice(_SEPARATED.of(roles).finditer(text), _MOST_SEPARATED)]
    forms = Counter([label.group("before", "after") for label in found])
    form = max(forms, key=forms.__getitem__, default=None)
    labels = [label for label in found if label.group("before", "after") == form]
    spoken = [label["name"].lower() for label in labels if label["name"].lower() in roles.by_name]
    if len(spoken) < _LEAST_SEPARATED or any(map(str.__eq__, spoken, spoken[1:])):
        return None
    ends = [label.start() for label in labels[1:]]
    turns = [text[label.start("before") : end] for label, end in zip(labels, [*ends, len(text)], strict=True)]
    return "\n".join([text[: labels[0].start()], *turns])


def read_cut_lines(found: Lines, roles: RoleWords, *, inline: bool = False) -> LineConversation:
    """Return the first conversation of two roles in a text that was cut.

    A conversation under a heading comes before others. `found` has at least one line. `inline`: two turns
    stood on one line of the text.
    """
    inside, cut = look_inside(found.lines), found
    if have_two_speakers(found.lines):
        found = cut_at_other_words(found, roles, last=not inside.called)
    quoted = ">" in found.lines[0].prefix and all(
        line.prefix.lstrip().startswith(">") for line in found.lines
    )
    if quoted:
        found = without_quote_marks(found)
    shares = inside.may_share(found.lines[0].body.strip()) or found.lines[0].label[-1:] in _DELIMITERS
    bodies = [line.body for line in found.lines] if shares else []
    headed = shares and drop_shared_marks(found, several=inside.several)
    if quoted or found is not cut or (shares and bodies != [line.body for line in found.lines]):
        inside = look_inside(found.lines)
    blocks = [_read_block(group, inside, roles) for group in split_groups(found, inside)[:MAX_CONVERSATIONS]]
    if inline or quoted:
        blocks[0].repairs.append(Repair.LAYOUT)
    for block in blocks if headed else ():
        block.repairs.append(Repair.STRAY_TEXT)
    if len(blocks) == 1:
        return blocks[0]
    preface = surroundings.HEADING.search(found.head) is None and not blocks[0].finished
    order = blocks[1:] + blocks[:1] if preface else blocks
    chosen = next((block for block in order if block.speakers > 1), order[0])
    if any(block.speakers > 1 and block is not chosen for block in (blocks[1:] if preface else blocks)):
        chosen.repairs.append(Repair.EXTRA_CONVERSATION)
        return chosen
    if chosen is not blocks[0]:
        chosen.repairs.append(Repair.PREAMBLE)
    if chosen is not blocks[-1]:
        chosen.repairs.append(Repair.POSTAMBLE)
    return chosen


def _read_block(group: LineGroup, inside: Inside, roles: RoleWords) -> LineConversation:
    """Return the conversation of a group of lines."""
    whole = len(group.lines) == len(inside.texts)
    texts = inside.texts if whole else [line.body.strip() for line in group.lines]
    firsts = [text[:1] for text in texts]
    drop_nested(group, firsts)
    cut_at_end(group, inside)
    lines, head = group.lines, group.head
    noted = take_note(lines) if inside.given else []
    if noted or len(lines) < len(texts):
        texts = [line.body.strip() for line in lines]
        firsts = [text[:1] for text in texts]
    before = "".join({line.prefix for line in lines})
    departs = _departs(group, firsts, before)
    if "\\" in firsts:
        for line in lines:
            if line.body.lstrip().startswith('\\"'):
                line.body = line.body.replace('\\"', '"')
        texts = [line.body.strip() for line in lines]
        firsts = [text[:1] for text in texts]
    fenced = ("```" in head or "~~~" in head) and len(surroundings.FENCE.findall(head)) % 2 == 1
    given, rest = surroundings.split_probabilities(head) if head else ([], "")
    bracketed = surroundings.is_list_opened(head)
    block = LineConversation(head=head)
    repairs = block.repairs
    repairs += [Repair.CODE_FENCE] if fenced else []
    if rest and surroundings.has_words(rest):
        repairs.append(Repair.PREAMBLE)
    repairs += [Repair.LAYOUT] if departs or not bracketed else []
    if not group.plain:
        repairs += [Repair.ROLE_NAME] if True in [line.named for line in lines] else []
        repairs += [Repair.ROLE_ALIAS] if True in [line.aliased for line in lines] else []
    reader = _Reader(block, find_layout_openers(firsts), fenced, bracketed, _is_comma_list(texts), roles)
    reader.add_turns(lines, texts, inside, before)
    tail = reader.add_turn(lines[-1], lines[-1].body, last=True)
    role, said, ended = block.entries[-1]
    if "\n" in said and not (ended or tail.strip()) and _is_label_begun(said, lines):
        said = said[: said.rindex("\n")].rstrip()
        block.entries[-1] = (role, said, ended)
        repairs.append(Repair.STRAY_DEBRIS)
    if "\n" in said and not (inside.several or ended):
        said, foot = split_foot(said, len(lines))
        block.entries[-1], tail = (role, said, ended), f"{foot}\n{tail}" if foot else tail
    if bracketed and "]" not in lines[-1].body and "]" not in group.late:
        block.repairs.append(Repair.LAYOUT)
    _read_tail(block, tail, group.late, given or noted)
    return block


def _read_tail(block: LineConversation, tail: str, late: str, given: list[Any]) -> None:
    """Read the text after the last turn; `late` are the role lines after the conversation's end."""
    if ("```" in tail or "~~~" in tail) and surroundings.FENCE.search(tail):
        block.repairs.append(Repair.CODE_FENCE)
    values, rest = surroundings.split_probabilities(tail)
    values = values or surroundings.split_probabilities(late)[0]
    block.probabilities = values or given or surroundings.find_last_value(rest)
    alone = block.head[:2].strip()[:1].isdigit() and "\n" not in block.head.strip()
    if alone and not (block.probabilities or surroundings.is_likely(fold(tail))):
        block.probabilities = surroundings.find_last_value(block.head)  # a number alone
    ended = True in [ended for _, _, ended in block.entries]
    if late and ended:
        block.repairs.append(Repair.AFTER_END_MARKER)
    marked = find_marker(rest)
    if marked is not None:
        rest = marked.said + rest[marked.end :]
        if not ended:
            block.unspoken = True
            block.repairs += marked.repairs
    block.finished = bool(values) or block.unspoken or ended
    if surroundings.has_words(rest):
        block.repairs.append(Repair.POSTAMBLE)


def _is_label_begun(said: str, lines: Sequence[RoleLine]) -> bool:
    """Return whether the reply breaks off inside a label or an end marker, on the last turn's last line."""
    begun = _COUNT.sub("0", said[said.rindex("\n") :].strip())
    named = len(begun) <= _LONGEST_LABEL and any(map(str.isalpha, begun))
    if begun[:1] == "[" and named and "[end of conversation]".startswith(begun.lower()):
        return True
    return named and any(_COUNT.sub("0", line.label.strip()).startswith(begun) for line in lines[-_LABELS:])


def _is_comma_list(texts: list[str]) -> bool:
    """Return whether all turns but perhaps the last end with the comma of a list."""
    if texts[0][-1:] not in (",", "\\"):  # most
        return False
    ends = {text[-1:] for text in texts[:-1]}
    return ends == {","} or (
        ends != set() and ends <= {",", "\\"} and all(text.endswith((",", ",\\")) for text in texts[:-1])
    )


def _departs(group: LineGroup, firsts: list[str], before: str) -> bool:
    """Return whether the lines differ from those of the published layout.

    `before`: the marks before their labels.
    """
    if "onversation" not in group.head or {*firsts} != {'"'} or before.strip():
        return True
    return not group.plain and {line.kind for line in group.lines} != {"colon"}


@dataclass(slots=True)
class _Reader:
    """Takes the bodies of one block's turns, one after the other, and adds them to the block."""

    block: LineConversation  # gets the turns and their repairs
    openers: Collection[str]  # opening quotation marks that belong to the layout
    fenced: bool  # a code block is open where the turns begin
    bracketed: bool  # the list that the turns stand in was opened
    listed: bool  # all turns but perhaps the last end with the comma of a list
    roles: RoleWords  # roles of the conversation

    def add_turns(self, lines: Sequence[RoleLine], texts: Sequence[str], inside: Inside, before: str) -> None:
        """Add all turns but the last; `texts` are their stripped bodies, `before` the marks before labels.

        A turn of which only the ends may belong to the layout is read here, any other by `add_turn`. A mark
        that no turn has is not searched for.
        """
        marks, several, marked = inside.marks, inside.several, inside.marked
        escaped, invisible = "\\" in marks, holds_invisible(marks)
        staged = '"' in self.openers
        halved, opened = bool(before.strip()), any(map(before.__contains__, "<[("))
        listed, openers, entries = self.listed, self.openers, self.block.entries
        for line, text in zip(lines[:-1], texts, strict=False):
            said: str | None = text
            if (invisible and holds_invisible(text)) or (marked and may_mark(fold(text))):
                said = None
            elif several and ("\n" in text or (line.body[:1] == "\n" and text[:1] in _STOPPERS)):
                said = self._without_rule(line.body.rstrip()).strip() or None
            if said is not None:
                if said[-1:] == ">":
                    said = strip_tokens(said, self.block.repairs)
                if listed and said[-1:] == ",":
                    said = said[:-1].rstrip()
                if halved and (opened or said[-1:] in _HALVES or said[:1] == ">"):
                    said = strip_half_marks(line, said, self.roles).strip()
                first = said[:1]
                if first in openers:
                    said = unwrap_plain(said, first)
                elif (staged and first in _STAGES) or (escaped and '\\"' in said):
                    said = None
            if said is None or said[-1:] in ODD_ENDS or said[-2:-1] in CLOSING_MARKS:
                self.add_turn(line, line.body, last=False)
            else:
                entries.append((line.role, said, False))

    def _without_rule(self, said: str) -> str:
        """Return the text of a turn without the rules at its end; nothing if another line may end it."""
        said = said[: surroundings.find_rules_start(said)].rstrip()
        start = said.find("\n")
        if start < 0 or ("\n" not in said.lstrip() and said.lstrip()[:1] not in _STOPPERS):
            return said
        return said if surroundings.STOP.search(said, start) is None else ""

    def add_turn(self, line: RoleLine, body: str, *, last: bool) -> str:
        """Add a turn; return the text after the turn that still has to be read, or "".

        Dropped words after a turn are noted as a repair.
        """
        repairs = self.block.repairs
        marked = find_marker(body)
        said = (
            body
            if marked is None
            else surroundings.close_quotation(marked.said, body[marked.end :], self.openers)
        )
        end, closed = surroundings.find_end_of_turn(
            said, self.openers, last=last, fenced=self.fenced, bracketed=self.bracketed
        )
        if (
            last
            and marked is not None
            and not closed
            and surroundings.is_end_of_speech(marked.said, body[marked.end :])
        ):
            end = len(said)
        between = said[end:]
        text = said[:end]
        if self.listed and marked is None and text.rstrip().endswith(","):
            text = text.rstrip()[:-1]
        text = unwrap(strip_half_marks(line, text.rstrip(), self.roles), self.openers, repairs)
        if marked is None and (bare := find_marker(text)) is not None:
            repairs += bare.repairs
            self.block.entries.append((line.role, unwrap(bare.said, (), repairs), True))
            return body[end:]
        outside = marked is not None and bool(between.strip(' \t\r\n,;"”*_'))
        if marked is not None and closed and "\n" in between and not outside:
            repairs.append(Repair.UNSPOKEN_MARKER)
        if marked is not None and not (outside and last):
            repairs += marked.repairs
            self.block.entries.append((line.role, text, True))
            behind, _, below = body[marked.end :].partition("\n")
            note_words_after(behind, repairs)
            return below
        self.block.entries.append((line.role, text, False))
        if last:
            return body[end:]
        if surroundings.has_words(between[: surroundings.find_rules_start(between)]):
            repairs.append(Repair.STRAY_TEXT if closed else Repair.POSTAMBLE)
        return ""


def _follow_texts(found: Lines) -> bool:
    """Return whether all labels stand below the texts that they name, each before a blank line, or are short
    texts before who says them: `Okay. (Student)`."""
    if found.lines[0].kind == "colon":
        return False
    if _are_signed_texts(found):
        return True
    bodies = [line.body for line in found.lines[:-1]]
    before = [found.lead, *bodies]
    return (
        len(bodies) >= _FEW_BELOW
        and all(text.strip() and not text.rstrip(" \t").endswith(("\n", "|>")) for text in before)
        and all(
            body.lstrip(" \t").startswith("\n") and not body.lstrip(" \t")[1:].partition("\n")[0].strip()
            for body in bodies
        )
    )


def _are_signed_texts(found: Lines) -> bool:
    """Return whether all labels are a name and a role in brackets, which other lines end with, too."""
    closing = found.lines[0].label.rstrip()[-1:]
    if closing not in (")", "]") or not all(line.named and line.kind == "alone" for line in found.lines):
        return False
    signs = tuple({f"{line.role.lower()}{closing}" for line in found.lines})
    lines = "\n".join([found.lead, *[line.body for line in found.lines]]).lower().split("\n")
    return any(line.rstrip().endswith(signs) for line in lines)
