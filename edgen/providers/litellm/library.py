"""litellm, imported when a job first needs it (5 s) and reduced to what edgen uses.

It fetches no price list, reads no `.env` and prints nothing on stdout.
"""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any

from edgen.plugin.errors import InputError
from edgen.plugin.files import use_extra

# Use the installed lists of prices and headers. Do not read a `.env` of the current folder.
_ENVIRONMENT = {
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_OFFLINE_MODE": "True",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
}


def load_litellm() -> Any:
    """Import litellm. Raises InputError if it is missing, of an unsupported version, or configured to change
    requests."""
    with use_extra("litellm", "a backend of type litellm needs more packages:", error=InputError):
        os.environ.update(_ENVIRONMENT)
        module: Any = importlib.import_module("litellm")
    module.suppress_debug_info = True  # suppress hints on stdout
    logger = logging.getLogger("LiteLLM")
    if logger.level == logging.NOTSET and "LITELLM_LOG" not in os.environ:
        logger.setLevel(logging.ERROR)  # suppress warnings about unknown finish reasons
    for name in ("drop_params", "modify_params"):
        if getattr(module, name, False):
            raise InputError(
                f"litellm.{name} is on, so litellm would change requests silently. Unset "
                f"LITELLM_{name.upper()}, or set litellm.{name} = False."
            )
    return module
