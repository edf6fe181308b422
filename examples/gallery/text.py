"""
Text: a table that stays sparse
===============================

Classification of documents by topic. With ``nested=True`` the first k components of one fit can be used for every k. No
dense copy of the table is made; this requires a fixed ``shrinkage``, because choosing it needs all directions.

Uses fbis_text (2,463 news reports, 2,000 words) from the folder that DISCRIM_DATA names, or simulates documents.
"""

import os
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from discrim import PCA, BayesErrorLDA, RegularizedLDA
from discrim.tables.catalogue import CatalogueError, load

ROWS = 510 if os.environ.get("DISCRIM_QUICK") else 3_000
COUNTS = [1, 2, 3, 5, 8, 11, 16]
LOOKS = {"PCA": ("#666666", "o"), "RegularizedLDA": ("#0072B2", "s"), "BayesErrorLDA": ("#D55E00", "^")}


def documents(n: int) -> tuple[str, sp.csr_array, np.ndarray]:
    """Return word counts. Simulated documents have 60 words, drawn from the word frequencies of their topic."""
    try:
        table = load("fbis_text", download=False)
        return "fbis_text", sp.csr_array(table.X), table.y
    except CatalogueError:
        rng, y, words = np.random.default_rng(0), np.arange(n) % 17, np.empty((n, 60), dtype=np.intp)
        for topic in range(17):
            chance = np.where(rng.random(20_000) < 0.03, 6.0, 1.0) / np.arange(20, 20_020)
            words[y == topic] = rng.choice(20_000, words[y == topic].shape, p=chance / chance.sum())
        X = sp.csr_array((np.ones(words.size), (np.repeat(np.arange(n), 60), words.ravel())), shape=(n, 20_000))
        return "simulated documents", X, y


name, X, y = documents(ROWS)
((train, new),) = StratifiedShuffleSplit(1, test_size=0.2, random_state=0).split(X, y)
methods = PCA(16), RegularizedLDA(16, shrinkage=0.1), BayesErrorLDA(16, shrinkage=0.1, cv=None, nested=True)
found, five = {}, KNeighborsClassifier(5)
for method in methods:  # one fit for all numbers of components
    model = make_pipeline(TfidfTransformer(sublinear_tf=True), method).fit(X[train], y[train])
    seen, others = model.transform(X[train]), model.transform(X[new])
    right = [five.fit(seen[:, :k], y[train]).score(others[:, :k], y[new]) for k in COUNTS]
    found[type(method).__name__] = np.array(right)
tracemalloc.start()
RegularizedLDA(16, shrinkage=0.1).fit(X, y)
share = tracemalloc.get_traced_memory()[1] / (8 * X.shape[0] * X.shape[1])  # peak, relative to the dense table
tracemalloc.stop()
print(f"{name}, {X.shape[0]}×{X.shape[1]}, {X.nnz / np.prod(X.shape):.1%} non-zero; five neighbours, new rows")
print("k", *COUNTS, *(f"\n{method} {np.round(100 * right, 1)}" for method, right in found.items()))
print(f"a fit takes {share:.1%} of the memory of the dense table")

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for method, right in found.items():
    axes.plot(COUNTS, 100 * right, color=LOOKS[method][0], marker=LOOKS[method][1], label=method)
axes.set(xlabel="components", ylabel="accuracy on new documents (%)", title=f"{name}, 17 topics", ylim=(0, 100))
axes.legend(loc="lower right")
