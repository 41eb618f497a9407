"""Sections of docs/job.md for this domain's job keys."""

from __future__ import annotations

from edgen.domains.guided.config import Guided
from tests.job_section import Section

SECTIONS = (
    Section(Guided, "guided", "For `protocol: guided`; see [guided](guided.md).", """\
guided: {machine: incident_response, chooser: model, hints: true, free_text: 0.2, paraphrase: false, turns_in_a_row: 2, clock: words, turns: 100,
         questionnaire: machine}
"""),
)  # fmt: skip
