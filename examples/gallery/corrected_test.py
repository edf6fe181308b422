"""
Why a plain test over random splits is invalid
==============================================

Two methods that are equally good by construction are compared on twenty random splits of one table, many times. The
differences on overlapping splits are correlated, and a sign test treats this as evidence. The corrected resampled t
test rejects about as often as its level states.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binomtest, t

RUNS = 100 if os.environ.get("DISCRIM_QUICK") else 400
N, SPLITS, SHARE = 200, 20, 0.2
rng = np.random.default_rng(0)


def p_values() -> tuple[float, float]:
    """Return p of the sign test and of the corrected t test, for nearest means on two equally good features."""
    y = rng.integers(2, size=N)
    X = rng.normal(size=(N, 2)) + y[:, None]
    differences = []
    for _ in range(SPLITS):
        new = rng.permutation(N) < SHARE * N
        middle = [(X[~new & (y == 0)].mean(axis=0) + X[~new & (y == 1)].mean(axis=0)) / 2]
        hits = ((X[new] > middle) == y[new, None].astype(bool)).mean(axis=0)
        differences.append(hits[0] - hits[1])
    d = np.array(differences)
    signs = binomtest(int((d > 0).sum()), max(1, int((d != 0).sum()))).pvalue
    statistic = d.mean() / np.sqrt((1 / SPLITS + SHARE / (1 - SHARE)) * d.var(ddof=1))
    return signs, 2 * t.sf(abs(statistic), SPLITS - 1)


found = np.array([p_values() for _ in range(RUNS)])
rejected = dict(zip(("sign test", "corrected t test"), (found < 0.05).mean(axis=0).tolist(), strict=True))
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for values, name, colour in zip(found.T, rejected, ("#D55E00", "#0072B2"), strict=True):
    axes.plot(np.sort(values), np.linspace(0, 1, RUNS), color=colour, label=f"{name}: {rejected[name]:.0%} below 0.05")
axes.plot([0, 1], [0, 1], "k:", label="valid test")
axes.set(xlabel="p value", ylabel="share of runs with a smaller p value", title="Two methods that are equally good")
axes.legend()
print(rejected)
