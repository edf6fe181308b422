"""Reductions of AnnData objects, by scanpy's conventions: cells in obs, genes in var, results written back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from discrim.registry import OUR_METHODS
from discrim.tables.annotated import require_in_memory


def reduce(
    adata: Any,
    target: str,
    *,
    method: Any = "bayes-error-lda",
    n_components: int = 2,
    layer: str | None = None,
    mask_var: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
) -> Any:
    """The few directions that keep the classes of `adata.obs[target]` apart.

    Cells without a label take no part in the fit and get their components all the same. Sparse counts stay sparse; of
    a Dask array only statistics of its blocks are gathered.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, genes in columns.
    target : str
        The column of obs with the classes.
    method : str or estimator, default="bayes-error-lda"
        A name that `discrim methods` lists, or an unfitted reducer, whose own n_components then counts.
    n_components : int, default=2
        How many components, for a method by name.
    layer : str, default=None
        The layer to take in place of X.
    mask_var : str, default=None
        A column of var that is true for the genes to use, such as "highly_variable".
    key_added : str, default=None
        What the results are called; None for the method's name with underscores.
    copy : bool, default=False
        Whether to leave adata as it is, and return another.

    Returns
    -------
    AnnData or None
        With copy, the new object. Written are `obsm["X_<key>"]` (components of the cells), `varm["<key>"]` (the
        loadings of a linear method; 0 for genes that were not used) and `uns["<key>"]` (what was done).

    Examples
    --------
    >>> import discrim.tl
    >>> discrim.tl.reduce(adata, "cell_type", key_added="bayes_lda")  # doctest: +SKIP
    >>> adata.obsm["X_bayes_lda"].shape  # doctest: +SKIP
    (2638, 2)
    """
    require_in_memory(adata)
    model, name = _estimator(method, n_components)
    key = key_added or name.replace("-", "_")
    X = _matrix(adata, layer)
    used = _mask(adata, mask_var)
    if used is not None:
        X = X[:, np.flatnonzero(used)]
    labels = _labels(adata, target)
    known = labels.notna().to_numpy()
    model.fit(X if known.all() else X[np.flatnonzero(known)], labels[known].astype(str).to_numpy())
    adata = adata.copy() if copy else adata
    components = model.transform(X)
    adata.obsm[f"X_{key}"] = np.asarray(components.compute() if hasattr(components, "compute") else components)
    if hasattr(model, "components_"):
        loadings = np.zeros((adata.n_vars, len(model.components_)), dtype=model.components_.dtype)
        loadings[slice(None) if used is None else used] = model.components_.T
        adata.varm[key] = loadings
    adata.uns[key] = _told(model, name, target, layer, mask_var)
    return adata if copy else None


def _estimator(method: Any, n_components: int) -> tuple[Any, str]:
    if isinstance(method, BaseEstimator):
        return clone(method), type(method).__name__
    known = {one.name: one for one in OUR_METHODS}
    if method not in known:
        raise ValueError(f"method={method!r} came; possible is a reducer, or one of {', '.join(known)}.")
    return known[method].estimator(n_components, 0), method


def _matrix(adata: Any, layer: str | None) -> Any:
    if layer is None:
        if adata.X is None:
            raise ValueError(f"adata has no X. Name one of its layers: {', '.join(adata.layers) or 'it has none'}.")
        return adata.X
    if layer not in adata.layers:
        raise ValueError(f"layer={layer!r} came; adata has {', '.join(adata.layers) or 'no layers'}.")
    return adata.layers[layer]


def _labels(adata: Any, target: str) -> Any:
    if target not in adata.obs:
        raise ValueError(f"obs has no column {target!r}; it has {', '.join(map(str, adata.obs.columns)) or 'none'}.")
    return adata.obs[target]


def _mask(adata: Any, name: str | None) -> NDArray[np.bool_] | None:
    if name is None:
        return None
    if name not in adata.var or adata.var[name].dtype.kind != "b":
        true_or_false = [str(column) for column in adata.var.columns if adata.var[column].dtype.kind == "b"]
        raise ValueError(
            f"mask_var={name!r} came; columns of var that are true or false: {', '.join(true_or_false) or 'none'}."
        )
    return adata.var[name].to_numpy()


def _told(model: Any, name: str, target: str, layer: str | None, mask_var: str | None) -> dict[str, Any]:
    """What was done, in values that an .h5ad file can keep."""
    given = {"target": target, "method": name, "layer": layer, "mask_var": mask_var}
    plain = {one: value for one, value in model.get_params(deep=False).items() if isinstance(value, str | int | float)}
    found = {"classes": np.asarray(model.classes_, dtype=str)} if hasattr(model, "classes_") else {}
    for one in ("eigenvalues_", "explained_variance_ratio_", "shrinkage_", "solver_"):
        if (value := getattr(model, one, None)) is not None:
            found[one.rstrip("_")] = value
    return {"params": {key: value for key, value in (given | plain).items() if value is not None}, **found}
