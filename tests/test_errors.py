"""Errors of the public interface: the exception of a call, and the parameter or cell that its message names."""

import re
from datetime import date, time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from samples import labelled
from sklearn.covariance import OAS
from sklearn.decomposition import NMF, FactorAnalysis, FastICA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import VarianceThreshold
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.manifold import TSNE
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from discrim import (
    PCA,
    PCALDA,
    PLSDA,
    Autoencoder,
    BayesErrorLDA,
    BayesErrorPCA,
    ClassMoments,
    CrammerSingerSVC,
    FisherLDA,
    HashKFold,
    KernelMap,
    LocalFisherDiscriminant,
    LogisticPCA,
    MarginPCA,
    MarginSubspace,
    MaximumMarginCriterion,
    MaxMarginShift,
    OptimalLowRank,
    PairwiseEigenvectors,
    PosteriorMap,
    RefinedHyperplane,
    RegularizedLDA,
    ScreenedPCA,
    SparsePLSDA,
    SupervisedPCA,
    SupervisedProbabilisticPCA,
    SupportVectorDecomposition,
    fit_parts,
    max_margin_shift,
    save,
)

X, Y = labelled(60, 4)
X.setflags(write=False)
PAIR = np.minimum(Y, 1)
GROUPS = np.arange(60) % 7
ROWS = np.arange(60)

# ---------------------------------------------------------------------- parameters out of range

