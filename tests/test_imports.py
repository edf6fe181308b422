"""Modules that `import discrim` loads, and modules that are loaded on first use."""

import json
import re
import subprocess
import sys
from pathlib import Path

import discrim
from discrim.registry import PUBLIC, render_stub

HEAVY = ["numba", "pandas", "polars", "pyarrow", "dask", "plotly", "matplotlib", "faiss"]


def modules_after(code):
    """Names of the modules that a fresh interpreter holds after the code."""
    listing = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return set(json.loads(ran.stdout.splitlines()[-1]))


def test_import_is_light():
    loaded = modules_after("from discrim import PCA, BayesErrorLDA, MarginPCA")
    of_scikit_learn = modules_after("import sklearn.base")  # which brings pandas where that is installed
    assert (loaded - of_scikit_learn).isdisjoint(HEAVY)
    assert "numba" not in loaded
    assert "discrim.estimators.margin_pca" in loaded  # the probe looks at something


def test_python_may_leave_docstrings_out():
    subprocess.run([sys.executable, "-OO", "-c", "from discrim import PCA, ProjectionDisplay"], check=True)


FITS = """
import numpy as np, discrim
X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
for pairs in ("mean", "nearest"):
    discrim.MarginPCA(2, pairs=pairs).fit(X, y)
"""


def test_numba_is_for_the_svm_and_sparse_rows_alone():
    assert "numba" not in modules_after(FITS)


def test_every_public_name_is_there_and_explained():
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
