"""Effect of margin-based refinement of a linear classifier: the tables of docs/refinement.md.

    DISCRIM_DATA=folder python examples/refinement_study.py --jobs 2 --into docs/refinement.md

The folder holds the data sets (`discrim datasets` lists them). Without --into the tables are printed.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import study_parts
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.svm import SVC
from study_parts import arguments, show
from study_parts import markdown as table

from discrim.estimators.lda import FisherLDA
from discrim.estimators.pair_refinement import MERGED_SET
from discrim.estimators.refined_hyperplane import RefinedHyperplane
from discrim.evaluation.protocol import Protocol, named_protocol
from discrim.evaluation.statistics import corrected_t_test, holm, paired_t_test
from discrim.papers.study import study

SVM = SVC(kernel="linear", C=1.0, class_weight="balanced", max_iter=1_000_000)
FAST = ["sign", "discriminant-min", "discriminant-max", "min", "max", "none"]
EXHAUSTIVE = ["exhaustive-pairs", "exhaustive-splits"]
RULES_ONCE = ["none", *EXHAUSTIVE]
HALVES = (0, 5), (5, 10)
SHORT = {"discriminant-min": "d-min", "discriminant-max": "d-max", "LDA": "LDA alone", "SVM": "SVM alone"}
PAPER = study("lda-refinement")
figure = partial(study_parts.figure, digits=2)


@dataclass(frozen=True)
class Refinement:
    """Data set of the paper, the classifier refined there, and the printed figures."""

    name: str
    initial: str
    rule: str
    printed: tuple[float | None, ...]  # initial %, refined %, ρ, t, the other classifier alone %
    folds: int = 10

    @property
    def estimator(self) -> SVC | None:
        return SVM if self.initial == "SVM" else None

    @property
    def other(self) -> str:
        return "LDA" if self.initial == "SVM" else "SVM"


TABLES_1_AND_2 = [
    Refinement("breast_w", "LDA", "discriminant-max", (94.88, 95.61, 542.10, 3.37, 94.13)),
    Refinement("splice_uci_n_ie", "LDA", "discriminant-min", (81.30, 86.66, 3.03, 14.25, None)),
    Refinement("banknote", "LDA", "sign", (97.27, 98.62, 4.02, 6.68, 96.06)),
    Refinement("heart_statlog", "SVM", "discriminant-min", (76.91, 78.11, 3.14, 2.79, 73.95)),
    Refinement("ilpd", "SVM", "discriminant-max", (61.05, 62.28, 61.30, 2.41, 59.73)),
    Refinement("ecoli", "SVM", "sign", (95.45, 96.08, 9.33, 3.35, None)),
]
TABLE_3 = [  # printed: F of the smaller and of the larger class, initial and refined
    Refinement("fertility", "LDA", "discriminant-min", (0.15, 0.75, 0.17, 0.84), folds=5),
    Refinement("splice_uci_n_ie", "SVM", "discriminant-min", (0.72, 0.86, 0.77, 0.88)),
]


def read(name: str, *, as_printed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels; as printed, all rows are standardised to the smaller class before the split."""
    table = PAPER.part(dataset=name).tables[0]
    rows = PAPER.rows_of(table if as_printed else replace(table, prepare=""))
    return rows.X, rows.y


def trial(X, y, train, test, estimator, rules, options) -> dict[str, tuple[np.ndarray, float]]:
    """Return predictions on the test rows and margin of the initial classifier, each rule, SVM and LDA alone."""
    warnings.simplefilter("ignore")
    model = RefinedHyperplane(estimator, **options)
    results = {}
    for rule in rules:
        model = clone(model).set_params(rule=rule).fit(X[train], y[train])
        results[rule] = (model.predict(X[test]), model.margin_)
    side = X[test] @ model.initial_coef_[0] + model.initial_intercept_[0] > 0
    results["initial"] = (model.classes_[side.astype(int)], 2.0)
    z = model.refinements_[0].standard
    for name, classifier in (("SVM", SVM), ("LDA", FisherLDA(priors="equal"))):
        alone = clone(classifier).fit(z(X[train]), y[train])
        results[name] = (alone.predict(z(X[test])), np.nan)
    return results


@dataclass
class Outcome:
    """Accuracies (repetitions × splits), margins and confusion counts of the smaller class, by method."""

    accuracy: dict[str, np.ndarray]
    margin: dict[str, float]
    f_measures: dict[str, tuple[float, float]]
    ratio: float

    def tests(self, method: str, against: str) -> tuple[float, float, float]:
        """Return the means over repetitions of the plain t and the corrected t, and the corrected p of the first."""
        gains = (self.accuracy[method] - self.accuracy[against]).T
        corrected = corrected_t_test(gains, self.ratio)
        return float(np.mean(paired_t_test(gains).statistic)), float(np.mean(corrected.statistic)), corrected.p_value[0]


