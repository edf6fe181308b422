"""Documentation of estimators: shared parts of docstrings, and links from scikit-learn's HTML diagrams.

A line {like_this} is replaced by the paragraph of that name; entries that the docstring describes itself are left out.
An entry "name: text" gets the type that all parameters or attributes of that name have, and the constructor's default:

    tol: Relative duality gap at which the SVM stops.

becomes, in a class with tol=1e-10,

    tol : float, default=1e-10
        Relative duality gap at which the SVM stops.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from inspect import Parameter, isfunction, signature
from textwrap import dedent, indent
from typing import Any, TypeVar

from discrim.registry import PUBLIC
from discrim.threads import on_one_blas_thread_throughout

Kind = TypeVar("Kind", bound=type)

_PLACE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)
_START = re.compile(r"^(?=\w+_ : |\w+: |\{)", re.MULTILINE)  # of an entry
_NAME = re.compile(r"^ *(\w+) ?: ", re.MULTILINE)  # at the start of an entry
_SHORT = re.compile(r"^( *)(\w+): (.*)$", re.MULTILINE)  # an entry without its type

_NAMES = {  # of parameters and attributes, by their type
    "bool": "scale_labels store_covariance",
    "float": "C label_weight penalty tol duality_gap_ shrinkage_",
    "int": "max_iter n_components_ n_features_in_ n_iter_ n_supervised_ rank_",
    "str": "solver_",
    "int, float or None": "n_components",
    "int, RandomState or None": "random_state",
    "int, splitter or list of (training, test) row numbers": "cv",
    'float, "ledoit_wolf", "oas" or "cv"': "shrinkage",
    'dict, "balanced" or None': "class_weight",
    'array of shape (n_classes,), "equal" or None': "priors",
    '{"pairwise"} or None': "missing",
    "PathScores or None": "path_",
    "array of shape (n_components_,)": (
        "eigenvalues_ explained_variance_ explained_variance_ratio_ r2x_ r2y_ singular_values_"
    ),
    "array of shape (n_features,)": "mean_ vip_",
    "array of shape (n_classes,)": "classes_",
    "array of shape (n_classes,), or (1,) with two classes": "intercept_",
    "array of shape (n_iter_ + 1,)": "objective_",
    "array of shape (n_components_, n_features)": "components_",
    "array of shape (n_features, n_components_)": "x_loadings_ x_weights_",
    "array of shape (n_classes, n_components_)": "y_loadings_",
    "array of shape (n_classes, n_features), or (1, n_features) with two classes": "coef_",
    "array of shape (n_features, n_features)": "covariance_",
}
KINDS: dict[str, str] = {name: kind for kind, names in _NAMES.items() for name in names.split()}

SHARED: dict[str, str] = {
    # parameters
    "gaps": """\
missing: Treatment of NaN. None raises an error. "pairwise" computes each mean and covariance from the rows that have
    the cells (corrected to be positive definite), and transform replaces a missing cell by its column's mean.
""",
    "weighting": """\
priors: Class probabilities for prediction, in the order of classes_; None uses the class frequencies.
class_weight: Factors on the sample weights by class label; "balanced" makes the total weights of the classes equal.
store_covariance: If True, store the d×d within-class covariance as covariance_.
""",
    "weighting_and_gaps": "{weighting}\n{gaps}\n",
    "discriminant_count": """\
n_components: Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of the
    separation, None all discriminants. Components beyond the discriminants are PCA of the orthogonal complement.
""",
    "shuffling": "random_state: Seed for shuffling the folds; None for unshuffled folds.\n",
    "factor_count": """\
n_components: Number of factors. None uses C − 1 (at most the rank); a fraction in (0, 1) keeps the fewest of these that
    reach this share of their eigenvalues.
""",
    "label_weight": """\
label_weight: Weight α of the labels' loss relative to the reconstruction of the rows. Rows are centred and divided by
    one scalar (mean square length 1), so α has the same meaning for every table.
""",
    "alternating": """\
{factor_count}
{label_weight}
penalty: Penalty β on the classifier's weights; without it there is no minimum if the classes are separable.
tol: Relative decrease of the objective per round below which to stop.
max_iter: Maximum number of rounds.
""",
    # attributes
    "fitted": """\
components_: Directions, one per row.
mean_: Mean of the rows, which transform subtracts.
n_components_: Number of components.
rank_: Numerical rank of the centred rows.
solver_: The solver that was used, and the reason for the choice.
classes_: The labels, sorted.
n_features_in_: Number of features seen in fit.
""",
    "importance": """\
vip_: Variable importance in projection (VIP) of each feature over all components; the mean square is 1.
""",
    "fitted_with_vip": "{importance}\n{fitted}\n",
    "orthonormal": "components_: Directions, one per row, orthonormal.\n",
    "found_rank": "rank_: Numerical rank (with the Lanczos solver, the number of directions found).\n",
    "variances": """\
eigenvalues_: Variance of the rows along each direction (divided by n).
explained_variance_ratio_: Share of the total variance explained by each direction.
""",
    "alternating_factors": """\
{variances}
class_coef_ : array of shape (n_classes, n_components_)
    Weights of the classifier for the features.
class_intercept_ : array of shape (n_classes,)
    Intercepts of the classifier.
objective_: Objective at the start and after every round; it never rises.
n_iter_: Number of rounds.
{fitted_with_vip}
""",
    "fitted_svm": """\
duality_gap_: Relative duality gap reached by the SVM.
n_iter_: Number of passes over the rows.
""",
    "least_squares": """\
