"""State of a model: the same from statistics and rows, unchanged by use, and unchanged by a fit that fails."""

import contextlib
import warnings

import numpy as np
import pytest
from estimators import CASES, CHOSEN_BY_FOLDS, ITERATED, QUIET, STREAMED, USES_SVM, over
from samples import labelled
from sklearn.pipeline import make_pipeline

import discrim
from discrim import PCA, ClassMoments
from discrim.estimators.base import Reducer
from discrim.registry import PUBLIC
from discrim.tables.validation import labelled_rows

pytestmark = QUIET

EVERY = CASES + CHOSEN_BY_FOLDS + ITERATED
X, Y = labelled(60, 6)


@over(STREAMED)
@pytest.mark.parametrize("parts", [1, 4])
def test_a_model_can_be_fitted_from_statistics(case, parts):
    keep = case()._gathering().keep
    pieces = [ClassMoments.of(X[i::parts], Y[i::parts], keep=keep) for i in range(parts)]
    fitted, whole = case().fit_statistics(sum(pieces[1:], start=pieces[0])), case().fit(X, Y)
    np.testing.assert_allclose(fitted.transform(X), whole.transform(X), atol=1e-9)
    assert fitted.n_features_in_ == X.shape[1]
    assert "components_" in vars(fitted)  # nothing is left to be found later


@over([case for case in EVERY if not case.laws.streams])
def test_no_statistics_if_they_do_not_add_up(case):
    with pytest.raises(ValueError, match="ClassMoments"):
        case().fit_statistics(ClassMoments.of(X, Y))


def assert_unchanged(model, before):
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


@over([case for case in EVERY + USES_SVM if isinstance(case(), Reducer)])
@pytest.mark.parametrize("shape", [(60, 6), (12, 30)], ids=["tall", "wide"])
def test_a_solve_reads_parameters_and_its_problem_only(case, shape):
    table, labels = labelled(*shape)
    fitted, never_fitted = case().fit(table, labels), case()
    supervised = never_fitted._needs().supervised
    rows = labelled_rows("rows", table, labels if supervised else None, None, supervised=supervised)
    before = dict(vars(never_fitted))
    found = never_fitted._solve_rows(rows)
    assert_unchanged(never_fitted, before)
    np.testing.assert_array_equal(found.components_, fitted.components_)
    np.testing.assert_array_equal(found.mean_, fitted.mean_)


def test_what_a_solve_warns_about_is_part_of_its_solution_and_is_issued_by_the_fit():
    rows = labelled_rows("rows", np.eye(4)[:, :3], None, None, supervised=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = PCA(1)._solve_rows(rows)
    assert ["tie" in text for text, _ in found.warnings] == [True]
    with pytest.warns(UserWarning, match="tie") as issued:
        PCA(1).fit(rows.X)
    assert len(issued) == 1


@over(EVERY)
def test_using_a_model_does_not_change_it(case):
    fitted = case().fit(X, Y)
    before = dict(vars(fitted))
    for name in ("transform", "predict", "decision_function", "predict_proba"):
        if hasattr(fitted, name):
            getattr(fitted, name)(X)
    for name in dir(fitted):
        hasattr(fitted, name)
    assert_unchanged(fitted, before)


@over([case for case in STREAMED if case.laws.supervised])
def test_a_missing_attribute_raises_attribute_error_only(case):
    streamed = case().partial_fit(X[Y == 1], Y[Y == 1])  # one class has no solution
    for name in {*dir(case().fit(X, Y)), "components_", "no_such_thing_"}:
        hasattr(streamed, name)
    assert not hasattr(streamed, "components_")
    with pytest.raises(AttributeError, match="class"):
        _ = streamed.components_


# ---------------------------------------------------------------------- failures


def spoilt(rows):
    rows = rows.copy()
    rows[3, 1] = np.nan
    return rows


FAILING = {
    "a bad cell": (spoilt(X), Y),
    "other columns": (spoilt(X)[:, :4], Y),
    "missing labels": (X, [None] * 60),
    "too few labels": (X[:, :3], Y[:-1]),
}
OTHERS = {
    "MaxMarginShift": lambda: discrim.MaxMarginShift(PCA(2)),
    "MarginSubspace": lambda: discrim.MarginSubspace(2),
    "MaxMarginPCA": lambda: discrim.MaxMarginPCA(2),
    "CrammerSingerSVC": discrim.CrammerSingerSVC,
    "RefinedHyperplane": discrim.RefinedHyperplane,
    "PosteriorMap": discrim.PosteriorMap,
    "KernelMap": discrim.KernelMap,
    "KernelMap, cv": lambda: discrim.KernelMap(gamma="cv"),
    "Autoencoder": lambda: discrim.Autoencoder(2, max_iter=2),
    "Predictor": lambda: discrim.Predictor(make_pipeline(discrim.FisherLDA(2))),
}
MAKERS = {case.name: case for case in EVERY} | OTHERS


def test_every_estimator_is_tested():
    asked = {type(make()).__name__ for make in MAKERS.values()}
    known = {name for name in PUBLIC if hasattr(getattr(discrim, name), "fit") and name != "fit_parts"}
    assert known <= asked


@pytest.mark.parametrize("fault", FAILING)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_failed_fit_leaves_the_model_as_it_was(make, fault):
    fitted = make().fit(X, Y)
    if not fitted.__sklearn_tags__().target_tags.required and "labels" in fault:
        pytest.skip("uses no labels")
    before = dict(vars(fitted))
    with pytest.raises(ValueError, match=r"\w"):
        fitted.fit(*FAILING[fault])
    assert_unchanged(fitted, before)
    use = fitted.transform if hasattr(fitted, "transform") else fitted.predict
    assert len(use(X)) == len(X)


@over(STREAMED)
@pytest.mark.parametrize("fault", ["a bad cell", "other columns"])
def test_a_refused_part_leaves_a_stream_as_it_was(case, fault):
    streamed = case().partial_fit(X, Y)
    streamed.transform(X)
    before = dict(vars(streamed))
    with pytest.raises(ValueError, match=r"\w"):
        streamed.partial_fit(*FAILING[fault])
    assert_unchanged(streamed, before)


def test_an_interrupted_fit_of_a_map_leaves_it_unchanged(monkeypatch):
    fitted = discrim.PosteriorMap().fit(X, Y)
    before = dict(vars(fitted))

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("discrim.estimators.map_statistics.class_places", stopped)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X[:, :3], Y)
    assert_unchanged(fitted, before)


