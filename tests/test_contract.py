"""Every estimator and option satisfies scikit-learn's contract: its own checks, without expected failures, and ours."""

import pickle
import tomllib
import warnings
from pathlib import Path

import literal
import numpy as np
import pytest
from estimators import CASES, CHOSEN_BY_FOLDS, ITERATED, LISTED, NOT_LINEAR, QUIET, STREAMED, SUPERVISED, USES_SVM, over
from geometry import most_turned
from samples import labelled, note, with_names_that_are_read
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from discrim import BayesErrorLDA
from discrim.estimators.base import Reducer
from discrim.estimators.margin_pca import ShiftedPCA
from discrim.registry import ENTRIES, load_target

pytestmark = QUIET

EVERY = CASES + CHOSEN_BY_FOLDS + ITERATED
OWN = [case for case in NOT_LINEAR if not isinstance(case(), Pipeline)]  # of steps that are checked by themselves
X, Y = labelled(60, 6)
TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"


# each class once, and again for options with another code path
LEFT_OUT = (  # the checks with the defaults and those in test_posterior_map cover the last three
    "margin-pca-all",
    "margin-pca-any",
    "regularized-lda-oas",
    "posterior-map",
    "screened-pca",
    "sparse-pls-da",
)
CHECKED = [case for case in EVERY + OWN if case.name not in LEFT_OUT]
KINDS = sorted({type(case()) for case in EVERY + OWN}, key=lambda kind: kind.__name__)


@over(CHECKED)
def test_scikit_learns_own_checks(case):
    estimator = case(None)
    check_estimator(estimator.set_params(tol=1e-2) if case.laws.iterated else estimator, on_skip=None)


@pytest.mark.parametrize("kind", KINDS)
def test_the_third_line_of_a_docstring_is_the_objective(kind):
    third_line = kind.__doc__.splitlines()[2]
    assert third_line.startswith(8 * " "), f"the objective should be here as a formula: {third_line}"


@over(EVERY)
def test_fitted_attributes_are_always_there(case, table):
    X, y = table
    fitted = case().fit(X, y)
    d = X.shape[1]
    assert fitted.components_.shape == (2, d)
    assert fitted.mean_.shape == (d,)
    assert fitted.eigenvalues_.shape == fitted.explained_variance_ratio_.shape == (2,)
    assert isinstance(fitted.rank_, int)
    assert isinstance(fitted.solver_, str)
    assert fitted.solver_
    assert fitted.n_features_in_ == d
    assert fitted.n_components_ == 2
    if case.laws.supervised:
        assert fitted.classes_.tolist() == [0, 1, 2]


def has_checked_defaults(kind):
    """Return True if a case of the checks above is an estimator with all defaults."""
    return any(type(case()) is kind and case(None).get_params() == kind().get_params() for case in CHECKED)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not has_checked_defaults(kind)])
def test_scikit_learns_own_checks_with_the_defaults(kind):
    estimator = kind()
    quick = {"tol": 1e-2, "cv": 2}  # what the checks do not depend on
    estimator.set_params(**{name: value for name, value in quick.items() if name in estimator.get_params()})
    check_estimator(estimator, on_skip=None)


@over(STREAMED)
def test_every_attribute_of_a_stream_solves_it(case):
    known = [name for name in vars(case().fit(X, Y)) if name.endswith("_") and not name.startswith("_")]
    for name in known:
        assert hasattr(case().partial_fit(X, Y), name), name


@over(STREAMED)
def test_a_stream_has_the_same_attributes(case):
    whole, streamed = case().fit(X, Y), case().partial_fit(X, Y)
    names, again = (
        [name for name in dir(one) if name.endswith("_") and not name.startswith("_") and hasattr(one, name)]
        for one in (whole, streamed)
    )
    assert names == again
    for name in names:
        assert np.shape(getattr(whole, name)) == np.shape(getattr(streamed, name)), name


@over(EVERY)
def test_no_fitted_attribute_exists_before_fit(case):
    estimator = case()
    for use in (estimator.transform, estimator.inverse_transform):
        with pytest.raises(NotFittedError, match="fit"):
            use(X)
    assert not any(hasattr(estimator, name) for name in ("components_", "mean_", "eigenvalues_", "classes_", "rank_"))


