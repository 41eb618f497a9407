"""Parts of protocols and providers that reading and checking a job uses (see `edgen.core.registry`).

The other parts are in `edgen.protocols.base` and `edgen.providers.base`. The functions
here ask the protocol of a job, or the provider of a backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol

from edgen.config.backends import BackendConfig, Price
from edgen.config.job import ANNOTATOR, Job, find_job_protocol
from edgen.core.errors import Problem
from edgen.core.pictures import PictureTokens, PromptPicture
from edgen.core.plugin_faults import refuse_value
from edgen.core.registry import find, part_of
from edgen.core.resources import Folder

FindFile = Callable[[Folder, str, str], Path]
"""A function for the path of a file that a job names: the shipped folder of its kind, the name, the job's
key. It raises a FileError for a file that the job may not read."""


class RolesAndSettings:
    """Ask more than one backend of the job, check the job's settings for the protocol, and read the files
    that they name."""

    branches: ClassVar[bool] = False
    """Whether a job may have the key `branch`."""

    def roles(self, job: Job) -> tuple[str, ...]:
        """Return the roles that conversations ask, as in `backends`; the role that a record names comes
        first."""
        return ("default",)

    def role_of(self, job: Job, step: int) -> str | None:
        """Return the role that is most likely asked at a step; None for the first of `roles`."""
        return None

    def problems(self, job: Job) -> Iterator[Problem]:
        """Yield the contradictions in a job that its file alone shows."""
        yield from ()

    def role_problems(self, job: Job) -> Iterator[Problem]:
        """Yield the problems of a job with its `speakers`, the roles of its space."""
        yield from ()

    def with_files(self, job: Job, find: FindFile) -> Job:
        """Return the job with the content of the files that its settings name in place of the names.

        So a run's copy of the job is self-contained and has everything that shapes answers. Raises
        FileErrors.
        """
        return job

    def guide(self, job: Job) -> Any:
        """Return the guide of a job's conversations, for the protocol's own measures and formats, which alone
        know its type; None without one."""
        return None


def list_asked_roles(job: Job) -> tuple[str, ...]:
    """Return the roles called for the job's conversations, including the one that labels."""
    roles = part_of(find_job_protocol(job), RolesAndSettings).roles(job)
    if not (isinstance(roles, tuple | list) and roles and all(isinstance(one, str) for one in roles)):
        refuse_value("protocol", job.protocol, f"returned {roles!r} from `roles`, not a tuple of names")
    return (*roles, ANNOTATOR) if job.labels and ANNOTATOR not in roles else roles


def make_role_finder(job: Job) -> Callable[[int], str]:
    """Return a function for the role of a job that is most likely asked at a step of a conversation."""
    part = part_of(find_job_protocol(job), RolesAndSettings)
    return lambda step: part.role_of(job, step) or part.roles(job)[0]


def guide_of(job: Job) -> Any:
    """Return the guide of a job's conversations; None without one (`RolesAndSettings.guide`)."""
    return part_of(find_job_protocol(job), RolesAndSettings).guide(job)


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
    """Return the problem if `extra_body` sets a request field that edgen sets."""
    found = getattr(config, "extra_body", {})
    for key in field.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return None if found is None else f"its extra_body sets {field}, too; keep one of the two"


class NearestPrices(Protocol):
    """A price list (`edgen.providers.prices.PriceList`)."""

    def nearest_price(self, model: str) -> tuple[str, Price] | None:
        """Return the listed model with the most similar name, and its price; None if none is similar."""


class PricesAndTokens:
    """Know what calls cost, and how the models count tokens."""

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
