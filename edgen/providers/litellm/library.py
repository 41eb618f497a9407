"""litellm, imported when a job first needs it (5 s of work), and kept to what edgen asks of it.

It is told to fetch no price list and to read no `.env`, and says nothing on stdout.
"""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any

from edgen.core.errors import InputError
from edgen.core.extras import install_command

# Its lists of prices and headers are the installed ones, and a `.env` of the current folder is not read.
_ENVIRONMENT = {
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_OFFLINE_MODE": "True",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
}


def load_litellm() -> Any:
    """The module. Raises InputError where it is not installed, or is told to change what a job asks for."""
    os.environ.update(_ENVIRONMENT)
    try:
        module: Any = importlib.import_module("litellm")
    except ImportError:
        raise InputError(
            f"a backend of type litellm needs more packages: `{install_command('litellm')}`."
        ) from None
    module.suppress_debug_info = True  # advice of its own, which it prints on stdout
    logger = logging.getLogger("LiteLLM")
    if logger.level == logging.NOTSET and "LITELLM_LOG" not in os.environ:
        logger.setLevel(logging.ERROR)  # it warns of each answer that ends in a way that it does not know
    for name in ("drop_params", "modify_params"):
        if getattr(module, name, False):
            raise InputError(
                f"litellm.{name} is on, so that litellm would change in silence what the job asks for. Unset "
                f"LITELLM_{name.upper()}, or set litellm.{name} = False."
            )
    return module
