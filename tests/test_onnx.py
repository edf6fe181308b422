"""Every ONNX graph agrees with discrim to the precision of its input; skipped without skl2onnx."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import discrim
from discrim import (
    BayesErrorLDA,
    CrammerSingerSVC,
    FisherLDA,
    KernelMap,
    MaxMarginShift,
    PairwiseEigenvectors,
    PosteriorMap,
    RefinedHyperplane,
)
from discrim.estimators.pipeline import LinearMap
from discrim.registry import ENTRIES, OUR_METHODS

skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed: pip install 'discrim[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'discrim[onnx]'")
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Directions .* tie"),
]
PRECISION = {"float32": 2e-6, "float64": 1e-12}


@pytest.fixture(scope="module", autouse=True)
def registered():
    import discrim.onnx as exporting

    exporting.register()


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    keep = np.arange(len(y)) % 2 == 0
    return X[keep], np.array(["setosa", "versicolor", "virginica"])[y[keep]], X[~keep]


def outputs(model, X, options=None):
    graph = skl2onnx.to_onnx(model, X[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: X})


def assert_same(found, expected, dtype):
    expected = np.asarray(expected, dtype=np.float64)
    np.testing.assert_allclose(found, expected, rtol=PRECISION[dtype], atol=PRECISION[dtype] * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", OUR_METHODS, ids=lambda method: method.name)
def test_a_graph_gives_the_features_of_new_rows(method, dtype, iris):
    X, y, new = iris
    model = method.estimator(2, 0).fit(X, y)
    new = new.astype(dtype)
    (found,) = outputs(model, new)
    assert found.dtype == dtype
    assert_same(found, model.transform(new.astype(np.float64)), dtype)


@pytest.mark.parametrize(
    "model",
    [
        PairwiseEigenvectors(2, pieces=True),
        PairwiseEigenvectors(2, pieces=True, centre=False),
        MaxMarginShift(TruncatedSVD(2, algorithm="arpack")),
        MaxMarginShift(discrim.PCA(2), embedding=KernelMap()),
        discrim.Autoencoder(2, random_state=0),
        KernelMap(kernel="linear"),
        PosteriorMap(2, kernel="linear"),
        PosteriorMap(1, kernel="rbf", sharpness="tempered"),
    ],
    ids=repr,
)
def test_options_that_make_another_map_are_in_the_graph(model, iris):
    X, y, new = iris
    model.fit(X, y)
    (found,) = outputs(model, new)
    assert_same(found, model.transform(new), "float64")


def test_a_map_of_a_forest_is_in_the_graph_and_one_without_probabilities_is_refused(iris):
    X, y, new = iris
    model = PosteriorMap(2, classifier=RandomForestClassifier(20, random_state=0)).fit(X, y)
    (found,) = outputs(model, new)
    np.testing.assert_allclose(found, model.transform(new), atol=1e-5)  # a graph's trees are in single precision
    rng = np.random.default_rng(0)  # the sum of a plane, which suits the rule, and an interval, which suits trees
    X_sum = np.c_[rng.standard_normal((500, 15)), rng.standard_t(1.5, 500)]
    y_sum = X_sum[:, :15].sum(axis=1) + 4 * (np.abs(X_sum[:, 15]) < 0.8) > 2
    both = PosteriorMap(1).fit(X_sum, y_sum)
    assert both.kernel_.name.endswith("+ RandomForestClassifier")
    (found,) = outputs(both, X_sum)
    np.testing.assert_allclose(found, both.transform(X_sum), atol=1e-5)
    refused = PosteriorMap(2, classifier=RidgeClassifier()).fit(X, y)
    with pytest.raises(NotImplementedError, match="RidgeClassifier"):
        outputs(refused, new)


@pytest.mark.parametrize("reducer", [FisherLDA(2), BayesErrorLDA(2, shrinkage=0.1), PosteriorMap(2)], ids=repr)
def test_a_pipeline_with_a_reducer_that_also_classifies(reducer, iris):
    X, y, new = iris
    pipeline = make_pipeline(StandardScaler(), reducer, LogisticRegression()).fit(X, y)
    labels, probabilities = outputs(pipeline, new.astype(np.float32), {id(pipeline[-1]): {"zipmap": False}})
    np.testing.assert_array_equal(labels, pipeline.predict(new))
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(new), atol=1e-5)


@pytest.mark.parametrize("model", [FisherLDA(2), discrim.OrthogonalLDA(2), PosteriorMap(2)], ids=repr)
def test_a_reducer_predicts_on_request(model, iris):
    X, y, new = iris
    model.fit(X, y)
    labels, second = outputs(model, new, {id(model): {"predict": True}})
    np.testing.assert_array_equal(labels, model.predict(new))
    if hasattr(model, "predict_proba"):
        assert_same(second, model.predict_proba(new), "float64")
    else:
        assert_same(second - second.mean(axis=1, keepdims=True), _centred(model.decision_function(new)), "float64")


def _centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", [CrammerSingerSVC(), RefinedHyperplane()], ids=repr)
def test_classifiers_give_labels_and_scores(model, classes, iris):
    X, y, new = iris
    kept = y != "virginica" if classes == 2 else y != ""
    model.fit(X[kept], np.unique(y, return_inverse=True)[1][kept])
    labels, scores = outputs(model, new)
    np.testing.assert_array_equal(labels, model.predict(new))
    ours = model.decision_function(new)
    assert_same(scores[:, 1] - scores[:, 0] if classes == 2 else scores, ours, "float64")


def test_an_offset_of_a_million_costs_no_digits(iris):
    X, y, new = iris
    model = FisherLDA(2).fit(X + 2.0**20, y)
    far = (new + 2.0**20).astype(np.float32)
    assert_same(outputs(model, far)[0], model.transform(far.astype(np.float64)), "float32")


def test_a_linear_map_of_any_transformer_is_exported(iris):
    X, y, new = iris
    model = LinearMap.of(FisherLDA(2).fit(X, y), 4)
    assert_same(outputs(model, new)[0], model.transform(new), "float64")


def test_models_without_an_onnx_graph_are_refused(iris):
    X, y, new = iris
    with pytest.raises(NotImplementedError, match="laplacian"):
        outputs(KernelMap("laplacian").fit(X), new)
    with pytest.raises(NotImplementedError, match="rff"):
        outputs(MaxMarginShift(discrim.PCA(2), embedding="rff", random_state=0).fit(X, y), new)
    model = discrim.PCA(2).fit(X)
    with pytest.raises(ValueError, match="predict"):
        outputs(model, new, {id(model): {"predict": True}})


def test_every_saved_estimator_and_classifier_is_known():
    from skl2onnx._supported_operators import sklearn_operator_name_map as known

    names = {one.__name__ for one in known}
    wanted = {entry.name for entry in ENTRIES if entry.saved or entry.classifies}
    assert wanted <= names
