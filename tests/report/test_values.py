"""Values of the displays, each compared with its definition."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from samples import labelled
from scipy.sparse import csr_array
from scipy.special import erfc
from sklearn import decomposition
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discrim import PCA, BayesErrorPCA, FisherLDA, MarginSubspace
from discrim.estimators.kernel_map import kernel_bayes_error_lda
from discrim.evaluation.baselines import PartialLeastSquares
from discrim.evaluation.results import Result
from discrim.evaluation.statistics import corrected_interval, nemenyi_critical_difference
from discrim.report.features import LoadingsValues
from discrim.report.fitted import sampled
from discrim.report.projection import ProjectedRows, ProjectionValues
from discrim.report.rows import MarginValues, relative_margins
from discrim.report.scores import AccuracyCurveValues, CriticalDifferenceValues, alike
from discrim.report.spectrum import SpectrumValues


@pytest.fixture(scope="module")
def parts():
    """Rows to fit and rows to look at."""
    X, y = labelled(120, 6)
    names = np.array(["ash", "birch", "cedar"])[y]
    return X[:80], names[:80], X[80:], names[80:]


# ---------------------------------------------------------------------- projection


def test_points_beyond_the_limit_are_sampled_class_by_class_and_counted():
    codes = np.repeat([0, 1, 2], [9_000, 900, 100])
    drawn = sampled(codes, 1_000)
    assert len(drawn) == 1_000
    assert (np.diff(drawn) > 0).all()
    assert np.abs(np.bincount(codes[drawn]) - [900, 90, 10]).max() <= 1
    np.testing.assert_array_equal(drawn, sampled(codes, 1_000))
    rows = ProjectedRows.of(np.arange(10_000.0)[:, None], codes, 3, most_points=1_000)
    assert len(rows.codes) < rows.n_rows
    assert rows.n_rows == 10_000
    assert rows.means[0, 0] == np.arange(9_000).mean()  # of all rows, not of those drawn


def test_an_ellipse_is_the_level_line_of_its_class_and_holds_its_share(rng):
    scores = rng.multivariate_normal([3, -1], [[4, 1.5], [1.5, 1]], 20_000)
    rows = ProjectedRows.of(scores, np.zeros(len(scores), dtype=np.intp), 1)
    inverse = np.linalg.inv(rows.covariances[0])

    def level(points):
        away = points - rows.means[0]
        return np.einsum("ij,jk,ik->i", away, inverse, away)

    np.testing.assert_allclose(level(rows.ellipse(0, 0, 1)), -2 * np.log(0.05))
    assert (level(scores) < -2 * np.log(0.05)).mean() == pytest.approx(0.95, abs=0.01)
    outline = rows.ellipse(0, 1, 0)
    np.testing.assert_allclose(level(outline[:, ::-1]), -2 * np.log(0.05))
    np.testing.assert_allclose(outline[0], outline[-1])


def test_a_class_absent_from_a_part_has_no_mean(parts):
    X, y, X_test, y_test = parts
    only = y_test != "cedar"
    found = ProjectionValues.from_estimator(PCA(2).fit(X), X, y, X_test[only], y_test[only])
    assert np.isnan(found.test.means[2]).all()
    assert np.isfinite(found.train.means).all()


@pytest.mark.parametrize(
    "model", [decomposition.PCA(2), LinearDiscriminantAnalysis(n_components=2), PartialLeastSquares(2)]
)
def test_projection_and_loadings_of_scikit_learns_transformers(parts, model):
    X, y, X_test, y_test = parts
    piped = make_pipeline(StandardScaler(), model).fit(X, y)
    found = ProjectionValues.from_estimator(piped, X, y, X_test, y_test)
    np.testing.assert_array_equal(found.test.scores, piped.transform(X_test))
    loadings = LoadingsValues.from_estimator(piped, X).loadings
    scaled = piped[0].transform(X)
    np.testing.assert_allclose((scaled - scaled.mean(axis=0)) @ loadings.T, piped.transform(X), atol=1e-9)


# ---------------------------------------------------------------------- spectrum


@pytest.mark.parametrize("model", [FisherLDA(2), PCA(4), LinearDiscriminantAnalysis(n_components=2)])
def test_scores_and_predicted_errors_by_their_formulas(parts, model):
    X, y, *_ = parts
    model.fit(X, y)
    T = model.transform(X)
    found = SpectrumValues.from_estimator(model, X, y, chosen=2)
    classes, counts = np.unique(y, return_counts=True)
    shares = counts / counts.sum()
    means = np.array([T[y == label].mean(axis=0) for label in classes])
    scores = shares @ (means - T.mean(axis=0)) ** 2 / T.var(axis=0)
    np.testing.assert_allclose(found.scores, scores)
    for k in range(1, T.shape[1] + 1):
        within = sum((T[y == label] - m).T @ (T[y == label] - m) for label, m in zip(classes, means, strict=True))
        inverse = np.linalg.inv(within[:k, :k] / len(T))
        error, weight = 0.0, 0.0
        for a, b in combinations(range(3), 2):
            away = (means[a] - means[b])[:k]
            error += shares[a] * shares[b] * 0.5 * erfc(np.sqrt(away @ inverse @ away) / (2 * np.sqrt(2)))
            weight += shares[a] * shares[b]
        assert found.predicted_error[k - 1] == pytest.approx(error / weight)
    assert found.chosen == 2


def test_the_spectrum_of_bayes_error_pca_has_its_attributes(parts):
    X, y, *_ = parts
    model = BayesErrorPCA().fit(X, y)
    found = SpectrumValues.from_estimator(model, X, y)
    np.testing.assert_allclose(found.scores, model.scores_[model.selected_])
    np.testing.assert_allclose(found.predicted_error, model.bayes_error_)
    np.testing.assert_array_equal(found.eigenvalues, model.eigenvalues_)


def test_a_repeated_or_constant_component_adds_no_separation(parts):
    X, y, *_ = parts

    class Repeats:
        def transform(self, X):
            return np.column_stack([X[:, 0], X[:, 0] * 1e6 + 3, np.full(len(X), 7.0), X[:, 1]])

    found = SpectrumValues.from_estimator(Repeats(), X, y)
    assert found.eigenvalues is None
    assert found.scores[0] == pytest.approx(found.scores[1])
    assert found.scores[2] == 0
    np.testing.assert_allclose(found.predicted_error[:3], found.predicted_error[0])
    assert found.predicted_error[3] < found.predicted_error[0]


# ---------------------------------------------------------------------- loadings


def test_structure_coefficients_are_correlations(parts):
    X, y, *_ = parts
    X = np.column_stack([X, np.full(len(X), 5.0)])
    model = FisherLDA(2).fit(X, y)
    found = LoadingsValues.from_estimator(model, X, names=[f"gene {at}" for at in range(7)])
    T = model.transform(X)
    for i in range(2):
        for j in range(6):
            assert found.structure[i, j] == pytest.approx(np.corrcoef(T[:, i], X[:, j])[0, 1])
    assert (found.structure[:, 6] == 0).all()
    np.testing.assert_array_equal(found.loadings, model.components_)
    np.testing.assert_allclose(
        LoadingsValues.from_estimator(model, csr_array(X)).structure, found.structure, atol=1e-12
    )


def test_top_features_and_arrows_are_the_largest(parts):
    X, *_ = parts
    found = LoadingsValues.from_estimator(PCA(3).fit(X), X)
    assert found.feature_names == tuple(f"f{at}" for at in range(6))
    by_size = sorted(range(6), key=lambda j: -abs(found.loadings[1, j]))
    assert found.top(1, 4).tolist() == by_size[:4]
    by_structure = sorted(range(6), key=lambda j: -abs(found.structure[1, j]))
    assert found.top(1, 4, by="structure").tolist() == by_structure[:4]
    numbers, ends = found.arrows(0, 2, count=3)
    lengths = np.hypot(found.structure[0], found.structure[2])
    assert numbers.tolist() == sorted(range(6), key=lambda j: -lengths[j])[:3]
    np.testing.assert_array_equal(ends, found.structure[[0, 2]][:, numbers].T)


def test_a_transformer_that_is_not_linear_has_structure_but_no_loadings(parts):
    X, *_ = parts
    found = LoadingsValues.from_estimator(RandomTreesEmbedding(2, max_depth=1, random_state=0).fit(X), X)
    assert found.loadings is None
    assert found.structure.shape[1] == 6
    with pytest.raises(ValueError, match="names must have"):
        LoadingsValues.from_estimator(PCA(2).fit(X), X, names=["a", "b"])


# ---------------------------------------------------------------------- margins


def literal_margins(X, y, X_test, y_test):
    """Signed distance to the plane halfway to each other mean, over half the distance of the means: the least."""
    means = {label: X[y == label].mean(axis=0) for label in np.unique(y)}
    margins = []
    for x, label in zip(X_test, y_test, strict=True):
        towards = []
        for other in means.keys() - {label}:
            apart = means[label] - means[other]
            middle = (means[label] + means[other]) / 2
            towards.append((x - middle) @ apart / np.linalg.norm(apart) / (np.linalg.norm(apart) / 2))
        margins.append(min(towards))
    return np.array(margins)


def test_margins_by_their_definition(parts):
    X, y, X_test, y_test = parts
    model = MarginSubspace(1).fit(X, y)
    found = MarginValues.from_estimator(model, X, y, X_test, y_test)
    assert found.held_out
    np.testing.assert_allclose(found.before, literal_margins(X, y, X_test, y_test), atol=1e-9)
    Z, Z_test = model.transform(X), model.transform(X_test)
    np.testing.assert_allclose(found.after, literal_margins(Z, y, Z_test, y_test), atol=1e-9)
    among = MarginValues.from_estimator(model, csr_array(X), y)
    assert not among.held_out
    np.testing.assert_allclose(among.before, literal_margins(X, y, X, y), atol=1e-9)
    before, after = among.of_class(1)
    assert len(before) == len(after) == (y == "birch").sum()


def test_margins_are_1_at_the_own_mean_0_halfway_and_below_0_beyond():
    X, codes = np.array([[0.0, 0.0], [2.0, 0.0], [10.0, 1.0], [10.0, -1.0]]), np.array([0, 0, 1, 1])
    rows = np.array([[1.0, 0.0], [5.5, 7.0], [10.0, 0.0], [-3.5, 0.0]])
    np.testing.assert_allclose(relative_margins(X, codes, rows, np.zeros(4, dtype=int)), [1, 0, -1, 2])


def test_margins_count_the_first_components_and_ignore_scale_and_offset(parts):
    X, y, *_ = parts
    wide, narrow = (
        MarginValues.from_estimator(PCA(6).fit(X), X, y, n_components=2),
        MarginValues.from_estimator(PCA(2).fit(X), X, y),
    )
    np.testing.assert_allclose(wide.after, narrow.after, atol=1e-9)
    whole = MarginValues.from_estimator(PCA(6).fit(X), X, y)
    np.testing.assert_allclose(whole.before, whole.after, atol=1e-9)  # a rotation keeps every distance
    codes = np.unique(y, return_inverse=True)[1]
    plain = relative_margins(X, codes, X, codes)
    np.testing.assert_allclose(relative_margins(1e6 * X, codes, 1e6 * X, codes), plain)
    np.testing.assert_allclose(relative_margins(X + 1e6, codes, X + 1e6, codes), plain, atol=1e-6)


def test_rows_of_a_class_that_was_not_fitted_and_equal_means():
    X, codes = np.array([[0.0], [2.0], [1.0], [5.0]]), np.array([0, 0, 1, 2])  # classes 0 and 1 have one mean
    rows, labels = np.array([[1.0], [1.0], [5.0], [9.0]]), np.array([0, 1, 2, 3])
    np.testing.assert_allclose(relative_margins(X, codes, rows, labels), [1, 1, 1, np.nan])
    found = MarginValues.from_estimator(PCA(1).fit(X), X, codes, rows, labels)
    assert found.codes.tolist() == [0, 1, 2]


def test_margins_of_many_rows_are_sampled(rng):
    X, y = rng.standard_normal((500, 3)), np.arange(500) % 2
    found = MarginValues.from_estimator(PCA(2).fit(X), X[:250], y[:250], X[250:], y[250:], most_rows=50)
    assert len(found.before) == 50
    assert found.n_rows == 250
    assert len(found.codes) < found.n_rows


# ---------------------------------------------------------------------- curves and ranks


def result_rows(scores, method, k, classifier="svm"):
    return [
        Result(
            {"method": method, "k": k, "classifier": classifier, "split": split},
            {"accuracy": score, "f1": score / 2, "n_test": 20, "n_train": 80, "fit_seconds": 0.1},
        )
        for split, score in enumerate(scores)
    ]


def test_curves_have_the_corrected_interval_at_every_k():
    scores = {1: [0.7, 0.8, 0.75], 2: [0.9, 0.85, 0.95]}
    rows = [row for k, values in scores.items() for row in result_rows(values, "pca", k)]
    rows += [
        *result_rows([0.5], "raw", 9, "1-nn"),
        replace(result_rows([0.0], "lda", 1)[0], status="failed", reason="no"),
    ]
    found = AccuracyCurveValues.from_results(rows)
    assert (found.methods, found.classifiers) == (("pca", "raw"), ("svm", "1-nn"))
    pca, raw = found.curves
    assert pca.k.tolist() == [1, 2]
    for at, k in enumerate(scores):
        interval = corrected_interval(scores[k], 20 / 80)
        assert (pca.mean[at], pca.low[at], pca.high[at]) == pytest.approx((interval.mean, interval.low, interval.high))
    assert np.isnan(raw.low).all()
    assert AccuracyCurveValues.from_results(rows, "f1").curves[1].mean == 0.25
    with pytest.raises(ValueError, match="'auc'"):
        AccuracyCurveValues.from_results(rows, "auc")
    with pytest.raises(ValueError, match=r"metric.*'luck'"):
        AccuracyCurveValues.from_results(rows, "luck")


def test_curves_begin_with_a_classifier_that_judges_a_reduction():
    rows = [*result_rows([0.5, 0.6], "raw", 9, "forest"), *result_rows([0.7, 0.8], "pca", 1, "5-nn")]
    found = AccuracyCurveValues.from_results(rows)
    assert found.classifiers == ("5-nn", "forest")
    assert [mark.name for mark in found.chart().of("lines")] == ["pca"]


def test_methods_with_equal_predictions_all_have_a_rank():
    def rows(*scores):
        return [
            replace(row, scores=row.scores | {"labels": labels})
            for method, score, labels in zip("abc", scores, ("same", "same", "other"), strict=True)
            for row in result_rows([score, score + 0.01], method, 2)
        ]

    found = CriticalDifferenceValues.from_rows({"one": rows(0.9, 0.9, 0.5), "two": rows(0.8, 0.8, 0.6)}, "svm")
    assert dict(zip(found.methods, found.mean_ranks.tolist(), strict=True)) == {"a": 1.5, "b": 1.5, "c": 3.0}


def test_ranks_groups_and_wins():
    scores = np.array([[0.9, 0.8, 0.5, 0.7], [0.9, 0.8, 0.4, 0.8], [0.7, 0.8, 0.5, 0.6]])
    found = CriticalDifferenceValues.from_scores(scores, ["a", "b", "c", "d"], ["x", "y", "z"])
    assert found.methods == ("a", "b", "d", "c")
    np.testing.assert_allclose(found.mean_ranks, [4 / 3, (2 + 2.5 + 1) / 3, (3 + 2.5 + 3) / 3, 4])
    assert found.critical_difference == nemenyi_critical_difference(4, 3)
    assert (found.wins[0, 1], found.ties[0, 1], found.losses[0, 1]) == (2, 0, 1)
    assert (found.wins[1, 2], found.ties[1, 2]) == (2, 1)
    np.testing.assert_array_equal(found.wins, found.losses.T)
    assert (found.wins + found.ties + found.losses == 3).all()


def test_groups_are_the_largest_runs_of_which_no_two_differ(rng):
    assert alike(np.array([1.0, 1.5, 2.4, 4.0]), 1.0) == ((0, 1), (1, 2))
    assert alike(np.array([1.0, 3.0, 5.0]), 1.0) == ()
    for _ in range(50):
        ranks, critical = np.sort(rng.uniform(1, 8, 6)), rng.uniform(0.2, 4)
        runs = {(a, b) for a, b in combinations(range(6), 2) if ranks[b] - ranks[a] <= critical}
        largest = {(a, b) for a, b in runs if not any((c, e) != (a, b) and c <= a and b <= e for c, e in runs)}
        assert list(alike(ranks, critical)) == sorted(largest)


def test_ranks_from_rows_of_results_take_each_method_at_its_chosen_k(rng):
    def rows(levels):
        return [
            row
            for method, k, level in levels
            for row in result_rows((level + 0.01 * rng.standard_normal(8)).tolist(), method, k)
        ]

    data = {
        "one": rows([("pca", 1, 0.5), ("pca", 2, 0.7), ("lda", 1, 0.9), ("only here", 1, 1.0)]),
        "two": rows([("lda", 1, 0.95), ("pca", 1, 0.6)]),
        "nothing": [],
    }
    found = CriticalDifferenceValues.from_rows(data, "svm")
    assert found.methods == ("lda", "pca")
    assert found.datasets == ("one", "two")
    assert found.scores[0, 1] == pytest.approx(0.7, abs=0.02)
    assert (found.wins[0, 1], found.wins[1, 0]) == (2, 0)
    up_and_down = np.array([1, -1, 1, -1, 1, -1, 1, 0.5]) / 50
    data["two"] = result_rows([0.6] * 8, "pca", 1) + result_rows((0.6 + up_and_down).tolist(), "lda", 1)
    again = CriticalDifferenceValues.from_rows(data, "svm")
    assert again.wins[0, 1] == again.ties[0, 1] == 1  # a difference that no test shows is a tie
    assert CriticalDifferenceValues.from_rows({"one": data["one"]}, "svm") is None
    assert CriticalDifferenceValues.from_rows(data, "1-nn") is None


def test_a_kernel_s_components_are_read_by_the_columns_and_have_no_loadings():
    """The discriminants are of the kernel's coordinates: neither their number nor their names are the table's."""
    X, y = labelled(60, 4)
    names = [f"gene {at}" for at in range(4)]
    model = kernel_bayes_error_lda(n_components=2).fit(X, y)
    scores = model.transform(X)
    expected = np.corrcoef(np.hstack([scores, X]).T)[:2, 2:]
    for given in ({"names": names}, {"names": names, "linear": False}):
        found = LoadingsValues.from_estimator(model, X, **given)
        assert (found.loadings, found.feature_names) == (None, tuple(names))
        np.testing.assert_allclose(found.structure, expected, atol=1e-10)
    linear = PCA(2).fit(X)
    assert (
        LoadingsValues.from_estimator(linear, X, linear=False).loadings is None
    )  # also where the numbers happen to agree
