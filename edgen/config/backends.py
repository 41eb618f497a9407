"""What every backend of a job can be told, and the types of keys that several providers have.

Each provider has its own struct of these, its `Config`, which is found by the key `type`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from edgen.core.registry import find, names
from edgen.core.values import Usage

Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Temperature = Annotated[float, Meta(ge=0, le=5)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# Upper case, so that a key written here by mistake is refused, not looked up and printed.
EnvName = Annotated[str, Meta(pattern=r"^[A-Z_][A-Z0-9_]*\Z", max_length=64)]
Url = Annotated[str, Meta(pattern=r"^https?://[^\s/@]+(/\S*)?\Z")]
Text = Annotated[str, Meta(min_length=1)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
ServiceTier = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_-]{0,39}\Z")]
# Settings that not every provider has: `Provider.sends` names those that one does.
OPTIONAL = ("reasoning_effort", "verbosity", "service_tier")
# What a service calls the tier that its list prices are for.
LISTED_TIERS = (None, "auto", "default", "standard")


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars per million tokens, online; `batch` is what a batch job costs of that. `date` and `source` say
    from when and where the figures are."""

    prompt: Annotated[float, Meta(ge=0, le=100_000)]
    """US dollars for a million tokens of prompts."""
    completion: Annotated[float, Meta(ge=0, le=100_000)]
    """US dollars for a million tokens of answers."""
    cache_read: Annotated[float, Meta(ge=0, le=100_000)] | None = None
    """The same for those of a prompt that are read from the service's prompt cache; null: as `prompt`."""
    cache_write: Annotated[float, Meta(ge=0, le=100_000)] | None = None
    """The same for those that are written to it; null: as `prompt`."""
    batch: Share = 1.0
    """The share of these that a batch job costs."""
    batch_cache: Share | None = None
    """The share of `cache_read` and `cache_write` that it costs; null: as `batch`."""
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}\Z")] | None = None
    """The day on which the figures held."""
    source: Annotated[str, Meta(max_length=300)] | None = None
    """Where the figures are from."""

    def cost(self, usage: Usage, *, batch: bool = False) -> float:
        """US dollars for tokens as they were counted."""
        share, cached = self._shares(batch)
        read = self.prompt * share if self.cache_read is None else self.cache_read * cached
        write = self.prompt * share if self.cache_write is None else self.cache_write * cached
        plain = usage.prompt_tokens - usage.cache_read_tokens - usage.cache_write_tokens
        dollars = self.prompt * share * plain + self.completion * share * usage.completion_tokens
        return (dollars + read * usage.cache_read_tokens + write * usage.cache_write_tokens) / 1e6

    def most(self, prompt_tokens: float, completion_tokens: float, *, batch: bool = False) -> float:
        """The most that so many tokens can cost, in US dollars: whatever of the prompt goes through the cache."""
        each = (Usage(1_000_000, 0), Usage(1_000_000, 0, 1_000_000), Usage(1_000_000, 0, 0, 1_000_000))
        prompt = max(self.cost(one, batch=batch) for one in each)
        return (prompt * prompt_tokens + self.completion * self._shares(batch)[0] * completion_tokens) / 1e6

    @property
    def cached(self) -> bool:
        """Whether what goes through a prompt cache has a price of its own."""
        return self.cache_read is not None or self.cache_write is not None

    def _shares(self, batch: bool) -> tuple[float, float]:
        """What of the prices is paid, and of those of the cache."""
        if not batch:
            return 1.0, 1.0
        return self.batch, self.batch if self.batch_cache is None else self.batch_cache


class BackendConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What every backend can be told about how to answer. None: the service's own default.

    A provider's own struct has `tag_field="type"` and its name as the tag. KNOBS are the keys that shape no answer.
    """

    KNOBS: ClassVar[frozenset[str]] = frozenset({"price", "service_tier", "choices"})

    temperature: Temperature | None = None
    """How much answers vary; null: the service's own default."""
    top_p: Share | None = None
    """The share of probability that tokens are drawn from; null: the service's own default."""
    max_tokens: Positive | None = None
    """Tokens of one answer, at most; null: the service's own default."""
    stop: tuple[Text, ...] = ()
    """Texts at which an answer ends."""
    seed: Literal["auto"] | Seed | None = None
    """`auto` sends a seed made from the job's and the call's place; a number is sent as it is."""
    reasoning_effort: Effort | None = None
    """How much a model thinks before it answers, at services that can be told; null: the service's own default."""
    verbosity: Literal["low", "medium", "high"] | None = None
    """How much a model says, at services that can be told; null: the service's own default."""
    service_tier: ServiceTier | None = None
    """At which speed and price the service works, as it names them: `flex`, `priority`, …; it shapes no answer."""
    choices: Literal["auto"] | None = None
    """`auto`: calls that ask the very same go as one request for several answers (`n`), whose prompt is paid once; null: each by itself."""
    price: Price | None = None
    """What this model costs, where the shipped list does not know it or this host takes another price."""
    model: Text
    """The model's name at the service."""

    @property
    def provider(self) -> str:
        """The name of what answers: the key `type`."""
        return str(self.__struct_config__.tag)

    @classmethod
    def variants(cls) -> list[str]:
        """The types that a job can name."""
        return names("provider")

    @classmethod
    def variant(cls, name: str) -> type[BackendConfig]:
        """The struct of one of them. Raises PluginError."""
        found: type[BackendConfig] = find("provider", name).Config
        return found
