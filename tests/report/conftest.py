"""Pages shared by several test files."""

import pytest
from pages import compared, hostile_results, made_up, stored, trees

from discrim.evaluation.methods import METHODS
from discrim.report.page import Origin, write_report


@pytest.fixture(scope="session")
def found(tmp_path_factory):
    """A small comparison that was really run."""
    return compared(tmp_path_factory.mktemp("compared"), trees())


@pytest.fixture(scope="session")
def page(found, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(found, path, Origin("discrim compare trees.csv --target tree", "trees.csv", ("--target", "tree")))
    return path


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    write_report([hostile_results()], path)
    return path


@pytest.fixture(scope="session")
def page_of_three(tmp_path_factory):
    """Three data sets; the last has no table at hand."""
    levels = [("fisher-lda", 2, 0.9), ("pca", 2, 0.6), ("pca", 3, 0.65), ("raw", 6, 0.7)]
    results = [made_up(trees(seed=seed), f"wood {seed}", levels) for seed in range(3)]
    results[2] = stored(results[2].setting, results[2].rows, label="wood 2")
    path = tmp_path_factory.mktemp("three") / "report.html"
    write_report(results, path)
    return path


@pytest.fixture(scope="session")
def large_page(tmp_path_factory):
    """10,000 rows of 40 classes with 12 features, and results of eight methods."""
    table = trees(10_000, 12, classes=[f"class {code}" for code in range(40)])
    methods = ["pca", "margin-pca-mean", "max-margin-criterion", "bayes-error-pca", *list(METHODS)[2:6]]
    path = tmp_path_factory.mktemp("large") / "report.html"
    write_report([made_up(table, "large", [(method, 5, 0.8) for method in methods], sizes=(8_000, 2_000))], path)
    return path
