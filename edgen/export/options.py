"""A user's options of an export.
Options of a format's own become flags of its fields.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import inspect

from edgen.core.errors import UsageError
from edgen.core.lazy_patterns import compile_later
from edgen.core.options import Agent, TurnsLeft, option

Opening = Literal["user", "system", "both"]
Storage = Literal["parquet", "jsonl"]
EndMarker = Literal["keep", "drop"]
Told = Literal["labels", "wanted"]
# A language as on the hub: ISO 639, optionally with script or region.
_LANGUAGE = compile_later(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options; None means edgen's default."""

    train: Annotated[
        str | None,
        option(
            "The role to train, as the assistant; all others are the user.  [default: the space's first role]",
            "--train",
            "--assistant",
            metavar="ROLE",
        ),
    ] = None
    opening: Annotated[
        Opening | None,
        option(
            "How a conversation begins. user: with a line by the other side where the trained side would speak first. "
            "system: with a system message. both.  [default: with what was said; with --opening-prompt: user]"
        ),
    ] = None
    opening_prompt: Annotated[
        str | Path | None,
        option(
            "The template for the opening: a shipped name, or a .j2 file.  [default: export_opening, or "
            "export_opening_roles for spaces other than Education Dialogue's]",
            metavar="NAME|FILE",
            completes="templates",
        ),
    ] = None
    end_marker: Annotated[
        EndMarker | None,
        option(
            "Keep or drop the end marker in the trained side's last turn.  [default: keep with an opening prompt that "
            "asks for turns; else drop]"
        ),
    ] = None
    license: Annotated[str | None, option("The licence to state in the card.", metavar="ID")] = None
    language: Annotated[
        str | None, option("The language to state in the card, as in en.", metavar="CODE")
    ] = None
    """A BCP 47 code."""
    files: Annotated[
        Storage | None,
        option("hf only: the kind of files.  [default: parquet where pyarrow is installed]"),
    ] = None
    csv_safe: Annotated[
        bool | None,
        option(
            "csv only: put an apostrophe before cells that a spreadsheet would read as formulas.  "
            "[default: csv-safe]"
        ),
    ] = None
    masks: Annotated[
        bool | None,
        option(
            "trl-sft, sharegpt and verl only: say in the key `train` of each message whether it is trained; unsloth "
            "refuses that key.  [default: masks]"
        ),
    ] = None
    min_turns_left: TurnsLeft = None  # minimum turns of a pair after the one at which it parts
    tokenizer: Annotated[
        str | Path | None,
        option(
            "refuel: add tokens and masks by the tokenizer in DIR; sweet: texts by its chat template (needs transformers).",
            metavar="DIR",
        ),
    ] = None
    max_tokens: Annotated[
        int | None,
        option(
            "With --tokenizer: pad rows to N tokens and leave out longer ones.  [default: 2048]",
            metavar="N",
            ge=1,
        ),
    ] = None
    actions: Annotated[
        Told | None,
        option(
            "Formats of single responses only: state in the prompt what the response does (labels), or what it was "
            "asked to do (wanted).  [default: neither]"
        ),
    ] = None
    alternatives: Annotated[
        bool | None,
        option(
            "sft and trl-prompts only: also write rows for responses that the conversation did not continue with.  "
            "[default: no-alternatives]"
        ),
    ] = None
    agent: Agent = None  # the role that answers users
    layer: Annotated[
        str | Sequence[str] | None,
        option(
            "A layer of labels. Formats of labelled turns use it in place of the turns' own; may be repeated.",
            metavar="NAME",
            completes="layers",
        ),
    ] = None
    pairs: Annotated[
        str | None,
        option("The pair set to export.  [default: default]", metavar="NAME"),
    ] = None
    against: Annotated[
        str | Sequence[str] | None,
        option(
            "Formats of pairs only: the pairs that `edgen pairs` made of this run and RUN; may be repeated, in the same "
            "order as there.",
            metavar="RUN",
            completes="runs",
        ),
    ] = None
    own: Mapping[str, Any] = {}
    """Options of the format only, by name, as given: its `Options` defines them."""

    @property
    def layers(self) -> tuple[Any, ...]:
        """The layers whose labels turns have."""
        given = self.layer
        return () if given is None else (given,) if not isinstance(given, list | tuple) else tuple(given)

    @property
    def others(self) -> tuple[Path, ...]:
        """The runs whose pairs with this one are wanted."""
        given = self.against
        if given is None:
            return ()
        return tuple(map(Path, given if isinstance(given, list | tuple) else [str(given)]))

    def check(self) -> None:
        """Raise UsageError for an invalid option, and for one that a card cannot state."""
        self._check_types()
        if self.license is not None and not self.license.strip():
            raise UsageError("--license is empty; name the licence, or leave the option out.")
        if self.license is not None and not self.license.isprintable():
            raise UsageError(
                "--license holds a line feed or another control character; name the licence on one line."
            )
        if self.language is not None and _LANGUAGE.fullmatch(self.language) is None:
            raise UsageError(
                f"--language {self.language}: this is not a language code; write one like en or pt-BR."
            )

    def _check_types(self) -> None:
        """Check types: a caller in Python may pass anything."""
        least = self.min_turns_left
        if least is not None and (not isinstance(least, int) or isinstance(least, bool) or least < 0):
            raise UsageError(f"min_turns_left: expected how many turns, 0 or more, not {least!r}.")
        most = self.max_tokens
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise UsageError(f"max_tokens: expected how many tokens, 1 or more, not {most!r}.")
        if most is not None and self.tokenizer is None:
            raise UsageError("--max-tokens needs --tokenizer; name the tokenizer's folder as well.")
        for name in ("train", "agent", "license", "language"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, str):
                raise UsageError(f"{name}: expected a text, not {given!r}.")
        if not all(isinstance(name, str) for name in self.layers):
            raise UsageError(f"layer: give the name of a layer, or a list of names, not {self.layer!r}.")
        choices = {
            "opening": get_args(Opening),
            "end_marker": get_args(EndMarker),
            "files": get_args(Storage),
            "csv_safe": (True, False),
            "masks": (True, False),
            "actions": get_args(Told),
            "alternatives": (True, False),
        }
        for name, allowed in choices.items():
            given = getattr(self, name)
            if given is not None and given not in allowed:
                raise UsageError(f"{name}: {given!r} is not one of {', '.join(map(str, allowed))}.")


class FormatOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Base of a format's own options. Every field needs a default."""

    def check(self, given: Collection[str]) -> None:
        """Raise UsageError for options that do not fit together. `given` are the fields set by the user."""

    def left_out(self) -> tuple[str, ...]:
        """Return the names of the format's tables that these options exclude."""
        return ()


class Flag(NamedTuple):
    """One option of a format: its field, flag, help, and whether it may be repeated."""

    field: str
    flag: str
    help: str
    metavar: str
    several: bool


def flags_of(options: type[FormatOptions]) -> Iterator[Flag]:
    """Yield the options that a struct declares, in order."""
    for field in inspect.type_info(options).fields:  # type: ignore[attr-defined]
        kind, described = _unwrap_type(field.type)
        default = "" if field.default in (None, ()) else f"  [default: {_format_default(field.default)}]"
        several = isinstance(kind, inspect.VarTupleType)
        metavar = (
            "|".join(map(str, kind.values))
            if isinstance(kind, inspect.LiteralType)
            else _METAVARS.get(type(kind), "TEXT")
        )
        yield Flag(field.name, flag_of(field.name), f"{described}{default}", metavar, several)


def read_options(
    name: str, kind: type[FormatOptions] | None, given: Mapping[str, Any]
) -> FormatOptions | None:
    """Read the given values as a format's options; None if it has none of its own. Raises UsageError for an
    unknown option and for an invalid value."""
    types = {} if kind is None else {field.name: field.type for field in inspect.type_info(kind).fields}  # type: ignore[attr-defined]
    for flag in given:
        if flag not in types:
            from edgen.core.yaml_values import suggest_name

            close = suggest_name(flag, types) if types else ""
            raise UsageError(f"{name} has no option {flag_of(flag)}{close}; leave it out.")
    if kind is None:
        return None
    hints = msgspec.structs.fields(kind)
    values = {
        field.name: _value(field.name, given[field.name], field.type, types[field.name])
        for field in hints
        if field.name in given
    }
    options = kind(**values)
    options.check(given.keys())
    return options


def list_given_flags(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the given options in the form of a command line: flag and value, quoted if needed, with paths
    reduced to their last names."""
    for name, value in given.items():
        for one in value if isinstance(value, list | tuple) else (value,):
            shown = PurePath(str(one)).name if os.sep in str(one) else str(one)
            yield flag_of(name), shlex.quote(" ".join(shown.split())).replace("`", "'")


def flag_of(field: str) -> str:
    """Return `--pool-from` for `pool_from`."""
    return f"--{field.replace('_', '-')}"


def _value(name: str, given: Any, kind: Any, described: inspect.Type) -> Any:
    several = isinstance(_unwrap_type(described)[0], inspect.VarTupleType)
    values = _texts([given] if several and isinstance(given, str | os.PathLike) else given)
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError:
        pass
    raise UsageError(f"{flag_of(name)} {given}: expected {_describe_expected(_unwrap_type(described)[0])}.")


def _texts(given: Any) -> Any:
    """Return the given values with paths as texts."""
    if isinstance(given, list | tuple):
        return [_texts(one) for one in given]
    return os.fspath(given) if isinstance(given, os.PathLike) else given


def _unwrap_type(kind: inspect.Type) -> tuple[Any, str]:
    """Return a field's type without annotations and None, and its description."""
    described = ""
    if isinstance(kind, inspect.Metadata):
        described = (kind.extra_json_schema or {}).get("description", "")
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        (kind,) = (one for one in kind.types if not isinstance(one, inspect.NoneType))
        kind = kind.type if isinstance(kind, inspect.Metadata) else kind
    return kind, described


def _describe_expected(kind: Any) -> str:
    if isinstance(kind, inspect.LiteralType):
        return f"one of {', '.join(map(str, kind.values))}"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        what = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        low = kind.ge if kind.ge is not None else kind.gt
        above = f", {low} or more" if kind.ge is not None else f" above {low}" if low is not None else ""
        high = kind.le if kind.le is not None else kind.lt
        below = f", {high} at most" if kind.le is not None else f", below {high}" if high is not None else ""
        return what + above + below
    return "a text" if isinstance(kind, inspect.StrType) else "one or several texts"


def _format_default(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


_METAVARS: Mapping[type, str] = {inspect.IntType: "N", inspect.FloatType: "X"}
