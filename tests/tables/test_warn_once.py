"""A fit says each kind of thing once, at the caller's line, whatever else runs beside it."""

import threading
import warnings

import numpy as np
import pytest
from samples import labelled

from discrim import PCA, RefinedHyperplane
from discrim.tables.warn_once import collected_warnings, issue_once, warn


def said_by(call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call()
    return said


def test_a_kind_is_what_is_said_whatever_the_numbers_and_names_in_it():
    def parts():
        with collected_warnings() as said:
            warn("class 'a' has 1 row")
            warn("class 'b' has 2 rows, too few")
            warn("class 'c' has 3 row")
        issue_once(said)

    assert [str(one.message) for one in said_by(parts)] == [
        "class 'a' has 1 row (So in 2 parts of this fit.)",
        "class 'b' has 2 rows, too few",
    ]


def test_what_is_collected_warnings_for_no_one_is_not_said_and_an_outer_fit_hears_an_inner_one():
    def fits():
        with collected_warnings():
            warn("of coordinates that were given up")
        with collected_warnings() as outer:
            for _ in range(3):
                with collected_warnings() as inner:
                    warn("inner")
                issue_once(inner)
        issue_once(outer)

    assert [str(one.message) for one in said_by(fits)] == ["inner (So in 3 parts of this fit.)"]


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
def test_fits_of_many_parts_say_each_kind_once_and_where_they_were_called(make, table, in_parts):
    said = said_by(lambda: make().fit(*table))
    assert said
    assert len({str(one.message)[:40] for one in said}) == len(said)
    assert {one.filename for one in said} == {__file__}
    assert any("parts of this fit" in str(one.message) for one in said) == in_parts


def test_a_warning_made_an_error_leaves_the_model_as_it_was():
    fitted = PCA(2).fit(labelled(30, 4)[0])
    before = dict(vars(fitted))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="tie"):
            fitted.set_params(n_components=1).fit(np.vstack([np.eye(4), -np.eye(4)]))
    assert fitted.components_ is before["components_"]


def test_fits_in_threads_do_not_hear_each_other():
    both_in, heard = threading.Barrier(2), {}

    def one(name):
        with collected_warnings() as said:
            both_in.wait(timeout=10)
            warn(name)
            both_in.wait(timeout=10)
        heard[name] = [text for text, _ in said]

    threads = [threading.Thread(target=one, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {"a": ["a"], "b": ["b"]}