x_loadings_: p_h, with x ≈ mean_ + Σ_h t_h p_h.
y_loadings_: q_h, with one-hot labels ≈ their mean + Σ_h t_h q_h.
eigenvalues_: Variance of the one-hot labels explained by each component, SS_h/n.
explained_variance_ratio_: Share of the variance of the one-hot labels explained by each component (R²Y).
r2x_: Share of the variance of the rows explained by each component, ‖t_h‖²‖p_h‖²/‖X‖² (R²X).
r2y_: The same as `explained_variance_ratio_` (R²Y).
coef_: Weights of the linear scores that classify rows.
intercept_: Constants of these scores.
{fitted}
""",
    "chosen_shrinkage": """\
shrinkage_: γ that was used.
path_: With "cv", the shrinkages that were tried, with their held-out accuracies and log losses.
""",
    "fitted_discriminants": """\
explained_variance_ratio_: Share of the between-class separation along each discriminant; 0 for further components.
n_discriminants_ : int
    Number of components that are discriminants; the others are PCA of the orthogonal complement.
structure_coefficients_ : array of shape (n_components_, n_features)
    Correlation of each feature with each component.
coef_: Weights of the linear scores that classify rows; all discriminants are used.
intercept_: Constants of these scores.
means_ : array of shape (n_classes, n_features)
    Mean of each class.
priors_ : array of shape (n_classes,)
    Prior probabilities of the classes.
xbar_ : array of shape (n_features,)
    Mean of the class means, weighted by priors_.
scalings_ : array of shape (n_features, n_components_)
    components_, transposed.
covariance_: S_w/n, if store_covariance=True.
{fitted_with_vip}
""",
    # sections of methods
    "of_rows": """\
Parameters
----------
X : array, data frame or sparse matrix of shape (n_samples, n_features)
    Samples.
""",
    "streamed": """\
{of_rows}
y : array of shape (n_samples,)
    Class labels; not used by PCA.
classes : array, default=None
    All labels that the stream may contain, to raise an error for others.
sample_weight : array of shape (n_samples,), default=None
    Sample weights.

Returns
-------
self : object
    The estimator with all rows so far.
""",
    "explained": """\
{of_rows}
between : pair of class labels, default=None
    Explain the log odds of the first label against the second; None for each row's two most probable classes.

Returns
-------
explanation : Explanation
    Effects of one standard deviation of each column, `log_odds` (n_samples, n_features) and `positions` (n_samples,
    n_components_, n_features); the two classes `first` and `second` of each row; and `importances`, the mean absolute
    effect over the rows.
""",
    "predicted": """\
{of_rows}

Returns
-------
labels : array of shape (n_samples,)
    Predicted class labels.
""",
    "probabilities": """\
{of_rows}

Returns
-------
probabilities : array of shape (n_samples, n_classes)
    Probabilities in the order of classes_.
""",
}


def fill(text: str | None, common: Mapping[str, str]) -> str | None:
    """Return a docstring with its lines {like_this} replaced; None if Python runs without docstrings."""
    while text is not None and (place := next((one for one in _PLACE.finditer(text) if one[2] in common), None)):
        described = set(_NAME.findall(text))
        missing = "".join(entry for name, entry in _entries(common[place[2]]) if name not in described)
        text = text[: place.start()] + indent(missing, place[1]).rstrip() + text[place.end() :]
    return text


@lru_cache
def _entries(paragraph: str) -> list[tuple[str | None, str]]:
    """Return the entries of a paragraph with their names, if they have one."""
    entries = _START.split(dedent(paragraph))
    return [(found[1] if (found := _NAME.match(entry)) else None, entry) for entry in entries]


def fill_estimator(cls: Any) -> None:
    """Fill in the docstrings of a class and of its methods."""
    parameters = signature(cls.__init__).parameters

    def typed(entry: re.Match[str]) -> str:
        space, name, text = entry.groups()
        if name not in KINDS:
            return entry[0]
        default = parameters[name].default if name in parameters else Parameter.empty
        shown = f'"{default}"' if isinstance(default, str) else repr(default)
        given = "" if default is Parameter.empty else f", default={shown}"
        return f"{space}{name} : {KINDS[name]}{given}\n{space}    {text}"

    members = (getattr(one, "fn", getattr(one, "method", one)) for one in vars(cls).values())  # without decorators
    for one in (cls, *filter(isfunction, members)):
        text = fill(one.__doc__, SHARED)
        if text is not None:
            one.__doc__ = _SHORT.sub(typed, text) if one is cls else text


@lru_cache
def documentation_site() -> str:
    """Return the URL of the documentation site in the package metadata, or "" if there is none."""
    try:
        entries = metadata.metadata("discrim").get_all("Project-URL", [])
    except metadata.PackageNotFoundError:  # not installed, e.g. run from its folder or a zip file
        return ""
    addresses = (entry.split(", ", 1) for entry in entries)
    return {name: address.rstrip("/") for name, address in addresses}.get("Documentation", "")


def public_estimator(cls: Kind) -> Kind:
    """Decorate a class: fill in its docstrings, link its diagram to its page, run its methods on one BLAS thread."""
    fill_estimator(cls)
    cls._get_doc_link = _doc_link  # type: ignore[attr-defined]
    on_one_blas_thread_throughout(cls)
    return cls


def _doc_link(estimator: Any) -> str:
    name, site = type(estimator).__name__, documentation_site()
    return f"{site}/api/{name}.html" if site and name in PUBLIC else ""
