"""Models are restored unchanged, and other files are rejected."""

import copy
import errno
import hashlib
import json
import pickle
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import CASES
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from discrim import (
    PCA,
    Autoencoder,
    BayesErrorLDA,
    BayesErrorPCA,
    FisherLDA,
    HashKFold,
    HeteroscedasticLDA,
    MaxMarginShift,
    PosteriorMap,
    Predictor,
    RegularizedLDA,
    classifier_states,
)
from discrim.estimators.pipeline import LinearMap
from discrim.evaluation.classifiers import CLASSIFIERS, IMPUTATIONS, preprocessing
from discrim.evaluation.methods import METHODS
from discrim.model_file import FORMAT, ModelFileError, about, load, save


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.discrim"


def restored(model, path):
    save(model, path)
    return load(path)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_reducer_is_restored(case, table, path):
    X, y = table
    model = case(2).fit(X, y)
    again = restored(model, path)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    found = {name for name, value in vars(model).items() if name.endswith("_") and isinstance(value, np.ndarray)}
    assert {"components_", "mean_", "eigenvalues_", "explained_variance_ratio_"} <= found
    for name in found:
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert (again.rank_, again.solver_, again.n_features_in_) == (model.rank_, model.solver_, model.n_features_in_)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "names", [["b", "a", "größe ✓"], [3, -1, 2], [True, False, True], np.array(["x", "y", "z"], dtype=object)]
)
def test_labels_of_every_kind_are_restored(names, table, path):
    X, y = table
    labels = np.asarray(names)[y]
    model = FisherLDA().fit(X, labels)
    again = restored(model, path)
    assert again.classes_.dtype.kind == model.classes_.dtype.kind
    assert again.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.ours])
def test_every_method_of_project_can_be_saved(name, table, path):
    X, y = table
    model = make_pipeline(StandardScaler(), METHODS[name].estimator(1, seed=0)).fit(X, y)
    np.testing.assert_array_equal(restored(model, path).transform(X), model.transform(X))
    assert load(path).get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


@pytest.mark.parametrize("name", [name for name, one in METHODS.items() if not one.ours and one.build is not None])
def test_linear_reductions_of_others_are_saved_as_linear_maps(name, table, path):
    X, y = table
    theirs = METHODS[name].estimator(1, seed=0).fit(X, y)
    map_of = LinearMap.of(theirs, X.shape[1], name)
    save(make_pipeline(StandardScaler(with_mean=False, with_std=False).fit(X), map_of), path)
    expected = np.asarray(theirs.transform(X))
    np.testing.assert_allclose(load(path).transform(X), expected, atol=1e-9 * np.abs(expected).max())
    assert load(path).get_feature_names_out().tolist() == [f"{name}0"]


def test_a_shift_with_another_extractor_is_restored(table, path):
    X, y = table
    model = MaxMarginShift(Autoencoder(1, max_iter=5), random_state=0).fit(X, y)
    np.testing.assert_array_equal(restored(model, path).transform(X), model.transform(X))


@pytest.mark.parametrize("kind", [BayesErrorLDA, RegularizedLDA, HeteroscedasticLDA, PosteriorMap])
def test_folds_by_content_are_restored(kind, table, path):
    X, y = table
    model = kind(2, cv=HashKFold(3, random_state=7)).fit(X, y)
    again = restored(model, path)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert (type(again.cv), vars(again.cv)) == (HashKFold, {"n_splits": 3, "random_state": 7})
    np.testing.assert_array_equal(again.fit(X, y).transform(X), model.transform(X))


def test_folds_alone_are_no_model_and_other_splitters_cannot_be_saved(table, path):
    with pytest.raises(ModelFileError, match="HashKFold"):
        FORMAT.from_bytes(FORMAT.to_bytes(HashKFold(3)), path)
    with pytest.raises(TypeError, match=r"cv.*StratifiedKFold"):
        save(RegularizedLDA(2, cv=StratifiedKFold(3)).fit(*table), path)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-1, 1)), MaxAbsScaler()], ids=str)
def test_a_pipeline_with_a_scaler_is_restored(scaler, table, path):
    X, y = table
    model = make_pipeline(scaler, RegularizedLDA(2)).fit(X, y)
    again = restored(model, path)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again[-1].path_.accuracies, model[-1].path_.accuracies)
    again.fit(X, y)  # and is an ordinary pipeline


