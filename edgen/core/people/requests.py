"""Requests to people: requests that a person answers, with what that person may see.

A protocol states the `View` of a request that people answer; `view_of` (edgen.protocols.views) makes one for
any other request. The request waits in the mailbox of a run (`edgen.store.people.mailbox`) until somebody
answers it.

The fields of an answer are places to fill in, one for each property of the form's JSON Schema. One list of
fields serves every page and the terminal, for any protocol. People write a text, choose a value or a step of
a short scale, mark several values, or write a list, one item a line. The view has words for values.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from edgen.core.errors import UsageError
from edgen.core.values import Address, AnswerTimes, TaskId


class Offer(msgspec.Struct, frozen=True, array_like=True):
    """A value that a field of the answer may take, in words. `hint`: the protocol recommends it."""

    field: str
    value: str | int | float
    words: str
    hint: bool = False


class View(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of a request that is shown to the person who answers it: only what the role knows."""

    role: str = ""
    """The role that the person plays, in the space's words; empty for a judge or a labeller."""
    facts: tuple[tuple[str, str], ...] = ()
    """Knowledge of the role: a label and a value each."""
    turns: tuple[tuple[str, str], ...] = ()
    """Turns so far: speaker and text."""
    sides: tuple[tuple[tuple[str, str], ...], ...] = ()
    """Texts to compare, in the order in which they are shown: speaker and text of the turns of each."""
    text: str = ""
    """Anything else to read before answering: a task, a pair, questions."""
    offers: tuple[Offer, ...] = ()
    """Words for values that fields of the answer may take, in the order in which they are offered."""
    questions: tuple[tuple[str, str], ...] = ()
    """A field of the answer and the question that it answers, where its name does not say it."""
    closing: str = ""
    """The end of a text whose speaker closes the conversation; empty: nobody can."""

    def with_(self, **fields: Any) -> View:
        """Return the view with other values of these fields."""
        return msgspec.structs.replace(self, **fields)


class PersonRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request that waits for a person."""

    key: str  # identifies everything that shapes the answer
    address: Address  # of the call
    role: str  # of the job that the person answers for
    view: View  # shown to the person
    schema: bytes = b""  # JSON Schema of the answer; empty: any text
    again: str = ""  # why the person's last answer could not be used
    wait: float = 3600.0  # seconds that a person who took the conversation has for the answer
    arm: str = ""  # the ledger that it belongs to
    together: tuple[str, ...] = ()  # all roles that people play in this conversation


class PersonAnswer(NamedTuple):
    """A person's answer to a request, and when it was given."""

    text: str
    times: AnswerTimes


class AskPeople(Protocol):
    """A way to ask people."""

    async def ask(self, request: PersonRequest) -> PersonAnswer | None:
        """Wait for the answer to a request; return None if the person left."""

    async def end(self, scenario: int, task: TaskId) -> None:
        """Note that no more requests follow about a task, such as a conversation."""


_LONGEST_SCALE = 11  # steps of a scale that are shown as choices
_LONGEST = 20_000  # characters of an answer of any form
_UNSEEN = ("Cc", "Cf", "Mn", "Zl", "Zp", "Zs")  # categories of characters that show nothing
_MOST_LINES = 1_000  # lines of a list
_NUMBERED = re.compile(r"^(?:[-*•]|\(?\d{1,3}[.):])\s+")  # signs before a line of a list

Kind = Literal["text", "choice", "several", "number", "texts", "numbers", "json"]


class FieldChoice(NamedTuple):
    """One value of a field, as it is shown. `hint`: it is recommended."""

    value: str | int | float | bool
    words: str
    hint: bool = False


class Field(NamedTuple):
    """One part of an answer."""

    name: str  # empty for a whole answer without a form
    kind: Kind  # of its value
    choices: tuple[FieldChoice, ...] = ()  # values to choose from
    least: int = 0  # the smallest number
    most: int = _LONGEST  # characters of a text, the largest number, or lines of a list
    own: str = ""  # the other field whose value the person writes here instead of choosing there
    asks: str = ""  # the question that it answers, if any

    @property
    def inner(self) -> str:
        """The name without that of the field in whose place it is."""
        return self.name.removeprefix(f"{self.own}.")

    @property
    def worded(self) -> bool:
        """True if people see other words than its values."""
        return any(one.words != str(one.value) and not isinstance(one.value, bool) for one in self.choices)

    @property
    def label(self) -> str:
        """The question, else the name in words."""
        label = self.asks or self.inner.replace("_", " ").capitalize()
        if not self.is_list:
            return label
        count = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        return f"{label}: {count}, one on each line"

    @property
    def most_characters(self) -> int:
        """The largest number of characters that a person may write."""
        return self.most if self.kind == "text" else _LONGEST

    @property
    def is_list(self) -> bool:
        """True if people write one item a line."""
        return self.kind in ("texts", "numbers")


def list_fields(request: PersonRequest) -> tuple[Field, ...]:
    """Return the fields of the answer to a request, in the order of its form."""
    if not request.schema:
        return (Field("", "text", least=1),)
    properties: Mapping[str, Any] = msgspec.json.decode(request.schema).get("properties") or {}
    if not properties:
        return (Field("", "json"),)
    offers, questions = request.view.offers, dict(request.view.questions)
    found: list[Field] = []
    for name, part in properties.items():
        words = {
            one.value: FieldChoice(one.value, one.words, one.hint) for one in offers if one.field == name
        }
        found += (
            field._replace(asks=questions.get(name, "")) for field in _list_part_fields(name, part, words)
        )
    return tuple(found)


