"""What the tests share: tables of labelled rows, and the folder of real data sets where there is one."""

import os
from pathlib import Path

import numpy as np
import pytest
from samples import labelled

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
