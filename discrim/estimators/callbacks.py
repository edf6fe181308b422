"""scikit-learn's callbacks (progress bars and monitors, from its version 1.9 on): a fit is one task of theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """The method itself."""
        return method


__all__ = ["CallbackSupportMixin", "heard"]


def heard(fit: Callable[..., Any], estimator: Any, *given: Any) -> Any:
    """A fit whose beginning and end the callbacks are told that were set, and who are torn down whatever happens."""

    def told(estimator: Any) -> Any:
        context = estimator._init_callback_context()
        context.call_on_fit_task_begin(estimator=estimator, X=given[0], y=given[1])
        fitted = fit(*given)
        context.call_on_fit_task_end(estimator=estimator, X=given[0], y=given[1])
        return fitted

    return with_callbacks(told)(estimator)
