"""Protocols: which rows train and which rows test, split after split.

The splits of a protocol depend on the seed and on the pattern of the labels, never on the features or the method, so
that every method is judged on the same rows. Split i of a random holdout does not depend on the number of splits, so a
longer run extends a shorter one.

    holdout-80-20   four fifths train, one fifth tests, 50 random draws
    holdout-50-50   half trains, half tests, 100 random draws
    kfold           each of 10 folds tests once, the others train
    inverted-kfold  each of 10 folds trains once, the others test
    few-shot        2 (or 3, 5, …) rows of each class train, the rest tests, 20 random draws

Rows of one group (patients, batches, replicates) are not independent, so a group is on one side of every split. Groups
are drawn at random until every class has training rows and test rows, or as many classes as the groups allow. For folds
they are divided by scikit-learn's StratifiedGroupKFold; few groups are left out one at a time. Equal rows can be kept
on one side too: then the different rows are divided, and equal ones follow.

All protocols are stratified. Random splits share rows, so their scores are not independent; `ratio` is the
n_test/n_train that the corrected tests of `discrim.evaluation.statistics` need. scikit-learn's random splits are not
used, because they may leave a small class without a test row and depend on the order of the class names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.model_selection import LeaveOneGroupOut, StratifiedGroupKFold

from discrim.tables.table_error import Advice, TableError

Indices = NDArray[np.intp]
Split = tuple[Indices, Indices]


@dataclass(frozen=True)
class Protocol:
    """Rule that divides labelled rows into training and test rows, `n_splits` times."""

    name: str
    n_splits: int

    def __post_init__(self) -> None:
        if self.n_splits < 1:
            raise ValueError(f"n_splits must be at least 1 for {self.name}; got {self.n_splits}.")

    def splits(self, y: ArrayLike, seed: int = 0) -> Iterator[Split]:
        """Return pairs (train, test) of ascending row numbers; raise at once if a class is too small."""
        codes, labels = codes_in_order(y)
        if len(labels) < 2:
            found = f"only the class {labels[0]!r}" if labels else "no rows"
            raise ValueError(f"y must have at least two classes for {self.name}; got {found}.")
        counts, least = np.bincount(codes), self._smallest_class()
        if counts.min() < least:
            label, count = labels[int(counts.argmin())], int(counts.min())
            raise TableError(
                f"Every class must have at least {least} rows for {self.name}; got {count} for {label!r}.",
                *self._remedies(count),
                Advice("leave out the rows of small classes", {"min_class_size": least}),
                "merge the class with another",
            )
        return self._splits_of_codes(codes, seed)

    def _splits_of_codes(self, codes: Indices, seed: int) -> Iterator[Split]:
        for trains in self._training_masks(codes, seed):
            yield np.flatnonzero(trains), np.flatnonzero(~trains)

    def ratio(self, y: ArrayLike) -> float:
        """Return n_test / n_train over all splits."""
        n_train, n_test = np.sum([(len(train), len(test)) for train, test in self.splits(y)], axis=0)
        return float(n_test / n_train)

    @property
    def size(self) -> int | None:
        """Return the parameter that the splits depend on; the number of random splits is not one."""
        return None

    def _smallest_class(self) -> int:
        """Return the smallest number of rows that a class may have."""
        return 2

    def _training_masks(self, codes: Indices, seed: int) -> Iterator[NDArray[np.bool_]]:
        """Return a mask of the training rows for each split."""
        raise NotImplementedError

    def _remedies(self, count: int) -> list[Advice]:
        return []


@dataclass(frozen=True)
class Holdout(Protocol):
    """Protocol in which a random share of each class tests and the rest trains."""

    test_share: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.test_share < 1:
            raise ValueError(f"test_share must be between 0 and 1 for {self.name}; got {self.test_share}.")

    def _training_masks(self, codes: Indices, seed: int) -> Iterator[NDArray[np.bool_]]:
        n_train = np.bincount(codes) - self._test_counts(np.bincount(codes))
        return _drawn_masks(codes, n_train, seed, self.n_splits)

    def _test_counts(self, counts: Indices) -> Indices:
        """Return test rows per class: nearest to the share, with the right total, and one row on each side."""
        wanted = self.test_share * counts
        n_test = np.floor(wanted).astype(np.intp)
        missing = int(np.rint(wanted.sum())) - int(n_test.sum())
        by_remainder = np.argsort(n_test - wanted, kind="stable")
        n_test[by_remainder[:missing]] += 1
        return np.clip(n_test, 1, counts - 1)


@dataclass(frozen=True)
class KFolds(Protocol):
    """Protocol in which each class is divided into `n_splits` folds; fold i tests in split i, or trains if inverted."""

    inverted: bool = False

    def __post_init__(self) -> None:
        if self.n_splits < 2:
            raise ValueError(f"n_splits must be at least 2 folds for {self.name}; got {self.n_splits}.")

    @property
    def size(self) -> int | None:
        return self.n_splits

    def _smallest_class(self) -> int:
        return self.n_splits

    def _remedies(self, count: int) -> list[Advice]:
        return [Advice("take fewer folds with", {"splits": count}, n_splits=count)] if count >= 2 else []

    def _training_masks(self, codes: Indices, seed: int) -> Iterator[NDArray[np.bool_]]:
        fold = self._fold_of_row(codes, seed)
        return ((fold == i) == self.inverted for i in range(self.n_splits))

    def _fold_of_row(self, codes: Indices, seed: int) -> Indices:
        # A class continues where the previous one stopped, so that the folds differ by one row at most.
        shuffled = np.random.default_rng(seed).permutation(len(codes))
        by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
        fold = np.empty(len(codes), dtype=np.intp)
        fold[by_class] = np.arange(len(codes)) % self.n_splits
        return fold


@dataclass(frozen=True)
class FewShot(Protocol):
    """Protocol in which `per_class` random rows of each class train and all other rows test."""

    per_class: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_class < 1:
            raise ValueError(f"per_class must be at least 1 for {self.name}; got {self.per_class}.")

    @property
    def size(self) -> int | None:
        return self.per_class

    def _smallest_class(self) -> int:
        return self.per_class + 1

    def _training_masks(self, codes: Indices, seed: int) -> Iterator[NDArray[np.bool_]]:
        n_train = np.full(codes.max() + 1, self.per_class)
        return _drawn_masks(codes, n_train, seed, self.n_splits)


PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        Holdout("holdout-80-20", 50, test_share=0.2),
        Holdout("holdout-50-50", 100, test_share=0.5),
        KFolds("kfold", 10),
        KFolds("inverted-kfold", 10, inverted=True),
        FewShot("few-shot", 20, per_class=2),
    )
}


def named_protocol(name: str, *, n_splits: int | None = None, per_class: int | None = None) -> Protocol:
    """Return the protocol of that name with its number of splits (folds) or training rows per class changed."""
    if name not in PROTOCOLS:
        raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}; got {name!r}.")
    protocol = PROTOCOLS[name]
    changes: dict[str, Any] = {} if n_splits is None else {"n_splits": n_splits}
    if per_class is not None:
        if not isinstance(protocol, FewShot):
            raise ValueError(f"per_class must not be set for {name}; got {per_class}. Leave it out, or use few-shot.")
        changes["per_class"] = per_class
    return type(protocol)(**{**vars(protocol), **changes})


def codes_in_order(y: ArrayLike) -> tuple[Indices, list[Hashable]]:
    """Return class numbers in order of first appearance, so that other names give the same splits."""
    values = np.asarray(y)
    if values.ndim != 1:
        raise ValueError(f"y must have one label per row; got shape {values.shape}.")
    number: dict[Hashable, int] = {}
    codes = np.fromiter(
        (number.setdefault(label, len(number)) for label in values.tolist()), np.intp, count=len(values)
    )
    return codes, list(number)


def _drawn_masks(codes: Indices, n_train: Indices, seed: int, n_splits: int) -> Iterator[NDArray[np.bool_]]:
    """Return masks with n_train[c] rows of each class c, drawn without replacement."""
    counts = np.bincount(codes)
    starts = np.cumsum(counts) - counts
    place_in_class = np.arange(len(codes)) - np.repeat(starts, counts)
    trains_at_place = place_in_class < np.repeat(n_train, counts)
    for i in range(n_splits):
        shuffled = np.random.default_rng((seed, i)).permutation(len(codes))
        by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
        mask = np.empty(len(codes), dtype=bool)
        mask[by_class] = trains_at_place
        yield mask


LEAVE_ONE_OUT = "leave-one-group-out"
FEW_GROUPS = 10  # up to this number, groups are left out one at a time
DRAWS = 200  # attempts to draw groups with every class on both sides


@dataclass(frozen=True)
class Grouped(Protocol):
    """Protocol that keeps rows of a group on one side of every split; `name` is the protocol for the groups."""

    groups: tuple[int, ...] = field(default=(), repr=False)
    test_share: float = 0.2

    @property
    def size(self) -> int | None:
        return None if self.name.startswith("holdout") else self.n_splits

    @property
    def digest(self) -> str:
        """Return a hash of the groups and how they are drawn; earlier versions drew other holdouts."""
        return digest_of((*self.groups, "drawn") if self.name.startswith("holdout") else self.groups)

    def _training_masks(self, codes: Indices, seed: int) -> Iterator[NDArray[np.bool_]]:
        groups = np.array(self.groups)
        held_by = [len(np.unique(groups[codes == code])) for code in range(codes.max() + 1)]
        if min(held_by) < 2:
            raise ValueError(
                f"Every class must be in at least two groups; {sum(held < 2 for held in held_by)} of {len(held_by)} "
                "classes are in one. Leave out the class, or split without groups."
            )
        holds = np.zeros((groups.max() + 1, len(held_by)), dtype=bool)  # which classes each group has
        holds[groups, codes] = True
        for in_test in self._tested_groups(holds, codes, groups, seed):
            if not holds[~in_test].any(axis=0).all():
                raise ValueError(
                    f"Every split of {self.name} must have training rows of every class; the groups do not allow it. "
                    "Use fewer splits, or leave out classes that few groups have."
                )
            yield ~in_test[groups]

    def _tested_groups(
        self, holds: NDArray[np.bool_], codes: Indices, groups: Indices, seed: int
    ) -> Iterator[NDArray[np.bool_]]:
        """Return which groups test, for each split."""
        if self.name.startswith("holdout"):
            yield from (self._drawn(holds, np.random.default_rng((seed, at))) for at in range(self.n_splits))
            return
        splitter: Any = LeaveOneGroupOut()
        if self.name == "kfold":
            splitter = StratifiedGroupKFold(self.n_splits, shuffle=True, random_state=seed)
        for _, test in splitter.split(codes, codes, groups):
            in_test = np.zeros(len(holds), dtype=bool)
            in_test[groups[test]] = True
            yield in_test

    def _drawn(self, holds: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.bool_]:
        """Draw test groups until every class is on both sides; else return the draw with most classes in the test."""
        n_test = int(np.clip(np.ceil(self.test_share * len(holds)), 1, len(holds) - 1))
        best, most = np.zeros(len(holds), dtype=bool), -1
        for _ in range(DRAWS):
            in_test = np.zeros(len(holds), dtype=bool)
            in_test[random.permutation(len(holds))[:n_test]] = True
            tested, trained = holds[in_test].any(axis=0).sum(), holds[~in_test].any(axis=0).sum()
            if trained == holds.shape[1] and tested > most:
                best, most = in_test, tested
            if most == holds.shape[1]:
                break
        return best if most >= 0 else in_test


def digest_of(values: Iterable[Any]) -> str:
    """Return the SHA-256 of plain values."""
    return hashlib.sha256(json.dumps(list(values)).encode()).hexdigest()


def grouped(protocol: Protocol, groups: ArrayLike) -> Grouped:
    """Return the protocol with whole groups on either side; few groups are left out one at a time.

    groups : label of the group of each row
    """
    codes, labels = codes_in_order(groups)
    if len(labels) < 3:
        raise ValueError(f"groups must be at least 3; got {len(labels)}.")
    if isinstance(protocol, FewShot) or protocol.name == "inverted-kfold":
        raise ValueError(f"protocol must be holdout-80-20, holdout-50-50 or kfold with groups; got {protocol.name}.")
    if len(labels) <= FEW_GROUPS or (isinstance(protocol, KFolds) and len(labels) <= protocol.n_splits):
        return Grouped(LEAVE_ONE_OUT, len(labels), tuple(codes.tolist()))
    share = protocol.test_share if isinstance(protocol, Holdout) else 1 / protocol.n_splits
    return Grouped(protocol.name, protocol.n_splits, tuple(codes.tolist()), share)


@dataclass(frozen=True)
class EqualTogether(Protocol):
    """Protocol that divides the different rows by another protocol; equal rows are on one side of every split.

    base : the other protocol
    equal : a number for each row, the same for equal rows
    """

    base: Protocol = field(default=PROTOCOLS["kfold"])
    equal: tuple[int, ...] = field(default=(), repr=False)

    @property
    def size(self) -> int | None:
        return self.base.size

    def splits(self, y: ArrayLike, seed: int = 0) -> Iterator[Split]:
        codes, labels = codes_in_order(y)
        _, first, member = np.unique(np.array(self.equal), return_index=True, return_inverse=True)
        order = np.argsort(first)  # the different rows in the order of the table
        place = np.argsort(order)[member]
        try:
            return self._extended(self.base.splits([labels[code] for code in codes[first[order]]], seed), place)
        except TableError as error:
            apart = Advice("divide equal rows like others with", equal_rows="apart")
            raise TableError(f"{error.fact} Equal rows count once.", *error.advice, apart) from None

    def _extended(self, splits: Iterator[Split], place: Indices) -> Iterator[Split]:
        for train, _ in splits:
            trains = np.isin(place, train)
            yield np.flatnonzero(trains), np.flatnonzero(~trains)


def numbered_rows(X: Any) -> Indices | None:
    """Return numbers of the different rows of a table; None if all are different or the table is sparse."""
    if issparse(X):
        return None
    rows = np.ascontiguousarray(X) + 0.0  # so that -0.0 and 0.0 are equal
    texts = rows.view(f"V{rows.dtype.itemsize * rows.shape[1]}").ravel()
    different, numbers = np.unique(texts, return_inverse=True)
    return None if len(different) == len(rows) else numbers.astype(np.intp)


def equal_together(protocol: Protocol, equal: ArrayLike) -> EqualTogether:
    """Keep equal rows on one side of every split."""
    numbers = tuple(np.asarray(equal).tolist())
    return EqualTogether(protocol.name, protocol.n_splits, protocol, numbers)


def protocol_of(
    name: str, size: int | None, n_splits: int = 1, groups: ArrayLike | None = None, equal: ArrayLike | None = None
) -> Protocol:
    """Return the protocol that a trial names, with `n_splits` splits if these are random."""
    if equal is not None:
        return equal_together(protocol_of(name, size, n_splits), equal)
    if name == LEAVE_ONE_OUT:
        assert groups is not None
        return Grouped(LEAVE_ONE_OUT, len(codes_in_order(groups)[1]), tuple(codes_in_order(groups)[0].tolist()))
    folds = "kfold" in name
    protocol = named_protocol(name, n_splits=size if folds else n_splits, per_class=None if folds else size)
    return protocol if groups is None else grouped(protocol, groups)
