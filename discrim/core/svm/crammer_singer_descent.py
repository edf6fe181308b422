"""Solver of the Crammer–Singer dual: sweeps of coordinate descent, and conjugate gradients on faces.

With x̃ = (x − μ)/s and a constant 1 appended for the intercept, the weights are η = Aᵀx̃, and a row's gradient is

    G_y = η_y·x̃_n + 1[y ≠ y_n],   η_y·x̃_n = (V_y·x_n − m_y − a_y μ·x_n)/s² + a_y (1 + ‖μ‖²/s²)

with V = AᵀX, a = Aᵀ1, m = Vμ, so a centred sparse table is never formed. A row's part of the duality gap is ≥ 0,

    gap_n = Σ_{y≠y_n} α_n^y (top − G_y) + (C_n − Σα_n)(top − G_{y_n}),   top = max_y G_y

A round opens the active rows and classes and sweeps over them (`compiled.sweep`) until the gap is a tenth of its former
value. It then evaluates all rows, which gives the exact primal objective and duality gap. Until then a row skips
classes with α = 0 whose G is below that of every class that can rise, and the sweep skips rows at a vertex of their
simplex that no gradient pulls away.

Sweeps soon identify which duals are zero or at their bound, but converge slowly if rows are nearly dependent. With
those duals fixed, the others lie on a face of the feasible set, where the dual is quadratic. Conjugate gradients
maximise it in far fewer passes: two or three if the face has few dimensions, because its curvature is then factorised
as a preconditioner; otherwise they are scaled by 1/‖x̃_n‖². They stop as soon as more than a few duals leave the
feasible set. Every row then follows that path until it meets a bound, and all rows until the dual is largest. If there
are more free duals than dimensions, the dual is linear in some directions; the same search runs along these into
bounds, one row after another, until few enough duals are free.
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

BLOCK = 2**16  # values of the table processed together
LINE = 8  # numbers in a cache line
LANES = 4  # sparse weights are padded to a multiple of the vector width
ROUND_FACTOR = 0.1  # of the gap, after which all rows are evaluated again
ROUND_SWEEPS = 400  # or after this many sweeps, so that skipped rows are not ignored for long
SWEEP_MARGIN = 0.9  # a sweep measures each row's gap before improving it, so the gap it reports is slightly too large
FIRST_WAIT, SHORTEST_WAIT, LONGEST_WAIT = 80, 3, 100  # sweeps between two solves on the face
FACE_PASSES = 60  # passes of one solve on the face
DIRECT = 2000  # dimensions of a face up to which its curvature is factorised
RIDGE = 1e-6  # relative, on that curvature: it is singular if there are more free duals than dimensions
OUTSIDE = 0.1  # share of free duals that may leave the feasible set before the conjugate gradients stop
REDUCTION = 0.01  # of the squared gradient, at which the face counts as solved


class Table(NamedTuple):
    """X (C-contiguous or canonical CSR, float64 or float32), also as flat arrays for the compiled sweep."""

    X: Any
    values: NDArray[Any]
    indices: NDArray[np.uint32] | None
    indptr: NDArray[np.int64] | None

    @classmethod
    def of(cls, X: Any) -> Table:
        """Build from X, without a copy if it has the right layout; convert it once otherwise."""
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
        """Average number of stored values per row."""
        return max(1, self.X.nnz // max(1, self.X.shape[0]) if self.is_sparse else self.X.shape[1])

    def parts(self, rows: Ints) -> list[slice]:
        """Return slices of a list of rows that are processed together, independent of their positions in X."""
        step = max(1, BLOCK // self.width)
        return [slice(start, start + step) for start in range(0, len(rows), step)]

    def class_major(self, weights: Floats, n_classes: int) -> Floats:
        """Return weights as (classes × features)."""
        return weights[:, :n_classes].T if self.is_sparse else weights


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view, so writable and read-only input share one compilation."""
    view = array.view()
    view.flags.writeable = False
    return view


