"""What the docstrings of several estimators have in common, told once: a line {with a name} stands for it.

A line in the section of attributes stands for those that the docstring does not describe in words of its own.
Parameters are written out where they are: an editor shows them from the source, beside the call that is being typed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from textwrap import dedent, indent

_PLACE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^(?=\w+_ : )", re.MULTILINE)  # where the entry of a fitted attribute begins

_FITTED = """\
    mean_ : array of shape (n_features,)
        Mean of the rows, which transform subtracts.
    n_components_ : int
        How many components are kept.
    rank_ : int
        Numerical rank of the centred rows: how many directions there are.
    solver_ : str
        How the directions were found, and why so.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Number of features seen in fit.
"""
_VIP = """\
    vip_ : array of shape (n_features,)
        Importance of each feature over all components (VIP), by what each tells of the labels; the mean square is 1.
"""
IN_COMMON: dict[str, str] = {
    "fitted": _FITTED,
    "fitted_with_vip": _VIP + _FITTED,
    "fitted_discriminants": """\
    n_discriminants_ : int
        How many of the components are discriminants; the rest are PCA of the orthogonal complement.
    structure_coefficients_ : array of shape (n_components_, n_features)
        Correlation of each feature with each component: which features a component stands for.
    coef_ : array of shape (n_classes, n_features), or (1, n_features) with two classes
        Weights of the linear scores by which rows are classified; all discriminants take part.
    intercept_ : array of shape (n_classes,), or (1,) with two classes
        Constants of these scores.
    means_ : array of shape (n_classes, n_features)
        Mean of each class.
    priors_ : array of shape (n_classes,)
        Class probabilities that predictions start from.
    xbar_ : array of shape (n_features,)
        Mean of the class means, weighted by priors_.
    scalings_ : array of shape (n_features, n_components_)
        components_, transposed.
    covariance_ : array of shape (n_features, n_features)
        S_w/n, where store_covariance asks for it.
"""
    + _VIP
    + _FITTED,
}


def filled(text: str | None, common: Mapping[str, str]) -> str | None:
    """A docstring with what stands for its lines {with a known name}; None where Python keeps no docstrings."""
    while text is not None and (place := next((one for one in _PLACE.finditer(text) if one[2] in common), None)):
        entries = _ATTRIBUTE.split(dedent(common[place[2]]))
        missing = "".join(one for one in entries if not re.search(rf"^ *{_name(one)} : ", text, re.MULTILINE))
        text = text[: place.start()] + indent(missing, place[1]).rstrip() + text[place.end() :]
    return text


def _name(entry: str) -> str:
    return re.escape(entry.split(" : ")[0])
