"""The declaration of a vendor's dialect, and the common parts of all dialects: calls, errors, pieces of a
stream."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import msgspec

from edgen.core.pictures import WORDS, parse_picture
from edgen.core.values import Message, Reply, Usage
from edgen.simulator.config import CHARS_PER_TOKEN
from edgen.simulator.faults import Fault
from edgen.simulator.logprobs import MOST as MOST_TOKENS
from edgen.simulator.schemas.schema_patterns import UnfitSchema
from edgen.simulator.schemas.structured import read_schema

MODEL = "edgen-simulator"
MARK = {"x-edgen-simulated": "true"}  # headers of every answer
JSON = {**MARK, "Content-Type": "application/json; charset=utf-8"}
MOST_CHOICES = 128
_PIECE = 48  # characters, whole tokens

T = TypeVar("T")
encode = msgspec.json.Encoder().encode


class WireCall(NamedTuple):
    """One call, independent of the vendor."""

    messages: tuple[Message, ...]  # messages of the prompt
    model: str  # name of the model
    seed: int | None = None  # None: none requested
    temperature: float | None = None  # None: not stated
    max_tokens: int | None = None  # most tokens of the answer; None: not stated
    stop: tuple[str, ...] = ()  # texts at which the answer ends
    choices: int = 1  # number of answers
    json_mode: bool = False  # the answer must be a JSON object
    stream: bool = False  # the answer is sent in parts
    include_usage: bool = False  # a stream ends with its usage
    schema: bytes | None = None  # schema that the answer must fit; None without one
    tool: str | None = None  # the answer is the arguments of a call of this tool; None: text
    top_logprobs: int | None = None
    """Likely tokens to return at each position; None without log probabilities."""
    repeated: Mapping[str, Any] | None = None  # request fields that the answer repeats


class Refusal(NamedTuple):
    """An error answer: status, body, and additional headers."""

    status: int
    body: bytes
    headers: dict[str, str]


class BadCall(Exception):  # noqa: N818 - an answer to give, not a failure of this program
    """An invalid request. Its text is a sentence for the caller; `field` is the invalid field, if the vendor
    names it separately."""

    def __init__(self, message: str, field: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.field = field
        self.status = status


class Trouble(NamedTuple):
    """An error, independent of how a vendor writes it."""

    status: int  # HTTP status
    message: str  # text for the caller; `{model}` is the call's model
    kind: str = ""  # the vendor's type of the error; empty: by status
    code: str | None = None  # the vendor's code of the error
    field: str | None = None  # the invalid field


Action = Literal["complete", "stream", "count", "models", "model"]

VERTEX = "(?:/projects/[^/]+/locations/[^/]+/publishers/google)?"  # Vertex AI's project before a model
MODEL_PATHS: dict[str, Action] = {"(?:/v1)?/models": "models", f"(?:/v1)?{VERTEX}/models/([^:]+)": "model"}
"""Paths that all vendors have; clients without a configured version leave it out."""


class Dialect(ABC):
    """A vendor's format of single calls: its paths, and its requests, answers and errors. Every method is a
    pure function."""

    paths: ClassVar[Mapping[str, Action]]  # patterns of paths with their actions; a group is the model
    headers: ClassVar[Collection[str]] = ()  # headers that only this vendor's clients send
    faults: ClassVar[Mapping[str, Trouble]]  # errors by transport fault
    kinds: ClassVar[Mapping[int, str]] = {}  # error types by status
    other_kind: ClassVar[str]  # type of other errors

    @abstractmethod
    def read(self, body: bytes, model: str = "", *, stream: bool = False) -> WireCall:
        """Read a call from a body. Some paths also state the model and streaming. Raises BadCall."""

    def count(self, body: bytes) -> bytes:  # noqa: ARG002
        """Answer a request to count the tokens of a body. Raises BadCall."""
        raise BadCall("Tokens cannot be counted here.")

    @abstractmethod
    def answer(self, call: WireCall, replies: Sequence[Reply], name: str) -> bytes:
        """Return the body of a whole answer. `name`: 24 hex digits that identify the request."""

    @abstractmethod
    def render_events(self, call: WireCall, replies: Sequence[Reply], name: str) -> Iterator[bytes]:
        """Yield the answer as server-sent events."""

    @abstractmethod
    def render_error(self, trouble: Trouble, seconds: float | None = None) -> Refusal:
        """Return an error. `seconds`: the wait before the next attempt."""

    @abstractmethod
    def describe_model(self, name: str) -> dict[str, Any]:
        """Return one model."""

    @abstractmethod
    def list_models(self, models: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return a page of models."""

    def make_fault(self, chosen: Fault, call: WireCall) -> Refusal:
        """Return the error for a transport fault with an HTTP status."""
        trouble = self.faults[chosen.name]
        kind = trouble.kind or self._find_kind(trouble.status)
        said = trouble._replace(kind=kind, message=trouble.message.format(model=call.model))
        return self.render_error(said, chosen.seconds)

    def make_error(self, status: int, message: str, field: str | None = None) -> Refusal:
        """Return an error caused by the caller; `field` as in BadCall."""
        return self.render_error(Trouble(status, message, self._find_kind(status), field=field))

    def _find_kind(self, status: int) -> str:
        return self.kinds.get(status, self.other_kind)


def decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Decode the body. Raises BadCall."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadCall(f"The request body cannot be read: {problem}.") from None


def check_fields(body: bytes, known: Container[str], only: Mapping[str, object]) -> None:
    """Raise BadCall for a field that is not `known`. Every field may be null. Fields in `only` may have only
    the value given there."""
    for name, raw in decode(_FIELDS, body).items():
        if name in known or bytes(raw) == b"null":
            continue
        if name not in only or msgspec.json.decode(raw) != only[name]:
            raise BadCall(f"The field '{name}' cannot be simulated; leave it out.", name)


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def parse_schema(value: Any) -> bytes:
    """Return a schema for an answer. Raises BadCall for an unsupported one."""
    try:
        return read_schema(value)
    except UnfitSchema as problem:
        raise BadCall(f"The schema cannot be obeyed: {problem}.") from None


def find_tool(tools: Mapping[str, Any], named: str | None) -> dict[str, Any]:
    """Return the fields of a Call for a required tool (`named`, or the first): its name and the schema of its
    arguments. Raises BadCall."""
    if not tools or (named is not None and named not in tools):
        raise BadCall(f"There is no tool {named!r}." if named else "There is no tool to call.")
    name = named or next(iter(tools))
    return {"tool": name, "schema": parse_schema(tools[name])}


def split_pieces(text: str) -> Iterator[str]:
    """Yield the text in pieces of 48 characters, as a stream would."""
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def pair_pieces_with_tokens(text: str, tokens: Sequence[T]) -> Iterator[tuple[str, Sequence[T]]]:
    """Yield the pieces of a text, each with its tokens."""
    count = _PIECE // CHARS_PER_TOKEN
    for i, piece in enumerate(split_pieces(text)):
        yield piece, tokens[i * count : (i + 1) * count]


def join_parts(content: str | Iterable[T] | None, read: Callable[[T], str]) -> str:
    """Return a message's text: the text itself, or the parts, each converted by `read`."""
    return content or "" if content is None or isinstance(content, str) else "\n".join(map(read, content))


def render_event(kind: str, value: dict[str, Any]) -> bytes:
    """Return a server-sent event with a type."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode({"type": kind, **value}))


def add_usage(replies: Sequence[Reply]) -> Usage:
    """Return the usage of a call: its prompt once, and all of its answers."""
    counts = [reply.usage or Usage(0, 0) for reply in replies]
    return Usage(counts[0].prompt_tokens, sum([usage.completion_tokens for usage in counts]))


def choose_words(reply: Reply) -> str:
    """Return the text of a reply, or of its refusal if the format has no field for refusals."""
    return reply.refusal if reply.refusal and reply.finish_reason == "stop" else reply.text


def is_whole_call(call: WireCall, reply: Reply) -> bool:
    """Return whether the reply is the complete arguments of a required tool, an object. A model that declines
    in its text calls no tool."""
    if not call.tool or reply.finish_reason != "stop" or reply.refusal is not None:
        return False
    try:
        _OBJECT.decode(reply.text)
    except msgspec.DecodeError:
        return False
    return True


def check_top_logprobs(count: int | None) -> None:
    """Raise BadCall if a call requests more likely tokens than a service returns."""
    if count is not None and not 0 <= count <= MOST_TOKENS:
        raise BadCall(f"Between 0 and {MOST_TOKENS} likely tokens can be had at each position, not {count}.")


def describe_picture(media_type: str, data: str = "") -> str:
    """Return placeholder words for a picture in base64, which the simulator does not read. Raises BadCall if
    it is not a picture of that type."""
    try:
        found = parse_picture(base64.b64decode(data, validate=True))
    except ValueError as problem:
        raise BadCall(f"Only texts and pictures can be read, and a picture is invalid: {problem}.") from None
    if found.media_type != media_type:
        raise BadCall(
            f"Only texts and pictures can be read, and a picture is {found.media_type} instead of "
            f"{media_type[:40]!r}."
        )
    return WORDS


def check_call(messages: Sequence[object], choices: int, max_tokens: int | None) -> None:
    """Raise BadCall for numbers that no service accepts."""
    if not messages:
        raise BadCall("There is no message to answer.")
    if not 1 <= choices <= MOST_CHOICES:
        raise BadCall(f"Between 1 and {MOST_CHOICES} answers can be had at once, not {choices}.")
    if max_tokens is not None and max_tokens < 1:
        raise BadCall("The largest number of tokens must be at least 1.")
