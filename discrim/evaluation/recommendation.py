"""The pipeline that a comparison recommends, as a small value."""

from __future__ import annotations

from dataclasses import dataclass

from discrim.evaluation.results import ITSELF, Cell


@dataclass(frozen=True)
class Recommendation:
    """Recommended pipeline: preprocessing, reduction and classifier, by name and as they were judged.

    Attributes
    ----------
    method : str
        Name of the reduction; "raw" if all columns should be kept.
    n_components : int
        Number of components; the number of columns for "raw".
    classifier : str
        Name of the classifier; "itself" for the reduction's own predictions.
    scale : str
        How columns are scaled: "standard", "range" or "none".
    impute : str or None
        How missing cells are filled in; None if none are missing.
    class_weight : str or None
        "balanced" if classes count alike in the classifier, else None.
    """

    method: str
    n_components: int
    classifier: str
    scale: str = "standard"
    impute: str | None = None
    class_weight: str | None = None

    @property
    def cell(self) -> Cell:
        """The line of the results that it stands in."""
        return Cell(self.method, self.n_components, self.classifier)

    @property
    def reduces(self) -> bool:
        """True if it is a reduction, not all columns."""
        return self.method != "raw"

    @property
    def predicts_itself(self) -> bool:
        """True if the reduction's own predictions were judged, without another classifier."""
        return self.classifier == ITSELF
