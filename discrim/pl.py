"""Plots of AnnData objects, with scanpy's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discrim.report.fitted import class_codes
from discrim.report.projection import ProjectedRows, ProjectionDisplay, ProjectionValues


def projection(
    adata: Any, basis: str, *, color: str | None = None, components: Sequence[int] = (0, 1), ax: Any = None
) -> ProjectionDisplay:
    """Draw cells on components that `discrim.tl.reduce` wrote, or on any other `obsm`.

    Parameters
    ----------
    adata : AnnData
        The cells.
    basis : str
        The key that `discrim.tl.reduce` added, such as "bayes_lda", or the full name in obsm.
    color : str, default=None
        The column of obs with the class of each cell; None for the target of the reduction.
    components : sequence of int, default=(0, 1)
        Indices of the components to draw.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    ProjectionDisplay
        The display, drawn.

    Examples
    --------
    >>> import discrim.pl
    >>> discrim.pl.projection(adata, "bayes_lda", color="cell_type")  # doctest: +SKIP
    """
    name = basis if basis in adata.obsm else f"X_{basis}"
    if name not in adata.obsm:
        raise ValueError(f"basis must be a key of obsm ({', '.join(adata.obsm) or 'it has none'}); got {basis!r}.")
    params = adata.uns.get(name.removeprefix("X_"), {}).get("params", {})
    color = color or params.get("target")
    if color is None or color not in adata.obs:
        columns = ", ".join(map(str, adata.obs.columns)) or "it has none"
        raise ValueError(f"color must be a column of obs ({columns}); got {color!r}.")
    labels = adata.obs[color]
    known = labels.notna().to_numpy()
    classes, (codes,) = class_codes(labels[known].astype(str).to_numpy())
    scores = np.asarray(adata.obsm[name], dtype=np.float64)[known]
    names = tuple(f"component {number + 1}" for number in range(scores.shape[1]))
    rows = ProjectedRows.of(scores, codes, len(classes))
    return ProjectionDisplay(ProjectionValues(params.get("method", basis), classes, names, names, rows)).plot(
        ax, components=components
    )