def outcome(case: Refinement, protocol: Protocol, rules, repetitions: int, jobs: int, **options) -> Outcome:
    """Run a case as printed, or with features standardised inside the split if the options have it."""
    X, y = read(case.name, as_printed=not options)
    options = options or {"reference_class": None}
    splits = [split for seed in range(repetitions) for split in protocol.splits(y, seed)]
    results = Parallel(jobs)(delayed(trial)(X, y, *split, case.estimator, rules, options) for split in splits)
    labels, counts = np.unique(y, return_counts=True)
    small = labels[counts.argmin()]
    accuracy, margin, f_measures = {}, {}, {}
    for method in results[0]:
        right = [np.mean(r[method][0] == y[test]) for r, (_, test) in zip(results, splits, strict=True)]
        accuracy[method] = 100 * np.array(right).reshape(repetitions, protocol.n_splits)
        margin[method] = float(np.mean([r[method][1] for r in results]))
        predicted = np.concatenate([r[method][0] for r in results]) == small
        actual = np.concatenate([y[test] for _, test in splits]) == small
        f_measures[method] = (f_measure(predicted, actual), f_measure(~predicted, ~actual))
    return Outcome(accuracy, margin, f_measures, protocol.ratio(y))


def f_measure(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Return 2TP / (2TP + FP + FN)."""
    return float(2 * np.sum(predicted & actual) / (np.sum(predicted) + np.sum(actual)))


def short(rule: str) -> str:
    return SHORT.get(rule, rule)


def inverted_folds(repetitions: int, jobs: int) -> Iterator[str]:
    rules = [*FAST, "best"]
    columns = ["initial", *rules, "LDA", "SVM"]
    compared, accuracies, margins, tests = [], [], [], []
    for case in TABLES_1_AND_2:
        done = outcome(case, named_protocol("inverted-kfold"), rules, repetitions, jobs)
        mean = {method: scores.mean() for method, scores in done.accuracy.items()}
        plain, corrected, _ = done.tests(case.rule, "initial")
        name = f"{case.name}, {case.initial}"
        ours = (mean["initial"], mean[case.rule], done.margin[case.rule], plain, mean[case.other])
        pairs = [f"{figure(p)} / {figure(o)}" for p, o in zip(case.printed, ours, strict=True)]
        compared.append([name, short(case.rule), *pairs, figure(corrected)])
        accuracies.append([name, *[figure(mean[method]) for method in columns]])
        margins.append([name, *[figure(done.margin[rule]) for rule in rules]])
        tests.append([name, *[" / ".join(map(figure, done.tests(m, "initial")[:2])) for m in columns[1:]]])
    yield "**Printed / ours**, with the rule printed in the paper; t of that rule against the initial classifier.\n"
    head = [
        "data, initial",
        "rule",
        "initial %",
        "refined %",
        "ρ (initial: 2)",
        "t",
        "SVM or LDA alone %",
        "corrected t",
    ]
    yield from table(head, compared)
    yield "**Accuracy, %**, of every rule, of LDA alone and of the SVM alone.\n"
    yield from table(["data, initial", *map(short, columns)], accuracies)
    yield "**Margin ρ** of the refined hyperplane; the initial one is 2.\n"
    yield from table(["data, initial", *map(short, rules)], margins)
    yield "**t against the initial classifier**, plain / corrected.\n"
    yield from table(["data, initial", *map(short, columns[1:])], tests)


def exhaustive(jobs: int) -> Iterator[str]:
    rows = []
    for case in TABLES_1_AND_2:
        rules = ["none", *(r for r in EXHAUSTIVE if r == "exhaustive-pairs" or read(case.name)[0].shape[1] <= 16)]
        done = outcome(case, named_protocol("inverted-kfold"), rules, 1, jobs)
        cells = [(figure(done.accuracy[r].mean()), figure(done.margin[r])) if r in rules else "–" for r in RULES_ONCE]
        rows.append([f"{case.name}, {case.initial}", *map(" / ".join, cells)])
    yield "**The largest possible margin**, ten folds once: accuracy, % / ρ.\n"
    yield from table(["data, initial", *map(short, RULES_ONCE)], rows)


def f_tables(repetitions: int, jobs: int) -> Iterator[str]:
    rows = []
    for case in TABLE_3:
        protocol = named_protocol("inverted-kfold", n_splits=case.folds)
        done = outcome(case, protocol, FAST, repetitions, jobs)
        methods = ["initial", case.rule, "none", "sign", "SVM"]
        ours = [" / ".join(map(figure, done.f_measures[method])) for method in methods]
        printed = [" / ".join(map(figure, case.printed[i : i + 2])) for i in (0, 2)]
        rows.append([f"{case.name}, {case.initial}, K = {case.folds}", *printed, *ours])
    yield "**F measures** of the smaller / the larger class.\n"
    head = ["data, initial", "printed initial", "printed d-min", "initial", "d-min", "none", "sign", "SVM alone"]
    yield from table(head, rows)


def constant_features(repetitions: int, jobs: int) -> Iterator[str]:
    rows = []
    for case in TABLES_1_AND_2[:2]:
        for choice in ("drop", "scale"):
            options = {"reference_class": "minority", "constant_features": choice}
            done = outcome(case, named_protocol("inverted-kfold"), ["none", "sign"], repetitions, jobs, **options)
            cells = [figure(done.accuracy[method].mean()) for method in ("initial", "none", "sign", "SVM")]
            rows.append([f"{case.name}, {case.initial}", f'"{choice}"', *cells])
    yield "**Features constant in the reference class**, standardised inside the split: accuracy, %.\n"
    yield from table(["data, initial", "constant_features", "initial", "none", "sign", "SVM alone"], rows)


def holdouts(jobs: int) -> Iterator[str]:
    protocol, methods = named_protocol("holdout-80-20"), [*FAST, "LDA", "SVM"]
    names, gains, p_values = [], [], []
    for case in TABLES_1_AND_2:
        done = outcome(case, protocol, FAST, 1, jobs, reference_class="minority", constant_features="scale")
        names.append([f"{case.name}, {case.initial}", figure(done.accuracy["initial"].mean())])
        gains.append([(done.accuracy[m] - done.accuracy["initial"]).mean() for m in methods])
        # the initial classifier is not compared with itself
        p_values.append([np.nan if m == case.initial else done.tests(m, "initial")[2] for m in methods])
    rows = []
    for name, of_gains, of_p, of_adjusted in zip(names, gains, p_values, holm(p_values), strict=True):
        cells = [
            "–" if np.isnan(p) else f"{gain:+.2f} ({p:.3f}, {adjusted:.2f})"
            for gain, p, adjusted in zip(of_gains, of_p, of_adjusted, strict=True)
        ]
        rows.append([*name, *cells])
    yield "**80/20 × 50, everything fitted inside the split**, constant features scaled: gain over the initial"
    yield "classifier in points (corrected p value, and after Holm's correction over the table).\n"
    yield from table(["data, initial", "initial %", *map(short, methods)], rows)


def equals(n: int, sets: int) -> tuple[float, float]:
    """Return the share, in %, of differences found at 5 % by the plain and the corrected t test over inverted folds.

    The methods are LDA on the first and on the last five of ten identically distributed features: neither is better.
    """
    protocol = named_protocol("inverted-kfold")
    rejected = np.zeros((sets, 2))
    for seed in range(sets):
        y = np.arange(n) % 2
        X = np.random.default_rng(seed).normal(size=(n, 10)) + 0.5 * y[:, None]
        gains = []
        for train, test in protocol.splits(y, seed):
            first, last = (FisherLDA().fit(X[train, a:b], y[train]).score(X[test, a:b], y[test]) for a, b in HALVES)
            gains.append(first - last)
        tests = paired_t_test(gains), corrected_t_test(gains, protocol.ratio(y))
        rejected[seed] = [test.p_value < 0.05 for test in tests]
    plain, corrected = 100 * rejected.mean(axis=0)
    return plain, corrected


def equal_methods() -> Iterator[str]:
    rows = [[f"{n} rows", *(figure(share, digits=0) for share in equals(n, sets=400))] for n in (200, 500, 1000)]
    yield "**Two methods that are equally good**, 400 simulated data sets: how often a t test over ten inverted folds"
    yield "finds a difference at 5 %, in %.\n"
    yield from table(["data", "plain t", "corrected t"], rows)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="times the inverted folds are drawn")
    options = parser.parse_args()
    assert set(FAST) == set(MERGED_SET)
    lines = [
        *inverted_folds(options.repetitions, options.jobs),
        *exhaustive(options.jobs),
        *f_tables(options.repetitions, options.jobs),
        *constant_features(options.repetitions, options.jobs),
        *holdouts(options.jobs),
        *equal_methods(),
    ]
    show(lines, options.into)


if __name__ == "__main__":
    main()
