"""Education Dialogue: records of a teacher and a student in the layout of the released data set."""

from __future__ import annotations

from edgen.families.education.record import EDUCATION

__all__ = ["EDUCATION"]
