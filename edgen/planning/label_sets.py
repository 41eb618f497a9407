"""Label sets that a job names, read into it: what a run keeps has their labels in the place of their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgen.config import Job, check, protocol_of, settings_of
from edgen.config.job import find_protocol
from edgen.config.label_set import load_label_set
from edgen.planning.allowed_files import Reach


def with_label_sets(job: Job, reach: Reach) -> Job:
    """The job with the labels of the sets that its protocol's settings name. Raises LabelSetError, and JobError where the
    job does not go together with them."""
    settings = settings_of(job)
    plain = msgspec.to_builtins(settings)
    read = read_label_sets(plain, job.protocol, reach)
    if read == plain:
        return job
    built = msgspec.convert(read, protocol_of(job).Config)
    job = msgspec.structs.replace(job, protocol_settings={**job.protocol_settings, job.protocol: built})
    check(job, job.name)
    return job


def read_label_sets(settings: Mapping[str, Any], protocol: str, reach: Reach) -> dict[str, Any]:
    """A protocol's settings, or a part of them, as plain values, with labels in the place of the names of sets."""
    read = dict(settings)
    for key in find_protocol(protocol).label_sets:
        *above, last = key.split(".")
        place: Any = read
        for name in above:
            inner = place.get(name) if isinstance(place, dict) else None
            if not isinstance(inner, dict):
                break
            place[name] = place = dict(inner)
        else:
            if isinstance(place.get(last), str):
                path = reach.require("label_sets", place[last], f"{protocol}.{key}")
                place[last] = load_label_set(path).definitions
    return read


def keys_with_label_sets(values: Mapping[str, Any]) -> Iterator[str]:
    """The protocols whose settings stand among a job's plain values."""
    for key, given in values.items():
        if isinstance(given, dict) and (protocol := find_protocol(key)) is not None and protocol.label_sets:
            yield key
