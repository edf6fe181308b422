"""The one list of what discrim offers. The front door, the model file, the comparison and the law tests read it.

A new method is a file in `discrim/estimators` and one entry of `ENTRIES` here: its class, where it stands, a gloss, the
names it has in a comparison (none, one, or one per option), and its `laws`: properties shared by most methods that this
one lacks.
Modules are named as text, so that nothing is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, NamedTuple


class Sizes(NamedTuple):
    """What the training part of a split has."""

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
    """Return how many directions the centred rows can span."""
    return min(sizes.n_rows - 1, sizes.n_features)


def fewer_than_classes(sizes: Sizes) -> int:
    return min(sizes.n_classes - 1, sizes.n_features)


def one_less_than_classes(sizes: Sizes) -> int:
    return sizes.n_classes - 1


def fewer_than_columns(sizes: Sizes) -> int:
    return min(sizes.n_rows, sizes.n_features) - 1


@dataclass(frozen=True)
class Laws:
    """Properties of a method that the law tests use; the defaults are those of most methods.

    Parameters
    ----------
    supervised : bool
        It uses class labels.
    linear : bool
        It has `components_`, and its features are (x − mean_) @ components_.T.
    streams : bool
        It has `partial_fit`: the statistics of parts of a table add up.
    orthonormal : bool
        The rows of `components_` are orthonormal.
    inverts : bool
        If not orthonormal: it divides by the spread within classes, and refuses a table without any.
    rotates : bool
        A rotation of the rows rotates the components.
    nests : bool
        The first components do not depend on how many are kept.
    by_products : bool
        A few components can be found from products with X, without a dense matrix of its size.
    by_products_beyond_classes : bool
        The same for more components than n_classes − 1.
    counts_enter : bool
        The result depends on the number of rows, so that two copies of a table are another problem.
    whole_weights : bool
        Sample weights must be whole numbers.
    breaks_ties : bool
        Equal distances are resolved by the order of rows.
    sees_shapes : bool
        It finds components if class means are equal and class covariances differ.
    chosen_by_folds : bool
        Cross-validation chooses a parameter; a law on the order or repetition of rows holds for given splits.
    iterated : bool
        The result is as exact as the tolerance `tol` of an iteration.
    uses_svm : bool
        The result is as exact as the duality gap of an SVM.
    """

    supervised: bool = True
    linear: bool = True
    streams: bool = True
    orthonormal: bool = True
    inverts: bool = True
    rotates: bool = True
    nests: bool = True
    by_products: bool = True
    by_products_beyond_classes: bool = True
    counts_enter: bool = False
    whole_weights: bool = False
    breaks_ties: bool = False
    sees_shapes: bool = False
    chosen_by_folds: bool = False
    iterated: bool = False
    uses_svm: bool = False


@dataclass(frozen=True)
class Method:
    """A reduction by its name in a comparison.

    build : a callable that takes n_components, or "module:name" of one; None stands for the features as they are
    options : further arguments
    nested_from : the K from which on the first components of more are the components of fewer: one fit serves them all
    resizes : whether a fitted one tells what any other K would give (`with_components`): again one fit serves all
    most_components : how many it can have
    seeded : whether it takes random_state
    default : whether it is compared where no methods are named; default_rows : up to how many rows of the table
    laws : properties that the law tests use
    predicts_by_components : whether its own prediction uses the components asked for, not all discriminants
    written : of an estimator that the caller passed all its parameters, which identify its trials
    """

    name: str
    gloss: str
    build: Callable[..., Any] | str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    nested_from: Callable[[Sizes], float] = from_the_first
    resizes: bool = False
    most_components: Callable[[Sizes], int] = directions_of_rows
    seeded: bool = False
    takes_sparse: bool = True
    ours: bool = True
    default: bool = False
    default_rows: float = float("inf")
    note: str = ""
    laws: Laws = field(default_factory=Laws)
    predicts_by_components: bool = False
    written: str = ""

    def estimator(self, n_components: int, seed: int) -> Any:
        """Return an unfitted transformer with that many components."""
        assert self.build is not None
        build = found(self.build) if isinstance(self.build, str) else self.build
        seeds = {"random_state": seed} if self.seeded else {}
        return build(n_components=n_components, **self.options, **seeds)

    @property
    def linear(self) -> bool:
        """Whether it is a linear map of the features; of equals the linear one is recommended."""
        return self.laws.linear

    def counts(self, asked: Iterable[int], n_features: int) -> tuple[int, ...]:
        """Return the numbers of components to try; the features as they are have one number only."""
        return (n_features,) if self.build is None else tuple(asked)

    def judges(self, classifiers: Iterable[str]) -> tuple[str, ...]:
        """Return names of the classifiers that judge its features."""
        return tuple(classifiers)

    @property
    def predicts(self) -> bool:
        """Whether it classifies, so that its own prediction can be judged."""
        return self.build is not None and hasattr(self.estimator(1, 0), "predict")

    @property
    def own_classifier(self) -> Any:
        """The classifier of a pipeline that ends in one, which judges it; else None."""
        return None


def found(target: str) -> Any:
    """Return what "module:name" names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class Entry:
    """A public name: where it stands, what it is in about five words, and its names in a comparison."""

    name: str
    module: str
    gloss: str
    methods: tuple[Method, ...] = ()
    saved: bool = False  # whether a fitted one can be written to a model file
    classifies: bool = False  # a classifier that is not a reducer

    @property
    def target(self) -> str:
        return f"{self.module}:{self.name}"


