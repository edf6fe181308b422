"""scikit-learn's callbacks (version 1.9 and later) are called by a fit: alone, and in a search over a pipeline."""

import numpy as np
import pytest
from samples import labelled
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from discrim import PCA, FisherLDA, load, save

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
X, Y = labelled(60, 5)


class Listener:
    """Calls in order."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.events.append(("begin", type(estimator).__name__, len(X)))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.events.append(("end", type(estimator).__name__, hasattr(estimator, "components_")))


@pytest.mark.parametrize("kind", [PCA, FisherLDA])
def test_a_fit_calls_setup_begin_end_and_teardown(kind):
    listener = Listener()
    fitted = kind().set_callbacks(listener).fit(X, Y)
    assert listener.events == ["setup", ("begin", kind.__name__, 60), ("end", kind.__name__, True), "teardown"]
    np.testing.assert_array_equal(fitted.components_, kind().fit(X, Y).components_)
    assert set(vars(fitted)) - set(vars(kind().fit(X, Y))) == {"_skl_callbacks"}


def test_a_fit_that_fails_is_torn_down():
    listener = Listener()
    with pytest.raises(ValueError, match="NaN"):
        PCA().set_callbacks(listener).fit(np.full((5, 2), np.nan))
    assert listener.events == ["setup", ("begin", "PCA", 5), "teardown"]


def test_a_progress_bar_over_a_search_takes_them():
    pytest.importorskip("rich", reason="the progress bar is drawn by rich")
    search = GridSearchCV(make_pipeline(PCA(), LogisticRegression()), {"pca__n_components": [1, 2]}, cv=2)
    found = clone(search).set_callbacks(callback.ProgressBar()).fit(X, Y) if hasattr(search, "set_callbacks") else None
    if found is not None:
        assert found.best_params_ == search.fit(X, Y).best_params_
    bar = make_pipeline(PCA(2), LogisticRegression()).set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert bar[0].n_components_ == 2


def test_callbacks_are_not_part_of_a_model_file(tmp_path):
    save(PCA(2).set_callbacks(Listener()).fit(X), tmp_path / "model")
    assert not hasattr(load(tmp_path / "model"), "_skl_callbacks")
