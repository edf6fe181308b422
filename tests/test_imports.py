"""Modules that `import discrim` loads, and modules loaded on first use."""

import json
import re
import subprocess
import sys
from pathlib import Path

import discrim
from discrim.registry import PUBLIC, render_stub

HEAVY = ["numba", "pandas", "polars", "pyarrow", "dask", "plotly", "matplotlib", "faiss"]


FITS = """
import json, sys
import sklearn.base  # imports pandas if it is installed
before = set(sys.modules)
from discrim import PCA, BayesErrorLDA, MarginPCA
imported = sorted(set(sys.modules) - before)
import numpy as np
X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
for pairs in ("mean", "nearest"):
    MarginPCA(2, pairs=pairs).fit(X, y)
print(json.dumps([imported, sorted(sys.modules)]))
"""


def test_import_is_light_and_numba_is_for_the_svm_and_sparse_rows_alone():
    ran = subprocess.run([sys.executable, "-c", FITS], capture_output=True, text=True, check=True)
    imported, after_fits = json.loads(ran.stdout)
    assert set(imported).isdisjoint(HEAVY)
    assert "discrim.estimators.margin_pca" in imported  # the list is that of the right process
    assert "numba" not in after_fits


# compiles the package as -OO does; with -OO itself, all of scikit-learn would be compiled too
WITHOUT_DOCSTRINGS = """
from importlib.machinery import SourceFileLoader
usual = SourceFileLoader.get_code
def get_code(self, name):
    if name.partition(".")[0] != "discrim":
        return usual(self, name)
    return compile(self.get_data(self.path), self.path, "exec", dont_inherit=True, optimize=2)
SourceFileLoader.get_code = get_code
from discrim import PCA, ProjectionDisplay
import discrim.estimators.pca
assert discrim.estimators.pca.__doc__ is None
"""


def test_the_package_works_without_docstrings():
    subprocess.run([sys.executable, "-c", WITHOUT_DOCSTRINGS], check=True)


def test_every_public_name_exists_and_has_a_gloss():
    for name in discrim.__all__:
        assert hasattr(discrim, name)
        assert re.search(rf"^{name} +{re.escape(PUBLIC[name].gloss)}$", discrim.__doc__, re.MULTILINE)
        assert len(PUBLIC[name].gloss.split()) <= 7


def test_the_stub_holds_the_names_of_the_registry():
    written = Path(discrim.__file__).with_name("__init__.pyi").read_text(encoding="utf-8")
    assert written == render_stub(), "run `python discrim/registry.py`"


def test_the_package_is_typed_and_has_a_version():
    from importlib.metadata import version
    from importlib.resources import files

    assert (files("discrim") / "py.typed").is_file()
    assert discrim.__version__ == version("discrim")