@pytest.mark.parametrize("impute", IMPUTATIONS)
def test_a_pipeline_with_an_imputer_is_restored(impute, table, path):
    X, y = table[0].copy(), table[1]
    X[3, 1] = X[5, 0] = np.nan
    X[:, 2] = np.nan
    model = make_pipeline(*preprocessing("standard", impute), PCA(2)).fit(X, y)
    again = restored(model, path)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    # all values differ, so the smallest counts as the most frequent
    literal = {"median": np.nanmedian, "mean": np.nanmean, "most-frequent": np.nanmin}[impute]
    assert again[0].transform(X)[3, 1] == pytest.approx(literal(X[:, 1]))
    assert (again[0].transform(X)[:, 2] == 0).all()


def test_column_names_float32_and_solver_are_restored(table, path):
    X, y = table
    frame = pd.DataFrame(X.astype(np.float32), columns=[f"c {i}" for i in range(X.shape[1])])
    model = BayesErrorPCA(2, score="bhattacharyya").fit(frame, y)
    save(model, path, about={"target": "sort", "feature_names": list(frame.columns)})
    again = load(path)
    assert again.feature_names_in_.tolist() == list(frame.columns)
    assert again.transform(frame).dtype == np.float32
    assert about(path) == {"target": "sort", "feature_names": list(frame.columns)}


def test_a_stream_keeps_its_directions_and_its_statistics(table, path):
    X, _ = table
    model = PCA(2).partial_fit(X[:8]).partial_fit(X[8:12])
    np.testing.assert_array_equal(restored(model, path).transform(X), model.transform(X))
    np.testing.assert_array_equal(load(path).partial_fit(X[12:]).transform(X), model.partial_fit(X[12:]).transform(X))


