"""Law of the axes: no rotation of a reducer's features is much better for a classifier than the fitted axes."""

import numpy as np
import pandas as pd
import pytest
from estimators import LISTED, QUIET
from samples import note
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC

JUDGES = {
    "naive Bayes": (GaussianNB(), 10),  # looks at one axis at a time
    "5-NN": (KNeighborsClassifier(5), 1),  # those below should see no difference at all
    "logistic regression": (LogisticRegression(), 1),
    "linear SVM": (LinearSVC(random_state=0), 1),
    "RBF SVM": (SVC(), 1),
}
ROWS = {"opencv_digits": 1000}  # 180 test rows of ten classes have a standard error of 4 points
SETS = {"ecoli": 5, "vehicle": 3, "satimage": 5, "wdbc": 1, "letter": 5, "opencv_digits": 5}


@QUIET
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SETS)
def test_rotated_axes_gain_at_most_5_points(name, data_folder):
    table = pd.read_csv(data_folder / f"{name}.csv.gz").groupby("target").filter(lambda rows: len(rows) > 3)
    table = table.sample(min(len(table), ROWS.get(name, 360)), random_state=0)
    X, y = scale(table.drop(columns="target").to_numpy(float)), table["target"].to_numpy()
    train, test = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
    rng = np.random.default_rng(0)
    for case in LISTED:
        model = case(SETS[name]).fit(X[train], y[train])
        Z, new = model.transform(X[train]), model.transform(X[test])
        rotations = [np.linalg.qr(rng.standard_normal((Z.shape[1],) * 2))[0] for _ in range(10)]
        for judge, (classifier, n_rotations) in JUDGES.items():
            scores = [
                classifier.fit(Z @ turned, y[train]).score(new @ turned, y[test])
                for turned in [np.eye(Z.shape[1]), *rotations[:n_rotations]]
            ]
            with note(f"{case}, {judge}"):
                assert np.mean(scores[1:]) <= scores[0] + 0.05