class DualProblem(NamedTuple):
    """The distinct rows that take part, with the constants of their subproblems."""

    table: Table
    rows: Ints  # of the table
    codes: Ints
    bound: Floats  # C_n
    square: Floats  # ‖x̃_n‖², including the 1 of the intercept
    mu_products: Floats  # μ·x_n
    scale: float
    unit: float  # 1/s²
    constant: float  # ‖μ‖²/s², plus 1 if there is an intercept
    intercept: bool

    @classmethod
    def of(
        cls, table: Table, rows: Ints, codes: Ints, bound: Floats, mu: Floats | None, scale: float, intercept: bool
    ) -> DualProblem:
        square, mu_products = np.empty(len(rows)), np.zeros(len(rows))
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is reported later, with the name of the parameter
            for part in table.parts(rows):
                X = table.X[rows[part]].astype(np.float64)
                square[part] = (
                    np.asarray(X.multiply(X).sum(axis=1)).ravel() if table.is_sparse else np.einsum("ij,ij->i", X, X)
                )
        mu_square = 0.0
        if mu is not None:
            mu_products = np.asarray(table.X @ mu, dtype=np.float64)[rows]
            mu_square = float(mu @ mu)
        unit = 1.0 / scale**2
        square = np.maximum(unit * (square - 2 * mu_products + mu_square), 0.0) + intercept
        constant = unit * mu_square + intercept
        return cls(table, rows, codes, bound, square, mu_products, float(scale), unit, constant, intercept)

    def part(self, chosen: Ints) -> DualProblem:
        names = ("rows", "codes", "bound", "square", "mu_products")
        return self._replace(**{name: getattr(self, name)[chosen] for name in names})

    def gram(self) -> Floats:
        """Compute x̃_i·x̃_j, including the 1 of the intercept."""
        X = self.table.X[self.rows].astype(np.float64, copy=False)
        products = (X @ X.T).toarray() if self.table.is_sparse else X @ X.T
        products -= self.mu_products
        products -= self.mu_products[:, None]
        products *= self.unit
        products += self.constant
        return products


