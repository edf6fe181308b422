"""Kernel naive Bayes against its definition, bump by bump."""

import numpy as np
from scipy.stats import norm
from sklearn.utils.estimator_checks import check_estimator

from discrim.estimators.classifiers import KernelNaiveBayes


def literal_log_probabilities(X, y, points):
    """log p_c + Σ_j log mean_i φ((x − x_ij)/h)/h, normalised over the classes."""
    columns = []
    for label in np.unique(y):
        rows = X[y == label]
        total = np.full(len(points), np.log(len(rows) / len(X)))
        for j in range(X.shape[1]):
            values = rows[:, j]
            deviation = np.median(np.abs(values - np.median(values))) / 0.6745
            spread = deviation if deviation > 0 else values.max() - values.min()
            width = spread * (4 / (3 * len(values))) ** 0.2 if spread > 0 else 1.0
            total += np.log([np.mean([norm.pdf(p, v, width) for v in values]) for p in points[:, j]])
        columns.append(total)
    logs = np.column_stack(columns)
    return logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))


def test_equals_its_definition(rng):
    y = np.repeat(["a", "b", "c"], [9, 6, 5])
    X = rng.normal(size=(20, 3)) + (y == "b")[:, None]
    X[:, 1] = np.round(X[:, 1])  # ties
    X[:5, 2] = 1.0  # more than half of class a equal: the range takes the place of the deviation
    points = rng.normal(size=(7, 3))
    found = KernelNaiveBayes().fit(X, y).predict_log_proba(points)
    np.testing.assert_allclose(found, literal_log_probabilities(X, y, points), rtol=1e-10)


def test_a_constant_feature_has_bumps_of_width_one():
    X = np.column_stack([[0.0, 0.0, 0.0, 5.0], [0.0, 1.0, 2.0, 3.0]])
    model = KernelNaiveBayes().fit(X, ["a", "a", "a", "b"])
    assert model.widths_[0, 0] == 1.0


def test_rows_far_from_all_others_still_get_the_nearer_class():
    X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    model = KernelNaiveBayes().fit(X, [0, 0, 0, 1, 1, 1])
    assert model.predict([[-1e4], [1e4]]).tolist() == [0, 1]
    assert np.isfinite(model.predict_proba([[1e6]])).all()


def test_scikit_learns_contract():
    check_estimator(KernelNaiveBayes(), on_skip=None)