def _list_part_fields(
    name: str, part: Mapping[str, Any], words: Mapping[Any, FieldChoice]
) -> Iterator[Field]:
    """Yield the fields of a part of an answer: one, or for a choice, one for each of its parts."""
    ways = part.get("anyOf")
    if ways is None:
        yield _make_field(name, part, words)
        return
    for way in ways:
        inner = way.get("properties", {})
        yield from (_make_field(f"{name}.{key}", one, {})._replace(own=name) for key, one in inner.items())
        if not inner:
            yield _make_field(name, way, words)


def _make_field(name: str, part: Mapping[str, Any], words: Mapping[Any, FieldChoice]) -> Field:
    values = _list_values(part)
    if words and part.get("type") != "array":
        return Field(name, "choice", tuple(words.values()))
    if values is not None:
        return Field(name, "choice", tuple(_make_choice(value) for value in values))
    kind = part.get("type")
    if kind == "string":
        return Field(name, "text", least=part.get("minLength", 0), most=part.get("maxLength", _LONGEST))
    if kind == "integer":
        return Field(name, "number", least=part["minimum"], most=part["maximum"])
    items = part.get("items", {})
    if kind == "array" and (words or "enum" in items) and (values := _list_values(items)) is not None:
        least, most = part.get("minItems", 0), part.get("maxItems", len(values))
        return Field(
            name, "several", tuple(words.get(value) or _make_choice(value) for value in values), least, most
        )
    if kind == "array" and (each := _LISTED.get(items.get("type"))) is not None:
        return Field(name, each, least=part.get("minItems", 0), most=part.get("maxItems", _MOST_LINES))
    return Field(name, "json")


_LISTED: Mapping[Any, Kind] = {"string": "texts", "integer": "numbers"}


def _list_values(part: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return the values that a part may have, if they are few enough to show."""
    if "enum" in part:
        values: Sequence[Any] = part["enum"]
        return values
    if part.get("type") == "boolean":
        return (True, False)
    low, high = part.get("minimum"), part.get("maximum")
    if part.get("type") == "integer" and low is not None and high is not None and high - low < _LONGEST_SCALE:
        return range(low, high + 1)
    return None


def _make_choice(value: Any) -> FieldChoice:
    words = {True: "Yes", False: "No"}.get(value) if isinstance(value, bool) else str(value)
    return FieldChoice(value, words or str(value))


def write_answer(fields: Sequence[Field], texts: Mapping[str, Sequence[str]]) -> str:
    """Return a person's answer as a reply: the text alone without a form, else a JSON object.

    `texts` has the texts of each field by its name; a value is named by its JSON. Raises UsageError, with a
    sentence for the person, for an answer that does not fit.
    """
    if [field.name for field in fields] == [""]:
        said = _read_visible_text(texts, "")
        if not said:
            raise UsageError("Write an answer first.")
        return _check_length(said, _LONGEST)
    own = {field.own for field in fields if field.own and _read_visible_text(texts, field.name)}
    answer: dict[str, Any] = {}
    for field in fields:
        if field.own in own or not (field.own or field.name in own):
            value = _read(field, texts.get(field.name) or [])
            answer[field.own or field.name] = {field.inner: value} if field.own else value
    return msgspec.json.encode(answer).decode()


def _read_visible_text(given: Mapping[str, Sequence[str]], name: str) -> str:
    """Return the text of a field, stripped; empty if all its characters are invisible."""
    said = (given.get(name) or [""])[0].strip()
    return said if any(unicodedata.category(char) not in _UNSEEN for char in said) else ""


def _check_length(text: str, most: int, label: str = "") -> str:
    """Return a text. Raises UsageError if it is longer than `most` characters."""
    if len(text) > most:
        begin = f"{label}: this" if label else "This"
        raise UsageError(f"{begin} has {len(text):,} characters; at most {most:,} fit.")
    return text


def _read(field: Field, said: Sequence[str]) -> Any:
    text = _read_visible_text({field.name: said}, field.name)
    label = field.label.removesuffix("?")
    if field.kind == "text":
        if len(text) < field.least:
            raise UsageError(f"{label}: write something first.")
        return _check_length(text, field.most, label)
    if field.is_list:
        return _read_lines(field, text)
    if field.kind == "number":
        if not (text.lstrip("-").isascii() and text.lstrip("-").isdecimal() and len(text) < 12):
            raise UsageError(f"{label}: give a whole number from {field.least} to {field.most}.")
        if not field.least <= int(text) <= field.most:
            raise UsageError(f"{label}: give a whole number from {field.least} to {field.most}.")
        return int(text)
    if field.kind == "json":
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            raise UsageError(f"{label}: this is not JSON.") from None
    named = {msgspec.json.encode(one.value).decode(): one.value for one in field.choices}
    if any(one not in named for one in said):
        raise UsageError(f"{label}: choose one of the options.")
    if field.kind == "choice":
        if not said:
            raise UsageError(f"{label}: choose one.")
        return named[said[0]]
    chosen = list(dict.fromkeys(named[one] for one in said))
    if not field.least <= len(chosen) <= field.most:
        raise UsageError(f"{label}: choose {field.least} to {field.most}.")
    return chosen


def _read_lines(field: Field, text: str) -> list[str] | list[int]:
    """Return the items of a list, without numbers or bullets before texts. Raises UsageError for an invalid
    list."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and field.kind == "numbers":
        lines = re.findall(r"-?\w+", text)
    if not field.least <= len(lines) <= field.most:
        count = field.least if field.least == field.most else f"{field.least} to {field.most}"
        raise UsageError(f"{field.label}. Expected {count}, got {len(lines)}.")
    if field.kind == "texts":
        return [_NUMBERED.sub("", line) for line in lines]
    if any(not (line.isascii() and line.isdecimal() and len(line) < 12) for line in lines):
        raise UsageError(f"{field.label}. Write whole numbers only.")
    return [int(line) for line in lines]
