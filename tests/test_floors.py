"""The minimum versions in pyproject.toml are those that `make test-oldest` installs."""

import re
import tomllib
from pathlib import Path

import pytest

import discrim

ROOT = Path(discrim.__file__).parents[1]


@pytest.mark.skipif(not (ROOT / "oldest.txt").is_file(), reason="oldest.txt is in the repository only")
def test_the_oldest_versions_are_the_declared_ones():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tested = [project["optional-dependencies"][extra] for extra in ("tables", "report", "cli", "plots", "test")]
    declared = dict(
        re.fullmatch(r"([\w.-]+)>=([\w.]+)", one).groups()
        for group in [project["dependencies"], *tested]
        for one in group
        if not one.startswith("discrim[")
    )
    listed = re.findall(r"^([\w.-]+)==([\w.]+)$", (ROOT / "oldest.txt").read_text(encoding="utf-8"), re.MULTILINE)
    installed = {name: re.sub(r"(\.0)+$", "", version) for name, version in listed}
    assert installed == {name: re.sub(r"(\.0)+$", "", version) for name, version in declared.items()}
