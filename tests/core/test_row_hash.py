"""Content hashes of rows: the same for every container, and different for different rows."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB

from discrim import HashKFold
from discrim.core.row_hash import hash_folds, row_hashes

MASK = 2**64 - 1


def mixed(value):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = ((value ^ value >> 33) * factor) & MASK
    return value ^ value >> 33


def literal_hash(row):
    """Compute the hash by the module's definition, cell by cell."""
    total = 0
    for column, cell in enumerate(row):
        bits = int.from_bytes(np.float64(cell + 0.0).tobytes(), "little")
        factor = mixed((column + 1) * 0x9E3779B97F4A7C15 & MASK) | 1
        product = ((bits ^ bits >> 32) * factor) & MASK
        total += product ^ product >> 29
    return mixed(total & MASK)


def test_a_hash_follows_its_definition(rng):
    X = rng.standard_normal((20, 7))
    X[3, :] = 0.0
    assert row_hashes(X).tolist() == [literal_hash(row) for row in X]


def test_a_hash_never_changes():
    """Folds of a stored table, and statistics on their way between machines, hang on it."""
    assert row_hashes(np.array([[1.0, -2.5, 0.0], [0.0, 0.0, 0.0]])).tolist() == [109946535144361308, 0]


FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "int": lambda X: X.astype(np.int64),
    "Fortran": np.asfortranarray,
    "other byte order": lambda X: X.astype(">f8"),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "minus zero": lambda X: np.where(X == 0, -0.0, X),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "stored zeros": lambda X: sp.csr_array((X.ravel(), np.tile(np.arange(6), len(X)), np.arange(0, X.size + 1, 6))),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_same_row_in_every_form(form, rng):
    X = rng.integers(-3, 4, (2_000, 6)).astype(float)  # more rows than fit next to the processor at once, nearly
    assert (row_hashes(form(X)) == row_hashes(X)).all()


@pytest.mark.parametrize("cells", [range(10), [0.0, 0.1, 1e-300, 1e300, -1.0, 2.0**-1074], [0.0, 1.0, 2.0, 4.0, 8.0]])
def test_different_rows_have_different_hashes_spread_over_all_bits(cells):
    X = np.array(list(itertools.product(cells, repeat=5)), dtype=float)
    hashes = row_hashes(X)
    assert len(np.unique(hashes)) == len(X)
    bits = (hashes[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 4 / np.sqrt(len(X))


# ---------------------------------------------------------------------- folds


def test_folds_are_even_and_depend_on_the_seed(rng):
    hashes = row_hashes(rng.standard_normal((20_000, 3)))
    one, other = hash_folds(hashes, 5, 0), hash_folds(hashes, 5, 1)
    assert np.abs(np.bincount(one) - 4_000).max() < 4 * np.sqrt(4_000 * 0.8)
    assert abs((one == other).mean() - 0.2) < 0.02


def test_the_splitter_is_one_of_scikit_learns(rng):
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    splits = list(HashKFold(4).split(X, y))
    assert len(splits) == HashKFold(4).get_n_splits() == 4
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(60))
    assert all(set(training) | set(test) == set(range(60)) for training, test in splits)
    assert len(cross_val_score(GaussianNB(), X, y, cv=HashKFold(3))) == 3
    assert "n_splits=4" in repr(HashKFold(4))


def test_the_fold_of_a_row_does_not_depend_on_its_position(rng):
    X = rng.standard_normal((200, 3))
    order = rng.permutation(200)
    assert (HashKFold(5).fold_of(X[order]) == HashKFold(5).fold_of(X)[order]).all()
    assert (HashKFold(5).fold_of(pd.DataFrame(X)) == HashKFold(5).fold_of(X)).all()


@pytest.mark.parametrize("wrong", [1, 0, -3, 2.5, True, None])
def test_numbers_of_folds(wrong):
    with pytest.raises(ValueError, match="n_splits"):
        HashKFold(wrong).get_n_splits()


@pytest.mark.parametrize("wrong", [-1, 0.5, "a", np.random.RandomState(0)])
def test_seeds_that_parts_cannot_share(wrong):
    with pytest.raises(ValueError, match="part"):
        HashKFold(2, random_state=wrong).fold_of(np.eye(3))


def test_long_sparse_tables_are_hashed_in_blocks_and_as_dense_ones_are():
    X = sp.random_array((5_000, 40), density=0.5, format="csr", random_state=0)
    assert (row_hashes(X) == row_hashes(X.toarray())).all()
    empty = sp.csr_array((3, 40))
    assert row_hashes(empty).tolist() == [0, 0, 0]
