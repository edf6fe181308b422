"""What the documentation of classifiers and of the shift shows is what one gets."""

import re
from doctest import DocTestFinder, DocTestRunner
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

import discrim
from discrim.classifiers.kernel_naive_bayes import KernelNaiveBayes

NAMES = ["Autoencoder", "CrammerSingerSVC", "MarginSubspace", "MaxMarginShift", "RefinedHyperplane", "max_margin_shift"]
DOCS = Path(discrim.__file__).parents[1] / "docs"


@pytest.mark.parametrize("shown", [*NAMES, KernelNaiveBayes], ids=lambda shown: getattr(shown, "__name__", shown))
def test_the_example_of_the_docstring_runs(shown):
    shown = getattr(discrim, shown) if isinstance(shown, str) else shown
    example = DocTestFinder(recurse=False).find(
        shown, shown.__name__, globs={shown.__name__: shown, "discrim": discrim}
    )[0]
    assert example.examples
    assert DocTestRunner().run(example).failed == 0


@pytest.mark.skipif(not DOCS.is_dir(), reason="the docs are beside the package in the repository only")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", ["refinement", "max_margin_shift"])
def test_the_code_of_the_page_runs(page):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    X, y = load_digits(return_X_y=True) if page == "max_margin_shift" else load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:200]
    for block in blocks:
        exec(block, {"X": X[rows], "y": y[rows], "X_new": X[rows[:5]]})
    assert blocks
