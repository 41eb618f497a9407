"""Differences between two jobs' settings, key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgen.config import Job, list_templates, select_shaping_values
from edgen.core.digest import compute_fingerprint
from edgen.core.errors import TemplateError
from edgen.core.registry import find
from edgen.core.yaml_values import read_text
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import find_template
from edgen.prompting.prompt import digest_template, read_answer_schema
from edgen.space import Space, digest_content

_NOT_SET = "not set"


def list_settings_by_key(job: Job, space: Space, allowed: AllowedFiles) -> dict[str, str]:
    """Return the settings of a job that can make arms differ, as texts by dotted key. `allowed`: the files
    that the job may name.

    Raises TemplateError for an unreadable template.
    """
    plain = select_shaping_values(job)
    for key in ("prompt", "prompts", "space", "seed", "design"):
        plain.pop(key, None)
    plain |= {"conversations": job.conversations, "replicates": job.replicates}
    for role, backend in job.backends.items():
        values = plain["backends"][role]
        values["price"] = msgspec.to_builtins(backend.price)
        # Values may be secret: digests only show that they differ.
        values["extra_body"] = {
            key: compute_fingerprint(value, 8) for key, value in values.get("extra_body", {}).items()
        }
    found = dict(flatten_values(plain))
    for template in list_templates(job, space).values():
        key = template.key
        path = find_template(template, allowed)
        digest = digest_template(read_text(path, TemplateError), read_answer_schema(path))
        found[key] = f"{path.stem} ({digest[:8]})"
    found["space"] = f"{space.name} ({digest_content(space)[:8]})"
    return found


def find_differences(theirs: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return (theirs, ours) for each setting that differs. Settings that only one job has are omitted at
    their default."""
    protocols = {side["protocol"] for side in (theirs, ours) if "protocol" in side}
    defaults = dict(
        flatten_values({name: msgspec.to_builtins(find("protocol", name).Config()) for name in protocols})
    )
    found = {}
    for key in {**theirs, **ours}:
        pair = theirs.get(key, _NOT_SET), ours.get(key, _NOT_SET)
        alone = pair[0] if key not in ours else pair[1] if key not in theirs else None
        if pair[0] != pair[1] and (alone is None or alone not in (defaults.get(key), "null", "{}")):
            found[key] = pair
    return found


def flatten_values(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each plain value by dotted key."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from flatten_values(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, str):
        yield path, value or "empty"
    else:
        yield path, msgspec.json.encode(value).decode()
