"""Counts of records: by split, by place of the end marker, by debris, by repairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgen.plugin import Measure, NeedsDataSet, Sample, Space, Tally, Total, Words
from edgen.plugin.measures import Panel, Shared, roles_of, sort_counts

MARKERS = ("suffix", "own_turn", "inside", "absent")


class OverviewMeasure(NeedsDataSet, Measure[Any]):
    name = "overview"
    definition = (
        "Records by split and by the place of the end marker; records with each kind of debris, as `edgen "
        "validate` names it, and with each repair of the reader. edgen's own counts."
    )
    order = 1
    section = "shape"
    reads_space = False
    aggregates = (
        Total("records"),
        Tally("splits", label="records", says="{records} ({it})", keys=("train", "test", "none"),
            names={"none": "of no split"}),
        Total("simulated", label="simulated", if_any=True),
        Tally("markers", label="end marker", keys=MARKERS,
            names={"own_turn": "as a turn of its own", "suffix": "as suffix"}),
        Tally("ended_by", label="end marker spoken by", keys=roles_of, order="name", last=("nobody",)),
        Tally("defects", label="debris, in records"),
        Tally("repairs", label="repairs, in records"),
        Tally("unread", label="no records", says="{it:,} × {key}", if_any=True),
    )  # fmt: skip
    panels = (
        Panel(
            "endings", "Where the end marker stands", ("markers",),
            "suffix: after the last turn's text; own turn: as a turn of its own; inside: within a text; "
            "absent: nobody wrote it.",
            of="records",
        ),
        Panel(
            "repairs", "Repairs by the reader of replies", ("repairs",),
            "Conversations with each repair. Look for a repair that most conversations need: the template "
            "could ask for the right form.",
            of="records",
        ),
        Panel(
            "defects", "Debris that is still in the turns", ("defects",),
            "Conversations with each kind that edgen validate finds. Look for any: these conversations were "
            "accepted with the debris.",
            of="records",
        ),
    )  # fmt: skip
    compares = ()  # `edgen compare` has its own metrics of outcomes and repairs

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the record's side of the split, its end, and its kinds of debris and repairs."""
        return {
            "records": 1,
            "simulated": sample.simulated,
            "splits": sample.split or "none",
            "markers": sample.marker,
            "ended_by": sample.ended_by or "nobody",
            "defects": {*sample.defects} if sample.defects else None,
            "repairs": {*sample.repairs} if sample.repairs else None,
        }

    def finish(self, figures: dict[str, Any], shared: Shared) -> dict[str, Any]:
        """Return the counts, and the unreadable records, which are known only at the end."""
        return {**figures, "unread": sort_counts(shared.data.unread)}


MEASURE = OverviewMeasure()
