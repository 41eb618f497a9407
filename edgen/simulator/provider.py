"""The embedded simulator as a provider."""

from __future__ import annotations

from edgen.plugin import Backend, BatchAnswers, Key, Link, LocalCalls, Provider, RequestFeatures
from edgen.plugin.errors import InputError, Problem
from edgen.simulator.config import SimulatorConfig


class SimulatorProvider(RequestFeatures, BatchAnswers, LocalCalls, Provider):
    name = "simulator"
    Config = SimulatorConfig
    simulated = True
    forms_by_default = False
    schema_field = "schema"
    logprobs_fields = ("logprobs",)
    sees_pictures = True
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
        """Return the part of the schema that the simulator does not support."""
        from edgen.simulator.schemas.schema_patterns import UnfitSchema
        from edgen.simulator.schemas.structured import read_schema_text

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
