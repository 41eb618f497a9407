"""Settings of every backend, and types of keys that several providers share.

Each provider has its own struct, its `Config`, selected by the key `type`. The parts of providers that
reading and checking a job uses are here; the others are in `edgen.providers.base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, Self

import msgspec
from msgspec import Meta

from edgen.core.options import Positive, Share
from edgen.core.pictures import PictureTokens, PromptPicture
from edgen.core.registry import find, list_names, part_of
from edgen.core.values import Usage
from edgen.core.yaml_values import Variants

Temperature = Annotated[float, Meta(ge=0, le=5)]
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# Upper case, so that an API key pasted here by mistake is refused instead of looked up and printed.
EnvName = Annotated[str, Meta(pattern=r"^[A-Z_][A-Z0-9_]*\Z", max_length=64)]
Url = Annotated[str, Meta(pattern=r"^https?://[^\s/@]+(/\S*)?\Z")]
Text = Annotated[str, Meta(min_length=1)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
ServiceTier = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_-]{0,39}\Z")]
Forms = Literal["auto", "schema", "prose"]
# Settings that only some providers have: `RequestFeatures.sends` lists a provider's own.
OPTIONAL = ("reasoning_effort", "verbosity", "service_tier")
# Services' names for the tier with their list prices.
LISTED_TIERS = (None, "auto", "default", "standard")


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Prices in US dollars per million tokens, online; `batch` is a batch job's share of that. `date` and
    `source` say when and where the figures were found."""

    prompt: Annotated[float, Meta(ge=0, le=100_000)]
    """For prompt tokens."""
    completion: Annotated[float, Meta(ge=0, le=100_000)]
    """For answer tokens."""
    cache_read: Annotated[float, Meta(ge=0, le=100_000)] | None = None
    """For tokens read from the prompt cache; null: as `prompt`."""
    cache_write: Annotated[float, Meta(ge=0, le=100_000)] | None = None
    """For tokens written to it; null: as `prompt`."""
    batch: Share = 1.0
    """A batch's share of these prices."""
    batch_cache: Share | None = None
    """A batch's share of the cache prices; null: as `batch`."""
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}\Z")] | None = None
    """The date of the figures."""
    source: Annotated[str, Meta(max_length=300)] | None = None
    """The source of the figures."""

    def cost(self, usage: Usage, *, batch: bool = False) -> float:
        """Return US dollars for counted tokens."""
        share, cached = self._find_shares(batch)
        read = self.prompt * share if self.cache_read is None else self.cache_read * cached
        write = self.prompt * share if self.cache_write is None else self.cache_write * cached
        plain = usage.prompt_tokens - usage.cache_read_tokens - usage.cache_write_tokens
        dollars = self.prompt * share * plain + self.completion * share * usage.completion_tokens
        return (dollars + read * usage.cache_read_tokens + write * usage.cache_write_tokens) / 1e6

    def compute_highest_cost(
        self, prompt_tokens: float, completion_tokens: float, *, batch: bool = False
    ) -> float:
        """Return the maximum cost of these tokens in US dollars, for any use of the prompt cache."""
        each = (Usage(1_000_000, 0), Usage(1_000_000, 0, 1_000_000), Usage(1_000_000, 0, 0, 1_000_000))
        prompt = max(self.cost(one, batch=batch) for one in each)
        return (
            prompt * prompt_tokens + self.completion * self._find_shares(batch)[0] * completion_tokens
        ) / 1e6

    @property
    def cached(self) -> bool:
        """True if cached prompt tokens have their own price."""
        return self.cache_read is not None or self.cache_write is not None

    def _find_shares(self, batch: bool) -> tuple[float, float]:
        """Return the paid shares of the prices, and of the cache prices."""
        if not batch:
            return 1.0, 1.0
        return self.batch, self.batch if self.batch_cache is None else self.batch_cache


class BackendConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of every backend. None: the service's default.

    A provider's own struct has `tag_field="type"` and its name as the tag."""

    VARIANTS: ClassVar[Variants] = Variants(partial(list_names, "provider"), partial(find, "provider"))
    """The providers, whose `Config` the key `type` names."""
    KNOBS: ClassVar[frozenset[str]] = frozenset({"price", "service_tier", "choices"})
    """Keys that shape no answer."""
    TAKES_SEED: ClassVar[bool] = False  # the service takes a seed with a call
    LISTS: ClassVar[frozenset[str]] = frozenset()  # keys whose value may also be a list of such values
    ALWAYS_SEEDED: ClassVar[bool] = (
        False  # equal calls get new answers at any settings, by a seed or by people
    )
    FILES: ClassVar[Mapping[str, Literal["questionnaires", "text"]]] = {}
    """Settings that name text files, with the kind of each. A run keeps copies of them."""
    BY_PEOPLE: ClassVar[bool] = False  # people answer: no limit, price or retry of services applies

    temperature: Temperature | None = None
    """Sampling temperature; null: the service's default."""
    top_p: Share | None = None
    """Nucleus sampling; null: the service's default."""
    max_tokens: Positive | None = None
    """Maximum tokens per answer; null: the service's default."""
    retry_max_tokens: Positive | None = None
    """`max_tokens` of a retry after a cut answer; null: `max_tokens`."""
    stop: tuple[Text, ...] = ()
    """Texts that end an answer."""
    seed: Literal["auto"] | Seed | None = None
    """`auto`: made from the job's seed and the call; a number: sent unchanged; null: `auto` for several
    answers to one prompt, else none."""
    reasoning_effort: Effort | None = None
    """How much the model thinks; null: the service's default."""
    verbosity: Literal["low", "medium", "high"] | None = None
    """How much the model writes; null: the service's default."""
    service_tier: ServiceTier | None = None
    """The service's tier: `flex`, `priority`, …."""
    choices: Literal["auto"] | None = None
    """`auto`: identical calls become one request."""
    forms: Forms | None = None
    """Null: the job's."""
    price: Price | None = None
    """Price of the model; null: the shipped list's."""
    model: Text
    """The model's name at the service."""

    @property
    def provider(self) -> str:
        """The provider's name: the key `type`."""
        return str(self.__struct_config__.tag)

    def room(self, scale: int = 1) -> int | None:
        """Return the maximum tokens of an answer; None if the service decides. `scale`: see Request."""
        return self.max_tokens if scale == 1 or self.max_tokens is None else self.most_tokens

    @property
    def most_tokens(self) -> int | None:
        """The maximum tokens of any answer, at a retry or not; None if the service decides."""
        return self.retry_max_tokens or self.max_tokens

    @property
    def each_server(self) -> list[Self]:
        """The settings of each server; all have one identity."""
        return [self]

    @property
    def others(self) -> tuple[str, ...]:
        """The names of further backends of the job that answer if this one gives up."""
        return ()

    @property
    def repeats(self) -> bool:
        """Return whether an identical request gets an identical answer: at temperature 0, if no seed of its
        own goes with each call."""
        sent = {"temperature": self.temperature, "seed": self.seed, **self._extra}
        return bool(sent["temperature"] == 0 and sent["seed"] != "auto" and not self.ALWAYS_SEEDED)

    @property
    def draws_anew(self) -> bool:
        """Return whether several calls for one prompt differ in their seeds. Otherwise their requests are
        identical."""
        if self.ALWAYS_SEEDED:
            return True
        return "seed" not in self._extra and (self.seed == "auto" or self.seeds_several)

    @property
    def seeds_several(self) -> bool:
        """Return whether calls for several answers to one prompt get seeds of their own though the job states
        none. Joined calls do not: they must be identical."""
        return self.TAKES_SEED and self.seed is None and self.choices is None and "seed" not in self._extra

    @property
    def _extra(self) -> dict[str, Any]:
        """The additional fields of a request."""
        extra: dict[str, Any] = getattr(self, "extra_body", {})
        inner = extra.get("generationConfig")
        return extra | inner if isinstance(inner, dict) else extra

    @classmethod
    def variant(cls, name: str) -> type[BackendConfig]:
        """Return the struct of a provider. Raises PluginError."""
        found: type[BackendConfig] = find("provider", name).Config
        return found


