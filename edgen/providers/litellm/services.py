"""The litellm services that edgen knows: their key variables, and the hosts that litellm 1.109 calls.

For any other service the job states the address and the key's variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from edgen.plugin.errors import InputError, Problem
from edgen.plugin.providers import names_a_key, reads_as_key
from edgen.providers.litellm.config import LitellmConfig


class LitellmService(NamedTuple):
    """A service's address and the variables that may hold its key, the usual one first."""

    variables: tuple[str, ...]
    address: str


SERVICES = {
    "anthropic": LitellmService(("ANTHROPIC_API_KEY",), "https://api.anthropic.com"),
    "cerebras": LitellmService(("CEREBRAS_API_KEY",), "https://api.cerebras.ai"),
    "dashscope": LitellmService(("DASHSCOPE_API_KEY",), "https://dashscope.aliyuncs.com"),
    "deepinfra": LitellmService(("DEEPINFRA_API_KEY",), "https://api.deepinfra.com"),
    "deepseek": LitellmService(("DEEPSEEK_API_KEY",), "https://api.deepseek.com"),
    "fireworks_ai": LitellmService(("FIREWORKS_API_KEY",), "https://api.fireworks.ai"),
    "gemini": LitellmService(
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "https://generativelanguage.googleapis.com"
    ),
    "groq": LitellmService(("GROQ_API_KEY",), "https://api.groq.com"),
    "mistral": LitellmService(("MISTRAL_API_KEY",), "https://api.mistral.ai"),
    "moonshot": LitellmService(("MOONSHOT_API_KEY",), "https://api.moonshot.ai"),
    "nvidia_nim": LitellmService(("NVIDIA_API_KEY",), "https://integrate.api.nvidia.com"),
    "openai": LitellmService(("OPENAI_API_KEY",), "https://api.openai.com"),
    "openrouter": LitellmService(("OPENROUTER_API_KEY",), "https://openrouter.ai"),
    "perplexity": LitellmService(("PERPLEXITY_API_KEY",), "https://api.perplexity.ai"),
    "sambanova": LitellmService(("SAMBANOVA_API_KEY",), "https://api.sambanova.ai"),
    "together_ai": LitellmService(("TOGETHER_API_KEY",), "https://api.together.ai"),
    "xai": LitellmService(("XAI_API_KEY",), "https://api.x.ai"),
}


def find_service_name(model: str) -> str:
    """Return the part of a model before the first slash: litellm's name of the service."""
    return model.partition("/")[0]


def find_address(config: LitellmConfig) -> str:
    """Return the address of a backend's calls. Raises InputError if edgen does not know it."""
    return config.base_url or _find_service(config, "base_url").address


def list_variables(config: LitellmConfig) -> tuple[str, ...]:
    """Return the variables that may hold a backend's key. Raises InputError if edgen does not know them."""
    return (config.api_key_env,) if config.api_key_env else _find_service(config, "api_key_env").variables


def _find_service(config: LitellmConfig, missing: str) -> LitellmService:
    service = find_service_name(config.model)
    if service not in SERVICES:
        raise InputError(f"a backend of type litellm: {_UNKNOWN[missing].format(service)}.")
    return SERVICES[service]


_UNKNOWN = {
    "base_url": "edgen does not know where {} is; write its address into base_url, as litellm's api_base has "
    "it",
    "api_key_env": "edgen does not know the variable of {}'s key; name it with api_key_env",
}


# --- problems -------------------------------------------------------------------------------

# Arguments that edgen sets, and arguments that would make litellm do more than one call.
_OWN = {
    "acompletion",
    "api_base",
    "api_key",
    "api_version",
    "base_url",
    "client",
    "custom_llm_provider",
    "deployment_id",
    "drop_params",
    "fallbacks",
    "max_completion_tokens",
    "max_retries",
    "max_tokens",
    "messages",
    "mock_response",
    "model",
    "model_list",
    "n",
    "num_retries",
    "reasoning_effort",
    "seed",
    "service_tier",
    "shared_session",
    "stop",
    "stream",
    "temperature",
    "timeout",
    "top_p",
    "verbosity",
}


def find_config_problems(config: LitellmConfig) -> Iterator[Problem]:
    """Yield unsupported settings and values that may be keys, without repeating the values."""
    service = find_service_name(config.model)
    if config.base_url is None and service not in SERVICES:
        yield Problem("base_url", _UNKNOWN["base_url"].format(service))
    if config.auth == "key" and config.api_key_env is None and service not in SERVICES:
        yield Problem("api_key_env", _UNKNOWN["api_key_env"].format(service))
    if config.auth == "library" and config.api_key_env is not None:
        yield Problem("api_key_env", "`auth: library` takes no key; remove one of the two")
    for name, value in config.options.items():
        if name in _OWN:
            yield Problem(f"options.{name}", "edgen writes this argument itself; remove it")
        elif names_a_key(name) or (isinstance(value, str) and reads_as_key(value)):
            yield Problem(
                f"options.{name[:100]}",
                "no key belongs here; export it, and name its variable with api_key_env",
            )
