"""Literal definitions: plain loops over samples and pairs."""

import math

import numpy as np
from scipy.linalg import logm, sqrtm
from scipy.optimize import minimize


def centred_rows(X, y):
    mean = sum(X) / len(X)
    return [x - mean for x in X]


def all_differences(X, y):
    """x_i − x_j for every pair of rows of different classes, once."""
    n = len(X)
    return [X[i] - X[j] for i in range(n) for j in range(i + 1, n) if y[i] != y[j]]


def differences_to_means(X, y):
    """x_i − mean of each other class."""
    means = {c: sum(X[y == c]) / (y == c).sum() for c in set(y)}
    return [x - means[c] for x, own in zip(X, y, strict=True) for c in sorted(means) if c != own]


def differences_to_medians(X, y):
    """x_i − per-feature median of each other class."""
    medians = {c: np.median(X[y == c], axis=0) for c in set(y)}
    return [x - medians[c] for x, own in zip(X, y, strict=True) for c in sorted(medians) if c != own]


def nearest_row(X, i, candidates):
    """The candidate nearest to row i, of equally near ones the lowest."""
    return min(candidates, key=lambda j: (sum((X[i] - X[j]) ** 2), j))


def nearest_pairs(X, y, enemies):
    """{i, j} with j a nearest enemy of i, each pair once."""
    found = set()
    for i in range(len(X)):
        others = [j for j in range(len(X)) if y[j] != y[i]]
        groups = [[j for j in others if y[j] == c] for c in set(y) - {y[i]}] if enemies == "each" else [others]
        found |= {frozenset((i, nearest_row(X, i, group))) for group in groups}
    return sorted(tuple(sorted(pair)) for pair in found)


def differences_to_nearest(enemies):
    return lambda X, y: [X[i] - X[j] for i, j in nearest_pairs(X, y, enemies)]


# rows z; the spread of a method is Σ z zᵀ
MARGIN_ROWS = {
    "pca": centred_rows,
    "margin-pca-all": all_differences,
    "margin-pca-mean": differences_to_means,
    "margin-pca-median": differences_to_medians,
    "margin-pca-nearest": differences_to_nearest("each"),
    "margin-pca-any": differences_to_nearest("any"),
    "margin-pca-all-ties": differences_to_nearest("each"),
    "margin-pca-lowest": differences_to_nearest("each"),
}


def spread(rows):
    """Σ z zᵀ."""
    return sum(np.outer(z, z) for z in rows)


def scatters(X, y):
    """S_w, S_b and S_t."""
    total = spread(centred_rows(X, y))
    means = {c: X[y == c].mean(axis=0) for c in set(y)}
    within = spread([x - means[own] for x, own in zip(X, y, strict=True)])
    return within, total - within, total


def ridged(within, X, gamma):
    """(1−γ) S_w/n + γ tr(S_w/n)/rank · I."""
    tau = np.trace(within / len(X)) / np.linalg.matrix_rank(X - X.mean(axis=0))
    return (1 - gamma) * within / len(X) + gamma * tau * np.eye(X.shape[1])


def fixed_sign(direction):
    """±direction, such that the first loading within 1e-6 of the largest absolute one is positive."""
    largest = max(abs(v) for v in direction)
    first = next(v for v in direction if abs(v) >= (1 - 1e-6) * largest)
    return direction if first > 0 else -direction


def correlation_ratio(feature, y):
    """Σ_a p_a (w̄_a − w̄)² / λ of one feature, λ its population variance."""
    mean, n = sum(feature) / len(feature), len(feature)
    variance = sum((v - mean) ** 2 for v in feature) / n
    return sum((y == a).sum() / n * (feature[y == a].mean() - mean) ** 2 for a in set(y)) / variance


def bhattacharyya(feature, y):
    """Σ_{a<b} p_a p_b [¼Δ²/(σ_a²+σ_b²) + ½ ln((σ_a²+σ_b²)/(2σ_aσ_b))] of one feature.

    A class's deviation counts as at least 1e-3 of the whole feature's, as the documentation says.
    """
    labels, score, least = sorted(set(y)), 0.0, 1e-6 * feature.var()
    for i, a in enumerate(labels):
        for b in labels[i + 1 :]:
            one, other = feature[y == a], feature[y == b]
            v, w = max(one.var(), least), max(other.var(), least)
            distance = 0.25 * (one.mean() - other.mean()) ** 2 / (v + w)
            distance += 0.5 * math.log((v + w) / (2 * math.sqrt(v) * math.sqrt(w)))
            score += len(one) * len(other) / len(y) ** 2 * distance
    return score


