"""Metadata of a published package: addresses, links of the README, links to the reference."""

import importlib.util
import re
import sys
import types
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import discrim
from discrim import PCA, docstrings
from discrim.registry import PUBLIC

ESTIMATORS = [
    one for name in PUBLIC if isinstance(one := getattr(discrim, name), type) and issubclass(one, BaseEstimator)
]
ROOT = Path(discrim.__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "hatch_build.py").exists(), reason="of the repository, not of the package")


@pytest.fixture
def hook(monkeypatch):
    """hatch_build.py without hatchling, which only a build has."""
    interface = types.ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = type("MetadataHookInterface", (), {"root": str(ROOT)})
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_addresses_metadata_and_readme_have_no_links(hook, monkeypatch):
    for name in ("DISCRIM_REPOSITORY", "DISCRIM_SITE"):
        monkeypatch.delenv(name, raising=False)
    metadata = {}
    hook.Addresses().update(metadata)
    assert metadata["urls"] == {}
    assert metadata["readme"]["text"] == (ROOT / "README.md").read_text(encoding="utf-8")


def test_with_an_address_every_link_of_the_readme_is_absolute(hook, monkeypatch):
    monkeypatch.setenv("DISCRIM_REPOSITORY", "https://forge.example/us/discrim/")
    monkeypatch.setenv("DISCRIM_SITE", "https://docs.example/discrim")
    metadata = {}
    hook.Addresses().update(metadata)
    assert metadata["urls"]["Issues"] == "https://forge.example/us/discrim/issues"
    assert metadata["urls"]["Documentation"] == "https://docs.example/discrim"
    links = re.findall(r"(?:\]\(|src=\")([^)\"]+)", metadata["readme"]["text"])
    assert links
    assert [link for link in links if not link.startswith("https://")] == []
    assert all(
        link.startswith("https://forge.example/us/discrim/raw/main/docs/images/")
        for link in links
        if link.endswith(".png")
    )


def test_links_of_the_readme_point_to_files():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    paths = [link.partition("#")[0] for link in re.findall(r"(?:\]\(|src=\")(?![a-z]+:|#)([^)\"]+)", readme)]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("make", ESTIMATORS)
def test_an_estimator_links_to_its_page_if_the_site_is_known(make, monkeypatch):
    model = make(PCA()) if make is discrim.Predictor else make()
    monkeypatch.setattr(docstrings, "documentation_site", lambda: "")
    assert model._get_doc_link() == ""
    monkeypatch.setattr(docstrings, "documentation_site", lambda: "https://docs.example/discrim")
    name = type(model).__name__
    assert name in PUBLIC
    assert model._get_doc_link() == f"https://docs.example/discrim/api/{name}.html"
    assert model._get_doc_link() in model._repr_html_()


def test_the_site_is_read_from_the_installed_metadata(monkeypatch):
    class Metadata:
        def get_all(self, name, default):
            return ["Source, https://forge.example", "Documentation, https://docs.example/discrim/"]

    docstrings.documentation_site.cache_clear()
    monkeypatch.setattr(docstrings.metadata, "metadata", lambda name: Metadata())
    assert docstrings.documentation_site() == "https://docs.example/discrim"
    docstrings.documentation_site.cache_clear()


def test_an_estimator_of_a_package_that_is_not_installed_is_shown_without_a_link(monkeypatch):
    def missing(name):
        raise docstrings.metadata.PackageNotFoundError(name)

    docstrings.documentation_site.cache_clear()
    monkeypatch.setattr(docstrings.metadata, "metadata", missing)
    assert discrim.PCA()._get_doc_link() == ""
    assert "PCA" in discrim.PCA()._repr_html_()
    docstrings.documentation_site.cache_clear()


def test_the_version_is_defined_once():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited[1] == discrim.__version__
