"""Shared fixtures: labelled tables, the folder of real data sets, and the option --method for the laws of a method."""

import os
from pathlib import Path

import numpy as np
import pytest
from estimators import OPTIONS
from literal import DEFINITIONS
from samples import labelled

from discrim.registry import ENTRIES


def pytest_addoption(parser):
    parser.addoption("--method", help="run only the laws of this method, such as fisher-lda (see make method)")


def pytest_collection_modifyitems(config, items):
    """Keep the laws of the method named by --method and of its class's options, and the test of its definition."""
    name = config.getoption("--method")
    if name is None:
        return
    known = {one.name: (entry.name, one) for entry in ENTRIES for one in entry.methods}
    if name not in known:
        raise pytest.UsageError(f"--method must be one of {', '.join(known)}; got {name!r}.")
    entry, method = known[name]
    kind = type(method.estimator(2, 0))
    cases = {name, *(case.name for case in OPTIONS if type(case()) is kind)}
    definition = DEFINITIONS.get(name, "no test")
    chosen = [one for one in items if {case_of(one), entry_of(one)} & {*cases, entry} or definition in one.nodeid]
    left = {id(one) for one in chosen}
    config.hook.pytest_deselected(items=[one for one in items if id(one) not in left])
    items[:] = chosen


def case_of(item):
    """Return the name of the case that a law is called with, or None."""
    given = getattr(item, "callspec", None)
    case = given and (given.params.get("case") or given.params.get("make"))
    return getattr(case, "name", None)


def entry_of(item):
    """Return the public name that a test is called with, or None."""
    given = getattr(item, "callspec", None)
    entry = given and (given.params.get("entry") or given.params.get("name"))
    return getattr(entry, "name", entry if isinstance(entry, str) else None)


SHAPES = {"tall": (60, 6), "wide": (15, 40)}


@pytest.fixture(params=SHAPES, scope="session")
def table(request):
    """Rows and labels of three classes, once with more rows than columns and once with fewer; read-only."""
    X, y = labelled(*SHAPES[request.param])
    X.setflags(write=False)
    y.setflags(write=False)
    return X, y


@pytest.fixture
def rng():
    return np.random.default_rng(20240717)


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data sets that DISCRIM_DATA names."""
    folder = os.environ.get("DISCRIM_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("DISCRIM_DATA names no folder of data sets")
    return Path(folder)