def normal_tail(x):
    """Q(x), the chance that a standard normal is above x."""
    return 0.5 * math.erfc(x / math.sqrt(2))


def apparent_error(features, y):
    """Σ_{a<b} p_a p_b Q(r_ab/2) / Σ_{a<b} p_a p_b, r_ab² by Γ and H, of uncorrelated features."""
    labels, n = sorted(set(y)), len(y)
    p = np.array([(y == a).sum() / n for a in labels])
    gamma = np.zeros((len(labels), len(labels)))
    for feature in features.T:
        w = np.array([feature[y == a].mean() - feature.mean() for a in labels])
        gamma += np.outer(w, w) / feature.var()
    H = gamma @ np.linalg.inv(np.eye(len(labels)) - np.diag(p) @ gamma)
    return weighted_over_pairs(p, lambda a, b: normal_tail(math.sqrt(H[a, a] + H[b, b] - 2 * H[a, b]) / 2))


def mahalanobis_error(features, y):
    """The same from what r_ab is: the within-class Mahalanobis distance of the means."""
    labels, n = sorted(set(y)), len(y)
    means = [features[y == a].mean(axis=0) for a in labels]
    centred = features - np.array(means)[np.searchsorted(labels, y)]
    inverse = np.linalg.inv(centred.T @ centred / n)

    def error(a, b):
        return normal_tail(math.sqrt((means[a] - means[b]) @ inverse @ (means[a] - means[b])) / 2)

    return weighted_over_pairs(np.array([(y == a).sum() / n for a in labels]), error)


def weighted_over_pairs(p, value):
    pairs = [(a, b) for a in range(len(p)) for b in range(a + 1, len(p))]
    return sum(p[a] * p[b] * value(a, b) for a, b in pairs) / sum(p[a] * p[b] for a, b in pairs)


def label_dependence(X, y):
    """XᵀHLHX, entry by entry: L_ij = 1 if labels agree, H = I − 11ᵀ/n."""
    n = len(X)
    H = np.eye(n) - np.ones((n, n)) / n
    L = np.array([[float(a == b) for b in y] for a in y])
    return X.T @ H @ L @ H @ X


def leading(A, tolerance=1e-10):
    """Eigenvalues above the tolerance, of the largest, and unit eigenvectors as rows, largest first."""
    values, vectors = np.linalg.eigh(A)
    kept = values > tolerance * values[-1]
    return values[kept][::-1], vectors.T[kept][::-1]


def supervised_pca(X, y, k):
    """Eigenvectors of XᵀHLHX, then those of the scatter of the rows in their orthogonal complement."""
    first = leading(label_dependence(X, y))[1]
    left = np.array(centred_rows(X, y))
    left = left - left @ first.T @ first
    return np.concatenate([first, leading(left.T @ left)[1]])[:k]


def optimal_low_rank(X, y, k):
    """Singular vectors of √n_c(μ_c−μ), then of x_i − μ_{y_i}, orthonormalised one after the other."""
    labels = sorted(set(y))
    means = np.array([np.sqrt((y == c).sum()) * (X[y == c].mean(axis=0) - X.mean(axis=0)) for c in labels])
    centred = np.array([x - X[y == own].mean(axis=0) for x, own in zip(X, y, strict=True)])
    stack = [*leading(means.T @ means)[1], *leading(centred.T @ centred)[1]]
    kept = []
    for v in stack:
        left = v - sum(((v @ u) * u for u in kept), start=np.zeros_like(v))
        if np.linalg.norm(left) > 1e-6:
            kept.append(left / np.linalg.norm(left))
    return np.array(kept[:k])


def pairwise_eigenvectors(X, y, ridge, origin):
    """For each ordered pair of classes all (λ, v, a, b) of C_a v = λ(C_b + (ridge/d) tr C_b I)v, largest λ first."""
    d = X.shape[1]
    seconds = {c: sum(np.outer(x - origin, x - origin) for x in X[y == c]) / (y == c).sum() for c in sorted(set(y))}
    found = {}
    for a, of_a in seconds.items():
        for b, of_b in seconds.items():
            if a != b:
                metric = of_b + ridge / d * np.trace(of_b) * np.eye(d)
                values, vectors = np.linalg.eig(np.linalg.inv(metric) @ of_a)
                order = np.argsort(-values.real)
                vectors = [v / np.sqrt(v @ metric @ v) for v in vectors.real.T]
                found[a, b] = [(values[i].real, vectors[i], a, b) for i in order]
    return found


