"""Addresses in the package's metadata: the publisher sets them.

DISCRIM_REPOSITORY   the repository's address: the source, the issues, the changelog
DISCRIM_SITE         the address of what `make docs` built; notebooks link each estimator to its page there

With the first, the README's links and pictures become absolute, so that they show on a package index; without, the
metadata have no address and the README stays as it is.
"""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


def addresses(repository: str, site: str) -> dict[str, str]:
    """Return the addresses of the project by the names that package indexes use."""
    found = {}
    if repository:
        found = {
            "Source": repository,
            "Issues": f"{repository}/issues",
            "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        }
    return found | ({"Documentation": site} if site else {})


def absolute(readme: str, repository: str) -> str:
    """Return the README with absolute links; pictures link to the files themselves."""

    def complete(match: re.Match[str]) -> str:
        before, path = match.groups()
        kind = "raw" if path.endswith(".png") else "blob"
        return f"{before}{repository}/{kind}/main/{path}"

    return re.sub(r"(\]\(|src=\")(?![a-z]+:|#)([^)\"]+)", complete, readme)


class Addresses(MetadataHookInterface):
    """Fills in the fields that pyproject.toml calls dynamic."""

    def update(self, metadata: dict) -> None:
        """Set the addresses, and the README with them."""
        repository, site = (os.environ.get(f"DISCRIM_{name}", "").rstrip("/") for name in ("REPOSITORY", "SITE"))
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = addresses(repository, site)
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(readme, repository) if repository else readme,
        }
