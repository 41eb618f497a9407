"""Settings of an embedded model in a job."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec
from msgspec import Meta

from edgen.plugin import BackendConfig
from edgen.plugin.providers import Positive, Seed, Text

Count = Annotated[int, Meta(ge=1, le=512)]


class LlamaCppConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="llamacpp"):
    """A model in a GGUF file, which llama.cpp runs inside edgen's own process. Name `model` or `path`."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {"model", "path", "slots", "threads"}
    """Settings that shape no answer."""

    model: str = ""
    """An installed model (`edgen local`); with `path`: the name in records."""
    path: Text | None = None
    """A GGUF file."""
    chat_template: Text | None = None
    """A Jinja chat template, or its file (`.jinja`, `.j2`); null: the model's own."""
    context: Annotated[int, Meta(ge=64, le=10_000_000)] | None = None
    """Maximum tokens of prompt and answer; null: 4096, or the model's maximum if less."""
    slots: Count = 1
    """Concurrent requests; 1 is reproducible."""
    threads: Count | None = None
    """Null: half of the cores, at most 8."""
    max_tokens: Positive = 1024
    """Maximum tokens per answer."""
    seed: Literal["auto"] | Seed | None = "auto"
    """As of other backends; null: random."""
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further fields of llama.cpp's requests: `top_k`, `min_p`, …."""

    @property
    def repeats(self) -> bool:
        """Return whether the temperature is 0. llama.cpp then takes the most likely token, whichever seed it
        gets."""
        return bool({"temperature": self.temperature, **self.extra_body}["temperature"] == 0)

    @property
    def draws_anew(self) -> bool:
        """Return whether seeds change the answer."""
        return not self.repeats and super().draws_anew

    def located(self, folder: Path) -> Self:
        """Return the settings with absolute paths in `path` and `chat_template`."""
        template = self.chat_template
        if template is not None and not is_template(template):
            template = _make_absolute(folder, template)
        path = self.path and _make_absolute(folder, self.path)
        return msgspec.structs.replace(self, path=path, chat_template=template)


def is_template(text: str) -> bool:
    """Return whether `chat_template` is a template, not the name of a file."""
    return "{" in text


def _make_absolute(folder: Path, name: str) -> str:
    path = Path(name)
    with contextlib.suppress(RuntimeError):  # an unknown user in `~user`: the file is missing
        path = path.expanduser()
    return str((folder / path).absolute())