def chernoff(X, y, gamma):
    """Loog and Duin's criterion C and its cost Σ_γ = (1−γ) S_w + γ τ I, τ = tr(S_w)/rank, every S_i with that ridge."""
    labels = sorted(set(y))
    p = [np.mean(y == a) for a in labels]
    means = [X[y == a].mean(axis=0) for a in labels]
    S = [np.cov(X[y == a].T, bias=True) for a in labels]
    within = sum(p[i] * S[i] for i in range(len(labels)))
    ridge = gamma * np.trace(within) / np.linalg.matrix_rank(X - X.mean(axis=0)) * np.eye(X.shape[1])
    S = [(1 - gamma) * one + ridge for one in S]
    within = (1 - gamma) * within + ridge
    root = sqrtm(within)
    inverse = np.linalg.inv(root)
    C = np.zeros_like(within)
    for i in range(len(labels)):
        for j in range(i + 1, len(labels)):
            delta, pi, pj = means[i] - means[j], p[i] / (p[i] + p[j]), p[j] / (p[i] + p[j])
            M = inverse @ (pi * S[i] + pj * S[j]) @ inverse
            m = np.linalg.inv(sqrtm(M))
            unlike = logm(M) - pi * logm(inverse @ S[i] @ inverse) - pj * logm(inverse @ S[j] @ inverse)
            inner = m @ inverse @ np.outer(delta, delta) @ inverse @ m + unlike / (pi * pj)
            C += p[i] * p[j] * root @ inner @ root
    return C, within


def local_scatters(X, y, neighbors):
    """S̃_w and S̃_b of LFDA, pair by pair: ½ Σ_ij W_ij (x_i − x_j)(x_i − x_j)ᵀ."""
    n, d = X.shape
    apart = np.array([[np.sqrt(sum((a - b) ** 2)) for b in X] for a in X])
    scales = []
    for i in range(n):
        others = sorted(apart[i, j] for j in range(n) if j != i and y[j] == y[i])
        scales.append(others[min(neighbors, len(others)) - 1])
    within, between = np.zeros((2, d, d))
    for i in range(n):
        for j in range(n):
            outer = np.outer(X[i] - X[j], X[i] - X[j]) / 2
            if y[i] == y[j]:
                A, n_c = math.exp(-(apart[i, j] ** 2) / (scales[i] * scales[j])), (y == y[i]).sum()
                within += A / n_c * outer
                between += A * (1 / n - 1 / n_c) * outer
            else:
                between += 1 / n * outer
    return within, between


def label_contrasts(y):
    """One-hot labels times C − 1 orthonormal columns that sum to 0, centred."""
    labels = sorted(set(y))
    centring = np.eye(len(labels)) - 1 / len(labels)
    one_hot = np.array([[float(own == c) for c in labels] for own in y])
    u = one_hot @ np.linalg.svd(centring)[0][:, : len(labels) - 1]
    return u - u.mean(axis=0)


def joint_log_likelihood(X, U, Wx, Wy, noise_x, noise_y):
    """Mean log density of centred (x, u) under N(0, WWᵀ + diag(noises))."""
    T = np.c_[X, U]
    W = np.r_[Wx, Wy]
    covariance = W @ W.T + np.diag([noise_x] * X.shape[1] + [noise_y] * U.shape[1])
    quadratic = np.mean([t @ np.linalg.solve(covariance, t) for t in T])
    return -0.5 * (T.shape[1] * math.log(2 * math.pi) + np.linalg.slogdet(covariance)[1] + quadratic)


def em_step(X, U, Wx, Wy, noise_x, noise_y):
    """One step of EM for x = W_x z + ε_x, u = W_y z + ε_y (rows centred)."""
    M = np.linalg.inv(Wx.T @ Wx / noise_x + Wy.T @ Wy / noise_y + np.eye(Wx.shape[1]))
    Z = np.array([M @ (Wx.T @ x / noise_x + Wy.T @ u / noise_y) for x, u in zip(X, U, strict=True)])
    second = len(X) * M + Z.T @ Z
    Wx, Wy = (T.T @ Z @ np.linalg.inv(second) for T in (X, U))

    def noise(T, W):
        return np.mean([t @ t - 2 * t @ W @ z for t, z in zip(T, Z, strict=True)]) + np.trace(second @ W.T @ W) / len(T)

    floors = [1e-6 * np.mean(T**2) for T in (X, U)]
    noises = [max(noise(T, W) / T.shape[1], floor) for T, W, floor in zip((X, U), (Wx, Wy), floors, strict=True)]
    return Wx, Wy, *noises


