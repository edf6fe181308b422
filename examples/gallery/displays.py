"""
Six displays in one figure
==========================

Two components of the wine data, the features that contribute to them, and a comparison of methods.
"""

import os

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discrim import (
    PCA,
    AccuracyCurveDisplay,
    CriticalDifferenceDisplay,
    LoadingsDisplay,
    MarginDisplay,
    ProjectionDisplay,
    RegularizedLDA,
    SpectrumDisplay,
    compare,
)

SPLITS = 2 if os.environ.get("DISCRIM_QUICK") else 3
LOADERS = {"digits": load_digits, "wine": load_wine, "breast cancer": load_breast_cancer, "iris": load_iris}
METHODS = ["bayes-error-lda", "regularized-lda", "margin-pca-mean", "pca", "raw"]

results = {}
for name, loader in LOADERS.items():
    X, y = (array[:400] for array in loader(return_X_y=True))
    counts = [1, 2, 3, 5, 8] if name == "digits" else [2]
    settings = {"classifiers": ["5-nn"], "n_components": counts, "n_splits": SPLITS, "n_jobs": 1}
    results[name] = compare(X, y, methods=METHODS, name=name, **settings).rows

wine = load_wine(as_frame=True)
kinds = wine.target_names[wine.target]
X, X_new, y, y_new = train_test_split(wine.data, kinds, stratify=kinds, test_size=0.4, random_state=0)
lda = make_pipeline(StandardScaler(), RegularizedLDA(2)).fit(X, y)
pca = make_pipeline(StandardScaler(), PCA()).fit(X)
rows = plt.figure(figsize=(11, 12), layout="constrained").subfigures(3, 1)
(first, second), (third, fourth), (fifth, sixth) = (row.subplots(1, 2) for row in rows)
ProjectionDisplay.from_estimator(lda, X, y, X_new, y_new, ax=first)
SpectrumDisplay.from_estimator(pca, X, y, chosen=2, ax=second)
LoadingsDisplay.from_estimator(lda, X, kind="structure", ax=third)
margins = MarginDisplay.from_estimator(lda, X, y, X_new, y_new, ax=fourth)
AccuracyCurveDisplay.from_comparison(results["digits"], ax=fifth).ax_.set_title("digits, five neighbours")
ranks = CriticalDifferenceDisplay.from_results(results, "5-nn", ax=sixth).values

figures = {f"rank of {method}": rank for method, rank in zip(ranks.methods, ranks.mean_ranks, strict=True)}
figures |= {f"{kind} on its side": after for kind, (_, after) in margins.values.shares.items()}
figures["critical difference"] = ranks.critical_difference
print(*(f"{name} {value:.3f}" for name, value in figures.items()), sep="\n")
