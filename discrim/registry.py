"""Registry of all public names. The package's namespace, model files, the comparison and the law tests read it.

A new method is a file in `discrim/estimators` and one entry of `ENTRIES` here: its class and module, a gloss, its names
in a comparison (none, one, or one per option), and its `laws`: properties shared by most methods that this one lacks.
Modules are given as text, so nothing is imported before its first use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from typing import Any, NamedTuple


class Sizes(NamedTuple):
    """Sizes of the training set of a split."""

    n_rows: int
    n_features: int
    n_classes: int


def from_the_first(sizes: Sizes) -> float:
    return 1


def from_all_discriminants(sizes: Sizes) -> float:
    return sizes.n_classes - 1


def never(sizes: Sizes) -> float:
    return float("inf")


def directions_of_rows(sizes: Sizes) -> int:
    """Return the number of directions that centred rows can span."""
    return min(sizes.n_rows - 1, sizes.n_features)


def fewer_than_classes(sizes: Sizes) -> int:
    return min(sizes.n_classes - 1, sizes.n_features)


def one_less_than_classes(sizes: Sizes) -> int:
    return sizes.n_classes - 1


def fewer_than_columns(sizes: Sizes) -> int:
    return min(sizes.n_rows, sizes.n_features) - 1


@dataclass(frozen=True)
class Laws:
    """Properties of a method that the law tests use; the defaults are those of most methods."""

    supervised: bool = True  # it uses class labels
    linear: bool = True  # it has `components_`, and its features are (x − mean_) @ components_.T
    streams: bool = True  # it has `partial_fit`: the statistics of parts of a table add up
    orthonormal: bool = True  # the rows of `components_` are orthonormal
    inverts: bool = True  # if not orthonormal: it rejects a table without within-class scatter, by which it divides
    rotates: bool = True  # a rotation of the rows rotates the components
    nests: bool = True  # the first components do not depend on the number of components
    by_products: bool = True  # few components can be computed from products with X, without a dense matrix of its size
    by_products_beyond_classes: bool = True  # the same for more components than n_classes − 1
    counts_enter: bool = False  # the result depends on the number of rows, so repeating every row changes it
    whole_weights: bool = False  # sample weights must be integers
    breaks_ties: bool = False  # equal distances are resolved by the order of rows
    sees_shapes: bool = False  # it finds components if class means are equal and class covariances differ
    chosen_by_folds: bool = False  # folds choose a parameter; laws on the order of rows hold for fixed splits
    iterated: bool = False  # the result is accurate to the tolerance `tol` of an iteration
    uses_svm: bool = False  # the result is accurate to the duality gap of an SVM


@dataclass(frozen=True)
class Method:
    """A reduction by its name in a comparison."""

    name: str
    gloss: str
    build: Callable[..., Any] | str | None = None  # called with n_components, or "module:name"; None: the raw features
    options: Mapping[str, Any] = field(default_factory=dict)  # further arguments of `build`
    # smallest K from which a fit with more components contains those with fewer, so one fit is enough
    nested_from: Callable[[Sizes], float] = from_the_first
    resizes: bool = False  # a fitted model gives every other K by `with_components`; one fit is enough, too
    most_components: Callable[[Sizes], int] = directions_of_rows
    seeded: bool = False  # it takes random_state
    takes_sparse: bool = True
    ours: bool = True
    default: bool = False  # it is compared when no methods are named,
    default_rows: float = float("inf")  # up to this number of rows
    note: str = ""
    laws: Laws = field(default_factory=Laws)
    predicts_by_components: bool = False  # its own prediction uses the requested components, not all discriminants
    written: str = ""  # all parameters of an estimator that the caller passed; they identify its trials

    def estimator(self, n_components: int, seed: int) -> Any:
        """Return an unfitted transformer with that many components."""
        assert self.build is not None
        build = load_target(self.build) if isinstance(self.build, str) else self.build
        seeds = {"random_state": seed} if self.seeded else {}
        return build(n_components=n_components, **self.options, **seeds)

    @property
    def linear(self) -> bool:
        """True if it is a linear map of the features; among equally good methods a linear one is recommended."""
        return self.laws.linear

    def counts(self, asked: Iterable[int], n_features: int) -> tuple[int, ...]:
        """Return the numbers of components to try; the raw features have only one."""
        return (n_features,) if self.build is None else tuple(asked)

    def judges(self, classifiers: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the classifiers that score its features."""
        return tuple(classifiers)

    @property
    def predicts(self) -> bool:
        """True if it classifies, so its own prediction can be scored."""
        return self.build is not None and hasattr(self.estimator(1, 0), "predict")

    @property
    def own_classifier(self) -> Any:
        """Final classifier of a pipeline, which scores it; None if there is none."""
        return None


