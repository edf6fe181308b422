"""The way down the Crammer–Singer dual: sweeps, walks on the face, and looks at everything in between.

With x̃ = (x − μ)/s and a constant 1 behind it for the intercept, the weights are η = Aᵀx̃, and a row's gradient is

    G_y = η_y·x̃_n + 1[y ≠ y_n],   η_y·x̃_n = (V_y·x_n − m_y − a_y μ·x_n)/s² + a_y (1 + ‖μ‖²/s²)

with V = AᵀX, a = Aᵀ1, m = Vμ, so that a centred sparse table is never formed. Its part of the duality gap is ≥ 0,

    gap_n = Σ_{y≠y_n} α_n^y (top − G_y) + (C_n − Σα_n)(top − G_{y_n}),   top = max_y G_y

A round opens the rows and classes that matter, sweeps over them (`compiled.sweep`) until the gap met on the way is a
tenth of what it was, and then looks at all rows again, which gives the exact primal objective and duality gap. Classes
whose α is 0 and whose G is below that of every class that can rise are left out of a row until then; rows that lie in a
corner of their simplex with nothing pulling them out of it are left out of the sweep.

Sweeps find out soon which duals are zero or at their bound, but then creep where rows are nearly dependent. With those
held, the others lie on a face of the feasible set, where the dual is a plain quadratic, and conjugate gradients walk it
up in far fewer passes: two or three where the face has few dimensions, since its curvature is then factorised to scale
them; scaled by 1/‖x̃_n‖² otherwise. They stop as soon as their path leaves the feasible set in more than a few places.
Then every row follows the walk until it meets a bound, and all of them until the dual is largest. More free duals than
there are dimensions leave directions in which the dual is linear: along these the same search runs into bounds, one row
after the other, until the free duals are few enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack

from discrim.tables.rows import entries_once

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

BLOCK = 2**16  # numbers of the table that are looked at together
LINE = 8  # numbers in a cache line
LANES = 4  # sparse weights are padded to whole vectors
ROUND_FACTOR = 0.1  # of the gap, after which all rows are looked at again
ROUND_SWEEPS = 400  # or after so many sweeps, lest what was left out goes unseen for long
SWEEP_MARGIN = 0.9  # a sweep meets each row before improving it, so the gap it reports is a little too large
FIRST_WAIT, SHORTEST_WAIT, LONGEST_WAIT = 60, 3, 100  # sweeps between two walks on the face
WALK = 60  # passes of one walk
DIRECT = 2000  # dimensions of a face up to which its curvature is factorised
RIDGE = 1e-6  # of that curvature, relative: more free duals than dimensions leave it singular
OUTSIDE = 0.1  # share of free duals that may leave the feasible set before a walk stops
REDUCTION = 0.01  # of the squared gradient at which the face counts as solved


class Table(NamedTuple):
    """X, C-contiguous or canonical CSR, float64 or float32, and as flat arrays for the compiled sweep."""

    X: Any
    values: NDArray[Any]
    indices: NDArray[np.uint32] | None
    indptr: NDArray[np.int64] | None

    @classmethod
    def of(cls, X: Any) -> Table:
        """Compute X without a copy where it is so already; converted once otherwise."""
        dtype = X.dtype if X.dtype in (np.float64, np.float32) else np.float64
        if not sp.issparse(X):
            X = np.ascontiguousarray(X, dtype=dtype)
            return cls(X, _read_only(X.reshape(-1)), None, None)
        X = entries_once(X).astype(dtype, copy=False)
        indices = X.indices.astype(np.int32, copy=False).view(np.uint32)
        return cls(X, _read_only(X.data), _read_only(indices), _read_only(X.indptr.astype(np.int64)))

    @property
    def is_sparse(self) -> bool:
        return self.indices is not None

    @property
    def width(self) -> int:
        """Numbers in a row, in the mean."""
        return max(1, self.X.nnz // max(1, self.X.shape[0]) if self.is_sparse else self.X.shape[1])

    def parts(self, rows: Ints) -> list[slice]:
        """Return slices of a list of rows that are looked at together: the same wherever X lists them."""
        step = max(1, BLOCK // self.width)
        return [slice(start, start + step) for start in range(0, len(rows), step)]

    def no_weights(self, n_classes: int) -> Floats:
        if self.is_sparse:
            return _lined_up(self.X.shape[1], -(-n_classes // LANES) * LANES)
        return np.zeros((n_classes, self.X.shape[1]))

    def class_major(self, weights: Floats, n_classes: int) -> Floats:
        """Return weights as (classes × features)."""
        return weights[:, :n_classes].T if self.is_sparse else weights

    def products(self, rows: Ints, weights: Floats, n_classes: int) -> Floats:
        """Compute x_i·V_y for all classes."""
        by_feature = self.class_major(weights, n_classes).T
        out = np.empty((len(rows), n_classes))
        for part in self.parts(rows):
            out[part] = self.X[rows[part]] @ by_feature
        return out

    def combined(self, rows: Ints, steps: Floats, out: Floats) -> None:
        """Compute Σ_i steps_iᵀx_i."""
        out[:] = 0.0
        if self.is_sparse:
            from discrim.core.svm.compiled import add_rows  # loads numba, which `import discrim` must not

            add_rows(self.values, self.indices, self.indptr, rows, steps, out)
            return
        for part in self.parts(rows):
            out += steps[part].T @ self.X[rows[part]]


def _lined_up(n_rows: int, n_columns: int) -> Floats:
    """Return zeros that begin with a cache line, so that a row touches no more of these than it fills."""
    room = np.zeros(n_rows * n_columns + LINE)
    start = -room.ctypes.data // room.itemsize % LINE
    return room[start : start + n_rows * n_columns].reshape(n_rows, n_columns)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: one type, and so one compilation, for writable and read-only input."""
    view = array.view()
    view.flags.writeable = False
    return view


