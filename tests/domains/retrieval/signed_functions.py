"""The Python functions of this domain that take declared options; see tests/signatures.py."""

from __future__ import annotations

from edgen.api.objects.arguments import Listening, QuestionKeys
from edgen.domains.retrieval.baseline_options import BaselineOptions
from edgen.domains.retrieval.options import ScoreOptions
from tests import ROOT
from tests.signed_function import Signed, SignedPage

PAGE = SignedPage(
    ROOT / "edgen" / "domains" / "retrieval" / "signatures.py",
    """\
if TYPE_CHECKING:
    from edgen.execution.progress import Listener
""",
    (
        Signed("score", "functions.py", (ScoreOptions,), free=None),
        Signed("baseline", "functions.py", (BaselineOptions, Listening, QuestionKeys)),
    ),
)