@over(EVERY)
def test_fit_transform_is_fit_then_transform_with_weights_too(case):
    weights = 1 + np.arange(len(Y)) % 3
    np.testing.assert_allclose(
        case().fit_transform(X, Y, sample_weight=weights), case().fit(X, Y, sample_weight=weights).transform(X)
    )


# ---------------------------------------------------------------------- n_components


@over([case for case in CASES if case.laws.nests])
def test_first_components_do_not_depend_on_how_many_are_kept(case, table):
    X, y = table
    assert most_turned(case(1).fit(X, y).components_, case(2).fit(X, y).components_[:1]) < 1e-9


@over([case for case in EVERY + USES_SVM if isinstance(case(), Reducer)])
def test_more_components_than_there_are_give_all_of_them_with_a_warning(case, table):
    X, y = table
    everything = case(None).fit(X, y)
    assert 1 <= len(everything.components_) <= everything.rank_ <= X.shape[1]
    too_many = X.shape[1] + 40
    if case.name == "pca":  # as scikit-learn's
        with pytest.raises(ValueError, match="n_components"):
            case(too_many).fit(X, y)
        return
    with pytest.warns(UserWarning, match=f"n_components={too_many}"):
        fitted = case(too_many).fit(X, y)
    assert len(everything.components_) <= fitted.n_components_ <= fitted.rank_
    assert fitted.transform(X).shape == (len(X), fitted.n_components_)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="n_components=")
        most = case(fitted.n_components_).fit(X, y)
    if case.name != "screened-pca":  # its columns depend on the number of components
        np.testing.assert_allclose(most.components_, fitted.components_, rtol=1e-6, atol=1e-9)


def test_a_grid_of_components_works_beyond_those_there_are():
    search = GridSearchCV(BayesErrorLDA(shrinkage=0.1), {"n_components": [1, 2, 50]}, cv=3, error_score="raise")
    with pytest.warns(UserWarning, match="n_components=50"):
        search.fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@over(CASES)
def test_a_fraction_keeps_the_fewest_that_reach_it(case, table):
    X, y = table
    everything = case(None).fit(X, y)
    shares = everything.scores_[everything.selected_] if hasattr(everything, "scores_") else everything.eigenvalues_
    reached = np.cumsum(shares) / shares.sum()
    for fraction in (0.3, 0.9, 0.999):
        kept = len(case(fraction).fit(X, y).components_)
        assert reached[kept - 1] >= fraction * (1 - 1e-9)
        assert kept == 1 or reached[kept - 2] < fraction


@over(EVERY)
def test_other_counts_are_refused(case):
    for wrong in (0, -1, True, 1.0, 2.5, "many", float("nan"), [2]):
        with note(wrong), pytest.raises(ValueError, match="n_components"):
            case(wrong).fit(X, Y)


# ---------------------------------------------------------------------- copies


@over(EVERY)
def test_clone_and_parameters(case):
    estimator = case(3)
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    assert type(estimator)(**estimator.get_params()).get_params() == estimator.get_params()
    assert copy.set_params(n_components=2).get_params()["n_components"] == 2
    assert repr(copy).startswith(type(estimator).__name__)


@over(EVERY)
def test_pickle_of_a_fit(case):
    fitted = case().fit(X, Y)
    back = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(back.transform(X), fitted.transform(X))


@over(STREAMED)
def test_a_pickled_stream_continues(case):
    streamed = case().partial_fit(X[:30], Y[:30])
    back = pickle.loads(pickle.dumps(streamed)).partial_fit(X[30:], Y[30:])
    np.testing.assert_allclose(back.transform(X), case().fit(X, Y).transform(X), atol=1e-9)


# ---------------------------------------------------------------------- frames, names, pipelines


@over(EVERY)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_in_and_out(case, library):
    frames = pytest.importorskip(library)
    names = list("abcdef")
    frame = with_names_that_are_read(frames.DataFrame(dict(zip(names, X.T, strict=True))))
    fitted = case().set_output(transform=library).fit(frame, Y)
    out = fitted.transform(frame)
    prefix = type(fitted).__name__.lower()
    assert isinstance(out, frames.DataFrame)
    assert list(out.columns) == [f"{prefix}0", f"{prefix}1"] == fitted.get_feature_names_out().tolist()
    assert fitted.feature_names_in_.tolist() == names
    np.testing.assert_allclose(out.to_numpy(), case().fit(X, Y).transform(X), atol=1e-10)


