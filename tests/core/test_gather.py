"""Gathered statistics: every division, order and tree of additions gives the same total; bytes keep every bit."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from samples import labelled

from discrim import ClassMoments, Statistics
from discrim.core.moments.few_rows import FewRows
from discrim.core.moments.gather import Gatherer, Gathering, gathered_total
from discrim.core.moments.row_sample import RowSample
from discrim.core.row_hash import row_hashes
from discrim.plain_format import PlainFormatError
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import PartError

FOLDED = Gathering(n_folds=3, sample_rows=20)


def gathered(X, y, weights=None, gathering=FOLDED, part="", batch=None):
    gatherer = Gatherer(gathering, part)
    for start in range(0, X.shape[0], batch or X.shape[0]):
        rows = slice(start, start + (batch or X.shape[0]))
        gatherer.add(X[rows], None if y is None else y[rows], None if weights is None else weights[rows])
    return gatherer.statistics()


def assert_same(one, other, rtol=1e-12):
    for mine, theirs in zip(one.fold_moments, other.fold_moments, strict=True):
        assert mine.classes.tolist() == theirs.classes.tolist()
        assert mine.counts.tolist() == theirs.counts.tolist()
        np.testing.assert_allclose(mine.means, theirs.means, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(mine.within, theirs.within, rtol=rtol, atol=rtol * np.abs(theirs.within).max())
    assert one.sample.hashes.tolist() == other.sample.hashes.tolist()
    assert (one.sample.classes[one.sample.codes] == other.sample.classes[other.sample.codes]).all()
    dense = [sample.X.toarray() if sp.issparse(sample.X) else sample.X for sample in (one.sample, other.sample)]
    np.testing.assert_array_equal(*dense)
    np.testing.assert_allclose(one.sample.weights, other.sample.weights, rtol=rtol)
    assert one.sample.is_whole == other.sample.is_whole
    assert one.dtype == other.dtype


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("order", ["as it is", "shuffled", "sorted by class"])
@pytest.mark.parametrize("batch", [1, 7, 300])
def test_any_division_in_any_order_is_the_whole(order, batch, offset, rng):
    X, y = labelled(300, 5)
    X = X + offset
    weights = rng.uniform(0.5, 2, 300)
    whole = gathered(X, y, weights)
    rows = {"as it is": np.arange(300), "shuffled": rng.permutation(300), "sorted by class": np.argsort(y)}[order]
    parts = [
        gathered(X[some], y[some], weights[some], part=str(number), batch=batch)
        for number, some in enumerate(np.array_split(rows, 4))
    ]
    assert_same(gathered_total(parts), whole, rtol=1e-12 if offset == 0 else 1e-9)
    assert_same(parts[3] + (parts[1] + parts[2]) + parts[0], whole, rtol=1e-12 if offset == 0 else 1e-9)
    assert gathered_total(parts).n_rows == 300


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("keep", ["pooled", "each"])
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_of_few_rows_hold_rows_and_add_up_to_the_whole(convert, keep, weighted, rng):
    X, y = labelled(90, 40)
    X = np.where(X > 0, X, 0.0)
    weights = rng.uniform(0.5, 2, 90) if weighted else None
    asked = Gathering(keep=keep, n_folds=3, sample_rows=20)
    whole = gathered(convert(X), y, weights, asked)
    for step in (1, 7, 45):
        parts = []
        for start in range(0, 90, step):
            rows = slice(start, start + step)
            given = convert(X)[rows].copy()
            own = None if weights is None else weights[rows].copy()
            part = gathered(given, y[rows], own, asked, part=str(start))
            (given if isinstance(given, np.ndarray) else given.data)[:] = np.nan  # rows are copied: a buffer may change
            if own is not None:
                own[:] = np.nan
            parts.append(Statistics.from_bytes(part.to_bytes()) if step == 7 else part)
        if step == 1:
            assert all(isinstance(fold, FewRows) for part in parts for fold in part.folds)
            assert len(parts[0].to_bytes()) < 8 * 40 * 40
        for total in (gathered_total(parts), sum(parts), sum(parts[::-1])):
            assert_same(total, whole)
            assert all(isinstance(fold, ClassMoments) for fold in total.folds)


def test_a_row_of_a_long_stream_is_copied_a_few_times_only(rng):
    X, so_far, copied, kept = rng.standard_normal((64, 400)), None, 0, ()
    for row in X:
        rows = LabelledRows(row[None], np.zeros(1, np.intp), np.array([None]))
        so_far = FewRows.from_rows(rows, "pooled") if so_far is None else so_far.with_rows(rows)
        copied += sum(len(block) for block in so_far.blocks if not any(block is one for one in kept))
        kept = so_far.blocks
        lengths = [len(block) for block in kept]
        assert all(longer > shorter for longer, shorter in pairwise(lengths))
    assert copied <= 64 * 7
    np.testing.assert_array_equal(so_far.rows.X, X)


# ---------------------------------------------------------------------- the sample


def test_the_sample_holds_the_rows_of_least_hash_each_once(rng):
    X = rng.integers(0, 3, (500, 3)).astype(float)  # 27 different rows
    y = (X[:, 0] == 2).astype(int)
    sample = gathered(X, y, gathering=Gathering(sample_rows=10), batch=50).sample
    unique, counts = np.unique(X, axis=0, return_counts=True)
    least = np.argsort(row_hashes(unique))[:10]
    np.testing.assert_array_equal(sample.X, unique[least])
    assert sample.weights.tolist() == counts[least].tolist()
    assert not sample.is_whole
    assert gathered(X, y, gathering=Gathering(sample_rows=27), batch=50).sample.is_whole


def test_a_row_with_two_labels_has_two_places():
    X, y = np.array([[1.0], [1.0], [1.0], [2.0]]), np.array(["a", "b", "a", "a"])
    sample = gathered(X, y, gathering=Gathering(sample_rows=9)).sample
    held = {(x, sample.classes[c]): w for x, c, w in zip(sample.X.ravel(), sample.codes, sample.weights, strict=True)}
    assert held == {(1.0, "a"): 2.0, (1.0, "b"): 1.0, (2.0, "a"): 1.0}


def test_the_sample_is_uniform(rng):
    X = rng.standard_normal((50_000, 1))
    sample = gathered(X, None, gathering=Gathering(supervised=False, sample_rows=5_000), batch=10_000).sample
    assert len(sample) == 5_000
    drawn, bins = np.histogram(sample.X, bins=[-9, -1, -0.3, 0.3, 1, 9])
    wanted = np.histogram(X, bins=bins)[0] / 10
    assert ((drawn - wanted) ** 2 / wanted).sum() < 20


def test_long_rows_are_sampled_more_sparingly(monkeypatch):
    monkeypatch.setattr("discrim.core.moments.row_sample.SAMPLE_BYTES", 8 * 4 * 6)
    X, y = labelled(50, 4)
    assert len(gathered(X, y).sample) == 6
    assert len(gathered(sp.csr_array(X), y).sample) == 20


# ---------------------------------------------------------------------- bytes


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("text", [False, True])
def test_bytes_keep_every_bit(make, text):
    X, y = labelled(80, 4)
    y = np.array(["a", "ä", "c"])[y] if text else y
    one = gathered(make(X.astype(np.float32)), y, gathering=Gathering(n_folds=2, sample_rows=9, class_weight=None))
    other = Statistics.from_bytes(one.to_bytes())
    assert other.to_bytes() == one.to_bytes()
    assert other.gathering == one.gathering
    assert other.parts.tolist() == one.parts.tolist()
    assert other.dtype == np.float32
    assert repr(other) == repr(one)
    np.testing.assert_array_equal((other + gathered(X[:9], y[:9], gathering=one.gathering)).sample.hashes.dtype, "u8")


def test_damaged_bytes_are_refused():
    data = gathered(*labelled(40, 3)).to_bytes()
    for at in (0, 20, 60, len(data) // 2, len(data) - 1):
        wrong = bytearray(data)
        wrong[at] ^= 1
        with pytest.raises(PlainFormatError):
            Statistics.from_bytes(bytes(wrong))
    with pytest.raises(PlainFormatError):
        Statistics.from_bytes(data[:-1])
    with pytest.raises(PlainFormatError, match="format"):
        Statistics.from_bytes(data.replace(b"statistics 1", b"statistics 2", 1))


# ---------------------------------------------------------------------- statistics that cannot be added


def test_a_part_added_twice_is_refused():
    X, y = labelled(60, 3)
    one, other = gathered(X[:30], y[:30]), gathered(X[30:], y[30:])
    with pytest.raises(ValueError, match="twice"):
        (one + other) + other
    with pytest.raises(ValueError, match="twice"):
        gathered(X[:30], y[:30], batch=7) + one  # the same rows, in other batches
    again = gathered(X[:30], y[:30], part="January") + gathered(X[:30], y[:30], part="February")
    assert again.n_rows == 60


def test_long_parts_are_distinguished_by_rows_from_all_over_them():
    X, y = labelled(5_000, 2)
    other = X.copy()
    other[4096] += 1
    assert gathered(X, y).parts != gathered(other, y).parts
    assert gathered(X, y).parts == gathered(X, y, batch=999).parts


def test_rows_in_another_order_are_another_part():
    X, y = labelled(60, 3)
    assert (gathered(X, y) + gathered(X[::-1], y[::-1])).n_rows == 120


def test_a_refused_batch_changes_nothing():
    X, y = labelled(40, 3)
    gatherer = Gatherer(FOLDED)
    gatherer.add(X[:20], y[:20])
    bad = X[20:].copy()
    bad[5, 1] = np.inf
    with pytest.raises(PartError, match="row 25, column 1"):
        gatherer.add(bad, y[20:])
    gatherer.add(X[20:], y[20:])
    assert_same(gatherer.statistics(), gathered(X, y))


def test_empty_batches_and_parts():
    X, y = labelled(40, 3)
    gatherer = Gatherer(FOLDED)
    assert gatherer.is_empty
    with pytest.raises(ValueError, match="rows"):
        gatherer.statistics()
    gatherer.add(X[:0], y[:0])
    gatherer.add(X[:5], y[:5], np.zeros(5))
    gatherer.add(X, y)
    assert_same(gatherer.statistics(), gathered(X, y))


def test_memory_does_not_grow_with_the_rows():
    X, y = labelled(1_000, 4)
    gatherer = Gatherer(FOLDED)
    gatherer.add(X, y)
    size = len(gatherer.statistics().to_bytes())
    for number in range(5):
        gatherer.add(X + number, y)
    assert len(gatherer.statistics().to_bytes()) < size + 400


def test_samples_of_parts_keep_the_smaller_size(rng):
    X, y = labelled(60, 3)
    rows = gathered(X, y, gathering=Gathering(sample_rows=60)).sample
    small = gathered(X, y, gathering=Gathering(sample_rows=7)).sample
    assert isinstance(rows + small, RowSample)
    assert len(rows + small) == 7


@pytest.mark.parametrize("kind", ["list", "Series", "weights"])
def test_a_long_array_is_looked_at_a_block_at_a_time(kind, monkeypatch, tmp_path):
    X, y = labelled(300, 5)
    weights = np.arange(300) % 4 if kind == "weights" else None  # some are 0
    labels = y.tolist() if kind == "list" else pd.Series(y, index=np.arange(300)[::-1]) if kind == "Series" else y
    whole = gathered(X, y, weights)
    np.save(tmp_path / "rows.npy", X)
    monkeypatch.setattr("discrim.core.moments.gather.BLOCK_CELLS", 100)
    seen = []
    monkeypatch.setattr(
        "discrim.core.moments.gather.row_hashes", lambda rows: [seen.append(len(rows)), row_hashes(rows)][1]
    )
    gatherer = Gatherer(FOLDED)
    gatherer.add(np.load(tmp_path / "rows.npy", mmap_mode="r"), labels, weights)
    assert_same(gatherer.statistics(), whole)
    assert max(seen) == (15 if kind == "weights" else 20)
    assert gatherer.statistics().parts == whole.parts
    for given in ({"y": y[:299]}, {"y": y, "sample_weight": np.ones(299)}):
        with pytest.raises(PartError, match="299"):
            Gatherer(FOLDED).add(X, **given)


def test_rows_that_cannot_enter_the_sample_are_skipped():
    X, y = labelled(300, 5)
    before = gathered(X[:200], y[:200])
    later = Gatherer(FOLDED, others=before)
    later.add(X[200:], y[200:])
    assert len(later.statistics().sample) < 20
    assert_same(before + later.statistics(), gathered(X, y))
    few = Gatherer(FOLDED, others=gathered(X[:5], y[:5]))  # not full: no bound
    few.add(X[200:], y[200:])
    assert_same(few.statistics(), gathered(X[200:], y[200:]))
