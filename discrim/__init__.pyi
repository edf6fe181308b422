# Written by `python discrim/registry.py`, the one list of public names.

from discrim.classifiers.crammer_singer_svc import CrammerSingerSVC as CrammerSingerSVC
from discrim.classifiers.refined_hyperplane import RefinedHyperplane as RefinedHyperplane
from discrim.data.row_hash import HashKFold as HashKFold
from discrim.evaluation.compare import compare as compare
from discrim.moments.class_moments import ClassMoments as ClassMoments
from discrim.moments.gather import Statistics as Statistics
from discrim.reducers.autoencoder import Autoencoder as Autoencoder
from discrim.reducers.bayes_error_lda import BayesErrorLDA as BayesErrorLDA
from discrim.reducers.bayes_error_pca import BayesErrorPCA as BayesErrorPCA
from discrim.reducers.fisher_lda import FisherLDA as FisherLDA
from discrim.reducers.kernel_map import KernelMap as KernelMap
from discrim.reducers.local_fisher_discriminant import LocalFisherDiscriminant as LocalFisherDiscriminant
from discrim.reducers.logistic_pca import LogisticPCA as LogisticPCA
from discrim.reducers.margin_pca import MarginPCA as MarginPCA
from discrim.reducers.margin_subspace import MarginSubspace as MarginSubspace
from discrim.reducers.max_margin_pca import MaxMarginPCA as MaxMarginPCA
from discrim.reducers.max_margin_shift import MaxMarginShift as MaxMarginShift
from discrim.reducers.max_margin_shift import max_margin_shift as max_margin_shift
from discrim.reducers.maximum_margin_criterion import MaximumMarginCriterion as MaximumMarginCriterion
from discrim.reducers.model_file import load as load
from discrim.reducers.model_file import save as save
from discrim.reducers.model_file import trusted_types as trusted_types
from discrim.reducers.null_space_lda import NullSpaceLDA as NullSpaceLDA
from discrim.reducers.optimal_low_rank import OptimalLowRank as OptimalLowRank
from discrim.reducers.orthogonal_lda import OrthogonalLDA as OrthogonalLDA
from discrim.reducers.pairwise_eigenvectors import PairwiseEigenvectors as PairwiseEigenvectors
from discrim.reducers.parts import fit_parts as fit_parts
from discrim.reducers.pca import PCA as PCA
from discrim.reducers.pca_lda import PCALDA as PCALDA
from discrim.reducers.posterior_map import PosteriorMap as PosteriorMap
from discrim.reducers.regularized_lda import RegularizedLDA as RegularizedLDA
from discrim.reducers.screened_pca import ScreenedPCA as ScreenedPCA
from discrim.reducers.supervised_exponential_pca import SupervisedExponentialPCA as SupervisedExponentialPCA
from discrim.reducers.supervised_pca import SupervisedPCA as SupervisedPCA
from discrim.reducers.supervised_probabilistic_pca import SupervisedProbabilisticPCA as SupervisedProbabilisticPCA
from discrim.reducers.support_vector_decomposition import SupportVectorDecomposition as SupportVectorDecomposition
from discrim.reducers.uncorrelated_lda import UncorrelatedLDA as UncorrelatedLDA
from discrim.report.accuracy_curves import AccuracyCurveDisplay as AccuracyCurveDisplay
from discrim.report.critical_difference import CriticalDifferenceDisplay as CriticalDifferenceDisplay
from discrim.report.loadings import LoadingsDisplay as LoadingsDisplay
from discrim.report.margin_distribution import MarginDisplay as MarginDisplay
from discrim.report.page import write_report as write_report
from discrim.report.projection import ProjectionDisplay as ProjectionDisplay
from discrim.report.spectrum import SpectrumDisplay as SpectrumDisplay

__version__: str