class DualProblem(NamedTuple):
    """The different rows that take part, and what the subproblem of each needs to know."""

    table: Table
    rows: Ints  # of the table
    codes: Ints
    bound: Floats  # C_n
    square: Floats  # ‖x̃_n‖², with the 1 of the intercept
    along: Floats  # μ·x_n
    scale: float
    unit: float  # 1/s²
    constant: float  # ‖μ‖²/s², plus 1 where there is an intercept
    intercept: bool

    @classmethod
    def of(
        cls, table: Table, rows: Ints, codes: Ints, bound: Floats, mu: Floats | None, scale: float, intercept: bool
    ) -> DualProblem:
        square, along = np.empty(len(rows)), np.zeros(len(rows))
        with np.errstate(over="ignore", invalid="ignore"):  # told to the user by name
            for part in table.parts(rows):
                X = table.X[rows[part]].astype(np.float64)
                square[part] = (
                    np.asarray(X.multiply(X).sum(axis=1)).ravel() if table.is_sparse else np.einsum("ij,ij->i", X, X)
                )
        mu_square = 0.0
        if mu is not None:
            along = np.asarray(table.X @ mu, dtype=np.float64)[rows]
            mu_square = float(mu @ mu)
        unit = 1.0 / scale**2
        square = np.maximum(unit * (square - 2 * along + mu_square), 0.0) + intercept
        constant = unit * mu_square + intercept
        return cls(table, rows, codes, bound, square, along, float(scale), unit, constant, intercept)

    def part(self, chosen: Ints) -> DualProblem:
        names = ("rows", "codes", "bound", "square", "along")
        return self._replace(**{name: getattr(self, name)[chosen] for name in names})

    def gram(self) -> Floats:
        """Compute x̃_i·x̃_j, with the 1 of the intercept."""
        X = self.table.X[self.rows].astype(np.float64, copy=False)
        products = (X @ X.T).toarray() if self.table.is_sparse else X @ X.T
        products -= self.along
        products -= self.along[:, None]
        products *= self.unit
        products += self.constant
        return products


class Weights(NamedTuple):
    """Σ A x, Σ A and (Σ A x)·μ of each class."""

    table: Floats
    totals: Floats
    offset: Floats

    @classmethod
    def none(cls, table: Table, n_classes: int) -> Weights:
        return cls(table.no_weights(n_classes), np.zeros(n_classes), np.zeros(n_classes))

    def become(self, problem: DualProblem, steps: Floats) -> None:
        """Return what these steps of the rows add up to."""
        problem.table.combined(problem.rows, steps, self.table)
        self.totals[:] = steps.sum(axis=0)
        self.offset[:] = problem.along @ steps

    def scores(self, problem: DualProblem) -> Floats:
        """Compute η_y·x̃_n of all rows and classes."""
        products = problem.table.products(problem.rows, self.table, len(self.totals))
        constants = problem.constant - problem.unit * problem.along
        return problem.unit * (products - self.offset) + constants[:, None] * self.totals


