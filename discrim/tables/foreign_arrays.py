"""Arrays of other libraries (PyTorch, CuPy, JAX …), where scikit-learn is asked to take them as they are.

That is asked by `sklearn.set_config(array_api_dispatch=True)`; without it they become numpy's, as all that comes in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils._array_api import get_namespace


def is_foreign(X: Any) -> bool:
    """Return whether X is an array of another library, which stays on its device."""
    return bool(get_config()["array_api_dispatch"]) and hasattr(X, "__dlpack__") and not isinstance(X, np.ndarray)


def namespace(X: Any) -> Any:
    """Return the functions for such an array."""
    return get_namespace(X)[0]


def on_host(X: Any) -> Any:
    """Return a foreign array as numpy's, copied if it is on another device; anything else unchanged."""
    if not is_foreign(X):
        return X
    X = X.detach() if hasattr(X, "detach") else X
    if hasattr(X, "cpu"):  # PyTorch
        X = X.cpu()
    elif hasattr(X, "get"):  # CuPy
        X = X.get()
    return np.asarray(X) if isinstance(X, np.ndarray) else np.from_dlpack(X)


def as_given(result: NDArray[Any], X: Any) -> Any:
    """Return numbers in the library and on the device of X if it is foreign; labels that are no numbers stay."""
    if not is_foreign(X) or result.dtype.kind not in "fiub":
        return result
    return namespace(X).asarray(np.require(result, requirements=["C", "W"]), device=X.device)
