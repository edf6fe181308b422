"""discrim: the few directions that keep the classes apart.

PCA              directions of largest variance
MarginPCA        directions of largest between-class differences
BayesErrorPCA    principal components of least error
ClassMoments     class statistics that add up
"""

from discrim.moments.class_moments import ClassMoments
from discrim.reducers.bayes_error_pca import BayesErrorPCA
from discrim.reducers.margin_pca import MarginPCA
from discrim.reducers.pca import PCA

__version__ = "0.1.0"
__all__ = ["PCA", "BayesErrorPCA", "ClassMoments", "MarginPCA"]
