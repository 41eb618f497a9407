"""What `edgen generate` made, in lines: how the run stands, its files, and the first conversations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from edgen.api.generation import ArmFiles, Generated
from edgen.cli.render.status import render_status


def render_generated(made: Generated, show: int) -> Iterator[str]:
    """`show`: so many conversations of each arm."""
    yield from render_status(made.status)
    for arm in made.files:
        if arm.arm:
            yield f"arm        {arm.arm}"
        yield f"split      {arm.train} train, {arm.test} test"
        yield f"data       {arm.folder}"
        for record in _read_first(arm, show):
            yield from _render_record(record)


def _read_first(arm: ArmFiles, count: int) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for name in arm.names:
        if len(records) < count:
            records += msgspec.json.decode((arm.folder / name).read_bytes())[: count - len(records)]
    return records


def _render_record(record: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield f"{record['id']}{' (simulated)' if record['provenance']['simulated'] else ''}"
    for key, value in {**record.get("background_info", {}), **record.get("scenario", {})}.items():
        yield f"  {key}: {_describe_value(value)}"
    for turn in record["conversation"]:
        yield f"{turn['role']}: {turn['text']}"
    if "probability" in record:
        yield f"probability that the student understood: {record['probability']}"


def _describe_value(value: Any) -> str:
    """A value of a scenario, with what its entry says of itself behind it."""
    if not isinstance(value, dict):
        return str(value)
    fields = ", ".join(f"{name}: {said}" for name, said in value.items() if name != "value")
    return f"{value.get('value')} ({fields})" if fields else str(value.get("value"))
