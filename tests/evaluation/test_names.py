"""Names that a comparison must offer."""

from discrim.evaluation.classifiers import CLASSIFIERS
from discrim.evaluation.methods import DEFAULT_METHODS, METHODS
from discrim.evaluation.protocol import PROTOCOLS

BASELINES = {"raw", "lsi", "ica", "cca", "pls", "lasso", "lda", "nca", "random-projection"}
OURS = {
    "bayes-error-lda",
    "regularized-lda",
    "fisher-lda",
    "uncorrelated-lda",
    "orthogonal-lda",
    "null-space-lda",
    "pca-lda",
    "max-margin-criterion",
    "margin-subspace",
    "max-margin-shift",
    "margin-pca-all",
    "margin-pca-mean",
    "margin-pca-median",
    "margin-pca-nearest",
    "bayes-error-pca",
    "pca",
}


def test_every_baseline_is_scikit_learns_and_every_method_ours():
    assert {name for name, method in METHODS.items() if not method.ours} >= BASELINES
    assert {name for name, method in METHODS.items() if method.ours} >= OURS
    for name in BASELINES - {"raw"}:
        fitted = METHODS[name].estimator(1, 0)
        assert type(fitted).__module__.startswith(("sklearn.", "discrim.evaluation.baselines"))


def test_the_default_reducer_is_listed_first_and_the_short_list_has_the_baselines():
    assert next(iter(METHODS)) == DEFAULT_METHODS[0] == "bayes-error-lda"
    assert {"pca", "raw", "margin-subspace", "regularized-lda"} <= set(DEFAULT_METHODS)


def test_every_protocol_and_classifier_has_its_name():
    assert set(PROTOCOLS) >= {"holdout-80-20", "holdout-50-50", "inverted-kfold", "kfold", "few-shot"}
    assert set(CLASSIFIERS) >= {
        "svm",
        "logistic",
        "fisher",
        "naive-bayes",
        "kernel-naive-bayes",
        "1-nn",
        "5-nn",
        "tree",
    }