def max_margin_pca_objective(X, y, W, Z, nu, C):
    """½‖ν‖² + L(X, Z, W) + C Σ ξ_n: equation 12 of the paper on data shifting, with equation 3 for more classes.

    L = A(ZᵀW) − tr ZᵀWX + ½ tr ZᵀZ, A of a Gaussian of variance 1, is ½‖x − Wᵀz‖² + ½‖z‖² summed over the rows, but for
    what depends on X alone. No offset b.
    """
    labels = sorted(set(y))
    total = 0.0
    for x, z, own in zip(X, Z, y, strict=True):
        total += 0.5 * sum((x - W.T @ z) ** 2) + 0.5 * sum(z**2)
        if len(labels) == 2:
            one = nu[1] - nu[0]
            sign = 1 if own == labels[1] else -1
            total += C * max(0.0, 1 - sign * (one @ z))
        else:
            total += C * max((own != label) + nu[at] @ z - nu[labels.index(own)] @ z for at, label in enumerate(labels))
    if len(labels) == 2:
        return total + 0.5 * sum((nu[1] - nu[0]) ** 2)
    return total + 0.5 * sum(sum(weights**2) for weights in nu)


def latent_row(x, own, W, nu, C):
    """The z of a row at which the objective is least, by a general solver: min ‖z‖² − z·Wx + Ct, t ≥ every loss."""
    along = W @ x
    losses = [
        {"type": "ineq", "fun": lambda v, w=w, y=y: v[-1] - (y != own) - (w - nu[own]) @ v[:-1]}
        for y, w in enumerate(nu)
    ]
    start = np.append(along / 2, max((y != own) + (w - nu[own]) @ along / 2 for y, w in enumerate(nu)))
    found = minimize(
        lambda v: v[:-1] @ v[:-1] - v[:-1] @ along + C * v[-1], start, method="SLSQP", constraints=losses,
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    return found.x[:-1]


def rounded_hinge(gap, width=0.25):
    """max(0, gap), with a parabola between 0 and the width."""
    if gap <= 0:
        return 0.0
    return gap**2 / (2 * width) if gap < width else gap - width / 2


def factor_objective(X, y, W, Z, V, constants, alpha, beta, loss):
    """Mean of ‖x − zW‖² + α·loss, and β times the classifier's squares, row by row; X centred, mean square length 1."""
    labels, total = sorted(set(y)), 0.0
    for x, z, own in zip(X, Z, y, strict=True):
        scores = z @ V + constants
        at = labels.index(own)
        if loss == "logistic":
            wrong = math.log(sum(math.exp(s - scores[at]) for s in scores))
        else:
            wrong = sum(rounded_hinge(1 - s if c == at else 1 + s) for c, s in enumerate(scores))
        total += (sum((x - z @ W) ** 2) + alpha * wrong) / len(X)
    return total + beta * np.sum(V**2)


def shared_factor_objective(X, y, M, alpha, beta):
    """−½ tr XᵀM(M+βI)⁻¹X/n + min_V α·mean loss(y_i, √n z_iV) + (β/2)‖V‖², ZZᵀ = M; X centred, mean square length 1."""
    n, labels = len(X), sorted(set(y))
    of_rows = -0.5 * np.trace(X.T @ M @ np.linalg.inv(M + beta * np.eye(n)) @ X) / n
    values, vectors = np.linalg.eigh(M)
    Z = vectors * np.sqrt(np.maximum(values, 0))

    def of_labels(flat):
        V = flat.reshape(n, len(labels))
        total = 0.0
        for z, own in zip(np.sqrt(n) * Z, y, strict=True):
            scores = z @ V
            total += math.log(sum(np.exp(scores - scores[labels.index(own)]))) / n
        return alpha * total + beta / 2 * np.sum(V**2)

    return of_rows + minimize(of_labels, np.zeros(n * len(labels)), options={"gtol": 1e-7}).fun


def soft_threshold(vector, keep):
    """mixOmics' rule: the largest size that is not kept is taken off all sizes."""
    sizes = sorted(abs(entry) for entry in vector)
    dropped = sizes[len(sizes) - keep - 1] if keep < len(sizes) else 0.0
    return np.array([math.copysign(max(abs(entry) - dropped, 0.0), entry) for entry in vector])


def partial_least_squares(X, y, keeps, scale_labels=False):
    """NIPALS of one-hot labels, both tables deflated: weights, scores, loadings of X and of Y, a column each.

    With scaled labels it is mixOmics' (s)plsda of a table that is scaled already.
    """
    labels = sorted(set(y))
    Y = np.array([[float(own == c) for c in labels] for own in y])
    X, Y = X - X.mean(axis=0), (Y - Y.mean(axis=0)) / (Y.std(axis=0) if scale_labels else 1.0)
    weights, scores, loadings, of_labels = [], [], [], []
    for keep in keeps:
        v = np.linalg.svd(X.T @ Y)[2][0]
        for _ in range(3000):
            w = soft_threshold(X.T @ (Y @ v), keep)
            w = w / np.linalg.norm(w)
            v = Y.T @ (X @ w)
            v = v / np.linalg.norm(v)
        t = X @ w
        p, q = X.T @ t / (t @ t), Y.T @ t / (t @ t)
        X, Y = X - np.outer(t, p), Y - np.outer(t, q)
        for found, one in ((weights, w), (scores, t), (loadings, p), (of_labels, q)):
            found.append(one)
    return tuple(np.array(found).T for found in (weights, scores, loadings, of_labels))


def importances(weights, scores, of_labels):
    """VIP of each feature, as a loop."""
    d, k = weights.shape
    explained = [sum(scores[:, h] ** 2) * sum(of_labels[:, h] ** 2) for h in range(k)]
    return [math.sqrt(d * sum(explained[h] * weights[j, h] ** 2 for h in range(k)) / sum(explained)) for j in range(d)]


SPREAD = "test_definitions.py::test_directions_and_eigenvalues_are_those_of_the_literal_sum"
LDA = "estimators/test_lda_family.py::"
FACTORS = "estimators/test_alternating.py::test_the_objective_is_that_of_the_definition_and_never_rises"
# The test that compares each method with its definition; `make method` runs it, and fails if a method has none.
DEFINITIONS = {
    **dict.fromkeys(MARGIN_ROWS, SPREAD),
    "bayes-error-lda": "estimators/test_bayes_error_lda.py::test_it_is_the_least_of_the_literal_sum",
    "regularized-lda": LDA + "test_regularised_by_its_definition",
    "fisher-lda": LDA + "test_fisher_directions_and_scale",
    "heteroscedastic-lda": "test_definitions.py::test_heteroscedastic_discriminants_are_those_of_the_literal_criterion",
    "uncorrelated-lda": LDA + "test_uncorrelated_identities",
    "orthogonal-lda": LDA + "test_orthogonal_is_an_orthonormal_basis_of_uncorrelated_span",
    "null-space-lda": LDA + "test_null_space_by_its_definition",
    "pca-lda": LDA + "test_pca_then_lda_by_its_definition",
    "max-margin-criterion": LDA + "test_maximum_margin_criterion_by_its_definition",
    "margin-subspace": "estimators/test_margin_subspace.py::test_singular_vectors_of_liblinears_weights",
    "max-margin-shift": "core/test_shift.py::test_the_shift_is_its_definition",
    "max-margin-pca": "estimators/test_max_margin_pca.py"
    "::test_the_objective_is_the_literal_one_with_every_row_at_its_least",
    "supervised-pca": "estimators/test_means_first.py::test_directions_are_those_of_the_definition",
    "screened-pca": "estimators/test_screened_pca.py"
    "::test_f_scores_selection_and_directions_are_those_of_the_definition",
    "optimal-low-rank": "estimators/test_means_first.py::test_directions_are_those_of_the_definition",
    "local-fisher-discriminant": "estimators/test_local_fisher_discriminant.py"
    "::test_directions_are_those_of_the_definition",
    "supervised-probabilistic-pca": "estimators/test_supervised_probabilistic_pca.py"
    "::test_em_never_falls_and_ends_where_the_fit_is",
    "support-vector-decomposition": FACTORS,
    "logistic-pca": FACTORS,
    "supervised-exponential-pca": "estimators/test_supervised_exponential_pca.py"
    "::test_the_objective_is_that_of_the_definition",
    "pairwise-eigenvectors": "estimators/test_pairwise_eigenvectors.py"
    "::test_first_of_every_pair_largest_first_then_the_second",
    "pls-da": "estimators/test_plsda.py::test_scores_loadings_and_importances_are_those_of_the_literal_deflation",
    "sparse-pls-da": "estimators/test_sparse_plsda.py::test_it_is_the_literal_deflation_with_thresholded_weights",
    "bayes-error-pca": "test_definitions.py::test_scores_of_every_component_and_the_choice_by_them",
    "posterior-map": "estimators/test_posterior_map.py::test_it_is_the_definition",
    "kernel-bayes-error-lda": "estimators/test_kernel_map.py"
    "::test_with_a_linear_kernel_the_method_behind_is_the_plain_one",
}