# The message names the last parameter of each dictionary.
PARAMETERS = {
    Autoencoder: [{"n_components": 0}, {"n_components": 1.5}, {"max_iter": 0}, {"alpha": -1}, {"alpha": np.nan}],
    BayesErrorLDA: [{"n_init": -1}, {"n_init": 2.5}, {"n_init": "many"}, {"n_init": True}],
    BayesErrorPCA: [{"score": "gini"}],
    CrammerSingerSVC: [
        {"C": 0},
        {"C": np.nan},
        {"C": "1"},
        {"C": 1e300},
        {"tol": -1.0},
        {"max_iter": 0},
        {"max_iter": 2.5},
        {"class_weight": "even"},
        {"class_weight": {5: 1.0}},
        {"class_weight": {1: -1.0}},
        {"class_weight": {1: "much"}},
    ],
    FisherLDA: [
        {"priors": [np.nan] * 3},
        {"priors": ["a", "b", "c"]},
        {"priors": [0.5, 0.4, 0.6]},
        {"priors": [1.0]},
        {"priors": "same"},
        {"priors": [1.5, -0.5, 0.0]},
        {"class_weight": "even"},
        {"class_weight": {0: -1}},
        {"class_weight": {"0": 50}},
        {"class_weight": {0: "a"}},
        {"class_weight": {0: 1e200}},
        {"covariance_estimator": 5},
        {"covariance_estimator": "oas"},
        {"covariance_estimator": OAS},
    ],
    KernelMap: [
        {"kernel": "gauss"},
        {"gamma": 0},
        {"gamma": "auto"},
        {"kernel": "linear", "gamma": 1.0},
        {"kernel_params": {"degree": 2}},
        {"n_landmarks": 1.5},
    ],
    MarginPCA: [{"pairs": "medoid"}, {"pairs": "nearest", "enemies": "one"}],
    MarginSubspace: [{"C": 0}, {"C": "1"}, {"tol": -1.0}, {"n_components": 0}],
    MaxMarginShift: [
        {"shift": -1},
        {"shift": "auto"},
        {"shift": np.nan},
        {"shift": True},
        {"sigma2": -1},
        {"C": 0},
        {"tol": "x"},
        {"max_iter": 1.5},
        {"embedding": "rbf"},
        *({"shift": "cv", "cv": cv} for cv in (0, 1, 2.5, None, "five", True, [])),
    ],
    PairwiseEigenvectors: [{"ridge": 0}, {"centre": "yes"}, {"pieces": 1}],
    PCA: [{"missing": "mean"}],
    PCALDA: [{"pca_components": 60}],
    PosteriorMap: [
        {"n_components": 0},
        {"n_components": 0.5},
        {"kernel": "gauss"},
        {"kernel": "rbf", "kernel_params": {"width": 1}},
        {"kernel_params": {"gamma": 1}},
        *({"kernel": "rbf", "kernel_params": {"gamma": gamma}} for gamma in (-1.0, 0.0, None, "x", np.nan)),
        {"sharpness": 0},
        {"sharpness": "sharp"},
        {"n_landmarks": 1},
    ],
    RefinedHyperplane: [
        *({"rule": rule} for rule in ("median", [[0, 9]], [0, 1], [[0.5]], [[True, False]], [["petal"]], None)),
        {"rule": [[0, 4]]},
        {"rule": [[-1]]},
        {"rule": [[0, 1], [1]]},
        {"C": 0},
        {"C": np.inf},
        {"C": "1"},
        {"tol": 0},
        {"max_iter": 0},
        {"n_folds": 1},
        {"n_folds": 2.5},
        {"class_weight": "equal"},
        {"class_weight": {1: 0.0}},
        {"class_weight": {1: "2"}},
        {"class_weight": {"setosa": 2.0}},
        {"reference_class": "first"},
        {"constant_features": "keep"},
    ],
    RegularizedLDA: [
        *({"shrinkage": wrong} for wrong in (-0.1, 1.1, "ridge", None, True)),
        {"priors": [0.5, 0.5]},
        {"cv": 1},
        {"cv": []},
        {"cv": [([0, 1, 20, 40], [99])]},
        {"cv": [(ROWS[:30], [-61])]},
        {"cv": [(ROWS[:30], [])]},
        {"cv": [([], ROWS[:30])]},
        {"cv": [(np.ones(30, bool), [35])]},
        {"n_components": np.array([1, 2])},
    ],
    ScreenedPCA: [{"n_selected": 0}, {"n_selected": "all"}, {"n_selected": 0.5}],
    SparsePLSDA: [{"n_components": 2, "keep": keep} for keep in (0, -1, 1.5, "many", True, [1], [2, 0], None)],
}
WRONG_TYPES = {
    MaxMarginShift: [
        {"embedding": 3},
        {"embedding": RBFSampler},
        {"extractor": LinearSVC()},
        {"extractor": TSNE()},
        {"extractor": PCA},
        {"extractor": "pca"},
    ],
    RefinedHyperplane: [{"estimator": "lda"}, {"estimator": LinearSVC}],
}
WRONG = [
    pytest.param(kind, given, error, id=f"{kind.__name__}-{given}"[:70])
    for table, error in ((PARAMETERS, ValueError), (WRONG_TYPES, TypeError))
    for kind, cases in table.items()
    for given in cases
]


@pytest.mark.parametrize(("kind", "given", "error"), WRONG)
def test_a_parameter_out_of_range_is_named(kind, given, error):
    with pytest.raises(error, match=rf"\b{list(given)[-1]}\b"):
        kind(**given).fit(X, Y)


# ---------------------------------------------------------------------- tables, labels, weights and combinations


def changed(at, value):
    """Return X with one cell replaced."""
    table = X.copy()
    table[at] = value
    return table


BAD = changed((7, 2), np.nan)
LONG = changed((7, 2), 1e200)
SPARSE = sp.csr_array(X)
WIDE = labelled(8, 12)
EQUAL = np.ones((20, 3))
TWINS = np.repeat(X[:10], 2, axis=0), np.arange(20) % 2  # every row in both classes
CROSS = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]] * 2), np.repeat([0, 1], 4)  # both class means are 0
FRAME = pd.DataFrame(X, columns=list("abcd"))
PARTS = [(X[:30], Y[:30]), (X[30:], Y[30:])]
MOMENTS = ClassMoments.of(X, Y)
STATISTICS = BayesErrorLDA().statistics(X, Y)


