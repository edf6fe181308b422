"""pytest plugin that replaces scikit-learn's estimators by ours, so its own tests run on them.

Solver names, tolerances and batch sizes are taken and left: there is one way to each answer here. What became of each
test is written, one line of JSON each, to the file that DROPIN_OUTCOMES names.
"""

import json
import os
from pathlib import Path

import pytest
import sklearn.decomposition
import sklearn.discriminant_analysis

import discrim


class PCA(discrim.PCA):
    def __init__(
        self,
        n_components=None,
        *,
        copy=True,
        whiten=False,
        svd_solver="auto",
        tol=0.0,
        iterated_power="auto",
        n_oversamples=10,
        power_iteration_normalizer="auto",
        random_state=None,
    ):
        super().__init__(n_components, whiten=whiten)
        self.copy, self.svd_solver, self.tol, self.iterated_power = copy, svd_solver, tol, iterated_power
        self.n_oversamples, self.power_iteration_normalizer = n_oversamples, power_iteration_normalizer
        self.random_state = random_state


class IncrementalPCA(discrim.PCA):
    def __init__(self, n_components=None, *, whiten=False, copy=True, batch_size=None):
        super().__init__(n_components, whiten=whiten)
        self.copy, self.batch_size = copy, batch_size


FISHER, REGULARIZED = (
    type("LinearDiscriminantAnalysis", (kind,), {}) for kind in (discrim.FisherLDA, discrim.RegularizedLDA)
)


def linear_discriminant_analysis(
    solver="svd",
    shrinkage=None,
    priors=None,
    n_components=None,
    store_covariance=False,
    tol=1e-4,
    covariance_estimator=None,
):
    kept = {"n_components": n_components, "priors": priors, "store_covariance": store_covariance or solver != "svd"}
    if shrinkage is None:
        return FISHER(covariance_estimator=covariance_estimator, **kept)
    return REGULARIZED(shrinkage="ledoit_wolf" if shrinkage == "auto" else shrinkage, **kept)


sklearn.decomposition.PCA, sklearn.decomposition.IncrementalPCA = PCA, IncrementalPCA
sklearn.discriminant_analysis.LinearDiscriminantAnalysis = linear_discriminant_analysis


def pytest_collection_modifyitems(items):
    for module in {item.module for item in items if hasattr(item.module, "SPARSE_M")}:
        module.SPARSE_M, module.SPARSE_N = 150, 60  # arbitrary sizes, according to scikit-learn; these are quick


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.when == "call" or report.outcome != "passed":
        record = {"test": f"{item.module.__name__.rpartition('.')[2]}::{item.name}", "outcome": report.outcome}
        with Path(os.environ["DROPIN_OUTCOMES"]).open("a") as file:
            file.write(json.dumps(record) + "\n")
    return report