USES = ("transform", "decision_function", "predict_proba", "predict_log_proba", "merged_features")
FAR = OTHERS | {
    "KernelMap, poly": lambda: discrim.KernelMap("poly"),
    "PosteriorMap, linear": lambda: discrim.PosteriorMap(kernel="linear"),
    "RefinedHyperplane, two classes": lambda: TwoClasses(),
}


class TwoClasses(discrim.RefinedHyperplane):
    def fit(self, X, y):
        return super().fit(X[y < 2], y[y < 2])


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("make", {**MAKERS, **FAR}.values(), ids={**MAKERS, **FAR})
def test_results_for_distant_rows_are_finite_or_a_named_error(make):
    fitted = make().fit(X, Y)
    for size in (1e200, 1e308, 1.7e308):
        for far in (np.full((1, X.shape[1]), size), np.resize([size, -size], (1, X.shape[1]))):
            for name in USES:
                if hasattr(fitted, name) and not (name == "merged_features" and len(fitted.classes_) > 2):
                    assert finite_or_named(getattr(fitted, name), far), name
        if hasattr(fitted, "inverse_transform"):
            assert finite_or_named(fitted.inverse_transform, np.full((1, fitted.transform(X).shape[1]), size))


def finite_or_named(use, rows):
    try:
        return np.isfinite(use(rows)).all()
    except ValueError as error:
        return "float64" in str(error)


def probabilities_or_reason(fitted, rows):
    try:
        return fitted.predict_proba(rows), ""
    except ValueError as error:
        return None, str(error)


@over([case for case in EVERY if hasattr(case(), "predict_proba")])
@pytest.mark.parametrize("size", [1e100, 1e200, 1e308])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_rows_far_out_have_finite_probabilities_or_are_named(case, size, sign):
    fitted, far = case().fit(X, Y), np.full((1, X.shape[1]), sign * size)
    probabilities, reason = probabilities_or_reason(fitted, far)
    if probabilities is None:
        assert size == 1e308
        assert "float64" in reason
    else:
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert (fitted.predict(far) == fitted.classes_[probabilities.argmax(axis=1)]).all()


# ---------------------------------------------------------------------- class weights and labels


WEIGHTED = [case for case in EVERY if "class_weight" in case().get_params()]


@pytest.mark.parametrize("make", [*WEIGHTED, discrim.CrammerSingerSVC, discrim.RefinedHyperplane], ids=str)
@pytest.mark.parametrize(
    ("labels", "factors"),
    [(Y, {99: 50.0}), (np.array(["a", "b", "c"])[Y], {"typo": 50.0}), (Y, {"1": 2.0}), (Y, {1: 2.0, 7: 1.0})],
    ids=["number", "text", "text for a number", "one of two"],
)
def test_class_weights_of_unknown_labels_are_refused(make, labels, factors):
    with pytest.raises(ValueError, match="class_weight"):
        make().set_params(class_weight=factors).fit(X, labels)


@over([case for case in STREAMED if case in WEIGHTED])
def test_class_weights_of_a_stream_are_checked_against_all_its_labels(case):
    factors = {0: 2.0, 1: 0.5, 2: 3.0}
    streamed = case().set_params(class_weight=factors)
    for c in range(3):
        streamed.partial_fit(X[c == Y], Y[c == Y])
    whole = case().set_params(class_weight=factors).fit(X, Y)
    np.testing.assert_allclose(streamed.transform(X), whole.transform(X), atol=1e-9)
    wrong = case().set_params(class_weight={**factors, 9: 1.0}).partial_fit(X, Y)
    with pytest.raises(ValueError, match="class_weight"):
        wrong.transform(X)


@over([case for case in EVERY if case.laws.supervised])
@pytest.mark.parametrize("kind", ["object", "list"])
def test_labels_that_differ_by_a_trailing_nul_are_two_classes(case, kind):
    labels = ["a" + "\0" * int(c) for c in Y]
    fitted = case().fit(X, np.array(labels, dtype=object) if kind == "object" else labels)
    assert fitted.classes_.tolist() == ["a", "a\0", "a\0\0"]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("size", [1e100, 1e160, 1e308])
def test_a_fit_has_no_warning_of_numpys(make, size):
    far = X.copy()
    far[7, 2], far[8, 2] = size, -size
    with contextlib.suppress(ValueError):  # with a message of discrim
        make().fit(far, Y)
