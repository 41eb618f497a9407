"""Forms of answers. A protocol or another asker adds a form to a question, and services with structured
answers return exactly that form.

    from edgen.plugin.forms import form, one_of

    VERDICT = form(better=one_of((1, 2)))

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

Form: a JSON Schema with the sentence that asks for the same. form, form_of: the form of an object with
properties. turn_form: the form of one turn. text, one_of, whole_number, probability, list_of, turns: schemas
of an object's properties. without_bounds: a schema for services that take no bounds.
"""

from __future__ import annotations

from edgen.core.forms import Form as Form
from edgen.core.forms import form as form
from edgen.core.forms import form_of as form_of
from edgen.core.forms import list_of as list_of
from edgen.core.forms import one_of as one_of
from edgen.core.forms import probability as probability
from edgen.core.forms import text as text
from edgen.core.forms import turn_form as turn_form
from edgen.core.forms import turns as turns
from edgen.core.forms import whole_number as whole_number
from edgen.core.forms import without_bounds as without_bounds
