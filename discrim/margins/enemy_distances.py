"""Compiled distances between rows: the definition of D, for pairs and for tiles, dense and sparse."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def squared_distances(X, left, right):  # type: ignore[no-untyped-def]
    """D of each pair of rows: the definition of distance, so no reordering of the sum and no fused products.

    Four pairs at a time, since one sum alone waits for the latency of every addition.
    """
    n_pairs, n_features = left.size, X.shape[1]
    distances = np.empty(n_pairs)
    for first in range(0, n_pairs, 4):
        p1, p2, p3 = min(first + 1, n_pairs - 1), min(first + 2, n_pairs - 1), min(first + 3, n_pairs - 1)
        a0, a1, a2, a3 = X[left[first]], X[left[p1]], X[left[p2]], X[left[p3]]
        b0, b1, b2, b3 = X[right[first]], X[right[p1]], X[right[p2]], X[right[p3]]
        s0 = s1 = s2 = s3 = 0.0
        for k in range(n_features):
            t0, t1 = np.float64(a0[k]) - np.float64(b0[k]), np.float64(a1[k]) - np.float64(b1[k])
            t2, t3 = np.float64(a2[k]) - np.float64(b2[k]), np.float64(a3[k]) - np.float64(b3[k])
            s0 += t0 * t0
            s1 += t1 * t1
            s2 += t2 * t2
            s3 += t3 * t3
        distances[first], distances[p1], distances[p2], distances[p3] = s0, s1, s2, s3
    return distances


@njit(cache=True)
def sparse_squared_distances(indptr, indices, data, left, right):  # type: ignore[no-untyped-def]
    """D of each pair of rows of a canonical CSR matrix: features absent in both add 0.0, so skipping them is exact."""
    distances = np.empty(left.size)
    for pair in range(left.size):
        a, a_stop = indptr[left[pair]], indptr[left[pair] + 1]
        b, b_stop = indptr[right[pair]], indptr[right[pair] + 1]
        total = 0.0
        while a < a_stop or b < b_stop:
            if b == b_stop or (a < a_stop and indices[a] < indices[b]):
                difference = np.float64(data[a])
                a += 1
            elif a == a_stop or indices[b] < indices[a]:
                difference = np.float64(data[b])
                b += 1
            else:
                difference = np.float64(data[a]) - np.float64(data[b])
                a += 1
                b += 1
            total += difference * difference
        distances[pair] = total
    return distances


@njit(cache=True)
def direct_tile(columns, r_start, r_stop, c_start, c_stop, tile):  # type: ignore[no-untyped-def]
    """tile[i, j] = D itself, for few features: `columns` is feature-major, so that the loop over j is vectorised.

    Terms are added in feature order: bit for bit what `squared_distances` gives.
    """
    n_features = columns.shape[0]
    width = c_stop - c_start
    for i in range(r_stop - r_start):
        out = tile[i, :width]
        out[:] = 0.0
        k = 0
        while k + 4 <= n_features:
            x0, x1 = columns[k, r_start + i], columns[k + 1, r_start + i]
            x2, x3 = columns[k + 2, r_start + i], columns[k + 3, r_start + i]
            y0, y1 = columns[k, c_start:c_stop], columns[k + 1, c_start:c_stop]
            y2, y3 = columns[k + 2, c_start:c_stop], columns[k + 3, c_start:c_stop]
            for j in range(width):
                t0, t1, t2, t3 = x0 - y0[j], x1 - y1[j], x2 - y2[j], x3 - y3[j]
                out[j] = (((out[j] + t0 * t0) + t1 * t1) + t2 * t2) + t3 * t3
            k += 4
        while k < n_features:
            x0, y0 = columns[k, r_start + i], columns[k, c_start:c_stop]
            for j in range(width):
                t0 = x0 - y0[j]
                out[j] = out[j] + t0 * t0
            k += 1


@njit(cache=True)
def sparse_tile(indptr, indices, data, r_start, r_stop, by_feature, members, values, tile):  # type: ignore[no-untyped-def]
    """tile[i, j] = −2 x_i·x_j, rows i in CSR, rows j feature by feature in CSC (by_feature, members, values)."""
    for i in range(r_stop - r_start):
        out = tile[i]
        out[:] = 0.0
        for entry in range(indptr[r_start + i], indptr[r_start + i + 1]):
            k = indices[entry]
            factor = -2.0 * data[entry]
            for other in range(by_feature[k], by_feature[k + 1]):
                out[members[other]] += factor * values[other]