def _reducer(target: str, gloss: str, *methods: Method) -> Entry:
    """Return a class "file:name" in discrim.estimators, which builds its methods unless they say what does."""
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
        "classes of different covariances, too",
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
        "where classes do not vary",
        Method(
            "null-space-lda", "class means apart where classes do not vary, for n < d", laws=Laws(by_products=False)
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
        "PCA of columns that differ",
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
        "discriminants of near rows",
        Method(
            "local-fisher-discriminant",
            "discriminants that pull only near rows of a class together (LFDA)",
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
        "one class large beside another",
        Method(
            "pairwise-eigenvectors",
            "directions along which one class's second moments are large beside another's (GEM)",
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
        "a classifier's view, not linear",
        Method(
            "posterior-map",
            "places of the classes, weighted by a kernel classifier's posteriors",
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
        "a kernel version of every method",
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
    Entry("max_margin_shift", "discrim.estimators.max_margin_shift", "the shifted rows themselves"),
    Entry("CrammerSingerSVC", "discrim.estimators.svc", "multiclass SVM and its duals", classifies=True),
    Entry(
        "RefinedHyperplane",
        "discrim.estimators.refined_hyperplane",
        "a linear classifier, margins refined",
        classifies=True,
    ),
    Entry("Predictor", "discrim.estimators.predictor", "a pipeline with probabilities and limits"),
    Entry("ClassMoments", "discrim.core.moments.class_moments", "class statistics that add up"),
    Entry("fit_parts", "discrim.estimators.parts", "a fit of a table in parts"),
    Entry("make_pipeline", "discrim.estimators.pipeline", "a pipeline for tables in parts, too"),
    Entry("Statistics", "discrim.core.moments.gather", "statistics of parts, which add up"),
    Entry("HashKFold", "discrim.tables.row_hash", "folds by a hash of each row"),
    Entry("compare", "discrim.evaluation.compare", "which reduction helps, with evidence"),
    Entry("write_report", "discrim.report.page", "a comparison as one page"),
    Entry("ProjectionDisplay", "discrim.report.projection", "rows on two components, drawn"),
    Entry("SpectrumDisplay", "discrim.report.spectrum", "what each component is worth, drawn"),
    Entry("LoadingsDisplay", "discrim.report.loadings", "which features make a component"),
    Entry("VIPDisplay", "discrim.report.importance", "which features matter in all"),
    Entry("SeparationDisplay", "discrim.report.importance", "which features separate two classes"),
    Entry("MonitoringDisplay", "discrim.report.monitoring", "rows that do not fit, drawn"),
    Entry("MarginDisplay", "discrim.report.margin_distribution", "margins before and after, drawn"),
    Entry("AccuracyCurveDisplay", "discrim.report.accuracy_curves", "scores over components, drawn"),
    Entry(
        "CriticalDifferenceDisplay",
        "discrim.report.critical_difference",
        "mean ranks over data sets",
    ),
    Entry("save", "discrim.model_file", "fitted models as plain, checked files"),
    Entry("load", "discrim.model_file", "fitted models from such files"),
    Entry("trusted_types", "discrim.model_file", "what skops and MLflow may load"),
)

PUBLIC: dict[str, Entry] = {entry.name: entry for entry in ENTRIES}
OUR_METHODS: tuple[Method, ...] = tuple(method for entry in ENTRIES for method in entry.methods)


def render_stub() -> str:
    """Return the text of `discrim/__init__.pyi`, from which editors and type checkers know the public names."""
    lines = ["# Written by `python discrim/registry.py`, the one list of public names.", ""]
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