@over(EVERY)
def test_in_a_pipeline_and_a_search(case):
    model = make_pipeline(StandardScaler(), case(), NearestCentroid())
    name = type(case()).__name__.lower()
    search = GridSearchCV(model, {f"{name}__n_components": [1, 2]}, cv=3, error_score="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        search.fit(X, Y)
    assert search.best_score_ > 0.5
    assert search.predict(X).shape == Y.shape


@over(EVERY)
def test_weights_reach_the_reducer_through_a_pipeline(case):
    weights = 1 + np.arange(len(Y)) % 3
    name = type(case()).__name__.lower()
    model = make_pipeline(case()).fit(X, Y, **{f"{name}__sample_weight": weights})
    np.testing.assert_allclose(model.transform(X), case().fit(X, Y, sample_weight=weights).transform(X))


# ---------------------------------------------------------------------- streams


@over([case for case in EVERY if not case.laws.streams])
def test_no_partial_fit_if_statistics_do_not_add_up(case):
    estimator = case()
    assert not hasattr(estimator, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit"):
        estimator.partial_fit(X, Y)


@over(STREAMED)
def test_a_fit_discards_the_stream_and_a_stream_after_a_fit_starts_again_with_a_warning(case):
    estimator = case().partial_fit(X[::-1] * 3, Y).fit(X, Y)
    np.testing.assert_allclose(estimator.components_, case().fit(X, Y).components_, atol=1e-10)
    with pytest.warns(UserWarning, match="partial_fit"):
        estimator.partial_fit(X[:40], Y[:40])
    np.testing.assert_allclose(estimator.components_, case().fit(X[:40], Y[:40]).components_, atol=1e-9)


@over([case for case in STREAMED if case.laws.supervised])
def test_a_first_chunk_of_one_class_is_accepted_and_transform_needs_two(case):
    streamed = case().partial_fit(X[Y == 1], Y[Y == 1], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="class"):
        streamed.transform(X)
    streamed.partial_fit(X[Y != 1], Y[Y != 1])
    np.testing.assert_allclose(streamed.transform(X), case().fit(X, Y).transform(X), atol=1e-9)


@over(SUPERVISED)
def test_labels_are_needed(case):
    with pytest.raises(ValueError, match=r"\by\b"):
        case().fit(X)


# ---------------------------------------------------------------------- every method


def test_every_reducer_of_the_registry_is_under_the_laws():
    made = [case() for case in [*EVERY, *NOT_LINEAR, *USES_SVM]]
    tested = {type(step) for one in made for step in (one if isinstance(one, Pipeline) else [one])}
    listed = {load_target(entry.target) for entry in ENTRIES if entry.saved and entry.methods}
    assert listed <= tested
    in_the_room = {kind for kind in concrete(Reducer) if kind.__module__.startswith("discrim.")} - {ShiftedPCA}
    assert in_the_room <= listed, "a reducer without an entry in discrim/registry.py"


@over(LISTED)
def test_every_method_has_a_test_of_its_definition(case):
    assert case.name in literal.DEFINITIONS, "name the test of its definition in tests/literal.py, DEFINITIONS"
    file, _, name = literal.DEFINITIONS[case.name].partition("::")
    assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")


@pytest.mark.skipif(not DOCS.is_dir(), reason="the docs are in the repository only")
@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.methods], ids=lambda entry: entry.name)
def test_every_method_is_in_the_list_of_the_documentation(entry):
    pages = tomllib.loads((DOCS / "methods.toml").read_text(encoding="utf-8"))
    assert entry.name in pages, "describe it in docs/methods.toml"
    assert {"when", "when_not"} <= pages[entry.name].keys()


def concrete(kind):
    """Return the subclasses of this class that can be instantiated."""
    below = {one for child in kind.__subclasses__() for one in concrete(child)}
    return below if kind.__abstractmethods__ else below | {kind}
