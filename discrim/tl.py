"""Reductions of AnnData objects with scanpy's conventions: cells in obs, genes in var, results written back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from discrim.registry import OUR_METHODS


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
    """Find the few components that separate the classes of `adata.obs[target]`.

    Cells without a label are not used in the fit, but get their components. Sparse counts stay sparse. If X is a Dask
    array, only statistics of its blocks are gathered.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, genes in columns.
    target : str
        The column of obs with the classes.
    method : str or estimator, default="bayes-error-lda"
        A name that `discrim methods` lists, or an unfitted reducer, whose own n_components is used.
    n_components : int, default=2
        Number of components, if the method is given by name.
    layer : str, default=None
        The layer to use instead of X.
    mask_var : str, default=None
        A column of var that is true for the genes to use, such as "highly_variable".
    key_added : str, default=None
        Key of the results; None for the name of the method with underscores.
    copy : bool, default=False
        If True, leave adata unchanged and return a new object.

    Returns
    -------
    AnnData or None
        The new object if copy=True. The function writes `obsm["X_<key>"]` (components of the cells), `varm["<key>"]`
        (loadings of a linear method; 0 for genes that were not used) and `uns["<key>"]` (parameters and results).

    Examples
    --------
    >>> import discrim.tl
    >>> discrim.tl.reduce(adata, "cell_type", key_added="bayes_lda")  # doctest: +SKIP
    >>> adata.obsm["X_bayes_lda"].shape  # doctest: +SKIP
    (2638, 2)
    """
    if getattr(adata, "isbacked", False):  # X stays in the file: it is never loaded without notice
        raise ValueError(
            "adata is backed by its file. Load it with adata.to_memory(), or read it with Dask "
            "(anndata.experimental.read_lazy), whose blocks are gathered one at a time."
        )
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
    adata.uns[key] = _record(model, name, target, layer, mask_var)
    return adata if copy else None


def _estimator(method: Any, n_components: int) -> tuple[Any, str]:
    if isinstance(method, BaseEstimator):
        return clone(method), type(method).__name__
    known = {one.name: one for one in OUR_METHODS}
    if method not in known:
        raise ValueError(f"method must be a reducer or one of {', '.join(known)}; got {method!r}.")
    return known[method].estimator(n_components, 0), method


def _matrix(adata: Any, layer: str | None) -> Any:
    if layer is None:
        if adata.X is None:
            raise ValueError(f"adata has no X. Name one of its layers: {', '.join(adata.layers) or 'it has none'}.")
        return adata.X
    if layer not in adata.layers:
        raise ValueError(f"layer must be a layer of adata ({', '.join(adata.layers) or 'it has none'}); got {layer!r}.")
    return adata.layers[layer]


def _labels(adata: Any, target: str) -> Any:
    if target not in adata.obs:
        columns = ", ".join(map(str, adata.obs.columns)) or "it has none"
        raise ValueError(f"target must be a column of obs ({columns}); got {target!r}.")
    return adata.obs[target]


def _mask(adata: Any, name: str | None) -> NDArray[np.bool_] | None:
    if name is None:
        return None
    if name not in adata.var or adata.var[name].dtype.kind != "b":
        masks = ", ".join(str(column) for column in adata.var.columns if adata.var[column].dtype.kind == "b")
        raise ValueError(f"mask_var must be a boolean column of var ({masks or 'it has none'}); got {name!r}.")
    return adata.var[name].to_numpy()


def _record(model: Any, name: str, target: str, layer: str | None, mask_var: str | None) -> dict[str, Any]:
    """Return the parameters and results as values that an .h5ad file can store."""
    given = {"target": target, "method": name, "layer": layer, "mask_var": mask_var}
    plain = {one: value for one, value in model.get_params(deep=False).items() if isinstance(value, str | int | float)}
    found = {"classes": np.asarray(model.classes_, dtype=str)} if hasattr(model, "classes_") else {}
    for one in ("eigenvalues_", "explained_variance_ratio_", "shrinkage_", "solver_"):
        if (value := getattr(model, one, None)) is not None:
            found[one.rstrip("_")] = value
    return {"params": {key: value for key, value in (given | plain).items() if value is not None}, **found}