def test_the_same_model_makes_the_same_file(table, tmp_path):
    model = PCA(2).fit(*table)
    save(model, tmp_path / "a")
    save(load(tmp_path / "a"), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# --- classifiers --------------------------------------------------------------------------------------------------

JUDGES = {
    **{name: one.build for name, one in CLASSIFIERS.items()},
    "scikit-learn's logistic regression": LogisticRegression,
    "scikit-learn's linear SVM": LinearSVC,
    "rbf svm": SVC,
    "balanced rbf svm": partial(SVC, class_weight="balanced", gamma=0.1),
    "random forest": partial(RandomForestClassifier, 12, random_state=0, n_jobs=2),
    "lda": LinearDiscriminantAnalysis,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reduces", [True, False])
@pytest.mark.parametrize("name", JUDGES)
def test_every_classifier_is_restored(name, reduces, table, path):
    X, codes = table
    y = np.array(["b", "a", "größe ✓"])[codes]
    model = make_pipeline(StandardScaler(), *([PCA(2)] if reduces else []), JUDGES[name]()).fit(X, y)
    again = restored(model, path)
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert type(again[-1]) is type(model[-1] if not isinstance(model[-1], Pipeline) else model[-1][-1])
    for method in ("predict_proba", "decision_function"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    save(again, path)
    assert load(path).predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("classifier", [SVC(), KNeighborsClassifier(3), LinearSVC(), RandomForestClassifier(3)])
def test_classifiers_of_sparse_rows_are_restored(classifier, table, path):
    X, y = sp.csr_matrix(np.maximum(table[0], 0)), table[1]
    model = make_pipeline(MaxAbsScaler(), classifier).fit(X, y)
    assert restored(model, path).predict(X).tolist() == model.predict(X).tolist()


def test_a_file_does_not_decide_how_many_threads_a_prediction_starts(table, path):
    model = make_pipeline(PCA(2), RandomForestClassifier(3, n_jobs=64, verbose=5)).fit(*table)
    save(model, path)
    assert (load(path)[-1].n_jobs, load(path)[-1].verbose) == (None, 0)


SPOILT = {  # classifier, and the parts of its state that do not fit to the others, with their values
    DecisionTreeClassifier: [
        *((("tree_", "nodes", "left_child"), value) for value in (10**6, 0)),  # 0: a circle, which would not end
        *((("tree_", "nodes", "right_child"), value) for value in (-5, 0)),
        *((("tree_", "nodes", "feature"), value) for value in (10**6, -1)),
        (("tree_", "n_features"), 7),
        (("tree_", "max_depth"), -1),
        (("tree_", "values"), np.zeros((2, 1, 3))),
        (("tree_", "values"), np.zeros((0, 1, 3))),
    ],
    SVC: [
        *((("_n_support",), np.array(counts, dtype=np.int32)) for counts in ([1, 1, 1], [2**30] * 3, [-1, 5, 5])),
        (("_dual_coef_",), np.zeros((1, 3))),
        (("dual_coef_",), np.zeros((1, 3))),
        (("_intercept_",), np.zeros(1)),
        (("support_",), np.zeros(1, dtype=np.int32)),
        (("_probA",), np.zeros(3)),
        (("_sparse",), True),
        (("kernel",), "precomputed"),
        (("shape_fit_",), (4, 1)),
    ],
    KNeighborsClassifier: [
        (("_y",), np.array([0])),
        (("_y",), np.full(40, 9)),
        (("n_neighbors",), 10**9),
        (("leaf_size",), 10**9),
        (("metric",), None),
    ],
}


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [(kind, *change) for kind, changes in SPOILT.items() for change in changes],
    ids=lambda one: one[-1] if isinstance(one, tuple) and one and isinstance(one[-1], str) else "",
)
def test_classifiers_whose_parts_do_not_fit_together_are_refused(kind, place, value, table):
    state = copy.deepcopy(classifier_states.plain_state(kind().fit(*table)))
    held = state
    for name in place[:-1]:
        held = held[name]
    if "nodes" in place:
        held[place[-1]][0] = value
    else:
        held[place[-1]] = value
    with pytest.raises(ValueError, match=r"tree|fit together"):
        classifier_states.restore(kind, state)


def test_forests_with_a_foreign_tree_are_refused(table, path):
    X, y = table
    for other in (DecisionTreeClassifier().fit(X[:, :2], y), DecisionTreeClassifier().fit(X, y % 2), StandardScaler()):
        forest = RandomForestClassifier(3).fit(X, y)
        forest.estimators_[1] = other
        save(Pipeline([("forest", forest)]), path)
        with pytest.raises(ModelFileError, match="holds no model"):
            load(path)


def test_a_predictor_is_restored(table, path):
    X, y = table
    model = Predictor(make_pipeline(StandardScaler(), PCA(2), SVC())).fit(X, y)
    again = restored(model, path)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.unusual(X).tolist() == model.unusual(X).tolist()
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert again.get_feature_names_out().tolist() == ["pca0", "pca1"]


# --- refusals -----------------------------------------------------------------------------------------------------


def test_every_damaged_byte_is_noticed(table, path):
    X, _ = table
    save(PCA(1).fit(X[:, :3]), path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in {0, 5, 16, 40, 81, 82, len(whole) - 1, *rng.integers(len(whole), size=60).tolist()}:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ModelFileError):
            load(path)
    for cut in (0, 3, 15, 50, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ModelFileError):
            load(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(ModelFileError, match="checksum"):
        load(path)


def test_foreign_files_are_refused_and_never_unpickled(path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was opened",))

    for content in (pickle.dumps(Bomb()), b"", b"a,b\n1,2\n", b"PK\x03\x04", b"discrim model"):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="model"):
            load(path)
    path.write_bytes(b"discrim model 3\nabc\n{}")
    with pytest.raises(ModelFileError, match="format '3'"):
        load(path)


def forged(path, described, data=b""):
    """A file with a right checksum and a wrong content."""
    content = json.dumps(described).encode() + b"\n" + data
    path.write_bytes(b"discrim model 2\n" + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


@pytest.mark.parametrize(
    "described",
    [
        {},
        {"model": {"estimator": "system", "state": {}}, "arrays": []},
        {"model": {"value": "Popen", "state": {}}, "arrays": []},
        {"model": {"array": 0}, "arrays": [{"dtype": "|O", "shape": [1]}]},
        {"model": {"array": 0}, "arrays": [{"dtype": "<f8", "shape": [10**12]}]},
        {"model": {"array": 0}, "arrays": [{"dtype": "<f8", "shape": [-1]}]},
        {"model": {"unknown": 0}, "arrays": []},
        {"model": 5, "arrays": []},
        {"model": "text", "arrays": []},
        {"model": {"array": 7}, "arrays": []},
        {"model": {"array": 0}, "arrays": [{"dtype": "<f8", "shape": [1e400]}]},
        {"model": {"array": 0}, "arrays": [{"dtype": "<f8", "shape": 3}]},
        {"model": {"pipeline": [["a", 5]]}, "arrays": []},
        {"model": {"pipeline": 3}, "arrays": []},
        {"model": {"estimator": "PCA", "state": {"map": []}}, "arrays": []},
        {"model": {"estimator": "PCA", "state": 3}, "arrays": []},
        {"model": {"estimator": ["PCA"], "state": {"map": []}}, "arrays": []},
        {"model": {"estimator": "LinearMap", "state": {"map": [["name", "x"]]}}, "arrays": []},
        {"model": {"items": [1], "shape": [2], "text": False}, "arrays": []},
        {"model": {"sparse": [1, 2, 3], "shape": [2, 2]}, "arrays": []},
        [],
        7,
    ],
)
def test_forged_descriptions_are_refused(described, path):
    forged(path, described, b"12345678")
    with pytest.raises(ModelFileError, match="model"):
        load(path)


def wrapped(described, depth):
    for _ in range(depth):
        described = {"pipeline": [["a", described]]}
    return described


def test_pipelines_inside_pipelines_are_read_in_time_linear_in_the_size_of_the_file(table, path):
    save(make_pipeline(StandardScaler(), PCA(1)).fit(table[0]), path)
    described, _, data = path.read_bytes().split(b"\n", 2)[2].partition(b"\n")
    described = json.loads(described)
    expected = load(path).transform(table[0])
    for depth in (50, 200):
        forged(path, described | {"model": wrapped(described["model"], depth)}, data)
        began = time.process_time()
        again = load(path)
        assert time.process_time() - began < 2.0
        assert [name for name, _ in again.steps] == ["standardscaler", "pca"]
        np.testing.assert_array_equal(again.transform(table[0]), expected)


def test_the_steps_of_a_saved_pipeline_are_one_list_with_unique_names(table, path):
    X, y = table
    inner = make_pipeline(StandardScaler(), PCA(2))
    model = make_pipeline(MinMaxScaler(), inner, StandardScaler(), FisherLDA(1)).fit(X, y)
    again = restored(model, path)
    names = [name for name, _ in again.steps]
    assert names == ["minmaxscaler", "standardscaler-2", "pca", "standardscaler-4", "fisherlda"]
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_pipeline_without_a_reducer_is_neither_saved_nor_loaded(table, path):
    X, _ = table
    with pytest.raises(TypeError, match=r"StandardScaler, MaxAbsScaler"):
        save(make_pipeline(StandardScaler(), MaxAbsScaler()).fit(X), path)
    for model in ({"pipeline": []}, wrapped({"pipeline": []}, 12)):
        forged(path, {"model": model, "arrays": []})
        with pytest.raises(ModelFileError, match="model"):
            load(path)


@pytest.mark.parametrize("column", [-1, 10_000, 2_000_000_000])
def test_sparse_rows_with_columns_that_are_not_there_are_refused(column, table, path):
    fitted = PosteriorMap(kernel="cosine").fit(sp.csr_array(table[0]), table[1])
    fitted._rule.kernel.landmarks.indices[0] = column
    save(fitted, path)
    with pytest.raises(ModelFileError, match="model"):
        load(path)


@pytest.mark.parametrize("name", ["mean_", "components_", "n_features_in_"])
def test_a_model_that_lacks_a_part_is_refused(name, table, path):
    fitted = PCA(2).fit(table[0])
    for value in (None, "text", np.zeros(2)):
        setattr(fitted, name, value)
        save(fitted, path)
        with pytest.raises(ModelFileError, match="model"):
            load(path)


@pytest.mark.parametrize("nested", [b"[" * 100_000, b'{"model": ' * 100_000, b"{", b"\xff", b""])
def test_invalid_or_deeply_nested_json_is_rejected(nested, path):
    path.write_bytes(b"discrim model 2\n" + hashlib.sha256(nested).hexdigest().encode() + b"\n" + nested)
    for read in (load, about):
        with pytest.raises(ModelFileError, match="model"):
            read(path)
    deep = {"list": [], "tuple": False}
    for _ in range(300):
        deep = {"list": [deep], "tuple": False}
    forged(path, {"model": deep, "arrays": []}, b"")
    with pytest.raises(ModelFileError, match="model"):
        load(path)


def test_a_full_disk_leaves_the_old_model_and_names_the_path(path):
    save(PCA(1).fit(np.eye(4)[:, :3]), path)
    before = path.read_bytes()
    code = f"""
import numpy as np, resource, signal
from discrim import PCA
from discrim.model_file import save
model = PCA(5).fit(np.random.default_rng(0).normal(size=(20, 2000)))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    save(model, {str(path)!r})
except OSError as error:
    print(error.errno, error.filename)
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == f"{errno.EFBIG} {path}"
    assert path.read_bytes() == before
    assert [other.name for other in path.parent.iterdir()] == [path.name]


def test_class_weights_with_numpy_labels_are_restored(path):
    X = np.random.default_rng(0).normal(size=(30, 4))
    y = np.array(["a", "b", "c"] * 10)
    model = RegularizedLDA(1, class_weight=dict(zip(np.unique(y), [1.0, 2.0, 3.0], strict=True))).fit(X, y)
    again = restored(model, path)
    assert again.class_weight == model.class_weight
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
