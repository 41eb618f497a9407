"""What a user may choose of an export."""

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
# A language as the hub has it: ISO 639, with script or region where wanted.
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The choices; None leaves one to edgen.

    `train` is the role that is trained, the assistant; the first of the space where nobody chose. `opening` is what a conversation begins with, `opening_prompt`
    the template of its texts, a file or the name of a shipped one. `end_marker` keeps or drops the end marker behind the
    trained side's last words; where nobody chose, it is kept if the template asks for turns, as the environment's do.
    `license` and `language`, a BCP 47 code, are stated on the card. `files` is how a data
    set for the hub is stored. `csv_safe`: cells that a spreadsheet would take for formulas are disarmed.
    `masks`: each message says in `train` whether it is trained. `min_turns_left`: pairs are left out that part where
    fewer turns follow, in either conversation. `tokenizer` is the folder of the tokenizer that rows are tokenised by, and
    `max_tokens` the length that they are padded to. `actions`: prompts tell what the response is to do, by its labels or
    by what it was asked for. `alternatives`: responses that did not go on have rows, too.
    `agent` is the role that answers users, where turns do not tell; the first of the space where nobody chose. `layer` is the layer, or those, whose
    labels turns have in place of their own. `own`
    are choices that the format alone has, by name, as they were given: its `Options` says what they may be.
    """

    train: str | None = None
    opening: Opening | None = None
    opening_prompt: str | Path | None = None
    end_marker: EndMarker | None = None
    license: str | None = None
    language: str | None = None
    files: Storage | None = None
    csv_safe: bool | None = None
    masks: bool | None = None
    min_turns_left: int | None = None
    tokenizer: str | Path | None = None
    max_tokens: int | None = None
    actions: Told | None = None
    alternatives: bool | None = None
    agent: str | None = None
    layer: str | Sequence[str] | None = None
    own: Mapping[str, Any] = {}

    @property
    def layers(self) -> tuple[Any, ...]:
        """The layers whose labels turns have."""
        given = self.layer
        return () if given is None else (given,) if not isinstance(given, list | tuple) else tuple(given)

    def check(self) -> None:
        """Raise UsageError for what is no choice, and for what a card cannot state."""
        self._check_types()
        if self.license is not None and not self.license.strip():
            raise UsageError("--license is empty; name the licence, or leave the option out.")
        if self.license is not None and not self.license.isprintable():
            raise UsageError(
                "--license holds a line feed or another control character; name the licence on one line."
            )
        if self.language is not None and _LANGUAGE.fullmatch(self.language) is None:
            raise UsageError(
                f"--language {self.language}: this is no language code; write one like en or pt-BR."
            )

    def _check_types(self) -> None:
        """A caller in Python may pass anything."""
        least = self.min_turns_left
        if least is not None and (not isinstance(least, int) or isinstance(least, bool) or least < 0):
            raise UsageError(f"min_turns_left: expected how many turns, 0 or more, not {least!r}.")
        most = self.max_tokens
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise UsageError(f"max_tokens: expected how many tokens, 1 or more, not {most!r}.")
        if most is not None and self.tokenizer is None:
            raise UsageError("--max-tokens counts with --tokenizer alone; name the tokenizer's folder, too.")
        for name in ("train", "agent", "license", "language"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, str):
                raise UsageError(f"{name}: expected a text, not {given!r}.")
        if not all(isinstance(name, str) for name in self.layers):
            raise UsageError(f"layer: expected the name of a layer, or several names, not {self.layer!r}.")
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
                raise UsageError(f"{name}: {given!r} is none of {', '.join(map(str, allowed))}.")
