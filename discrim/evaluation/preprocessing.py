"""Preprocessing of columns before a reduction: missing cells are filled, then all columns are scaled.

Every step is a scikit-learn transformer, fitted on training rows alone and kept in the model file with the reducer.

impute  median, mean, most-frequent   of the column's training cells; a column without any becomes 0
scale   standard   mean 0 and deviation 1
        range      from −1 to 1
        none       as they are

Sparse rows stay sparse: they are divided by their deviation or largest absolute value, and not moved.
"""

from __future__ import annotations

from typing import Any

from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

SCALES = ("standard", "range", "none")
IMPUTATIONS = ("median", "mean", "most-frequent")


def preprocessing(scale: str, impute: str | None = None, *, sparse: bool = False) -> list[Any]:
    """Return the steps before a reduction, as unfitted transformers; none for scale="none" and impute=None.

    Parameters
    ----------
    scale : {"standard", "range", "none"}
        How columns are scaled.
    impute : {"median", "mean", "most-frequent"}, default=None
        Value that replaces missing cells (NaN); None if there are none.
    sparse : bool, default=False
        Whether the rows are sparse.

    Returns
    -------
    list of transformers
        To be put in front of a reducer, as in ``make_pipeline(*preprocessing("standard", "median"), PCA(2))``.

    Examples
    --------
    >>> from discrim.evaluation.preprocessing import preprocessing
    >>> preprocessing("standard", "median")
    [SimpleImputer(keep_empty_features=True, strategy='median'), StandardScaler()]
    """
    if scale not in SCALES:
        raise ValueError(f"No scale is named {scale!r}. There are: {', '.join(SCALES)}.")
    if impute is not None and impute not in IMPUTATIONS:
        raise ValueError(f"Missing cells cannot be filled with {impute!r}. Possible are: {', '.join(IMPUTATIONS)}.")
    steps: list[Any] = []
    if impute is not None:
        # Without empty columns the model's columns would not be the table's.
        steps.append(SimpleImputer(strategy=impute.replace("-", "_"), keep_empty_features=True))
    if scale == "standard":
        steps.append(StandardScaler(with_mean=not sparse))
    elif scale == "range":
        steps.append(MaxAbsScaler() if sparse else MinMaxScaler((-1, 1)))
    return steps
