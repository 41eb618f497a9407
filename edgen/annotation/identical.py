"""Annotators of a layer that send identical requests. Their agreement only shows how consistent one model is.

Requests are identical if backend, template and all other settings are equal and the calls carry no seeds of
their own. At temperature 0 the answers are then equal, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgen.annotation.layer import LayerFolder
from edgen.config import ANNOTATOR, BackendConfig, find_backend, load_job
from edgen.core.registry import find_plugin, list_names
from edgen.protocols.labelled_units import list_job_annotators
from edgen.store.layers import find_layer_files
from edgen.store.run_folder import SAMPLE, RunFolder

SEEDS = "seeds"  # in an annotator's facts: "auto" if its calls carry seeds that the job does not state
Groups = tuple[tuple[str, ...], ...]

_encode = msgspec.json.Encoder(order="deterministic").encode


def find_identical_annotators(run: RunFolder) -> dict[str, Groups]:
    """Return the groups of annotators that send identical requests, by layer. Layers without such groups are
    left out. Raises RunError for unreadable notes on an annotator."""
    whole = run.whole or run
    found = {name: _find_groups(LayerFolder(whole, name)) for name in find_layer_files(whole)}
    return {name: groups for name, groups in found.items() if groups}


def _find_groups(layer: LayerFolder) -> Groups:
    groups: dict[bytes, list[str]] = {}
    for name in layer.list_ledgers():
        facts = layer.read_facts(name)
        if facts is not None and not _has_own_seeds(facts):
            shaping = {key: fact for key, fact in facts.items() if key not in ("annotator", SAMPLE)}
            groups.setdefault(_encode(shaping), []).append(name)
    return tuple(tuple(sorted(group)) for group in (*groups.values(), [*_of_job(layer)]) if len(group) > 1)


def _has_own_seeds(facts: Mapping[str, Any]) -> bool:
    """Return whether an annotator's calls carry seeds of their own, according to its notes."""
    backend = facts.get("backend")
    if facts.get(SEEDS) == "auto" or not isinstance(backend, dict) or backend.get("seed") == "auto":
        return True
    kind = backend.get("type")
    if kind not in list_names("provider") or find_plugin("provider", kind) is not None:
        return True  # the adapter of another package may send seeds
    return BackendConfig.variant(kind).ALWAYS_SEEDED


def _of_job(layer: LayerFolder) -> Iterator[str]:
    """Yield the job's annotators of the layer if their requests are identical."""
    job = load_job(layer.run.job)
    asked = job.labels.get(layer.name)
    if asked is not None and asked.annotators > 1 and not find_backend(job, ANNOTATOR).draws_anew:
        yield from list_job_annotators(asked.annotators)
