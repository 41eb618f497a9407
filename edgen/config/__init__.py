"""Job files as typed Jobs: unknown keys are refused, and every problem is reported with its path.

API keys are named by environment variable and never stored. A backend at a provider's own host has the list
price unless the job gives one. `shaping` selects the settings that shape answers; others, such as limits and
shards, may change on a resume.
"""

from __future__ import annotations

from edgen.config.backends import BackendConfig, Price
from edgen.config.checks import check, check_budget, find_role_word_problems, with_speakers
from edgen.config.job import (
    ANNOTATOR,
    KNOBS,
    CallSettings,
    Job,
    Limits,
    TooLong,
    find_backend,
    find_backend_name,
    find_job_protocol,
    list_asked_roles,
    list_own_words,
    list_templates,
    resolve_values,
    select_shaping_values,
    settings_of,
)
from edgen.config.job_parts import MOST_ANNOTATORS, Branch, LabelsAsked, PairSettings, Shards, Split
from edgen.config.loading import is_input, list_arm_jobs, list_texts, load_job, load_kept_job, parse_job

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
    "check",
    "check_budget",
    "find_backend",
    "find_backend_name",
    "find_job_protocol",
    "find_role_word_problems",
    "is_input",
    "list_arm_jobs",
    "list_asked_roles",
    "list_own_words",
    "list_templates",
    "list_texts",
    "load_job",
    "load_kept_job",
    "parse_job",
    "resolve_values",
    "select_shaping_values",
    "settings_of",
    "with_speakers",
]  # fmt: skip
