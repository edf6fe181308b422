"""Script of `make evidence`: its pages and their time budget."""

from pathlib import Path

import evidence
import pytest
import study_parts

DOCS = Path(evidence.__file__).parents[1] / "docs"


def test_the_budget_is_less_than_three_hours():
    assert sum(page.minutes for pages in evidence.PAGES.values() for page in pages) < 180


@pytest.mark.parametrize("name", evidence.PAGES)
def test_scripts_and_pages_are_there(name, tmp_path):
    for page in evidence.PAGES[name]:
        command = evidence.command_of(name, page, tmp_path, jobs=2)
        assert Path(evidence.__file__).with_name(page.script).is_file()
        into = DOCS.parent / command[command.index("--into") + 1]
        assert into.is_file()
        assert "{" not in " ".join(command)


def test_a_table_ends_with_version_and_date():
    page = study_parts.written("<!-- a: begin --><!-- a: end -->", "a", ["| 1 |"])
    assert page.splitlines()[-3].startswith("*Computed by discrim 0")
    assert "| 1 |" in page
