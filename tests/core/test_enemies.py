"""Nearest enemies against brute force on the differences, and the pairs they make against their definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import peak_of
from scipy import sparse

from discrim.core.enemies import DenseRows, SparseRows, enemy_pairs, search_enemies


def nearest_enemies(X, codes, n_classes, *, enemies="each"):
    """Return the lowest of each row's nearest enemies in each other class, or in any; −1 if there is none."""
    nearest = np.full((len(codes), n_classes if enemies == "each" else 1), -1)
    for found in search_enemies(X, codes, n_classes, each=enemies == "each"):
        slot = codes[found.enemy] if enemies == "each" else np.zeros(len(found.enemy), dtype=int)
        order = np.lexsort((found.enemy, found.D, slot, found.finder))[::-1]  # the nearest and lowest is written last
        nearest[found.finder[order], slot[order]] = found.enemy[order]
    return nearest


def distances(X):
    """D(i, j) = Σ_k (x_ik − x_jk)² in float64, one feature after the other."""
    columns = np.ascontiguousarray(np.asarray(X, dtype=float).T)
    D = np.zeros((len(X), len(X)))
    for some in np.array_split(np.arange(len(X)), 1 + len(X) // 20):  # a few rows at a time stay in cache
        for column in columns:
            D[some] += (column[some, None] - column) ** 2
    return D


def brute_force(D, codes, n_classes, enemies):
    """By the definition: the first of the least distances among the rows of each class, or of all other classes."""
    if enemies == "any":
        D = np.where(codes[:, None] == codes, np.inf, D)
        return np.where(np.isinf(D.min(axis=1)), -1, D.argmin(axis=1))[:, None]
    nearest = np.full((len(codes), n_classes), -1)
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        others = codes != c
        nearest[others, c] = members[D[np.ix_(others, members)].argmin(axis=1)]
    return nearest


def assert_as_brute_force(X, codes, n_classes, reference=None):
    D = distances(X if reference is None else reference)
    for enemies in ("each", "any"):
        expected = brute_force(D, codes, n_classes, enemies)
        np.testing.assert_array_equal(nearest_enemies(X, codes, n_classes, enemies=enemies), expected)


@pytest.fixture
def small_tiles(monkeypatch):
    """Use blocks of 24 positions, so small tables have many: divided classes, and classes that share a block."""
    monkeypatch.setattr("discrim.core.enemies.TILE", 24)


@pytest.fixture
def sharpenings(monkeypatch):
    """Count how often tiles changed from float32 to float64."""
    done = []
    store = DenseRows._store
    monkeypatch.setattr(
        DenseRows,
        "_store",
        lambda rows, dtype: (store(rows, dtype), done.append(1) if dtype == np.float64 else 0),
    )
    return done


DATA = {
    "normal": lambda rng, n, d: rng.standard_normal((n, d)),
    "integers": lambda rng, n, d: rng.integers(0, 3, (n, d)).astype(float),
    "quarters": lambda rng, n, d: rng.integers(-4, 5, (n, d)) / 4,
    "tenths": lambda rng, n, d: rng.integers(0, 3, (n, d)) / 10,
    "few distinct rows": lambda rng, n, d: rng.standard_normal((12, d))[rng.integers(0, 12, n)],
    "equal rows": lambda rng, n, d: np.full((n, d), 0.1),
    "offset 1e8": lambda rng, n, d: rng.standard_normal((n, d)) + 1e8,
    "offset 1e8, tenths": lambda rng, n, d: rng.integers(0, 3, (n, d)) / 10 + 1e8,
    "heavy tails": lambda rng, n, d: rng.standard_cauchy((n, d)) ** 3,
    "one wide column": lambda rng, n, d: rng.standard_normal((n, d)) * np.r_[1e6, np.ones(d - 1)],
    "near ties": lambda rng, n, d: 1 + 1e-9 * rng.integers(0, 3, (n, d)),
}


@pytest.mark.parametrize("n_classes", [2, 5, 60])
@pytest.mark.parametrize("d", [1, 4, 5, 30])
@pytest.mark.parametrize("kind", DATA)
def test_equals_brute_force(small_tiles, rng, kind, d, n_classes):
    X = DATA[kind](rng, 150, d)
    codes = rng.integers(0, n_classes, len(X))
    assert_as_brute_force(X, codes, n_classes)
    assert_as_brute_force(X.astype(np.float32), codes, n_classes)


@pytest.mark.parametrize(("d", "n_classes"), [(3, 2), (20, 2), (20, 3), (20, 90), (150, 2)])
def test_equals_brute_force_over_many_tiles_of_full_size(rng, d, n_classes):
    X = rng.standard_normal((1300, d))
    assert_as_brute_force(X, rng.integers(0, n_classes, len(X)), n_classes)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_equals_brute_force_with_ties(data):
    n, d = data.draw(st.integers(2, 70)), data.draw(st.sampled_from([1, 2, 5, 7]))
    values = data.draw(st.sampled_from([[0.0, 1.0], [0.1, 0.2, 0.3], [-1e8, 0.0, 1e-8], [1 / 3, 1e3, 1e3 + 1e-10]]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n_classes = data.draw(st.integers(2, 8))
    X, codes = rng.choice(values, (n, d)), rng.integers(0, n_classes, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discrim.core.enemies.TILE", data.draw(st.sampled_from([7, 20, 512])))
        assert_as_brute_force(X, codes, n_classes)
        assert_as_brute_force(sparse.csr_array(X), codes, n_classes, X)


def test_uneven_classes_some_of_one_row_some_empty(small_tiles, rng):
    sizes = [0, 61, 1, 0, 30, 1, 2, 24, 25, 0]
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    assert_as_brute_force(rng.standard_normal((len(codes), 20)), codes, len(sizes))


def test_two_rows_and_a_single_class():
    X = np.array([[0.0, 1.0], [3.0, 4.0]])
    np.testing.assert_array_equal(nearest_enemies(X, np.array([1, 0]), 2), [[1, -1], [-1, 0]])
    np.testing.assert_array_equal(nearest_enemies(X, np.array([0, 0]), 2), [[-1, -1], [-1, -1]])
    np.testing.assert_array_equal(nearest_enemies(X, np.array([0, 0]), 1, enemies="any"), [[-1], [-1]])


# Where float32 leaves too much in doubt, the search must go on in float64, and end at the same answer.
def test_far_classes_sharpen_to_float64(small_tiles, rng, sharpenings):
    codes = rng.integers(0, 2, 200)
    X = rng.standard_normal((200, 20)) + 1e8 * codes[:, None]
    assert_as_brute_force(X, codes, 2)
    assert sharpenings


def test_large_integers_sharpen_to_products_without_rounding(small_tiles, rng, sharpenings):
    # Too large for float32 to hold their products, few enough to tie everywhere; some near ties are resolved before.
    X = 5001.0 * rng.integers(0, 2, (300, 5)) @ rng.integers(0, 2, (5, 20))
    codes = rng.integers(0, 2, 300)
    assert_as_brute_force(X, codes, 2)
    assert sharpenings


def test_tiles_of_integers_are_exact(rng, monkeypatch):
    monkeypatch.setattr(DenseRows, "distances", None)  # calling it would fail
    X = rng.integers(0, 2, (400, 40)).astype(float)
    assert_as_brute_force(X, rng.integers(0, 2, 400), 2)


def test_off_the_grid_in_rows_not_looked_at_first(rng, monkeypatch):
    # The pilot rows, the even ones, suggest integers; the bounds must not believe them.
    X, codes = rng.integers(0, 2, (400, 20)).astype(float), rng.integers(0, 2, 400)
    monkeypatch.setattr("discrim.core.enemies.PILOT_SIZE", X.size // 2)
    X[1::2] += 1e-9 * rng.integers(0, 2, (200, 20))
    assert_as_brute_force(X, codes, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["normal", "integers", "tenths", "few distinct rows"])
def test_sparse_rows(small_tiles, rng, kind, dtype):
    X = (DATA[kind](rng, 150, 30) * (rng.random((150, 30)) < 0.3)).astype(dtype)
    X[3] = X[70] = 0
    codes = rng.integers(0, 5, 150)
    assert_as_brute_force(sparse.csr_array(X), codes, 5, X)
    assert_as_brute_force(sparse.csr_matrix(X), codes, 5, X)


def test_dense_rows_take_one_copy_at_most():
    X = np.random.default_rng(0).standard_normal((2000, 3000))
    codes = np.arange(2000) % 2
    nearest_enemies(X[:9], codes[:9], 2)
    assert peak_of(lambda: nearest_enemies(X, codes, 2)) < 1.2 * X.nbytes  # a float32 copy, and tiles


@pytest.mark.parametrize("exponent", [-1000, -996, -500, -20, 20, 500, 1000, 1019])
@pytest.mark.parametrize("d", [3, 20])
def test_any_scale_gives_the_answer_at_scale_one(rng, d, exponent):
    X, codes = rng.standard_normal((120, d)), rng.integers(0, 3, 120)
    assert_as_brute_force(np.ldexp(X, exponent), codes, 3, X)
    assert_as_brute_force(sparse.csr_array(np.ldexp(X, exponent)), codes, 3, X)


@pytest.mark.parametrize("d", [3, 20])
def test_a_huge_constant_column_does_not_drown_tiny_ones(rng, d):
    X, codes = rng.standard_normal((120, d)), rng.integers(0, 3, 120)
    X[:, 1] = 0
    given = np.ldexp(X, -990)
    given[:, 1] = 1.7e308
    assert_as_brute_force(given, codes, 3, X)


@pytest.mark.parametrize("d", [3, 20])
def test_differences_beyond_the_largest_float(d):
    X = np.zeros((4, d))
    X[:, 0] = [-1.7e308, 1.7e308, 1.0e308, -1.0e308]
    np.testing.assert_array_equal(nearest_enemies(X, np.array([0, 0, 1, 1]), 2), [[-1, 3], [-1, 2], [1, -1], [0, -1]])


@pytest.mark.parametrize("d", [1, 4, 37])
def test_distances_are_the_definition_bit_for_bit(rng, d):
    X = rng.standard_normal((30, d)) * (rng.random((30, d)) < 0.7)
    left, right = (index.ravel() for index in np.indices((30, 30)))
    for rows in (DenseRows(X, np.arange(30)), SparseRows(sparse.csr_array(X), np.arange(30))):
        np.testing.assert_array_equal(rows.distances(left, right), distances(X).ravel())


def literal_pairs(X, codes, n_classes, w, enemies, ties):
    """{(i, j): weight} by the definition, over the different rows; w says how often each occurs."""
    D = distances(X)
    given = {}
    for i in range(len(X)):
        others = [np.flatnonzero(codes == c) for c in range(n_classes) if c != codes[i]]
        for members in others if enemies == "each" else [np.sort(np.concatenate(others))]:
            if len(members):
                near = members[D[i, members] <= D[i, members].min() * (1 + 1e-9)]
                near = near[D[i, near] == D[i, near].min()][:1] if ties == "lowest" else near
                for j in near:
                    t = {"share": sum(w[near]), "all": 1, "lowest": w[j]}[ties]
                    given[i, int(j)] = w[i] * w[j] / t
    pairs = {}
    for i, j in sorted({(min(pair), max(pair)) for pair in given}):
        sides = [given[pair] for pair in ((i, j), (j, i)) if pair in given]
        pairs[i, j] = sum(sides) - (len(sides) - 1) if ties == "lowest" else max(sides)
    return pairs


def as_dict(pairs):
    return dict(zip(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True), pairs.weight.tolist(), strict=True))


each_or_any = pytest.mark.parametrize("enemies", ["each", "any"])
ways_with_ties = pytest.mark.parametrize("ties", ["share", "all", "lowest"])


@each_or_any
@ways_with_ties
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tile", [512, 9])
def test_pairs_are_their_definition(rng, monkeypatch, enemies, ties, weighted, tile):
    monkeypatch.setattr("discrim.core.enemies.TILE", tile)
    X = rng.permutation(np.unique(rng.integers(0, 4, (70, 3)), axis=0)).astype(float)
    codes = rng.integers(0, 4, len(X))
    w = rng.integers(1, 5, len(X)) if weighted else np.ones(len(X), dtype=int)
    pairs = enemy_pairs(X, codes, 4, weights=w if weighted else None, enemies=enemies, ties=ties)
    expected = literal_pairs(X, codes, 4, w, enemies, ties)
    found = as_dict(pairs)
    assert len(found) == len(pairs.left) >= 30
    assert found == pytest.approx(expected, rel=1e-14)
    assert (pairs.left < pairs.right).all()
    assert pairs.weight.dtype == np.float64
    assert pairs.left.dtype == pairs.right.dtype == np.intp


def test_no_enemies_make_no_pairs():
    pairs = enemy_pairs(np.zeros((4, 1)), np.zeros(4, dtype=int), 1)
    assert pairs.left.size == pairs.right.size == pairs.weight.size == 0


def test_more_ties_than_may_be_held_are_refused(monkeypatch):
    X, codes = np.eye(40), np.arange(40) % 2
    assert len(enemy_pairs(X, codes, 2, max_pairs=400).left) == 400
    with pytest.raises(MemoryError, match="399"):
        enemy_pairs(X, codes, 2, max_pairs=399)


def test_the_pairs_of_mushrooms_are_those_of_brute_force(data_folder):
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(data_folder / "mushrooms.csv.gz").sample(1500, random_state=0)
    X, codes = table.iloc[:, :-1].to_numpy(float), pandas.factorize(table.iloc[:, -1])[0]
    assert_as_brute_force(X, codes, 2)
    assert_as_brute_force(sparse.csr_array(X), codes, 2, X)
