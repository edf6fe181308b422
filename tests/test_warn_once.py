"""A fit issues each kind of warning once, at the caller's line, also with concurrent fits."""

import threading
import warnings

import numpy as np
import pytest
from samples import labelled

from discrim import PCA, RefinedHyperplane
from discrim.warn_once import collected_warnings, issue_once, warn


def caught_by(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught


def test_the_kind_of_a_warning_ignores_numbers_and_names():
    def parts():
        with collected_warnings() as caught:
            warn("class 'a' has 1 row")
            warn("class 'b' has 2 rows, too few")
            warn("class 'c' has 3 row")
        issue_once(caught)

    assert [str(one.message) for one in caught_by(parts)] == [
        "class 'a' has 1 row (So in 2 parts of this fit.)",
        "class 'b' has 2 rows, too few",
    ]


def test_collected_warnings_are_not_issued_and_reach_an_outer_fit():
    def fits():
        with collected_warnings():
            warn("of coordinates that were given up")
        with collected_warnings() as outer:
            for _ in range(3):
                with collected_warnings() as inner:
                    warn("inner")
                issue_once(inner)
        issue_once(outer)

    assert [str(one.message) for one in caught_by(fits)] == ["inner (So in 3 parts of this fit.)"]


def tied():
    """Rows along the axes, two of which are equally short: seen in coarse coordinates, and again in finer ones."""
    lengths = [1.0, 1e-2, 1e-5, 1e-5, 1e-6]
    axes = np.zeros((5, 40))
    axes[range(5), range(5)] = lengths
    return np.vstack([axes, -axes]), np.arange(10) % 2


@pytest.mark.parametrize(
    ("make", "table", "in_parts"),
    [
        (RefinedHyperplane, labelled(12, 30), True),
        (lambda: RefinedHyperplane(rule="best"), labelled(12, 30), True),
        (lambda: PCA(3), tied(), False),
    ],
    ids=["pairs of classes", "folds", "coordinates twice"],
)
def test_fits_of_many_parts_warn_once_per_kind_at_the_callers_line(make, table, in_parts):
    caught = caught_by(lambda: make().fit(*table))
    assert caught
    assert len({str(one.message)[:40] for one in caught}) == len(caught)
    assert {one.filename for one in caught} == {__file__}
    assert any("parts of this fit" in str(one.message) for one in caught) == in_parts


def test_a_warning_made_an_error_leaves_the_model_as_it_was():
    fitted = PCA(2).fit(labelled(30, 4)[0])
    before = dict(vars(fitted))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="tie"):
            fitted.set_params(n_components=1).fit(np.vstack([np.eye(4), -np.eye(4)]))
    assert fitted.components_ is before["components_"]


def test_fits_in_threads_do_not_share_warnings():
    both_in, collected = threading.Barrier(2), {}

    def one(name):
        with collected_warnings() as caught:
            both_in.wait(timeout=60)
            warn(name)
            both_in.wait(timeout=60)
        collected[name] = [text for text, _ in caught]

    threads = [threading.Thread(target=one, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert collected == {"a": ["a"], "b": ["b"]}