class RequestFeatures:
    """Optional parts of a request that the service supports."""

    sends: frozenset[str] = frozenset()
    """Supported optional settings, see config.backends."""
    schema_field = ""
    """Dotted path in a request for a template's JSON Schema; empty if unsupported."""
    forms_by_default = True
    """Whether `forms: auto` requests answers by a schema, if the service takes one."""
    logprobs_fields: tuple[str, ...] = ()
    """Dotted paths in a request that ask for log probabilities; empty if unsupported."""
    choices_field = ""
    """Dotted path in a request for the number of answers; empty if unsupported."""
    most_choices = 1
    """How many answers a request can ask for."""
    sees_pictures = False
    """Whether a request can have pictures."""

    def schema_problem(self, config: Any, schema: bytes) -> str | None:
        """Explain why the backend cannot be sent a template's JSON Schema; None if it can."""
        if not self.schema_field:
            return f"a backend of type {config.provider} takes none"
        return _find_double(config, self.schema_field)

    def logprobs_problem(self, config: Any) -> str | None:
        """Explain why the backend cannot be asked for log probabilities; None if it can."""
        if not self.logprobs_fields:
            return f"a backend of type {config.provider} returns none"
        return next(filter(None, (_find_double(config, field) for field in self.logprobs_fields)), None)

    def picture_problem(self, config: Any) -> str | None:
        """Explain why the backend cannot be sent pictures; None if it can."""
        return None if self.sees_pictures else f"a backend of type {config.provider} takes no pictures"

    def choices_problem(self, config: Any) -> str | None:
        """Explain why calls of the backend cannot be joined to one request for several answers; None if they
        can."""
        if not self.choices_field:
            return f"a backend of type {config.provider} gives one answer to a request; remove it"
        if config.seed is not None:
            return (
                "identical calls differ only by their seeds, and one request has one seed: "
                "remove `seed`, or this"
            )
        return _find_double(config, self.choices_field)


def find_features(config: BackendConfig) -> RequestFeatures:
    """Return the request features of a backend's provider. Raises PluginError."""
    return part_of(find("provider", config.provider), RequestFeatures)


def _find_double(config: Any, field: str) -> str | None:
    """Return the problem if `extra_body` sets a request field that edgen sets, too."""
    found = getattr(config, "extra_body", {})
    for key in field.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return None if found is None else f"its extra_body sets {field}, too; keep one of the two"


class KeyRequest(NamedTuple):
    """Request of a backend for a key."""

    variables: tuple[str, ...]  # environment variables that may hold the key
    url: str  # address that the key is sent to
    service: str  # the service's name for people
    required: bool  # calls fail without it
    header: str = ""  # header that needs the key; empty for the service's own key
    command: tuple[str, ...] = ()  # command that prints the key, instead of variables
    library: bool = False  # a library gets it, and the variable is only a name for consent


class ServiceKeys:
    """Requests for a key, and for other values that only the user has."""

    def key_request(self, config: Any) -> KeyRequest | None:
        """Return the key request of the backend, None if it needs no key. Raises InputError for an invalid
        address."""
        return None

    def header_requests(self, config: Any) -> tuple[KeyRequest, ...]:
        """Return the requests for values in headers, besides the key."""
        return ()


class NearestPrices(Protocol):
    """A price list (`edgen.providers.prices.PriceList`)."""

    def nearest_price(self, model: str) -> tuple[str, Price] | None:
        """Return the listed model with the most similar name, and its price; None if none is similar."""


class PricesAndTokens:
    """Prices of calls, and the models' token counts."""

    prices: NearestPrices | None = None
    """Prices of its models at its own host."""

    def list_price(self, config: Any) -> Price | None:
        """Return the list price of the backend's model at the provider's own host; None elsewhere."""
        return None

    def nearest_price(self, model: str) -> tuple[str, Price] | None:
        """Return the listed model with the most similar name, and its price; None if none is similar."""
        return None if self.prices is None else self.prices.nearest_price(model)

    def picture_tokens(self, model: str, picture: PromptPicture) -> PictureTokens:
        """Return the tokens that the model counts for a picture. Without more knowledge, as open models do:
        a token for 28 × 28 pixels is expected, and one for 14 × 14 at most, or LLaVA's 2,880."""
        expected, most = (-(-picture.width // side) * -(-picture.height // side) for side in (28, 14))
        return PictureTokens(expected, max(most, 2_880))

    def vocabulary(self, model: str) -> str | None:
        """Return the model's vocabulary by its bpe-openai name; None if unknown."""
        return None


def find_prices(config: BackendConfig) -> PricesAndTokens:
    """Return the prices and token counts of a backend's provider. Raises PluginError."""
    return part_of(find("provider", config.provider), PricesAndTokens)
