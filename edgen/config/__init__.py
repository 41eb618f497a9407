"""Job files as typed Jobs: unknown keys are refused, and every problem is named with its path.

API keys are named by environment variable and never stored. A backend at a provider's own host has the list
price unless the job gives one. `shaping` separates settings that shape answers from others, so that limits,
shards and logging may change on a resume.
"""

from __future__ import annotations

from edgen.config.backends import BackendConfig, Price
from edgen.config.checks import check, check_budget, role_word_problems, with_speakers
from edgen.config.job import (
    ANNOTATOR,
    KNOBS,
    MOST_ANNOTATORS,
    Branch,
    CallSettings,
    Job,
    LabelsAsked,
    Limits,
    PairSettings,
    Shards,
    Split,
    TooLong,
    backend_name,
    backend_of,
    list_own_words,
    protocol_of,
    resolve_values,
    settings_of,
    shaping_values,
    templates_of,
)
from edgen.config.loading import arm_jobs, is_input, load_job, load_kept_job, parse_job, texts_of
from edgen.config.plugin_parts import roles_asked

__all__ = [
    "ANNOTATOR",
    "KNOBS",
    "MOST_ANNOTATORS",
    "BackendConfig",
    "Branch",
    "CallSettings",
    "Job",
    "LabelsAsked",
    "Limits",
    "PairSettings",
    "Price",
    "Shards",
    "Split",
    "TooLong",
    "arm_jobs",
    "backend_name",
    "backend_of",
    "check",
    "check_budget",
    "is_input",
    "list_own_words",
    "load_job",
    "load_kept_job",
    "parse_job",
    "protocol_of",
    "resolve_values",
    "role_word_problems",
    "roles_asked",
    "settings_of",
    "shaping_values",
    "templates_of",
    "texts_of",
    "with_speakers",
]  # fmt: skip
