"""Estimators and pipelines of the caller's own, made to be compared like the methods that have a name."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from discrim.evaluation.classifiers import Classifier
from discrim.evaluation.methods import Method, Sizes, named_methods
from discrim.evaluation.results import ITSELF
from discrim.registry import never


@dataclass(frozen=True)
class GivenMethod(Method):
    """A transformer that the caller passed, or a pipeline.

    model : the estimator, never fitted itself
    parameter : the name by which its number of components is set; empty where it has none, and is taken as it is
    classifies : whether it ends in a classifier, and so is judged by its own predictions
    fixed : how many components it gives where that cannot be set
    """

    model: Any = None
    parameter: str = ""
    classifies: bool = False
    fixed: int = 0

    def counts(self, asked: Iterable[int], n_features: int) -> tuple[int, ...]:
        """Those asked for, or its own where it cannot be told how many."""
        return tuple(asked) if self.parameter else (self.fixed or n_features,)

    def judges(self, classifiers: Iterable[str]) -> tuple[str, ...]:
        return (ITSELF,) if self.classifies else tuple(classifiers)

    def estimator(self, n_components: int, seed: int) -> Any:
        model = clone(self.model)
        return model.set_params(**{self.parameter: n_components}) if self.parameter else model

    @property
    def predicts(self) -> bool:
        """Whether it classifies; one that transforms too is judged by classifiers only, as it is not known how."""
        return False

    @property
    def own_classifier(self) -> Classifier | None:
        """The pipeline's own, where it has one."""
        return Classifier(ITSELF, "the pipeline's own", partial(clone, self.model)) if self.classifies else None

    def with_fixed_count(self, X: Any, y: Any) -> GivenMethod:
        """The same with its number of components, found by a fit, as it cannot be set.

        Of a pipeline that ends in a classifier it is how many this one sees; a classifier alone sees all features.
        """
        model = clone(self.model)
        if self.classifies:
            model = model[:-1] if isinstance(model, Pipeline) else model
        if not hasattr(model, "transform") or (isinstance(model, Pipeline) and not len(model)):
            return self
        return replace(self, fixed=int(model.fit(X, y).transform(X[:2]).shape[1]))


def as_methods(wanted: str | Any | Iterable[str | Any], n_rows: int = 0) -> tuple[Method, ...]:
    """Names and estimators as methods, in their order, each name once; "default" as it is for so many rows."""
    listed = [wanted] if isinstance(wanted, str) or hasattr(wanted, "fit") else list(wanted)
    found: dict[str, Method] = {}
    for one in listed:
        for method in named_methods([one], n_rows) if isinstance(one, str) else [_given(one)]:
            if isinstance(method, GivenMethod) and method.name in found:
                raise ValueError(
                    f"Two estimators are called {method.name!r}. Pass each once, or wrap one in a Pipeline."
                )
            found.setdefault(method.name, method)
    return tuple(found.values())


def _given(model: Any) -> GivenMethod:
    if isinstance(model, type) or not hasattr(model, "fit") or not hasattr(model, "get_params"):
        raise TypeError(
            f"methods holds {model!r}. Pass names of methods, or estimators of scikit-learn's kind such as PCA() or "
            "make_pipeline(StandardScaler(), PLSRegression())."
        )
    classifies = not hasattr(model, "transform")
    if classifies and not hasattr(model, "predict"):
        raise TypeError(f"{type(model).__name__} has neither transform nor predict: there is nothing to be judged.")
    with config_context(print_changed_only=False):
        written = " ".join(model.__repr__(N_CHAR_MAX=10**9).split())
    return GivenMethod(
        _name(model),
        "passed by the caller",
        None if classifies else type(model),
        nested_from=never,
        most_components=_any_number,
        ours=False,
        model=model,
        parameter="" if classifies else _parameter(model),
        classifies=classifies,
        written=written,
    )


def _any_number(sizes: Sizes) -> int:
    return sys.maxsize


def _name(model: Any) -> str:
    if isinstance(model, Pipeline):
        return "+".join(type(step).__name__ for _, step in model.steps if step not in (None, "passthrough"))
    return type(model).__name__


def _parameter(model: Any) -> str:
    """The last parameter called n_components, of the estimator or of a step of the pipeline."""
    named = [name for name in model.get_params() if name == "n_components" or name.endswith("__n_components")]
    of_steps = {f"{step}__n_components" for step, _ in model.steps} if isinstance(model, Pipeline) else {"n_components"}
    direct = [name for name in named if name in of_steps]
    return direct[-1] if direct else ""
