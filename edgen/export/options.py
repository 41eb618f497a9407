"""A user's options of an export."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from edgen.core.errors import UsageError

Opening = Literal["user", "system", "both"]
Storage = Literal["parquet", "jsonl"]
EndMarker = Literal["keep", "drop"]
Told = Literal["labels", "wanted"]
# A language as on the hub: ISO 639, optionally with script or region.
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options; None means edgen's default."""

    train: str | None = None
    """The trained role, the assistant; default: the first of the space."""
    opening: Opening | None = None
    """The form of a conversation's opening."""
    opening_prompt: str | Path | None = None
    """The template of the opening: a file or the name of a shipped one."""
    end_marker: EndMarker | None = None
    """Keeps or drops the end marker after the trained side's last words; default: kept if the template asks
    for turns, as the environment's do."""
    license: str | None = None
    """Stated on the card."""
    language: str | None = None
    """A BCP 47 code, stated on the card."""
    files: Storage | None = None
    """The storage of a data set for the hub."""
    csv_safe: bool | None = None
    """Whether cells that a spreadsheet would run as formulas are disarmed."""
    masks: bool | None = None
    """Whether each message states in `train` if it is trained."""
    min_turns_left: int | None = None
    """Minimum turns in both conversations after a pair parts; others are left out."""
    tokenizer: str | Path | None = None
    """The folder of the tokenizer for rows."""
    max_tokens: int | None = None
    """The padded length of tokenised rows."""
    actions: Told | None = None
    """Whether prompts state the response's actions: by its labels or by the original request."""
    alternatives: bool | None = None
    """Whether responses that were not continued have rows, too."""
    agent: str | None = None
    """The role that answers users, if turns do not state it; default: the first of the space."""
    layer: str | Sequence[str] | None = None
    """The layer, or layers, whose labels replace the turns' own."""
    own: Mapping[str, Any] = {}
    """Options of the format only, by name, as given: its `Options` defines them."""

    @property
    def layers(self) -> tuple[Any, ...]:
        """The layers whose labels turns have."""
        given = self.layer
        return () if given is None else (given,) if not isinstance(given, list | tuple) else tuple(given)

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
