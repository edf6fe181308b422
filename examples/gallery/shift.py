"""
How far to shift
================

Max-margin data shifting moves each training row away from the classes it is confused with, before an extractor is
trained. A small shift gives the plain extractor. As it grows, new rows are separated better, and the reconstruction
gets worse: the components turn from directions of variance to directions of separation.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from discrim import PCA, MaxMarginShift

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, train_size=600, stratify=y, random_state=0)
SHIFTS = [0, 0.1, 0.3, 1, 3, 10]
right, rebuilt = [], []
for shift in SHIFTS:
    model = MaxMarginShift(PCA(5), shift=shift).fit(X, y)
    scale = model.transform(X).std()
    classifier = LogisticRegression(max_iter=2000).fit(model.transform(X) / scale, y)
    right.append(classifier.score(model.transform(X_new) / scale, y_new))
    rest = X_new - model.inverse_transform(model.transform(X_new))
    rebuilt.append(np.sqrt((rest**2).mean()))

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
positions = np.arange(len(SHIFTS))
axes.plot(positions, 100 * np.array(right), "o-", color="#0072B2", label="accuracy on new digits (%)")
axes.set(xticks=positions, xticklabels=SHIFTS, xlabel="shift, relative to the rows' spread", ylabel="%")
other = axes.twinx()
other.plot(positions, rebuilt, "s--", color="#D55E00", label="reconstruction error")
other.set_ylabel("root mean square error")
figure.legend(loc="outside upper center", ncols=2)
axes.set_title("Five components of shifted digits")
print({shift: round(float(value), 3) for shift, value in zip(SHIFTS, right, strict=True)})
