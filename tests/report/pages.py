"""Results from which tests build pages."""

import numpy as np

from discrim.evaluation.comparison import NO_DATA, Comparison
from discrim.evaluation.plan import Grid, planned
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.results import Result
from discrim.evaluation.run import run
from discrim.evaluation.store import Store
from discrim.tables.labelled_table import LabelledTable

HOSTILE = [
    "<script>alert('class')</script>",
    "{{7*7}}",
    "\"'><img src=x onerror=alert(1)>",
    "\u202edrawkcab\u202c <b>bold</b> &lt; %{x}",
    "long " + "x" * 10_000,
    "</script><script>alert('end')</script><!--",
    "a\u2028b\u2029c\x00d",
]


def compared(folder, table, name="trees", *, methods=("fisher-lda",), counts=(1, 2), classifiers=("5-nn", "svm")):
    """A finished comparison, and the store it is kept in."""
    grid = planned(table, name, methods, classifiers, counts, n_splits=4, seed=3)
    with Store(folder / "results.sqlite") as store:
        return Comparison.of(grid, run(grid, store, jobs=1))


def trees(n=90, d=6, seed=0, classes=("ash", "birch", "cedar"), names=None):
    """Classes that differ in the last two features, while the others vary together: no matter for PCA."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(classes)
    X = rng.standard_normal((n, d)) * 0.5 + 2 * rng.standard_normal((n, 1)) * (np.arange(d) < d - 2)
    X[:, -2:] += 0.9 * rng.permuted(np.indices((len(classes), 2)).sum(axis=0), axis=0)[codes]
    columns = tuple(names or (f"leaf {at}" for at in range(d)))
    return LabelledTable(X, np.array(classes)[codes], columns, "tree", "a wood")


def result_rows(method, k, scores, setting, classifier="5-nn", sizes=(80, 20), **more):
    """Rows such as trials leave them."""
    return [
        Result(
            {**setting, "method": method, "k": k, "classifier": classifier, "split": split},
            {
                "accuracy": score,
                "f1": score,
                "n_train": sizes[0],
                "n_test": sizes[1],
                "actual": [1, 2, 3],
                "fit_seconds": 0.01,
            },
            0.02,
            **{"versions": {"discrim": "0.1.0", "numpy": "2"}, **more},
        )
        for split, score in enumerate(scores)
    ]


def setting_of(name="wood", digest="abc", protocol="kfold", size=10, **more):
    """The fields that all trials of a run share."""
    return {"data": name, "digest": digest, "protocol": protocol, "protocol_size": size, "scale": "standard"} | {
        "seed": 0,
        **more,
    }


def stored(setting, rows, metric="accuracy", table=None, label="", facts=None):
    """Results as they come from a store, with or without the data."""
    protocol = named_protocol("holdout-80-20", n_splits=1)
    grid = None if table is None else Grid(setting["data"], table, (), protocol, setting["scale"], setting["seed"])
    return Comparison(rows, setting, facts, metric, grid, label=label, lacking="" if grid else NO_DATA)


def made_up(table, name, levels, **sizes):
    """Make results without a run: `levels` are (method, k, mean accuracy)."""
    setting = setting_of(name, table.digest(), "holdout-80-20", None, discrim="0.1.0")
    noise = np.array([0.01, -0.01, 0.02, 0.0])
    rows = [
        row
        for at, (method, k, level) in enumerate(levels)
        for row in result_rows(method, k, (level + np.roll(noise, at)).tolist(), setting, **sizes)
    ]
    return stored(setting, rows, "accuracy", table, name)


def hostile_results():
    """Names of data, features, classes, methods and classifiers, and reasons, that are more than names."""
    table = trees(120, 7, classes=HOSTILE[:5], names=HOSTILE)
    results = made_up(
        table, HOSTILE[5] + HOSTILE[1], [("fisher-lda", 2, 0.9), ("pca", 2, 0.7), ("raw", 7, 0.8), (HOSTILE[0], 2, 0.5)]
    )
    rows = [*results.rows]
    for at, name in enumerate(HOSTILE):
        rows += result_rows(name, 1, [0.0], results.setting, classifier=name, status="failed", reason=HOSTILE[-at])
        rows += result_rows("pca", 3 + at, [0.6, 0.7], results.setting, classifier=name)
    return stored(results.setting, rows, "accuracy", table, results.label)
