"""The documentation site has every page, and the page of commands matches the commands.

`make docs-site` builds the site.
"""

from __future__ import annotations

import re

import pytest

from tests import ROOT, commands_page
from tests.readme import DOCUMENTS


@pytest.mark.integration
def test_the_page_of_commands_is_what_the_commands_say() -> None:
    assert commands_page.PAGE.read_text() == commands_page.page(), "`make docs` rewrites docs/commands.md"


def test_every_page_is_in_the_contents() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    listed = set(
        re.findall(
            r"^([a-z_]+)$", "".join(re.findall(r"```{toctree}\n(.*?)```", index, re.DOTALL)), re.MULTILINE
        )
    )
    assert listed == {page.stem for page in DOCUMENTS if page.parent == ROOT / "docs"} - {"index"}