class Weights(NamedTuple):
    """Σ A x, Σ A and (Σ A x)·μ for each class."""

    table: Floats
    totals: Floats
    offset: Floats

    @classmethod
    def none(cls, table: Table, n_classes: int) -> Weights:
        n_features, padded = table.X.shape[1], -(-n_classes // LANES) * LANES
        if table.is_sparse:  # aligned to a cache line, so each feature touches as few lines as possible
            values = np.zeros(n_features * padded + LINE)
            start = -values.ctypes.data // values.itemsize % LINE
            weights = values[start : start + n_features * padded].reshape(n_features, padded)
        else:
            weights = np.zeros((n_classes, n_features))
        return cls(weights, np.zeros(n_classes), np.zeros(n_classes))

    def set_from(self, problem: DualProblem, steps: Floats) -> None:
        """Set the weights to the sums of these steps over the rows."""
        rows, table, out = problem.rows, problem.table, self.table
        out[:] = 0.0
        if table.is_sparse:
            from discrim.core.svm.compiled import add_rows  # loads numba, which `import discrim` must not

            add_rows(table.values, table.indices, table.indptr, rows, steps, out)
        else:
            for part in table.parts(rows):
                out += steps[part].T @ table.X[rows[part]]
        self.totals[:] = steps.sum(axis=0)
        self.offset[:] = problem.mu_products @ steps

    def scores(self, problem: DualProblem) -> Floats:
        """Compute η_y·x̃_n for all rows and classes."""
        rows, table = problem.rows, problem.table
        by_feature = table.class_major(self.table, len(self.totals)).T
        products = np.empty((len(rows), len(self.totals)))
        for part in table.parts(rows):
            products[part] = table.X[rows[part]] @ by_feature
        constants = problem.constant - problem.unit * problem.mu_products
        return problem.unit * (products - self.offset) + constants[:, None] * self.totals


class State(NamedTuple):
    """Both objectives, and their difference summed row by row without cancellation."""

    primal: float
    dual: float
    gap: float

    def is_within(self, tol: float) -> bool:
        return self.gap <= tol * self.primal


class Descent:
    """Duals `A` of the distinct rows and their weights during the optimisation."""

    def __init__(self, problem: DualProblem, n_classes: int, seed: int) -> None:
        n_rows = len(problem.rows)
        self.problem, self.n_classes = problem, n_classes
        self.own = np.arange(n_rows), problem.codes
        self.A = np.zeros((n_rows, n_classes))
        self.upper = np.zeros((n_rows, n_classes))
        self.upper[self.own] = problem.bound
        self.weights = Weights.none(problem.table, n_classes)
        self.classes = np.tile(np.arange(n_classes, dtype=np.uint32), n_rows)  # for each row, the active classes first
        self.counts = np.full(n_rows, n_classes)
        not_zero = np.flatnonzero(problem.square > 0)
        self.order = not_zero.copy()
        self.as_listed = not_zero[np.argsort(problem.rows[not_zero])]
        self.gaps = np.array([np.zeros(n_rows), np.where(problem.square > 0, 0.0, problem.bound)])
        self.buffers = np.empty((4, -(-n_classes // LANES) * LANES))
        self.n_open = len(self.order)
        self.seed = np.array([seed], dtype=np.uint64)
        self.passes = 0
        self._warm = False
        self._wait, self._since = FIRST_WAIT, 0
        self._place_zero_rows()

    def start_from(self, A: Floats) -> None:
        """Start from feasible duals."""
        self.A[:] = A
        self._place_zero_rows()
        self.weights.set_from(self.problem, self.A)
        self._warm = True

    def _place_zero_rows(self) -> None:
        """Set the duals of rows x̃ = 0, whose loss is the same under any weights: α = C_n, shared evenly."""
        zero = np.flatnonzero(self.problem.square == 0)
        self.A[zero] = -self.problem.bound[zero, None] / (self.n_classes - 1)
        self.A[zero, self.problem.codes[zero]] = self.problem.bound[zero]

    def run(self, tol: float, max_iter: int) -> State:
        """Run rounds until the relative gap of freshly summed weights is at most tol, or max_iter is reached."""
        C_total, dual = float(self.problem.bound.sum()), float(self.A[self.own].sum())
        # at zero weights every row has loss 1, and every class is active
        state = self.evaluate() if self._warm else State(C_total, dual, C_total - dual)
        rebuilt = self._warm
        while not (rebuilt and state.is_within(tol)) and not (rebuilt and self.passes >= max_iter):
            enough, less = SWEEP_MARGIN * tol * state.primal, ROUND_FACTOR * state.gap
            if not state.is_within(tol):
                self._round(max(enough, less), max_iter)
            rebuilt = enough >= less or self.passes >= max_iter
            # removes the rounding accumulated so far, and leaves the duals where a warm start would find them
            if rebuilt:
                self.A[:] = round_duals(self.A, self.problem.codes, self.problem.bound)
                self.weights.set_from(self.problem, self.A)
            state = self.evaluate()
        return state

    def evaluate(self) -> State:
        """Return both objectives over all rows, and open the active rows and classes."""
        self.counts[:] = self.n_classes
        self.order[:] = self.as_listed
        self.n_open = len(self.order)
        self._sweep_open_rows(np.inf, 0)
        self.order[: self.n_open].sort()
        table, totals, offset = self.weights
        plain = float(np.vdot(table, table)) - 2 * float(totals @ offset)
        square = self.problem.unit * plain + self.problem.constant * float(totals @ totals)  # ‖η‖² with intercepts
        total, half = float(self.A[self.own].sum()), 0.5 * square
        gap, loss = self.gaps.sum(axis=1)
        return State(half + loss, total - half, gap)

    def _sweep_open_rows(self, goal: float, max_sweeps: int) -> tuple[float, float, int, int]:
        """Sweep over the open rows (max_sweeps = 0: inspect them) and return the results of `compiled.sweep`."""
        from discrim.core.svm.compiled import sweep  # loads numba, which `import discrim` must not

        p, t = self.problem, self.problem.table
        known = (t.values, t.indices, t.indptr, p.rows, p.codes, p.bound, p.square, p.mu_products, p.unit, p.constant)
        changed = (*self.weights, self.A, self.classes, self.counts, self.order)
        self.n_open, *results = sweep(
            *known, *changed, self.n_open, self.seed, self.buffers, self.gaps, goal, max_sweeps
        )
        return results

    def _round(self, goal: float, max_iter: int) -> None:
        """Alternate sweeps and face solves until the gap reaches the goal or all rows must be evaluated again."""
        last = min(self.passes + ROUND_SWEEPS, max_iter)
        while self.passes < last:
            max_sweeps = min(last - self.passes, self._wait - self._since)
            gap, gain, work, done = self._sweep_open_rows(goal, max_sweeps)
            self.passes += done
            self._since += done
            if gap <= goal or self.n_open == 0:
                return
            if self._since >= self._wait:
                self._solve_face(gain / work, max_iter)
        # after many sweeps, accumulated rounding in the weights could affect the gap
        self.weights.set_from(self.problem, self.A)

    def _solve_face(self, sweep_rate: float, max_iter: int) -> None:
        """Optimise on the face; repeat sooner if this gained more per work than the last sweep."""
        free = (self.upper > self.A) & ((self.A[self.own] > 0) & (self.problem.square > 0))[:, None]
        rows = np.flatnonzero(free.sum(axis=1) >= 2)
        to_end = 3 + 2 * len(rows).bit_length()  # passes that the search along the path takes at most
        max_passes = min(FACE_PASSES, max_iter - self.passes - to_end)
        if max_passes < 1:
            return
        gain, work = 0.0, 0.0
        if len(rows):
            face = Face(self.problem.part(rows), free[rows], self.A[rows], self.upper[rows], self.weights)
            face.ascend(max_passes)
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
    """Rows with two or more free duals, which move while each row's sum stays constant."""

    def __init__(
        self, problem: DualProblem, free: NDArray[np.bool_], A: Floats, upper: Floats, weights: Weights
    ) -> None:
        self.problem, self.free, self.A, self.upper, self.weights = problem, free, A, upper, weights
        self.shares = free / free.sum(axis=1)[:, None]
        self.image = Weights.none(problem.table, A.shape[1])
        # coordinates: for each row all free duals except the first, which moves against them
        first, others = free.argmax(axis=1), free.copy()
        others[np.arange(len(free)), first] = False
        self.row, self.y = np.nonzero(others)
        self.first = first[self.row]
        self.gram = problem.gram() if len(self.row) <= DIRECT else None
        loss = np.ones_like(A)
        loss[np.arange(len(A)), problem.codes] = 0.0
        self.gradient = self._centred(weights.scores(problem) + loss)
        self.path = np.zeros_like(A)
        self.passes = 0

    def _centred(self, gradient: Floats) -> Floats:
        """Return the gradient by the free duals, with each row's mean subtracted."""
        return self.free * (gradient - np.einsum("ny,ny->n", self.shares, gradient)[:, None])

    def _curved(self, steps: Floats) -> Floats:
        """Return the change of the gradient by these steps; products with it are squares, without cancellation."""
        self.passes += 1
        if self.gram is not None:
            return self._centred(self.gram @ steps)
        self.image.set_from(self.problem, steps)
        return self._centred(self.image.scores(self.problem))

    @property
    def work(self) -> float:
        """Work, in products of a row with a class's weights; an operation of a factorisation counts a twentieth."""
        solving = 0.0 if self.gram is None else len(self.row) ** 3 / (60 * self.problem.table.width)
        return 2 * self.passes * int(self.free.sum()) + solving

    def ascend(self, max_passes: int) -> None:
        """Run conjugate gradients towards the optimum of the face, ignoring bounds."""
        # the preconditioner: nearly the exact inverse on a small face, that of the diagonal on a large one
        nearly_exact = None if self.gram is None else self._inverse(self.gram)
        scaled = nearly_exact or (lambda residual: residual / self.problem.square[:, None])
        residual = -self.gradient
        direction = scaled(residual)
        size = float(np.vdot(direction, residual))
        goal, slack = REDUCTION * size, self.upper - self.A
        while self.passes < max_passes and size > goal:
            curved = self._curved(direction)
            curvature = float(np.vdot(direction, curved))
            if curvature <= 0.0:
                break
            self.path += (size / curvature) * direction
            residual -= (size / curvature) * curved
            if np.count_nonzero(self.path > slack) > OUTSIDE * np.count_nonzero(self.free):
                break
            onward = scaled(residual)
            size, before = float(np.vdot(onward, residual)), size
            direction = onward + (size / before) * direction

    def step(self) -> float:
        """Follow the path, each row up to its bounds, as far as the dual rises; return the gain."""
        steps = self._steps()
        square, slope = float(np.vdot(steps, self._curved(steps))), float(np.vdot(self.gradient, steps))
        if slope >= 0.0:
            return 0.0
        length = 1.0 if -slope >= square * (1 - 1e-6) else -slope / square
        self.A = np.minimum(self.A + length * steps, self.upper)
        self.image.set_from(self.problem, steps)
        for target, source in zip(self.weights, self.image, strict=True):
            target += length * source
        return -length * slope - 0.5 * length**2 * square

    def _steps(self) -> Floats:
        """Return the steps along the path up to the largest dual; rows that meet a bound earlier stop there.

        Between two such stops the dual is a quadratic in the share of the path. Bisection over the stops finds where
        its slope changes sign.
        """
        slack = self.upper - self.A
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = np.where(self.path > 0.0, slack / self.path, np.inf).min(axis=1)
        stops = np.concatenate([[0.0], np.unique(limits[limits < 1.0]), [1.0]])
        low, high = 0, len(stops) - 1  # the dual still rises at stops[low]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._slope_at(stops[middle], limits) < 0.0 else (low, middle)
        share, moving = stops[low], np.where(limits[:, None] > stops[low], self.path, 0.0)
        curvature, slope = float(np.vdot(moving, self._curved(moving))), self._slope_at(stops[low], limits)
        if slope < 0.0:
            share = min(stops[high], share - slope / curvature) if curvature > 0.0 else stops[high]
        steps = np.minimum(share, limits)[:, None] * self.path
        return np.where(steps >= slack * (1 - 1e-12), slack, steps)

    def _slope_at(self, share: float, limits: Floats) -> float:
        """Return the slope of minus the dual along the path, from the rows that still move at this share of it."""
        gradient = self.gradient
        if share > 0.0:
            gradient = gradient + self._curved(np.minimum(share, limits)[:, None] * self.path)
        return float(np.vdot(gradient[limits > share], self.path[limits > share]))

    def _inverse(self, gram: Floats) -> Callable[[Floats], Floats] | None:
        """Return the inverse of the curvature: each class's Gram matrix of the rows, with a ridge to make it definite.

        Return None if rounding leaves it indefinite.
        """
        count = np.arange(len(self.row))
        moves = np.zeros((len(self.row), self.A.shape[1]))
        moves[count, self.y], moves[count, self.first] = 1.0, -1.0
        curvature = moves @ moves.T
        curvature *= gram.take(self.row, axis=0).take(self.row, axis=1)
        curvature[count, count] *= 1 + RIDGE
        factor, failed = lapack.dpotrf(curvature.T, overwrite_a=True, clean=False)
        if failed:
            return None

        def solved(gradient: Floats) -> Floats:
            apart = gradient[self.row, self.y] - gradient[self.row, self.first]
            steps = np.zeros_like(self.A)
            steps[self.row, self.y] = lapack.dpotrs(factor, apart)[0]
            np.subtract.at(steps, (self.row, self.first), steps[self.row, self.y])
            return steps

        return solved


def round_duals(A: Floats, codes: Ints, bound: Floats) -> Floats:
    """Return the duals rounded to multiples of twice the last digit of their sum Σ α_n.

    Such multiples add up without rounding, in any order, as long as the result is at most twice that sum. So each row
    sums to 0 exactly, and A[n, y_n] ≤ C_n, A[n, y] ≤ 0 hold exactly. Sums within rounding of C_n are set to C_n.
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
