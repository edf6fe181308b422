"""Shared paragraphs of estimator docstrings: a line {like_this} is replaced by the paragraph of that name.

In the section Attributes, such a line adds the attributes that the docstring does not describe itself. Parameters are
written out in each docstring, because editors show them from the source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from textwrap import dedent, indent

_PLACE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^(?=\w+_ : )", re.MULTILINE)  # the start of a fitted attribute

_FITTED = """\
    mean_ : array of shape (n_features,)
        Mean of the rows, which transform subtracts.
    n_components_ : int
        Number of components.
    rank_ : int
        Numerical rank of the centred rows.
    solver_ : str
        The solver that was used, and the reason for the choice.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Number of features seen in fit.
"""
_VIP = """\
    vip_ : array of shape (n_features,)
        Variable importance in projection (VIP) of each feature over all components; the mean square is 1.
"""
SHARED: dict[str, str] = {
    "fitted": _FITTED,
    "fitted_with_vip": _VIP + _FITTED,
    "fitted_discriminants": """\
    n_discriminants_ : int
        Number of components that are discriminants; the others are PCA of the orthogonal complement.
    structure_coefficients_ : array of shape (n_components_, n_features)
        Correlation of each feature with each component.
    coef_ : array of shape (n_classes, n_features), or (1, n_features) with two classes
        Weights of the linear scores that classify rows; all discriminants are used.
    intercept_ : array of shape (n_classes,), or (1,) with two classes
        Constants of these scores.
    means_ : array of shape (n_classes, n_features)
        Mean of each class.
    priors_ : array of shape (n_classes,)
        Prior probabilities of the classes.
    xbar_ : array of shape (n_features,)
        Mean of the class means, weighted by priors_.
    scalings_ : array of shape (n_features, n_components_)
        components_, transposed.
    covariance_ : array of shape (n_features, n_features)
        S_w/n, if store_covariance=True.
"""
    + _VIP
    + _FITTED,
}


def fill(text: str | None, common: Mapping[str, str]) -> str | None:
    """Return a docstring with its lines {like_this} replaced; None if Python runs without docstrings."""
    while text is not None and (place := next((one for one in _PLACE.finditer(text) if one[2] in common), None)):
        entries = _ATTRIBUTE.split(dedent(common[place[2]]))
        missing = "".join(one for one in entries if not re.search(rf"^ *{_name(one)} : ", text, re.MULTILINE))
        text = text[: place.start()] + indent(missing, place[1]).rstrip() + text[place.end() :]
    return text


def _name(entry: str) -> str:
    return re.escape(entry.split(" : ")[0])
