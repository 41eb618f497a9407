"""Options of every export, and options that several formats take, each declared once."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from edgen.core.errors import UsageError
from edgen.core.options import On, Processes, TurnsLeft, declare_layer, declare_output, option
from edgen.core.registry import list_names
from edgen.core.text import compile_later
from edgen.export.options import FormatOptions

Opening = Literal["user", "system", "both"]
Told = Literal["labels", "wanted"]
# A language as on the hub: ISO 639, optionally with script or region.
_LANGUAGE = compile_later(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The format, the folder, and the processes of an export."""

    to: Annotated[
        str | None,
        option(
            f"The format to write. One of: {', '.join(list_names('format'))}. Without it, all are listed.",
            metavar="FORMAT",
            completes="formats",
        ),
    ] = None
    output: Annotated[Path | None, declare_output("DIR", "A new or empty folder.")] = None
    workers: Processes = 1
    on: On = None
    """A cluster; None for this machine."""


class ExportOptions(FormatOptions, frozen=True, kw_only=True):
    """The options that every format takes: texts of the card."""

    license: Annotated[str | None, option("The licence to state in the card.", metavar="ID")] = None
    language: Annotated[
        str | None, option("The language to state in the card, as in en.", metavar="CODE")
    ] = None
    """A BCP 47 code."""

    def check(self, given: Collection[str]) -> None:  # noqa: ARG002 - as in the base
        """Raise UsageError for a text that a card cannot state."""
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


class ChatOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of formats in which turns become the messages of an assistant and a user (`Format.chat`)."""

    train: Annotated[
        str | None,
        option(
            "The role to train, as the assistant.  [default: the space's first role]",
            "--train",
            "--assistant",
            metavar="ROLE",
        ),
    ] = None
    opening: Annotated[
        Opening | None,
        option(
            "How a conversation begins. user: with a user line, if the trained side speaks "
            "first. system: with a system message. both.  [default: with what was said; with "
            "--opening-prompt: user]"
        ),
    ] = None
    opening_prompt: Annotated[
        str | None,
        option(
            "The template for the opening: a shipped name, or a .j2 file.  [default: "
            "export_opening or export_opening_roles]",
            metavar="NAME|FILE",
            completes="templates",
        ),
    ] = None
    end_marker: Annotated[
        Literal["keep", "drop"] | None,
        option(
            "The end marker in the trained side's last turn.  [default: keep with an opening "
            "prompt that asks for turns; else drop]"
        ),
    ] = None


class PairSetOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of formats of pairs (`pairs` among `Format.needs`)."""

    min_turns_left: TurnsLeft = None
    pairs: Annotated[
        str | None,
        option("The pair set to export.  [default: default]", metavar="NAME"),
    ] = None
    against: Annotated[
        tuple[str, ...],
        option(
            "Formats of pairs only: pairs of this run and RUN; repeatable, in the order of `edgen pairs`.",
            metavar="RUN",
            completes="runs",
        ),
    ] = ()

    @property
    def others(self) -> tuple[Path, ...]:
        """The runs whose pairs with this run are exported."""
        return tuple(map(Path, self.against))


class LayerOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of formats with labels of turns."""

    layer: Annotated[
        tuple[str, ...],
        declare_layer("Formats of labelled turns use it in place of the turns' own; repeatable."),
    ] = ()


class MaskOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of formats whose messages can have a mask."""

    masks: Annotated[
        bool,
        option(
            "Say in the key `train` of each message whether it is trained; unsloth refuses that key.",
        ),
    ] = True


class ActionOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of formats of single responses."""

    actions: Annotated[
        Told | None,
        option(
            "Formats of single responses only: state in the prompt the response's actions, or "
            "the wanted ones.  [default: neither]"
        ),
    ] = None


class ResponseOptions(ActionOptions, frozen=True, kw_only=True):
    """Options of formats with a row for each response."""

    alternatives: Annotated[
        bool,
        option("Also write rows for responses that the conversation did not continue with."),
    ] = False


class TokenOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of formats with rows that a tokenizer prepares for a model."""

    tokenizer: Annotated[
        str | None,
        option(
            "refuel: add tokens and masks by the tokenizer in DIR; sweet: texts by its chat template (needs "
            "transformers).",
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

    def check(self, given: Collection[str]) -> None:  # noqa: ARG002 - as in the base
        """Raise UsageError for a length without a tokenizer."""
        if self.max_tokens is not None and self.tokenizer is None:
            raise UsageError("--max-tokens needs --tokenizer; name the tokenizer's folder as well.")
