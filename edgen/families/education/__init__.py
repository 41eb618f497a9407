"""Education Dialogue: records of a teacher and a student in the layout of the released data set."""

from edgen.families.education.record import EDUCATION as EDUCATION
