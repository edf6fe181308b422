"""discrim: the few directions that keep the classes apart.

BayesErrorLDA            least pairwise error; the default
RegularizedLDA           linear discriminants with a ridge
FisherLDA                classical linear discriminants
UncorrelatedLDA          discriminants with uncorrelated features
OrthogonalLDA            orthonormal discriminants, n < d
NullSpaceLDA             where classes do not vary
PCALDA                   principal components, then discriminants
MaximumMarginCriterion   between minus within-class scatter
PCA                      directions of largest variance
MarginPCA                directions of largest between-class differences
BayesErrorPCA            principal components of least error
MaxMarginShift           any extractor on shifted rows
max_margin_shift         the shifted rows themselves
MarginSubspace           directions of an SVM's weights
Autoencoder              one sigmoid layer, for MaxMarginShift
CrammerSingerSVC         multiclass SVM with its duals
RefinedHyperplane        a linear classifier, margins refined
ClassMoments             class statistics that add up
compare                  which reduction helps, with evidence
ProjectionDisplay        rows on two components, drawn
SpectrumDisplay          what each component is worth, drawn
LoadingsDisplay          which features make a component
MarginDisplay            margins before and after, drawn
AccuracyCurveDisplay     scores over components, drawn
CriticalDifferenceDisplay  mean ranks over data sets
save, load               models as plain, checked files
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discrim.moments.class_moments import ClassMoments
from discrim.reducers.bayes_error_lda import BayesErrorLDA
from discrim.reducers.bayes_error_pca import BayesErrorPCA
from discrim.reducers.fisher_lda import FisherLDA
from discrim.reducers.margin_pca import MarginPCA
from discrim.reducers.maximum_margin_criterion import MaximumMarginCriterion
from discrim.reducers.null_space_lda import NullSpaceLDA
from discrim.reducers.orthogonal_lda import OrthogonalLDA
from discrim.reducers.pca import PCA
from discrim.reducers.pca_lda import PCALDA
from discrim.reducers.regularized_lda import RegularizedLDA
from discrim.reducers.uncorrelated_lda import UncorrelatedLDA

if TYPE_CHECKING:
    from discrim.classifiers.crammer_singer_svc import CrammerSingerSVC
    from discrim.classifiers.refined_hyperplane import RefinedHyperplane
    from discrim.evaluation.compare import compare
    from discrim.reducers.autoencoder import Autoencoder
    from discrim.reducers.margin_subspace import MarginSubspace
    from discrim.reducers.max_margin_shift import MaxMarginShift, max_margin_shift
    from discrim.reducers.model_file import load, save
    from discrim.report.displays.accuracy_curve_display import AccuracyCurveDisplay
    from discrim.report.displays.critical_difference_display import CriticalDifferenceDisplay
    from discrim.report.displays.loadings_display import LoadingsDisplay
    from discrim.report.displays.margin_display import MarginDisplay
    from discrim.report.displays.projection_display import ProjectionDisplay
    from discrim.report.displays.spectrum_display import SpectrumDisplay

__version__ = "0.1.0"

# rooms that load more of scikit-learn than the reducers do are opened when first asked for
_OPENED_LATER = {
    "AccuracyCurveDisplay": "discrim.report.displays.accuracy_curve_display",
    "Autoencoder": "discrim.reducers.autoencoder",
    "CrammerSingerSVC": "discrim.classifiers.crammer_singer_svc",
    "CriticalDifferenceDisplay": "discrim.report.displays.critical_difference_display",
    "LoadingsDisplay": "discrim.report.displays.loadings_display",
    "MarginDisplay": "discrim.report.displays.margin_display",
    "MarginSubspace": "discrim.reducers.margin_subspace",
    "MaxMarginShift": "discrim.reducers.max_margin_shift",
    "ProjectionDisplay": "discrim.report.displays.projection_display",
    "RefinedHyperplane": "discrim.classifiers.refined_hyperplane",
    "SpectrumDisplay": "discrim.report.displays.spectrum_display",
    "compare": "discrim.evaluation.compare",
    "load": "discrim.reducers.model_file",
    "max_margin_shift": "discrim.reducers.max_margin_shift",
    "save": "discrim.reducers.model_file",
}

__all__ = [
    "PCA",
    "PCALDA",
    "AccuracyCurveDisplay",
    "Autoencoder",
    "BayesErrorLDA",
    "BayesErrorPCA",
    "ClassMoments",
    "CrammerSingerSVC",
    "CriticalDifferenceDisplay",
    "FisherLDA",
    "LoadingsDisplay",
    "MarginDisplay",
    "MarginPCA",
    "MarginSubspace",
    "MaxMarginShift",
    "MaximumMarginCriterion",
    "NullSpaceLDA",
    "OrthogonalLDA",
    "ProjectionDisplay",
    "RefinedHyperplane",
    "RegularizedLDA",
    "SpectrumDisplay",
    "UncorrelatedLDA",
    "compare",
    "load",
    "max_margin_shift",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _OPENED_LATER:
        return getattr(import_module(_OPENED_LATER[name]), name)
    raise AttributeError(f"module 'discrim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
