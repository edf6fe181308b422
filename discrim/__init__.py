"""discrim: the few directions that keep the classes apart.

PCA                      directions of largest variance
MarginPCA                directions of largest between-class differences
BayesErrorPCA            principal components of least error
FisherLDA                classical linear discriminants
RegularizedLDA           linear discriminants with a ridge
UncorrelatedLDA          discriminants with uncorrelated features
OrthogonalLDA            orthonormal discriminants, n < d
NullSpaceLDA             where classes do not vary
PCALDA                   principal components, then discriminants
MaximumMarginCriterion   between minus within-class scatter
ClassMoments             class statistics that add up
"""

from discrim.moments.class_moments import ClassMoments
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

__version__ = "0.1.0"
__all__ = [
    "PCA",
    "PCALDA",
    "BayesErrorPCA",
    "ClassMoments",
    "FisherLDA",
    "MarginPCA",
    "MaximumMarginCriterion",
    "NullSpaceLDA",
    "OrthogonalLDA",
    "RegularizedLDA",
    "UncorrelatedLDA",
]