def statistics_of(frame):
    return BayesErrorLDA().statistics(frame, Y[frame.index])


def stream(model, **later):
    """Set parameters in a stream, and use it."""
    return lambda: model.partial_fit(X, Y).set_params(**later).transform(X)


# (the laws have the methods whose gain comes from means alone)
WITHOUT_MEANS = (ScreenedPCA(1, n_selected=2), SupervisedPCA(), OptimalLowRank(), PLSDA(1))
WITHOUT_SIZE = (PairwiseEigenvectors, SupervisedProbabilisticPCA, LogisticPCA, SupportVectorDecomposition)
NOT_PARTS = {
    "dict": {"X": 1, "y": 2},
    "frame": FRAME,
    "int": 5,
    "NoneType": None,
    "dict in a list": [{"X": 1}],
    "paths": ["a.csv", "b.csv"],
    "empty tuple": [()],
    "four values": [lambda: (np.eye(2), [0, 1], None, 3)],
}
NOT_STATISTICS = {"bytes": b"statistics", "NoneType": None, "int": 3, "tuple": (X, Y)}

# (call, text that the message contains, exception unless it is a ValueError)
CALLS = {
    # cells and rows
    "sparse rows for Autoencoder": (lambda: Autoencoder().fit(SPARSE), "sparse", TypeError),
    "a bad cell for Autoencoder": (lambda: Autoencoder().fit(BAD), "row 7, column 2"),
    "a range beyond float64": (lambda: Autoencoder(1).fit([[0.0, 1.7e308], [1.0, -1.7e308]]), "olumn 1"),
    "another shape back": (lambda: Autoencoder(1).fit(X).inverse_transform(X), r"\(60, 4\)"),
    "pieces of another shape back": (
        lambda: PairwiseEigenvectors(3, pieces=True).fit(X, Y).inverse_transform(X[:, :3]),
        r"\(60, 3\)",
    ),
    "a bad cell for CrammerSingerSVC": (lambda: CrammerSingerSVC().fit(BAD, Y), "row 7, column 2"),
    "a sparse bad cell for CrammerSingerSVC": (lambda: CrammerSingerSVC().fit(sp.csr_array(BAD), Y), "row 7, column 2"),
    "a bad cell to predict": (lambda: CrammerSingerSVC().fit(X, Y).predict(BAD), "row 7, column 2"),
    "a row too long to square": (lambda: CrammerSingerSVC().fit(LONG, Y), "row 7"),
    "a bad cell for MarginSubspace": (lambda: MarginSubspace().fit(BAD, Y), "row 7, column 2"),
    "a bad cell for MaxMarginShift": (lambda: MaxMarginShift().fit(BAD, Y), "row 7, column 2"),
    "a bad cell for an embedding": (lambda: MaxMarginShift(embedding="rff").fit(BAD, Y), "row 7, column 2"),
    "a bad cell for RefinedHyperplane": (lambda: RefinedHyperplane().fit(BAD, PAIR), "row 7, column 2"),
    "a bad cell to refine": (lambda: RefinedHyperplane().fit(X, PAIR).predict(BAD), "row 7, column 2"),
    "sparse rows for RefinedHyperplane": (lambda: RefinedHyperplane().fit(SPARSE, PAIR), "sparse", TypeError),
    "sparse rows to predict": (lambda: RefinedHyperplane().fit(X, PAIR).predict(SPARSE), "sparse", TypeError),
    "sparse rows for FastICA": (lambda: MaxMarginShift(FastICA(2)).fit(SPARSE, Y), "FastICA", TypeError),
    "a bad cell for ClassMoments": (lambda: ClassMoments.of(BAD, Y), "row 7, column 2"),
    "an infinite pairwise cell": (lambda: PCA(missing="pairwise").fit(changed((1, 1), np.inf)), "row 1, column 1"),
    "dates in a frame": (lambda: FisherLDA().fit(FRAME.assign(when=pd.date_range("2020", periods=60)), Y), "'when'"),
    "a bad cell behind rows of weight zero": (
        lambda: MarginPCA(pairs="mean").fit(BAD, Y, sample_weight=1.0 * (ROWS > 3)),
        "row 7, column 2",
    ),
    "a bad cell back": (lambda: PCA(2).fit(X).inverse_transform([[0.0, np.nan]]), "row 0, column 1"),
    "a text column of a frame": (lambda: FisherLDA().fit(FRAME.assign(colour="red"), Y), "row 0, column 'colour'"),
    "a missing cell of a frame": (
        lambda: FisherLDA().fit(FRAME.convert_dtypes().replace({"c": {X[4, 2]: pd.NA}}), Y),
        "row 4, column 2",
    ),
    **{
        f"{kind} in a {'frame' if make is pd.DataFrame else 'table'}": (
            lambda kind=kind, make=make: PCA(1).fit(make(ROWS.reshape(30, 2).astype(kind))),
            "dates or times",
        )
        for kind in ("M8[s]", "m8[s]")
        for make in (np.asarray, pd.DataFrame)
    },
    **{
        f"{type(one).__name__} cells in a frame": (
            lambda one=one: FisherLDA().fit(FRAME.assign(when=pd.Series([one] * 60, dtype=object)), Y),
            "'when'",
        )
        for one in (date(2020, 1, 1), time(12), pd.Timestamp("2020-01-01"))
    },
    "dates in a part": (
        lambda: fit_parts(PCA(1), [pa.table({"a": X[:, 0], "when": pa.array([date(2020, 1, 1)] * 60)})]),
        "part 0.*dates.*'when'",
    ),
    **{
        f"all directions of a large sparse table by {model}": (
            lambda model=model: model.fit(sp.eye_array(5001, 5002, format="csr"), np.arange(5001) % 2),
            named,
        )
        for model, named in ((MarginPCA(), "n_components"), (BayesErrorPCA(2), "columns"))
    },
    "a path to transform": (lambda: PCA(2).fit(X).transform("rows.csv"), "path", TypeError),
    # differences that a method needs
    "equal rows for KernelMap": (lambda: KernelMap().fit(EQUAL), "equal"),
    "equal statistics for ScreenedPCA": (
        lambda: ScreenedPCA(1, n_selected=2).fit_statistics(ClassMoments.of(EQUAL, np.arange(20) % 2)),
        "equal",
    ),
    "equal rows for RefinedHyperplane": (lambda: RefinedHyperplane().fit(np.zeros((9, 2)), np.arange(9) % 2), "9 rows"),
    "equal rows at an offset for RefinedHyperplane": (
        lambda: RefinedHyperplane().fit(1e12 + X[:9], np.arange(9) % 2),
        "9 rows",
    ),
    "a hyperplane without a direction": (
        lambda: RefinedHyperplane(RidgeClassifier(), reference_class=None).fit(EQUAL, np.arange(20) % 2),
        "estimator",
    ),
    "the same rows in both classes": (lambda: MarginSubspace().fit(*TWINS), "weights"),
    **{f"equal class means for {model}": (lambda model=model: model.fit(*CROSS), "means") for model in WITHOUT_MEANS},
    "equal class means of statistics": (
        lambda: ScreenedPCA(1, n_selected=2).fit_statistics(ClassMoments.of(*TWINS)),
        "means",
    ),
    "a local scatter without a ridge": (
        lambda: LocalFisherDiscriminant(shrinkage=0.0).fit(*labelled(10, 20)),
        "shrinkage",
    ),
    **{
        f"units too small for {kind.__name__}": (lambda kind=kind: kind(2).fit(X * 5e-320, Y), "float64")
        for kind in WITHOUT_SIZE
    },
    "differences beyond float64": (
        lambda: FisherLDA(1).fit(np.where(np.arange(12) < 7, 1e308 * np.sign(WIDE[0]), WIDE[0]), WIDE[1]),
        r"X .*e\+308",
    ),
    "features beyond float64": (
        lambda: MaxMarginShift(FunctionTransformer(lambda table: table * 1e10), shift="cv").fit(X * 1e300, Y),
        "float64",
    ),
    **{
        f"rows longer than float64 for {model}": (
            lambda model=model: model.fit(np.repeat([0, 1e308, 0], 2)[:, None] * np.ones(12), [0, 1, 0, 1, 2, 2]),
            r"\bX\b",
        )
        for model in (FisherLDA(1), RegularizedLDA(1, cv=2))
    },
    "squares beyond float64": (lambda: MaxMarginShift(PCA(1), embedding="rff").fit(1e200 * X, Y), r"X .*embedding"),
    "negative cells for NMF": (lambda: MaxMarginShift(NMF(2), shift=0).fit(X, Y), "NMF"),
    "negative shifted cells for NMF": (lambda: MaxMarginShift(NMF(2)).fit(X, Y), "NMF"),
    **{
        f"equal rows for a shift ({kind.__name__})": (
            lambda kind=kind: max_margin_shift(kind(EQUAL), np.arange(20) % 2),
            "equal",
        )
        for kind in (np.asarray, sp.csr_array)
    },
    "missing cells": (lambda: FisherLDA().fit(BAD, Y), r"SimpleImputer.*missing='pairwise'"),
    **{
        f"missing cells with {named}": (
            lambda model=model: model.set_params(missing="pairwise").fit(BAD, Y),
            f"missing.*{named}",
        )
        for named, model in (
            ("covariance_estimator", FisherLDA(covariance_estimator=OAS())),
            ("class_weight", FisherLDA(class_weight="balanced")),
            ("cross-validation", RegularizedLDA()),
            ("ledoit_wolf", RegularizedLDA(shrinkage="ledoit_wolf")),
        )
    },
    "missing cells with folds for the errors": (
        lambda: BayesErrorLDA(missing="pairwise").fit(BAD, Y),
        "missing.*cross-validation",
    ),
    # labels
    "classes of one row each": (lambda: PosteriorMap().fit(np.eye(3), [0, 1, 2]), "one row"),
    **{
        f"one class for {type(model).__name__}": (lambda model=model: model.fit(X, np.zeros(60)), "class")
        for model in (CrammerSingerSVC(), MarginSubspace(), MaxMarginShift(), RefinedHyperplane())
    },
    "one class and unlabelled rows": (lambda: MaxMarginShift(unlabeled=1).fit(X, PAIR), "class"),
    "one class of positive weight": (lambda: CrammerSingerSVC().fit(X, Y, sample_weight=(Y == 1) * 1.0), "class"),
    "no label for MaxMarginShift": (lambda: MaxMarginShift().fit(X, np.full(60, np.nan)), "60 labels"),
    "every row unlabelled": (lambda: max_margin_shift(X, np.full(60, -1), unlabeled=-1), "unlabeled"),
    "no labels for MaxMarginShift": (lambda: MaxMarginShift().fit(X), r"\by\b"),
    "no labels for a choice of gamma": (lambda: KernelMap(gamma="cv").fit(X), r"\by\b"),
    "no labels for ClassMoments": (lambda: ClassMoments.of(X, None), r"\by\b"),
    "too few labels for MaxMarginShift": (lambda: MaxMarginShift().fit(X, Y[1:]), r"60 .*y .*59"),
    "too few labels for ClassMoments": (lambda: ClassMoments.of(X, Y[:3]), r"60 .*y .*3"),
    "a missing label of pandas": (lambda: FisherLDA().fit(X, pd.Series([None, *Y[1:]], dtype="Int64")), r"\by\b"),
    "missing text labels of pandas": (lambda: FisherLDA().fit(X, pd.array(["a", pd.NA] * 30, dtype="string")), "row 1"),
    "missing times among labels": (lambda: FisherLDA().fit(X, np.array([pd.NaT, "a"] * 30, dtype=object)), "30 labels"),
    **{
        f"{named} after numbers in a stream": (
            lambda labels=labels: FisherLDA().partial_fit(X, Y).partial_fit(X, labels),
            f"numbers.*{named}",
        )
        for named, labels in (("text", Y.astype(str)), ("bools", Y == 1))
    },
    **{
        f"labels outside the classes that a stream of {kind.__name__} named first": (
            lambda kind=kind: kind().partial_fit(X[Y < 2], Y[Y < 2], classes=[0, 1]).partial_fit(X, Y),
            r"classes.*\[2\]",
        )
        for kind in (FisherLDA, PosteriorMap)
    },
    # weights and groups
    "weights of zero": (lambda: CrammerSingerSVC().fit(X, Y, sample_weight=np.zeros(60)), "[Ss]ample.weight"),
    "fractional weights for FastICA": (
        lambda: MaxMarginShift(FastICA(2)).fit(X, Y, sample_weight=np.full(60, 0.5)),
        r"sample_weight.*FastICA",
    ),
    "weights for a classifier without": (
        lambda: RefinedHyperplane(LinearDiscriminantAnalysis()).fit(X, PAIR, sample_weight=np.ones(60)),
        "sample_weight",
        TypeError,
    ),
    "weights for a covariance estimator": (
        lambda: FisherLDA(covariance_estimator=OAS()).fit(X, Y, sample_weight=1 + ROWS),
        "OAS",
    ),
    "too few groups": (lambda: RegularizedLDA().fit(X, Y, groups=GROUPS[:5]), "groups"),
    "groups without cross-validation": (lambda: PCA().fit(X, Y, groups=GROUPS), "groups"),
    "groups and hash folds": (lambda: RegularizedLDA(cv=HashKFold(3)).fit(X, Y, groups=GROUPS), r"groups.*HashKFold"),
    # numbers of components
    "more components of PCA": (lambda: PCA(5).fit(X[:, :3]), "n_components"),
    "Minka's count of few rows": (lambda: PCA("mle").fit(X[:3]), "mle"),
    # folds
    "a class of one row": (lambda: MaxMarginShift(PCA(1), shift="cv").fit(X, np.r_[9, Y[1:]]), r"class 9"),
    "no row to hold out": (lambda: RegularizedLDA().fit(X[:3], [0, 1, 2]), "held out"),
    "no row to hold out for keep": (lambda: SparsePLSDA(1).fit(X[:4], ROWS[:4]), "keep"),
    "no test row": (lambda: MaxMarginShift(PCA(1), shift="cv", cv=[(ROWS[:30], [])]).fit(X, Y), "0 labelled test rows"),
    "one class to train on": (
        lambda: MaxMarginShift(PCA(1), shift="cv", cv=[(np.flatnonzero(Y == 0), np.flatnonzero(Y > 0))]).fit(X, Y),
        "class 0",
    ),
    "a shift to choose outside an estimator": (lambda: max_margin_shift(X, Y, shift="cv"), "shift"),
    # combinations of parameters
    "two classes for merged features": (lambda: RefinedHyperplane().fit(X, Y).merged_features(X), "two classes"),
    "an exhaustive rule of many features": (
        lambda: RefinedHyperplane(rule="exhaustive-splits").fit(np.tile(X, 5)[:, :17], PAIR),
        "rule",
    ),
    **{
        f"{type(bad).__name__} to refine": (lambda bad=bad: RefinedHyperplane(bad).fit(X, PAIR), "coef_", TypeError)
        for bad in (DecisionTreeClassifier(), make_pipeline(StandardScaler(), LinearSVC()))
    },
    "a covariance estimator without a covariance": (
        lambda: FisherLDA(covariance_estimator=PCA(2)).fit(X, Y),
        "covariance_",
    ),
    "a covariance that was not stored": (lambda: FisherLDA().fit(X, Y).covariance_, "store_covariance", AttributeError),
    **{
        f"{given!r} of a map": (lambda given=given: PosteriorMap(classifier=given).fit(X, Y), "classifier")
        for given in ("forest", RidgeClassifier)
    },
    "weights for a classifier of a map": (
        lambda: PosteriorMap(classifier=LinearDiscriminantAnalysis()).fit(X, Y, np.ones(60)),
        "sample_weight",
    ),
    "a stream with a classifier": (lambda: PosteriorMap(classifier=RidgeClassifier()).partial_fit(X, Y), "classifier"),
    "parts with a splitter of rows": (
        lambda: fit_parts(PosteriorMap(2, kernel="linear", cv=StratifiedKFold(2)), PARTS),
        "cv",
    ),
    "an explanation without a gradient": (lambda: PosteriorMap(kernel="laplacian").fit(X, Y).explain(X), "kernel"),
    "loadings of a map": (lambda: PosteriorMap(kernel="linear").fit(X, Y).components_, "BayesErrorLDA", AttributeError),
    "a map back": (
        lambda: PosteriorMap(kernel="linear").fit(X, Y).inverse_transform,
        "inverse transform",
        AttributeError,
    ),
    "an unfitted map": (lambda: PosteriorMap().predict_proba(X), "fit", NotFittedError),
    "classes of PCA": (lambda: PCA().fit(X).classes_, "classes_", AttributeError),
    "an unfitted transform": (lambda: MaxMarginShift().transform(X), "fit", NotFittedError),
    "an unfitted predict": (lambda: CrammerSingerSVC().predict(X), "fit", NotFittedError),
    # streams
    **{
        f"partial_fit of {model}": (lambda model=model: model.partial_fit, named, AttributeError)
        for model, named in (
            (MarginPCA(pairs="median"), "pairs='median'"),
            (FisherLDA(class_weight="balanced"), "class_weight='balanced'"),
            (FisherLDA(covariance_estimator=OAS()), "covariance_estimator"),
            (RegularizedLDA(shrinkage="ledoit_wolf"), "ledoit_wolf"),
            (RegularizedLDA(cv=StratifiedKFold(3)), "partial_fit"),
            (RegularizedLDA(cv=[(ROWS[:40], ROWS[40:])]), "partial_fit"),
        )
    },
    "a shrinkage set in a stream": (stream(RegularizedLDA(1, shrinkage=0.1), shrinkage=7.0), "shrinkage"),
    "a choice set in a stream": (stream(RegularizedLDA(1, shrinkage=0.1), shrinkage="cv"), "tatistics"),
    "a weight set in a stream": (stream(MaximumMarginCriterion(1), weight=-3.0), "weight"),
    "pairs set in a stream": (stream(MarginPCA(1, pairs="mean"), pairs="median"), "pairs"),
    "columns in another order in a stream": (
        lambda: FisherLDA().partial_fit(FRAME, Y).partial_fit(FRAME[list("dcba")], Y),
        "order",
    ),
    "fewer columns in a stream": (
        lambda: FisherLDA().partial_fit(X, Y).partial_fit(X[:, :3], Y),
        r"X .*3 .*FisherLDA.*4",
    ),
    # statistics
    "moments kept in two ways": (lambda: MOMENTS + ClassMoments.of(X, Y, keep="each"), "add"),
    "moments of other columns": (lambda: MOMENTS + ClassMoments.of(X[:, :3], Y), "4 and 3 features"),
    "moments of other labels": (lambda: MOMENTS + ClassMoments.of(X, Y.astype(str)), "types"),
    "statistics of columns with other names": (
        lambda: statistics_of(FRAME[:30]) + statistics_of(FRAME[30:].rename(columns={"b": "B"})),
        "'b'.*'B'",
    ),
    "statistics of fewer columns": (
        lambda: statistics_of(FRAME[:30]) + statistics_of(FRAME[["a", "b", "c"]][30:]),
        r"3 columns.*'d'",
    ),
    "statistics of labels of another type": (
        lambda: statistics_of(FRAME[:30]) + BayesErrorLDA().statistics(FRAME[30:], Y[30:].astype(str)),
        "types",
    ),
    "statistics of other folds": (
        lambda: statistics_of(FRAME[:30]) + BayesErrorLDA(cv=4).statistics(FRAME[30:], Y[30:]),
        "n_folds=5 and n_folds=4",
    ),
    "moments without folds": (lambda: BayesErrorLDA().fit_statistics(MOMENTS), "ClassMoments"),
    "moments for a method on rows": (lambda: MarginPCA(pairs="nearest").fit_statistics(MOMENTS), "ClassMoments"),
    **{
        f"statistics without {named}": (lambda model=model: model.fit_statistics(STATISTICS), named)
        for model, named in (
            (BayesErrorLDA(cv=4), "n_folds=4"),
            (BayesErrorLDA(random_state=1), "seed=1"),
            (BayesErrorLDA(class_weight=dict.fromkeys(range(1000), 2.0)), r"class_weight=\{0: 2.0"),
            (PCA(), "supervised=False"),
            (MarginPCA(pairs="nearest"), "keep='means'"),
        )
    },
    **{
        f"{name} as statistics": (lambda given=given: FisherLDA().fit_statistics(given), name, TypeError)
        for name, given in NOT_STATISTICS.items()
    },
    **{
        f"{name} added to statistics": (lambda given=given: STATISTICS + given, name, TypeError)
        for name, given in NOT_STATISTICS.items()
    },
    **{
        f"{name} added to moments": (lambda given=given: MOMENTS + given, name, TypeError)
        for name, given in NOT_STATISTICS.items()
    },
    "other pairs in the same stream": (
        lambda: MarginPCA(pairs="mean").partial_fit(X, Y).set_params(pairs="all").partial_fit(X, Y),
        "parameters",
    ),
    # parts
    **{
        f"{name} as parts": (lambda given=given: fit_parts(FisherLDA(), given), "part", TypeError)
        for name, given in NOT_PARTS.items()
    },
    **{
        f"max_memory={given!r}": (lambda given=given: fit_parts(FisherLDA(), PARTS, max_memory=given), "max_memory")
        for given in ("1GB", None, -1, np.nan)
    },
    "parts without rows": (lambda: fit_parts(PCA(2), [(X[:0],)]), "rows"),
    "a bad cell in a part": (lambda: fit_parts(PCA(2), [X, BAD]), "part 1, row 7, column 2"),
    "one class in parts": (lambda: fit_parts(FisherLDA(), [(X, np.zeros(60))]), "class"),
    "another step before parts": (
        lambda: fit_parts(make_pipeline(VarianceThreshold(), PCA()), [(X,)]),
        "VarianceThreshold",
        TypeError,
    ),
    "a column of parts in memory": (lambda: fit_parts(RegularizedLDA(), PARTS, target="kind"), "target"),
    # model files
    "an unfitted model to save": (lambda: save(PCA(2), "never written"), "fit", NotFittedError),
    **{
        f"{named} to save": (lambda model=model: save(model.fit(X, Y), "never written"), named, TypeError)
        for model, named in (
            (MaxMarginShift(FactorAnalysis(1)), "MaxMarginShift.extractor"),
            (CrammerSingerSVC(), "CrammerSingerSVC"),
            (make_pipeline(RobustScaler(), PCA(2)), "RobustScaler"),
            (RegularizedLDA(2, cv=StratifiedKFold(3)), "RegularizedLDA.cv"),
        )
    },
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CALLS.values(), ids=CALLS)
def test_a_refused_call_names_what_is_wrong(case):
    call, named, error = (*case, ValueError)[:3]
    with pytest.raises(error) as raised:
        call()
    assert re.search(named, str(raised.value), re.DOTALL)


def test_a_refused_model_writes_no_file(tmp_path):
    with pytest.raises(TypeError, match="CrammerSingerSVC"):
        save(CrammerSingerSVC().fit(X, Y), tmp_path / "model")
    assert not list(tmp_path.iterdir())
