"""
An image in a few components
============================

Each row of pixels is a sample, each column a feature. One fit serves every p: the first p components are used. The
example shows the error of the restored image, and how many numbers are stored.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from discrim import PCA

COUNTS = (1, 2, 4, 8, 16, 32, 64, 100)


def restored(image: np.ndarray, model: PCA, p: int) -> np.ndarray:
    """Return the image restored from its first p components: mean + Z_p W_p."""
    return model.mean_ + model.transform(image)[:, :p] @ model.components_[:p]


def numbers_kept(image: np.ndarray, p: int) -> int:
    """Count the stored numbers: p coordinates per row, p directions, and the mean."""
    return p * sum(image.shape) + image.shape[1]


image = load_sample_image("china.jpg").mean(axis=2)  # grey, 427×640
model = PCA(max(COUNTS)).fit(image)
errors = {p: np.sqrt(np.mean((restored(image, model, p) - image) ** 2)) for p in COUNTS}
print(f"{image.shape[0]}×{image.shape[1]} grey pixels of 0…255")
print("| p | numbers kept | variance kept | root mean square error |\n| --- | --- | --- | --- |")
for p, error in errors.items():
    share, variance = numbers_kept(image, p) / image.size, model.explained_variance_ratio_[:p].sum()
    print(f"| {p} | {share:.1%} | {variance:.1%} | {error:.1f} |")
whole = model.eigenvalues_.sum() / variance  # the variance of the image
predicted = np.sqrt(whole * (1 - variance) / image.shape[1])  # the error with all of these components

figure, panels = plt.subplots(3, 3, figsize=(9, 6.6), layout="constrained")
for axes, p in zip(panels.ravel(), (*COUNTS, None), strict=True):
    axes.imshow(image if p is None else restored(image, model, p), cmap="gray", vmin=0, vmax=255)
    axes.set_axis_off()
    title = f"p = {p}: {numbers_kept(image, p) / image.size:.0%}, error {errors[p]:.1f}" if p else "original"
    axes.set_title(title, fontsize=10)