def load_target(target: str) -> Any:
    """Import and return the object named "module:name"."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class Entry:
    """Public name: its module, a gloss of about five words, and its names in a comparison."""

    name: str
    module: str
    gloss: str
    methods: tuple[Method, ...] = ()
    saved: bool = False  # True if a fitted one can be written to a model file
    classifies: bool = False  # True for a classifier that is not a reducer

    @property
    def target(self) -> str:
        return f"{self.module}:{self.name}"


def _reducer(target: str, gloss: str, *methods: Method) -> Entry:
    """Return the entry of a class "file:name" in discrim.estimators; it builds the methods that name no builder."""
    module, _, name = f"discrim.estimators.{target}".partition(":")
    own = tuple(replace(one, build=one.build or f"{module}:{name}") for one in methods)
    return Entry(name, module, gloss, own, saved=True)


DISCRIMINANTS = Laws(orthonormal=False, by_products=False)
CHOSEN_BY_FOLDS = replace(DISCRIMINANTS, counts_enter=True, chosen_by_folds=True)
ITERATED = Laws(streams=False, nests=False, iterated=True)
USES_SVM = Laws(streams=False, counts_enter=True, uses_svm=True)

ENTRIES = (
    _reducer(
        "bayes_error_lda:BayesErrorLDA",
        "least pairwise error; the default",
        Method(
            "bayes-error-lda",
            "discriminants of least pairwise Bayes error",
            nested_from=from_all_discriminants,
            default=True,
            laws=replace(CHOSEN_BY_FOLDS, nests=False),
        ),
    ),
    _reducer(
        "lda:RegularizedLDA",
        "linear discriminants with a ridge",
        Method(
            "regularized-lda",
            "linear discriminants with a ridge chosen by cross-validation",
            default=True,
            laws=CHOSEN_BY_FOLDS,
        ),
    ),
    _reducer(
        "lda:FisherLDA",
        "classical linear discriminants",
        Method("fisher-lda", "classical linear discriminants", laws=DISCRIMINANTS),
    ),
    _reducer(
        "lda:HeteroscedasticLDA",
        "classes of unequal covariance",
        Method(
            "heteroscedastic-lda",
            "discriminants of class means and class covariances (Chernoff criterion)",
            laws=replace(CHOSEN_BY_FOLDS, sees_shapes=True),
        ),
    ),
    _reducer(
        "undersampled_lda:UncorrelatedLDA",
        "discriminants with uncorrelated features",
        Method("uncorrelated-lda", "discriminants with uncorrelated features, also for n < d", laws=DISCRIMINANTS),
    ),
    _reducer(
        "undersampled_lda:OrthogonalLDA",
        "orthonormal discriminants, n < d",
        Method("orthogonal-lda", "orthonormal discriminants, also for n < d", laws=Laws(by_products=False)),
    ),
    _reducer(
        "undersampled_lda:NullSpaceLDA",
        "directions without within-class variance",
        Method(
            "null-space-lda",
            "directions without within-class variance that separate class means, for n < d",
            laws=Laws(by_products=False),
        ),
    ),
    _reducer(
        "lda:PCALDA",
        "principal components, then discriminants",
        Method("pca-lda", "principal components, then discriminants", laws=DISCRIMINANTS),
    ),
    _reducer(
        "margin_pca:MaximumMarginCriterion",
        "between minus within-class scatter",
        Method(
            "max-margin-criterion", "between minus within-class scatter", laws=Laws(by_products_beyond_classes=False)
        ),
    ),
    _reducer(
        "max_margin:MarginSubspace",
        "directions of an SVM's weights",
        Method(
            "margin-subspace",
            "directions of a multiclass SVM's weights",
            most_components=fewer_than_classes,
            default=True,
            laws=USES_SVM,
        ),
    ),
    _reducer(
        "max_margin_shift:MaxMarginShift",
        "any extractor on shifted rows",
        Method(
            "max-margin-shift",
            "PCA of rows moved away from other classes",
            "discrim.estimators.max_margin_shift:shifted_pca",
            laws=USES_SVM,
        ),
    ),
    _reducer(
        "max_margin:MaxMarginPCA",
        "PCA with an SVM inside",
        Method(
            "max-margin-pca",
            "PCA with a large-margin classifier of its latent rows inside",
            nested_from=never,
            laws=replace(USES_SVM, nests=False),
        ),
    ),
    _reducer(
        "margin_pca:MarginPCA",
        "directions of largest between-class differences",
        Method("margin-pca-all", "PCA of all differences between classes", options={"pairs": "all"}),
        Method(
            "margin-pca-mean", "PCA of differences to other classes' means", options={"pairs": "mean"}, default=True
        ),
        Method(
            "margin-pca-median",
            "PCA of differences to other classes' medians",
            options={"pairs": "median"},
            laws=Laws(streams=False, rotates=False),
        ),
        Method(
            "margin-pca-nearest",
            "PCA of differences to the nearest enemies",
            options={"pairs": "nearest"},
            laws=Laws(streams=False),
        ),
    ),
    _reducer(
        "supervised_pca:SupervisedPCA",
        "directions most dependent on labels",
        Method("supervised-pca", "directions of largest dependence on the labels (HSIC), then PCA"),
    ),
    _reducer(
        "supervised_pca:ScreenedPCA",
        "PCA of columns that separate",
        Method(
            "screened-pca",
            "PCA of the columns along which classes differ most, one by one (Bair's supervised PCA)",
            nested_from=never,
            laws=replace(CHOSEN_BY_FOLDS, orthonormal=True, rotates=False, streams=False, nests=False),
        ),
    ),
    _reducer(
        "supervised_pca:OptimalLowRank",
        "class means, then class-centred PCA",
        Method("optimal-low-rank", "class means, then the largest directions within classes (LOL)"),
    ),
    _reducer(
        "local_fisher:LocalFisherDiscriminant",
        "discriminants of neighbouring rows",
        Method(
            "local-fisher-discriminant",
            "discriminants that keep only neighbouring rows of a class close (LFDA)",
            laws=replace(DISCRIMINANTS, streams=False, counts_enter=True, sees_shapes=True),
        ),
    ),
    _reducer(
        "factor_models:SupervisedProbabilisticPCA",
        "factors rows and labels share",
        Method(
            "supervised-probabilistic-pca",
            "factors that rows and labels share, by maximum likelihood (SPPCA)",
            nested_from=never,
            laws=replace(DISCRIMINANTS, nests=False),
        ),
    ),
    _reducer(
        "factor_models:SupportVectorDecomposition",
        "factors that separate by margins",
        Method(
            "support-vector-decomposition",
            "factors of the rows that separate the classes with a margin (SVDM)",
            nested_from=never,
            laws=ITERATED,
        ),
    ),
    _reducer(
        "factor_models:LogisticPCA",
        "factors that predict the labels",
        Method(
            "logistic-pca",
            "factors of the rows that predict the labels by logistic regression (SDR-GLM)",
            nested_from=never,
            laws=ITERATED,
        ),
    ),
    _reducer(
        "factor_models:SupervisedExponentialPCA",
        "shared factors, one minimum",
        Method(
            "supervised-exponential-pca",
            "factors that rows and labels share, as a convex problem (SEPCA); up to 2,000 rows",
            nested_from=never,
            laws=ITERATED,
        ),
    ),
    _reducer(
        "local_fisher:PairwiseEigenvectors",
        "large in one class only",
        Method(
            "pairwise-eigenvectors",
            "directions along which one class has large second moments and another small ones (GEM)",
            laws=replace(DISCRIMINANTS, sees_shapes=True),
        ),
    ),
    _reducer(
        "pls:PLSDA",
        "largest covariance with the labels",
        Method(
            "pls-da",
            "components by partial least squares of the labels (PLS-DA)",
            laws=Laws(orthonormal=False, inverts=False),
            predicts_by_components=True,
        ),
    ),
    _reducer(
        "pls:SparsePLSDA",
        "PLS components of few features",
        Method(
            "sparse-pls-da",
            "partial least squares of the labels with few features in each component (sPLS-DA)",
            laws=Laws(
                orthonormal=False, inverts=False, rotates=False, streams=False, counts_enter=True, chosen_by_folds=True
            ),
            predicts_by_components=True,
        ),
    ),
    _reducer(
        "pca:BayesErrorPCA",
        "principal components of least error",
        Method(
            "bayes-error-pca", "principal components of least Bayes error", default=True, laws=Laws(by_products=False)
        ),
    ),
    _reducer(
        "pca:PCA",
        "directions of largest variance",
        Method("pca", "directions of largest variance, without labels", default=True, laws=Laws(supervised=False)),
    ),
    _reducer(
        "posterior_map:PosteriorMap",
        "nonlinear map by a classifier's posteriors",
        Method(
            "posterior-map",
            "class positions weighted by a kernel classifier's posteriors",
            nested_from=from_all_discriminants,
            resizes=True,
            most_components=one_less_than_classes,
            default=True,
            default_rows=20_000,
            laws=Laws(linear=False),
        ),
    ),
    _reducer(
        "kernel_map:KernelMap",
        "kernel version of any method",
        Method(
            "kernel-bayes-error-lda",
            "discriminants of least pairwise Bayes error in a Gaussian kernel's features",
            "discrim.estimators.kernel_map:kernel_bayes_error_lda",
            nested_from=from_all_discriminants,
            default=True,
            default_rows=20_000,
            laws=Laws(linear=False),
        ),
    ),
    _reducer("autoencoder:Autoencoder", "one sigmoid layer, for MaxMarginShift"),
    Entry("max_margin_shift", "discrim.estimators.max_margin_shift", "shift rows away from other classes"),
    Entry("CrammerSingerSVC", "discrim.estimators.classifiers", "multiclass SVM and its duals", classifies=True),
    Entry(
        "RefinedHyperplane",
        "discrim.estimators.refined_hyperplane",
        "linear classifier with refined margins",
        classifies=True,
    ),
    Entry("Predictor", "discrim.estimators.predictor", "pipeline with probabilities and limits"),
    Entry("ClassMoments", "discrim.core.moments.class_moments", "class statistics that add up"),
    Entry("fit_parts", "discrim.estimators.parts", "fit a table in parts"),
    Entry("make_pipeline", "discrim.estimators.pipeline", "pipeline, also for tables in parts"),
    Entry("Statistics", "discrim.core.moments.gather", "statistics of parts, which add up"),
    Entry("HashKFold", "discrim.core.row_hash", "folds by a hash of each row"),
    Entry("compare", "discrim.evaluation.compare", "compare reductions by cross-validation"),
    Entry("write_report", "discrim.report.page", "write a comparison as HTML page"),
    Entry("ProjectionDisplay", "discrim.report.projection", "plot of rows on two components"),
    Entry("SpectrumDisplay", "discrim.report.spectrum", "plot of each component's share"),
    Entry("LoadingsDisplay", "discrim.report.features", "plot of the features of components"),
    Entry("VIPDisplay", "discrim.report.features", "plot of feature importances"),
    Entry("SeparationDisplay", "discrim.report.features", "plot of features separating two classes"),
    Entry("MonitoringDisplay", "discrim.report.rows", "plot of rows that do not fit"),
    Entry("MarginDisplay", "discrim.report.rows", "plot of margins before and after"),
    Entry("AccuracyCurveDisplay", "discrim.report.scores", "plot of scores over components"),
    Entry("CriticalDifferenceDisplay", "discrim.report.scores", "plot of mean ranks over data sets"),
    Entry("save", "discrim.model_file", "write a fitted model to a file"),
    Entry("load", "discrim.model_file", "read a fitted model from a file"),
    Entry("trusted_types", "discrim.model_file", "types for skops and MLflow to trust"),
)

PUBLIC: dict[str, Entry] = {entry.name: entry for entry in ENTRIES}
OUR_METHODS: tuple[Method, ...] = tuple(method for entry in ENTRIES for method in entry.methods)


# modules of an earlier layout that pickled models name, and where their classes are now
MOVED = {
    "discrim.core.kernel_rule": "discrim.core.kernel_choice",
    "discrim.core.landmark_rule": "discrim.core.posterior_rule",
    "discrim.core.row_limits": "discrim.estimators.predictor",
    "discrim.estimators.kernel_naive_bayes": "discrim.estimators.classifiers",
    "discrim.estimators.linear_map": "discrim.estimators.pipeline",
    "discrim.estimators.svc": "discrim.estimators.classifiers",
    "discrim.evaluation.held_out": "discrim.evaluation.resampling",
    "discrim.evaluation.permutation": "discrim.evaluation.resampling",
    "discrim.evaluation.pipelines": "discrim.evaluation.methods",
    "discrim.evaluation.preprocessing": "discrim.evaluation.classifiers",
    "discrim.report.accuracy_curves": "discrim.report.scores",
    "discrim.report.critical_difference": "discrim.report.scores",
    "discrim.report.importance": "discrim.report.features",
    "discrim.report.loadings": "discrim.report.features",
    "discrim.report.margin_distribution": "discrim.report.rows",
    "discrim.report.monitoring": "discrim.report.rows",
}


class _MovedModules(MetaPathFinder, Loader):
    """Finder of modules under names of an earlier layout, by which pickled models know the classes in them."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return spec_from_loader(name, self) if name in MOVED else None

    def exec_module(self, module: Any) -> None:
        found = vars(import_module(MOVED[module.__name__]))
        vars(module).update({name: value for name, value in found.items() if not name.startswith("__")})


sys.meta_path.append(_MovedModules())


def render_stub() -> str:
    """Return the text of `discrim/__init__.pyi`, in which editors and type checkers find the public names."""
    lines = ["# Written by `python discrim/registry.py`, the list of public names.", ""]
    lines += [
        f"from {entry.module} import {entry.name} as {entry.name}"
        for entry in sorted(
            ENTRIES, key=lambda entry: (entry.module, not entry.name.isupper(), entry.name)
        )  # as ruff does
    ]
    return "\n".join([*lines, "", "__version__: str", ""])


if __name__ == "__main__":
    from pathlib import Path

    Path(__file__).with_name("__init__.pyi").write_text(render_stub(), encoding="utf-8")
