"""The embedded simulator as a provider."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from edgen.config.backends import BackendConfig, Text
from edgen.core.errors import InputError, Problem
from edgen.providers.base import Backend, Key, Link, Provider

Share = Annotated[float, Meta(ge=0, le=1)]


class SimulatorConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="simulator"):
    """The embedded simulator. `faults` like "refusal=0.02,429=0.1"; see `edgen simulator --help`."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {"latency_ms"}

    model: Text = "edgen-simulator"
    """The model's name in records."""
    faults: str = ""
    """Faults and their shares, as in "refusal=0.02,429=0.1"; `edgen simulator --list-faults` lists them."""
    latency_ms: Annotated[float, Meta(ge=0, le=600_000)] = 0.0
    """Milliseconds before each answer."""
    planted: int | None = None
    """The seed of planted worths. Each of a teacher's turns adds to the outcome a value drawn from the seed
    and its words, and judges and closing questions answer accordingly; null: none."""
    confusion: dict[Text, dict[Text, Share]] | None = None
    """How often a labeller confuses a label with another, as in {Hint: {Question: 0.2}}; `*` is any label.
    null: never."""

    @property
    def repeats(self) -> bool:
        """Return False: the request's own seed and address shape the answer."""
        return False


class SimulatorProvider(Provider):
    name = "simulator"
    Config = SimulatorConfig
    simulated = True
    forms_by_default = False
    schema_field = "schema"
    logprobs_fields = ("logprobs",)
    instead_of_batches = (
        "Start `edgen simulator` in another terminal and name it: "
        "{type: openai, model: any, base_url: http://127.0.0.1:8377/v1, seed: auto}."
    )

    def problems(self, config: SimulatorConfig) -> list[Problem]:
        found = [
            Problem(
                f"confusion.{label}", f"these are shares of one whole, and add up to {sum(row.values()):g}"
            )
            for label, row in (config.confusion or {}).items()
            if sum(row.values()) > 1 + 1e-9
        ]
        if not config.faults:
            return found
        from edgen.simulator.faults import parse

        try:
            parse(config.faults)
        except InputError as error:
            found.append(Problem("faults", str(error).removeprefix("faults: ")))
        return found

    def schema_problem(self, config: SimulatorConfig, schema: bytes) -> str | None:  # noqa: ARG002
        """Return the part of the schema that cannot be simulated."""
        from edgen.simulator.structured import UnfitSchema, read_schema_text

        try:
            read_schema_text(schema)
        except UnfitSchema as problem:
            return f"the simulator cannot obey it: {problem}"
        return None

    def create(self, config: SimulatorConfig, key: Key, link: Link) -> Backend:  # noqa: ARG002 - it has no key
        """Build the backend. Raises InputError if `config.faults` is invalid."""
        from edgen.simulator.backend import Simulator

        return Simulator(config, timeout=link.timeout)


PROVIDER = SimulatorProvider()
