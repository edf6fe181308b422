"""The way down the Crammer–Singer dual: sweeps, walks on the face, and looks at everything in between.

A round opens the rows and classes that matter, sweeps over them until the gap met on the way is a tenth of what it
was (or small enough), and then looks at all rows again, which gives the exact primal objective and duality gap.
Between sweeps a walk on the face is tried now and then; how often depends on which of the two gains more of the
dual for its work.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discrim.margins.crammer_singer_kernels import Active, Problem, Room, Weights, collect, screen, sweep
from discrim.margins.crammer_singer_walk import SEARCH_PASSES, walk_face
from discrim.margins.identical_rows import Groups
from discrim.margins.row_kernels import Table, row_square

Floats = NDArray[np.float64]

ROUND_FACTOR = 0.1  # of the gap, after which all rows are looked at again
ROUND_SWEEPS = 400  # or after so many sweeps, lest what was left out goes unseen for long
SWEEP_MARGIN = 0.9  # a sweep meets each row before improving it, so the gap it reports is a little too large
FIRST_WAIT, SHORTEST_WAIT, LONGEST_WAIT = 30, 3, 100  # sweeps between two walks on the face
FIRST_WALK, SHORTEST_WALK, LONGEST_WALK = 16, 8, 500  # passes of one walk


class State(NamedTuple):
    """Where the descent stands: both objectives, and their difference summed row by row without cancellation."""

    primal: float
    dual: float
    gap: float

    def is_within(self, tol: float) -> bool:
        return self.gap <= tol * self.primal


class Centring(NamedTuple):
    """x̃ = (x − offset)/scale, with a constant 1 behind it where there is an intercept."""

    offset: Floats | None
    scale: float
    intercept: bool


def problem_of(
    table: Table, X: Any, codes: NDArray[np.intp], bound: Floats, rows: NDArray[np.intp], centring: Centring
) -> Problem:
    """What the kernels need of each row. X is the table itself, for one product with the offset."""
    unit = 1.0 / centring.scale**2
    square, along = np.zeros(len(codes)), np.zeros(len(codes))
    _row_squares(table.values, table.indptr, table.n_features, rows, square)
    offset_square = 0.0
    if centring.offset is not None:
        along = np.asarray(X @ centring.offset, dtype=np.float64)
        offset_square = float(centring.offset @ centring.offset)
    square = np.maximum(unit * (square - 2 * along + offset_square), 0.0) + centring.intercept
    constant = unit * offset_square + centring.intercept
    return Problem(table.values, table.indices, table.indptr, codes, bound, square, along, unit, constant)


@njit(cache=True)
def _row_squares(values, indptr, width, rows, out):  # type: ignore[no-untyped-def]
    for i in rows:
        out[i] = row_square(values, indptr, i, width)


class Descent:
    """The duals `A` and their weights on the way down."""

    def __init__(self, problem: Problem, table: Table, rows: NDArray[np.intp], n_classes: int, seed: int) -> None:
        n_rows = len(problem.codes)
        self.problem, self.table, self.rows, self.n_classes = problem, table, rows, n_classes
        self.A = np.zeros((n_rows, n_classes))
        self.weights = self._no_weights()
        self.active = Active(
            np.empty(n_rows * n_classes, np.uint32), np.empty(n_rows, np.intp), np.empty(len(rows), np.intp)
        )
        width = self.weights.table.shape[1] if table.is_sparse else 1
        everyone = np.arange(n_classes, dtype=np.uint32)
        self.room = Room(np.empty(n_classes), np.empty(n_classes), np.empty(n_classes), np.empty(width), everyone)
        self.seed = np.array([seed], dtype=np.uint64)
        self.n_open = 0
        self.passes = 0
        self._warm = False
        self._image: Weights | None = None  # room for a walk, made when first needed
        self._clearing = self.weights.table.size * n_rows / max(len(table.values), 1)  # in products with a row
        self._wait, self._since, self._walk = FIRST_WAIT, 0, FIRST_WALK
        self._place_zero_rows()

    def start_from(self, A: Floats) -> None:
        """Take feasible duals of the different rows as the start."""
        self.A[self.rows] = A
        self._place_zero_rows()
        self.collect()
        self._warm = True

    def _place_zero_rows(self) -> None:
        """A row x̃ = 0 has the same loss under any weights: α = C_n, shared evenly, once and for all."""
        zero = self.rows[self.problem.square[self.rows] == 0]
        bound = self.problem.bound[zero, None]
        self.A[zero] = -bound / (self.n_classes - 1)
        self.A[zero, self.problem.codes[zero]] = bound[:, 0]

    def _no_weights(self) -> Weights:
        return Weights(self.table.zero_weights(self.n_classes), np.zeros(self.n_classes), np.zeros(self.n_classes))

    def collect(self) -> None:
        """Weights from the duals, from scratch."""
        collect(self.problem, self.weights, self.A, self.rows, self.room)

    def look(self) -> State:
        """Both objectives over all rows; opens the rows and classes that matter."""
        self.n_open, hinge, total, gap = screen(self.problem, self.weights, self.A, self.rows, self.active, self.room)
        half = 0.5 * self._square()
        return State(half + hinge, total - half, gap)

    def _square(self) -> float:
        """‖η‖² with the intercepts."""
        table, totals, offset = self.weights
        plain = float(np.vdot(table, table)) - 2 * float(totals @ offset)
        return self.problem.unit * plain + self.problem.constant * float(totals @ totals)

    def _look_at_start(self) -> State:
        """The same where all weights are 0, without a pass: every row has loss 1, every class matters."""
        n_rows, C_total = len(self.problem.codes), float(self.problem.bound[self.rows].sum())
        moving = self.rows[self.problem.square[self.rows] > 0]
        self.n_open = len(moving)
        self.active.order[: self.n_open] = moving
        self.active.counts[:] = self.n_classes
        self.active.classes[:] = np.tile(self.room.everyone, n_rows)
        dual = float(self.A[self.rows, self.problem.codes[self.rows]].sum())
        return State(C_total, dual, C_total - dual)

    def run(self, tol: float, max_iter: int) -> State:
        """Rounds until the relative gap is at most tol, with weights made anew, or max_iter passes are spent."""
        state = self.look() if self._warm else self._look_at_start()
        anew = self._warm
        while not (anew and state.is_within(tol)) and not (anew and self.passes >= max_iter):
            enough, less = SWEEP_MARGIN * tol * state.primal, ROUND_FACTOR * state.gap
            if not state.is_within(tol):
                self._round(max(enough, less), max_iter)
            anew = enough >= less or self.passes >= max_iter
            if anew:  # free of what rounding has added up on the way, and where a warm start would find them
                self.A[self.rows] = _on_grid(
                    self.A[self.rows], self.problem.codes[self.rows], self.problem.bound[self.rows]
                )
                self.collect()
            state = self.look()
        return state

    def _round(self, goal: float, max_iter: int) -> None:
        """Sweeps and walks until the gap met on the way is down to the goal, or it is time to look again."""
        last = min(self.passes + ROUND_SWEEPS, max_iter)
        while self.passes < last:
            self.n_open, gap, gain, work = sweep(
                self.problem, self.weights, self.A, self.active, self.n_open, self.seed, self.room
            )
            self.passes += 1
            self._since += 1
            if gap <= goal or self.n_open == 0:
                return
            if self._since >= self._wait:
                self._walk_face(gain / work, max_iter)
        self.collect()  # after many sweeps, what rounding has added to the weights may show in the gap

    def _walk_face(self, sweep_rate: float, max_iter: int) -> None:
        """A walk on the face; longer and sooner again if it gained more for its work than the last sweep did."""
        most = min(self._walk, max_iter - self.passes - SEARCH_PASSES)
        if most < 1:
            return
        if self._image is None:
            self._image = self._no_weights()
        passes, gain, work = walk_face(self.problem, self.weights, self.A, self.rows, most, self._image, self.room)
        self.passes += passes
        if gain > sweep_rate * (work + passes * self._clearing):
            self._wait, self._walk = max(self._wait // 2, SHORTEST_WAIT), min(self._walk * 2, LONGEST_WALK)
        else:
            self._wait, self._walk = min(self._wait * 2, LONGEST_WAIT), max(self._walk // 2, SHORTEST_WALK)
        self._since = 0


def shared_duals(A: Floats, groups: Groups, codes: NDArray[np.intp], bound: Floats, group_bound: Floats) -> Floats:
    """Duals of all rows from those of the different ones, in proportion to their C_n."""
    first = groups.first[groups.group]
    share = np.divide(bound, group_bound[first], out=np.zeros_like(bound), where=bound > 0)
    return _on_grid(A[first] * share[:, None], codes, bound)


def _on_grid(A: Floats, codes: NDArray[np.intp], bound: Floats) -> Floats:
    """Duals rounded to multiples of twice the last digit of their sum Σ α_n.

    Such multiples add up without rounding, in any order, as long as the result is at most twice that sum: so each row
    sums to 0 exactly, and A[n, y_n] ≤ C_n, A[n, y] ≤ 0 hold exactly. Rows within rounding of C_n are put there.
    """
    rows = np.arange(len(codes))
    total = np.minimum(A[rows, codes], bound)
    full = np.flatnonzero((bound > 0) & (total >= bound * (1 - 1e-14)))
    total[full] = bound[full]
    grid = np.where(total > 0, 2 * np.spacing(total), 1.0)[:, None]
    alpha = -A
    alpha[rows, codes] = 0.0
    alpha = np.floor(alpha / grid) * grid
    largest = alpha[full].argmax(axis=1)
    alpha[full, largest] = 0.0
    alpha[full, largest] = bound[full] - alpha[full].sum(axis=1)
    dual = -alpha
    dual[rows, codes] = alpha.sum(axis=1)
    return dual + 0.0  # no −0