class State(NamedTuple):
    """Where the descent stands: both objectives, and their difference summed row by row without cancellation."""

    primal: float
    dual: float
    gap: float

    def is_within(self, tol: float) -> bool:
        return self.gap <= tol * self.primal


class Descent:
    """The duals `A` of the different rows and their weights on the way down."""

    def __init__(self, problem: DualProblem, n_classes: int, seed: int) -> None:
        n_rows = len(problem.rows)
        self.problem, self.n_classes = problem, n_classes
        self.own = np.arange(n_rows), problem.codes
        self.A = np.zeros((n_rows, n_classes))
        self.upper = np.zeros((n_rows, n_classes))
        self.upper[self.own] = problem.bound
        self.weights = Weights.none(problem.table, n_classes)
        self.classes = np.tile(np.arange(n_classes, dtype=np.uint32), n_rows)  # of each row, those that matter first
        self.counts = np.full(n_rows, n_classes)
        not_zero = np.flatnonzero(problem.square > 0)
        self.order = not_zero.copy()
        self.as_listed = not_zero[np.argsort(problem.rows[not_zero])]
        self.gaps = np.array([np.zeros(n_rows), np.where(problem.square > 0, 0.0, problem.bound)])
        self.room = np.empty((4, -(-n_classes // LANES) * LANES))
        self.n_open = len(self.order)
        self.seed = np.array([seed], dtype=np.uint64)
        self.passes = 0
        self._warm = False
        self._wait, self._since = FIRST_WAIT, 0
        self._place_zero_rows()

    def start_from(self, A: Floats) -> None:
        """Take feasible duals as the start."""
        self.A[:] = A
        self._place_zero_rows()
        self.weights.become(self.problem, self.A)
        self._warm = True

    def _place_zero_rows(self) -> None:
        """Return a row x̃ = 0 has the same loss under any weights: α = C_n, shared evenly, once and for all."""
        zero = np.flatnonzero(self.problem.square == 0)
        self.A[zero] = -self.problem.bound[zero, None] / (self.n_classes - 1)
        self.A[zero, self.problem.codes[zero]] = self.problem.bound[zero]

    def run(self, tol: float, max_iter: int) -> State:
        """Return rounds until the relative gap is at most tol, with weights made anew, or max_iter passes are spent."""
        state = self.look() if self._warm else self._look_at_start()
        anew = self._warm
        while not (anew and state.is_within(tol)) and not (anew and self.passes >= max_iter):
            enough, less = SWEEP_MARGIN * tol * state.primal, ROUND_FACTOR * state.gap
            if not state.is_within(tol):
                self._round(max(enough, less), max_iter)
            anew = enough >= less or self.passes >= max_iter
            if anew:  # free of what rounding has added up on the way, and where a warm start would find them
                self.A[:] = on_grid(self.A, self.problem.codes, self.problem.bound)
                self.weights.become(self.problem, self.A)
            state = self.look()
        return state

    def _look_at_start(self) -> State:
        """Where all weights are 0: every row has loss 1, every class matters."""
        C_total, dual = float(self.problem.bound.sum()), float(self.A[self.own].sum())
        return State(C_total, dual, C_total - dual)

    def look(self) -> State:
        """Return both objectives over all rows; opens the rows and classes that matter."""
        self.counts[:] = self.n_classes
        self.order[:] = self.as_listed
        self.n_open = len(self.order)
        self._swept(np.inf, 0)
        self.order[: self.n_open].sort()
        total, half = float(self.A[self.own].sum()), 0.5 * self._square()
        gap, loss = self.gaps.sum(axis=1)
        return State(half + loss, total - half, gap)

    def _swept(self, goal: float, most: int) -> tuple[float, float, int, int]:
        """Sweeps over the open rows, or with most = 0 a look at them: gap, gain and products of the last; how many."""
        from discrim.core.svm.compiled import sweep  # loads numba, which `import discrim` must not

        p, t = self.problem, self.problem.table
        known = (t.values, t.indices, t.indptr, p.rows, p.codes, p.bound, p.square, p.along, p.unit, p.constant)
        changed = (*self.weights, self.A, self.classes, self.counts, self.order)
        self.n_open, *found = sweep(*known, *changed, self.n_open, self.seed, self.room, self.gaps, goal, most)
        return found

    def _square(self) -> float:
        """Compute ‖η‖² with the intercepts."""
        table, totals, offset = self.weights
        plain = float(np.vdot(table, table)) - 2 * float(totals @ offset)
        return self.problem.unit * plain + self.problem.constant * float(totals @ totals)

    def _round(self, goal: float, max_iter: int) -> None:
        """Return sweeps and walks until the gap met on the way is down to the goal, or it is time to look again."""
        last = min(self.passes + ROUND_SWEEPS, max_iter)
        while self.passes < last:
            most = min(last - self.passes, self._wait - self._since)
            gap, gain, work, done = self._swept(goal, most)
            self.passes += done
            self._since += done
            if gap <= goal or self.n_open == 0:
                return
            if self._since >= self._wait:
                self._walk_face(gain / work, max_iter)
        self.weights.become(
            self.problem, self.A
        )  # after many sweeps, what rounding has added to the weights may show in the gap

    def _walk_face(self, sweep_rate: float, max_iter: int) -> None:
        """Return a walk on the face; sooner again if it gained more for its work than the last sweep did."""
        free = (self.upper > self.A) & ((self.A[self.own] > 0) & (self.problem.square > 0))[:, None]
        rows = np.flatnonzero(free.sum(axis=1) >= 2)
        to_end = 3 + 2 * len(rows).bit_length()  # passes that the search along the walk takes at most
        most = min(WALK, max_iter - self.passes - to_end)
        if most < 1:
            return
        gain, work = 0.0, 0.0
        if len(rows):
            face = Face(self.problem.part(rows), free[rows], self.A[rows], self.upper[rows], self.weights)
            face.walk(most)
            gain, work = face.step(), face.work
            self.A[rows] = face.A
            self.passes += face.passes
        worth_it = gain > sweep_rate * work
        self._wait = max(self._wait // 2, SHORTEST_WAIT) if worth_it else min(self._wait * 2, LONGEST_WAIT)
        self._since = 0

    def weights_and_intercepts(self, mu: Floats | None) -> tuple[Floats, Floats]:
        """Compute η and the intercepts."""
        coef = self.problem.table.class_major(self.weights.table, self.n_classes).copy()
        totals = self.weights.totals.copy()
        if mu is not None:
            coef -= np.outer(totals, mu)
        return coef / self.problem.scale, totals if self.problem.intercept else np.zeros_like(totals)


class Face:
    """Rows with two or more free duals, which move while those of each row sum to the same."""

    def __init__(
        self, problem: DualProblem, free: NDArray[np.bool_], A: Floats, upper: Floats, weights: Weights
    ) -> None:
        self.problem, self.free, self.A, self.upper, self.weights = problem, free, A, upper, weights
        self.shares = free / free.sum(axis=1)[:, None]
        self.image = Weights.none(problem.table, A.shape[1])
        self.differences = Differences.of(free)
        self.gram = problem.gram() if len(self.differences.row) <= DIRECT else None
        loss = np.ones_like(A)
        loss[np.arange(len(A)), problem.codes] = 0.0
        self.gradient = self._centred(weights.scores(problem) + loss)
        self.way = np.zeros_like(A)
        self.passes = 0

    def _centred(self, gradient: Floats) -> Floats:
        """By the free duals, its mean taken off in each row."""
        return self.free * (gradient - np.einsum("ny,ny->n", self.shares, gradient)[:, None])

    def _curved(self, steps: Floats) -> Floats:
        """Return what steps add to the gradient. (Products with it are squares without large differences.)"""
        self.passes += 1
        if self.gram is not None:
            return self._centred(self.gram @ steps)
        self.image.become(self.problem, steps)
        return self._centred(self.image.scores(self.problem))

    def _scaling(self) -> Callable[[Floats], Floats]:
        """Return an inverse of the curvature: nearly exact on a small face, of its diagonal on a large one."""
        nearly_exact = None if self.gram is None else self.differences.inverse(self.gram)
        return nearly_exact or (lambda residual: residual / self.problem.square[:, None])

    @property
    def work(self) -> float:
        """In the time of a product of a row and a class's weights; a factorisation does twenty times as much in it."""
        solving = 0.0 if self.gram is None else len(self.differences.row) ** 3 / (60 * self.problem.table.width)
        return 2 * self.passes * int(self.free.sum()) + solving

    def walk(self, most: int) -> None:
        """Return conjugate gradients towards the optimum of the face, bounds ignored."""
        scaled = self._scaling()
        residual = -self.gradient
        direction = scaled(residual)
        size = float(np.vdot(direction, residual))
        goal, room = REDUCTION * size, self.upper - self.A
        while self.passes < most and size > goal:
            curved = self._curved(direction)
            curvature = float(np.vdot(direction, curved))
            if curvature <= 0.0:
                break
            self.way += (size / curvature) * direction
            residual -= (size / curvature) * curved
            if np.count_nonzero(self.way > room) > OUTSIDE * np.count_nonzero(self.free):
                break
            onward = scaled(residual)
            size, before = float(np.vdot(onward, residual)), size
            direction = onward + (size / before) * direction

    def step(self) -> float:
        """Return follow the way, each row up to its bounds, as far as the dual rises; the gain."""
        steps = self._steps()
        square, slope = float(np.vdot(steps, self._curved(steps))), float(np.vdot(self.gradient, steps))
        if slope >= 0.0:
            return 0.0
        length = 1.0 if -slope >= square * (1 - 1e-6) else -slope / square
        self.A = np.minimum(self.A + length * steps, self.upper)
        self.image.become(self.problem, steps)
        for target, source in zip(self.weights, self.image, strict=True):
            target += length * source
        return -length * slope - 0.5 * length**2 * square

    def _steps(self) -> Floats:
        """Return the way up to where the dual is largest, rows that meet a bound before that stopping there.

        Between two such stops the dual is a quadratic in the share of the way. Its slope where the rows stop is looked
        at by bisection.
        """
        room = self.upper - self.A
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = np.where(self.way > 0.0, room / self.way, np.inf).min(axis=1)
        stops = np.concatenate([[0.0], np.unique(limits[limits < 1.0]), [1.0]])
        low, high = 0, len(stops) - 1  # the dual still rises at stops[low]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._slope_at(stops[middle], limits) < 0.0 else (low, middle)
        share, moving = stops[low], np.where(limits[:, None] > stops[low], self.way, 0.0)
        curvature, slope = float(np.vdot(moving, self._curved(moving))), self._slope_at(stops[low], limits)
        if slope < 0.0:
            share = min(stops[high], share - slope / curvature) if curvature > 0.0 else stops[high]
        steps = np.minimum(share, limits)[:, None] * self.way
        return np.where(steps >= room * (1 - 1e-12), room, steps)

    def _slope_at(self, share: float, limits: Floats) -> float:
        """Of minus the dual along the way, by the rows that still move there."""
        gradient = self.gradient
        if share > 0.0:
            gradient = gradient + self._curved(np.minimum(share, limits)[:, None] * self.way)
        return float(np.vdot(gradient[limits > share], self.way[limits > share]))


class Differences(NamedTuple):
    """Coordinates of a face: of each row the free duals but the first, which moves against them."""

    row: Ints
    y: Ints
    first: Ints
    shape: tuple[int, int]

    @classmethod
    def of(cls, free: NDArray[np.bool_]) -> Differences:
        first = free.argmax(axis=1)
        others = free.copy()
        others[np.arange(len(free)), first] = False
        row, y = np.nonzero(others)
        return cls(row, y, first[row], (len(free), free.shape[1]))

    def inverse(self, gram: Floats) -> Callable[[Floats], Floats] | None:
        """Of the curvature, which is the rows' Gram matrix for every class, with a ridge that makes it definite.

        None if rounding leaves it indefinite all the same.
        """
        count = np.arange(len(self.row))
        moves = np.zeros((len(self.row), self.shape[1]))
        moves[count, self.y], moves[count, self.first] = 1.0, -1.0
        curvature = moves @ moves.T
        curvature *= gram.take(self.row, axis=0).take(self.row, axis=1)
        curvature[count, count] *= 1 + RIDGE
        factor, failed = lapack.dpotrf(curvature.T, overwrite_a=True, clean=False)
        if failed:
            return None

        def solved(gradient: Floats) -> Floats:
            apart = gradient[self.row, self.y] - gradient[self.row, self.first]
            steps = np.zeros(self.shape)
            steps[self.row, self.y] = lapack.dpotrs(factor, apart)[0]
            np.subtract.at(steps, (self.row, self.first), steps[self.row, self.y])
            return steps

        return solved


def on_grid(A: Floats, codes: Ints, bound: Floats) -> Floats:
    """Return duals rounded to multiples of twice the last digit of their sum Σ α_n.

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
