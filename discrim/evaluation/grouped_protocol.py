"""Protocols for rows in groups: patients, batches, replicates.

Rows of one group are not independent, so a group is on one side of every split. Groups are drawn or dealt out by
scikit-learn's splitters, or left out one at a time where they are few; every class keeps training rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupShuffleSplit, LeaveOneGroupOut, StratifiedGroupKFold

from discrim.evaluation.protocol import FewShot, Folds, Holdout, Indices, Protocol, Split, class_codes, named_protocol

LEAVE_ONE_OUT = "leave-one-group-out"
FEW_GROUPS = 10  # up to so many are left out one at a time


@dataclass(frozen=True)
class Grouped(Protocol):
    """Rows of a group are on one side of every split; `name` is the protocol that the groups are divided by."""

    groups: tuple[int, ...] = field(default=(), repr=False)
    test_share: float = 0.2

    @property
    def size(self) -> int | None:
        return None if self.name.startswith("holdout") else self.n_splits

    def _smallest_class(self) -> int:
        return 2

    def _training_masks(self, codes: Indices, seed: int) -> Iterator[NDArray[np.bool_]]:
        groups = np.array(self.groups)
        held_by = [len(np.unique(groups[codes == code])) for code in range(codes.max() + 1)]
        if min(held_by) < 2:
            raise ValueError(
                f"{sum(held < 2 for held in held_by)} of {len(held_by)} classes are in one group only: where it tests, "
                "no row of the class trains. Leave the class out, or split without groups."
            )
        drawn = 0
        for train, _ in self._group_splits(codes, groups, seed):
            mask = np.zeros(len(codes), dtype=bool)
            mask[train] = True
            if len(np.unique(codes[mask])) == len(held_by):
                drawn += 1
                yield mask
            if drawn == self.n_splits:
                return
        raise ValueError(
            f"{self.name} with groups: only {drawn} of {self.n_splits} splits have training rows of every class. "
            "Ask for fewer splits, or leave out classes that few groups have."
        )

    def _group_splits(self, codes: Indices, groups: Indices, seed: int) -> Iterator[Split]:
        if self.name == LEAVE_ONE_OUT:
            splitter: Any = LeaveOneGroupOut()
        elif self.name == "kfold":
            splitter = StratifiedGroupKFold(self.n_splits, shuffle=True, random_state=seed)
        else:  # more than are needed, since some may leave a class without training rows, also where few are wanted
            splitter = GroupShuffleSplit(100 + 4 * self.n_splits, test_size=self.test_share, random_state=seed)
        return splitter.split(codes, codes, groups)

    def _ratio_of_counts(self, counts: Indices) -> float:
        share = self.test_share if self.name.startswith("holdout") else 1 / self.n_splits
        return share / (1 - share)


def grouped(protocol: Protocol, groups: ArrayLike) -> Grouped:
    """The protocol with whole groups on either side; few groups are left out one at a time.

    groups : the group of each row, by any label
    """
    codes, labels = class_codes(groups)
    if len(labels) < 3:
        raise ValueError(f"There are {len(labels)} groups. Splitting by groups takes at least 3.")
    if isinstance(protocol, FewShot) or protocol.name == "inverted-kfold":
        raise ValueError(f"{protocol.name} cannot keep groups together. Take holdout-80-20, holdout-50-50 or kfold.")
    if len(labels) <= FEW_GROUPS or (isinstance(protocol, Folds) and len(labels) <= protocol.n_splits):
        return Grouped(LEAVE_ONE_OUT, len(labels), tuple(codes.tolist()))
    share = protocol.test_share if isinstance(protocol, Holdout) else 1 / protocol.n_splits
    return Grouped(protocol.name, protocol.n_splits, tuple(codes.tolist()), share)


def protocol_of(name: str, size: int | None, n_splits: int = 1, groups: ArrayLike | None = None) -> Protocol:
    """The protocol that a trial names, with so many splits where these are drawn at random."""
    if name == LEAVE_ONE_OUT:
        assert groups is not None
        return Grouped(LEAVE_ONE_OUT, len(class_codes(groups)[1]), tuple(class_codes(groups)[0].tolist()))
    folds = "kfold" in name
    protocol = named_protocol(name, n_splits=size if folds else n_splits, per_class=None if folds else size)
    return protocol if groups is None else grouped(protocol, groups)
