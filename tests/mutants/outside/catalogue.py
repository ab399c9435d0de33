"""All algorithms of this package, correct and broken, with the privacy loss of each.

A ratio is a lower bound on the true epsilon at the claimed delta, divided by the claim.
It is infinite for an exact leak. It holds for the setting of the entry and for the
pair of data sets that ``neighbours`` describes.
"""

from dataclasses import dataclass
from math import inf, sqrt

try:
    from .settings import DIM, RECORDS, Setting, ratio_of_rounds
except ImportError:  # the folder itself is on the path
    from settings import DIM, RECORDS, Setting, ratio_of_rounds


@dataclass(frozen=True)
class Entry:
    """Entry of the catalogue: one algorithm with its known privacy loss.

    Parameters
    ----------
    module : str
        Name of its module in ``outside_algorithms``.
    kind : str
        Kind of algorithm if it is correct, class of fault if it is broken.
    derivation : str
        Reason for the loss that is declared, or for the ratio of a broken algorithm.
    setting : Setting
        Problem, network, budget and horizon of the claim.
    base : str
        Module of the correct algorithm whose releases a broken one declares; empty if correct.
    location : str
        Agent, output, edge or iteration that holds the fault; empty if correct.
    ratio : float
        Lower bound on the true epsilon over the claim; 1 at most for a correct algorithm.
    neighbours : str
        Pair of data sets for which the ratio holds; empty if correct.
    """

    module: str
    kind: str
    derivation: str
    setting: Setting
    base: str = ""
    location: str = ""
    ratio: float = 1.0
    neighbours: str = ""

    @property
    def correct(self):
        """True if the declared releases account for everything."""
        return not self.base


def _exact_centre_factor(records, penalty, horizon):
    """Return mu over the declared mu if the centre contains the exact minimiser."""
    carried = penalty / 2 / (records + penalty)
    changes = [sum(carried**k for k in range(t)) for t in range(1, horizon + 1)]
    return sqrt(sum(change**2 for change in changes) / horizon)


MEAN = Setting()
STAR = Setting(network="star", agents=5)
HUB = Setting(network="star", agents=5, options={"eta": 10.0})
LONG = Setting(horizon=30)
TURNS = Setting(horizon=20, options={"period": 5})
SHAME = Setting(horizon=10, delta=0.01)
FITTED = Setting(options={"eta": 0.1})
PENALISED = Setting(options={"D": 40.0})
CENTRED = Setting(horizon=10, options={"D": 100.0})
PURE_MEAN = Setting(delta=0.0)
HUBER = Setting(problem="huber_regression")
LOGISTIC = Setting(problem="logistic_regression")
PURE_LOGISTIC = Setting(problem="logistic_regression", delta=0.0)
SAMPLED = Setting(problem="logistic_regression", epsilon=1.0, horizon=10)
BATCHED = Setting(problem="logistic_regression", epsilon=1.0)


CORRECT = (
    Entry("one_release_gossip", "gossip with one release", "mu = (Delta/N)/sigma, once", MEAN),
    Entry(
        "signed_noise_gossip",
        "noise times a sign of the data",
        "symmetric noise: the distribution is that of one_release_gossip",
        MEAN,
    ),
    Entry(
        "float32_gossip",
        "messages in single precision",
        "post-processing of one_release_gossip",
        MEAN,
    ),
    Entry("cautious_gossip", "more noise than needed", "mu is 2/3 of what the claim allows", MEAN),
    Entry(
        "round_noise_descent",
        "gradient descent with noise in every round",
        "mu^2 = T (Delta/sigma)^2",
        MEAN,
    ),
    Entry(
        "grid_message_descent",
        "messages rounded to a grid",
        "post-processing of round_noise_descent",
        MEAN,
    ),
    Entry(
        "rotated_noise_descent",
        "noise behind a data-dependent reflection",
        "spherical noise: the distribution is that of round_noise_descent",
        HUBER,
    ),
    Entry(
        "alternating_descent",
        "limited contributions with the right count",
        "mu^2 = ceil(T/3) (Delta/sigma)^2",
        LOGISTIC,
    ),
    Entry(
        "momentum_descent",
        "momentum of noised gradients",
        "post-processing of noised gradients, mu^2 = T (Delta/sigma)^2",
        LOGISTIC,
    ),
    Entry(
        "message_report_descent",
        "outputs computed from messages",
        "post-processing of round_noise_descent",
        MEAN,
    ),
    Entry(
        "released_stop_descent",
        "early stopping by messages",
        "adaptive composition of at most T rounds",
        Setting(options={"tolerance": 2.0}),
    ),
    Entry(
        "secure_sum_descent",
        "sum of secure aggregation",
        "mu^2 = T (Delta/sigma)^2, sigma of the sum",
        MEAN,
    ),
    Entry(
        "clipped_record_descent", "clipped record gradients", "mu^2 = T (2C/(N sigma))^2", LOGISTIC
    ),
    Entry("row_average_gossip", "average computed from rows", "mu = (2/N)/sigma, once", LOGISTIC),
    Entry(
        "laplace_clip_descent",
        "Laplace noise with an l1 clip",
        "epsilon = T 2C/(N b)",
        PURE_LOGISTIC,
    ),
    Entry(
        "discrete_gaussian_gossip",
        "discrete Gaussian on a rounded query",
        "(Delta/(N g) + sqrt(p))^2/(2 sigma^2)-zCDP",
        MEAN,
    ),
    Entry("random_sign_gossip", "randomised response on signs", "epsilon = d epsilon_0", PURE_MEAN),
    Entry(
        "output_noise_admm",
        "ADMM with output perturbation",
        "mu^2 = T (Delta/((mu + D) s))^2",
        HUBER,
    ),
    Entry(
        "dual_noise_admm",
        "ADMM with dual perturbation",
        "mu^2 = T (Delta/s)^2 for a public Hessian",
        MEAN,
    ),
    Entry(
        "poisson_descent",
        "Poisson sampling of records",
        "T sampled Gaussians of rate q, add or remove",
        SAMPLED,
    ),
    Entry(
        "fixed_batch_descent",
        "random subsets of fixed size",
        "T sampled Gaussians without replacement, replace",
        BATCHED,
    ),
    Entry(
        "adaptive_clip_descent",
        "adaptive clip with a noised count",
        "mu^2 = T (4/sigma^2 + 1/tau^2)",
        LOGISTIC,
    ),
    Entry(
        "tree_noise_descent",
        "correlated noise of a binary tree",
        "mu^2 = (1 + floor(log2 T)) (2C/(N sigma))^2",
        LOGISTIC,
    ),
)

BROKEN = (
    Entry(
        "silent_last_agent",
        "no noise at one agent",
        "exact leak: the message is the exact mean",
        MEAN,
        base="one_release_gossip",
        location="last agent, round 1",
        ratio=inf,
        neighbours="any records of the last agent",
    ),
    Entry(
        "silent_middle_agent",
        "no noise at one agent",
        "exact leak: the message is the exact mean",
        MEAN,
        base="one_release_gossip",
        location="agent n // 2, round 1",
        ratio=inf,
        neighbours="any records of agent n // 2",
    ),
    Entry(
        "silent_last_coordinate",
        "no noise in one coordinate",
        "exact leak: the last coordinate of the mean",
        MEAN,
        base="one_release_gossip",
        location="last coordinate, round 1",
        ratio=inf,
        neighbours="any change of the last coordinate",
    ),
    Entry(
        "silent_hub",
        "leak of the agent of largest degree only",
        "exact leak: the hub sends its exact mean",
        STAR,
        base="one_release_gossip",
        location="hub of a star, round 1",
        ratio=inf,
        neighbours="any records of the hub, agent 0",
    ),
    Entry(
        "shared_noise_gossip",
        "noise shared by agents",
        "exact leak: differences of messages have no noise",
        MEAN,
        base="one_release_gossip",
        location="all agents, round 1",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "zero_sum_noise_gossip",
        "noise that cancels over agents",
        "exact leak: the sum of messages has no noise",
        MEAN,
        base="one_release_gossip",
        location="all agents, round 1",
        ratio=inf,
        neighbours="any change of a coordinate",
    ),
    Entry(
        "one_direction_noise",
        "noise of rank one",
        "exact leak: differences of coordinates have no noise",
        MEAN,
        base="one_release_gossip",
        location="differences of coordinates, round 1",
        ratio=inf,
        neighbours="coordinates that change by different amounts",
    ),
    Entry(
        "removed_noise_gossip",
        "noise cancelled later",
        "exact leak: W y(2) - y(3) is the noise of round 1",
        MEAN,
        base="one_release_gossip",
        location="all agents, round 3",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "exact_message_gossip",
        "noise on the shown value only",
        "exact leak: W times the exact means",
        MEAN,
        base="one_release_gossip",
        location="all agents, from round 2 on",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "exact_outcome_gossip",
        "exact value in the outcome",
        "exact leak: the exact average",
        MEAN,
        base="one_release_gossip",
        location="outcome `average`",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "exact_count_gossip",
        "exact count as a quantity",
        "exact leak: the counts differ with certainty",
        MEAN,
        base="one_release_gossip",
        location="observable `positive`",
        ratio=inf,
        neighbours="means with different numbers of positive coordinates",
    ),
    Entry(
        "one_neighbour_gossip",
        "exact value read by index",
        "exact leak: all other terms of the message are public",
        MEAN,
        base="one_release_gossip",
        location="agent 1 reads agent 2, round 2",
        ratio=inf,
        neighbours="any records of agent 2",
    ),
    Entry(
        "rolled_means_gossip",
        "exact values by np.roll",
        "exact leak: all other terms of the message are public",
        MEAN,
        base="one_release_gossip",
        location="all agents, round 2",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "mixed_means_gossip",
        "own product with the mixing matrix",
        "exact leak: W times the exact means",
        MEAN,
        base="one_release_gossip",
        location="all agents, round 2",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "one_edge_gossip",
        "exact value on one edge",
        "exact leak: all other terms of the message are public",
        MEAN,
        base="one_release_gossip",
        location="agent 0 to its first neighbour, round 2",
        ratio=inf,
        neighbours="any records of agent 0",
    ),
    Entry(
        "seeded_noise_gossip",
        "noise seeded by data",
        "exact leak: the message has one value per data set",
        MEAN,
        base="one_release_gossip",
        location="all agents, round 1",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "norm_scaled_noise",
        "noise that depends on the norm of the data",
        (
            "noise of 0.01 sigma for a mean of norm 0 and of 0.2 sigma for its "
            "neighbour: the loss on a typical message is about p ln(20) + 3.5^2/2 - "
            "p/2 = 18 for p = 5, claim 3"
        ),
        MEAN,
        base="one_release_gossip",
        location="all agents, round 1",
        ratio=5.0,
        neighbours="a mean of norm 0 and a neighbour at distance Delta/N",
    ),
    Entry(
        "clipped_noise_gossip",
        "noise that is clipped",
        ("exact leak: atoms at the mean plus and minus sigma, of probability 0.32 per coordinate"),
        MEAN,
        base="one_release_gossip",
        location="all agents, round 1",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "uniform_noise_gossip",
        "noise of bounded support",
        (
            "the supports differ: a shift of 0.31 sigma along each axis leaves a "
            "set of probability 0.09 per coordinate"
        ),
        MEAN,
        base="one_release_gossip",
        location="all agents, round 1",
        ratio=inf,
        neighbours="any change of at least 1e-4 of the box",
    ),
    Entry(
        "rounded_noise_gossip",
        "noise on a grid, value on none",
        "exact leak: the remainder modulo sigma/10",
        MEAN,
        base="one_release_gossip",
        location="all agents, round 1",
        ratio=inf,
        neighbours="means that differ by no multiple of sigma/10",
    ),
    Entry(
        "divided_noise_gossip",
        "noise divided by sqrt(dim)",
        "mu is sqrt(p) times as large, attained by opposite corners",
        MEAN,
        base="one_release_gossip",
        location="all agents, round 1",
        ratio=MEAN.gaussian_ratio(sqrt(DIM)),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "coordinate_sensitivity_gossip",
        "sensitivity in the wrong norm",
        "2R declared for 2R sqrt(p), attained by opposite corners",
        MEAN,
        base="one_release_gossip",
        location="declared sensitivity",
        ratio=MEAN.gaussian_ratio(sqrt(DIM)),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "lost_noise_gossip",
        "noise lost at random",
        "exact mean with probability 1/20, above delta",
        MEAN,
        base="one_release_gossip",
        location="each agent with probability 1/20, round 1",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "agent_claim_gossip",
        "relation that the sensitivity does not fit",
        "all records of an agent move the mean N times as far as one record",
        MEAN,
        base="one_release_gossip",
        location="declared relation",
        ratio=MEAN.gaussian_ratio(RECORDS),
        neighbours="all records of an agent in opposite corners",
    ),
    Entry(
        "half_noise_descent",
        "noise scaled inside the step",
        "mu is twice as large",
        MEAN,
        base="round_noise_descent",
        location="all agents, all rounds",
        ratio=MEAN.gaussian_ratio(2),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "quiet_second_round",
        "no noise in one round",
        "exact leak: exact gradient at a public point",
        MEAN,
        base="round_noise_descent",
        location="all agents, round 2",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "quiet_after_five",
        "no noise after a round",
        "exact leak: exact gradients at public points",
        Setting(horizon=8),
        base="round_noise_descent",
        location="all agents, from round 6 on",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "fading_noise_descent",
        "noise that fades",
        "mu^2 is the sum of 0.7^(-2t) over that of 1",
        MEAN,
        base="round_noise_descent",
        location="all agents, later rounds more",
        ratio=MEAN.gaussian_ratio(sqrt(sum(0.7 ** (-2 * t) for t in range(1, 6)) / 5)),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "kept_noise_descent",
        "noise reused in all rounds",
        (
            "exact leak: differences of exact gradients at different points (not "
            "for means, whose gradients differ by public amounts)"
        ),
        LOGISTIC,
        base="round_noise_descent",
        location="all agents, from round 2 on",
        ratio=inf,
        neighbours="another row of a record; the other label of the same row "
        "moves all gradients equally and leaks nothing",
    ),
    Entry(
        "antithetic_descent",
        "noise cancelled in pairs of rounds",
        "exact leak: the sum of two noised gradients is exact",
        MEAN,
        base="round_noise_descent",
        location="all agents, rounds 2, 4, ...",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "neighbour_gradient_descent",
        "local state of neighbours read directly",
        (
            "a record moves its own message and those of two neighbours equally, "
            "each with independent noise"
        ),
        MEAN,
        base="round_noise_descent",
        location="all edges, all rounds",
        ratio=MEAN.gaussian_ratio(sqrt(3)),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "two_step_descent",
        "data-dependent step length",
        (
            "a message within 0.006 noise lengths of the mixture has probability "
            "near 1 for short steps and below 1e-11 for long steps: a loss above "
            "25, claim 3"
        ),
        MEAN,
        base="round_noise_descent",
        location="all agents, each round",
        ratio=5.0,
        neighbours="gradients of norm below and above Delta at the origin",
    ),
    Entry(
        "private_stop_descent",
        "stopping by private data",
        ("exact leak: a message equal to the mixture has probability 0 for an active agent"),
        LOGISTIC,
        base="released_stop_descent",
        location="all agents, random round",
        ratio=inf,
        neighbours="gradients of norm below and above Delta",
    ),
    Entry(
        "censored_descent",
        "data-dependent threshold for sending",
        "exact leak: a repeated message has probability 0 otherwise",
        MEAN,
        base="round_noise_descent",
        location="all agents, each round",
        ratio=inf,
        neighbours="gradients of norm below and above Delta at the origin",
    ),
    Entry(
        "accepting_descent",
        "private choice between public points",
        "exact leak: the choice is a function of the data",
        MEAN,
        base="round_noise_descent",
        location="all agents, even rounds",
        ratio=inf,
        neighbours="any: some messages lie between the two data sets' boundaries",
    ),
    Entry(
        "exact_gradient_report",
        "exact value as a quantity",
        "exact leak: exact gradient at a public point",
        LOGISTIC,
        base="round_noise_descent",
        location="observable `slope`",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "exact_cost_report",
        "exact cost as a quantity",
        "exact leak: a number per run",
        HUBER,
        base="round_noise_descent",
        location="observable `cost`",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "error_count_report",
        "exact count as a quantity",
        "exact leak: the other label changes the count by one",
        LOGISTIC,
        base="round_noise_descent",
        location="observable `errors`",
        ratio=inf,
        neighbours="the other label of one record",
    ),
    Entry(
        "refined_outcome_descent",
        "post-processing that reads the data again",
        "exact leak: exact gradient at a public point",
        MEAN,
        base="round_noise_descent",
        location="outcome `final`",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "fitted_start_descent",
        "first iterate computed from data",
        (
            "with steps of 0.1/L and weights 1/3 the first message moves by (0.9/3 "
            "+ 0.1)/0.1 = 4 times the declared change, those of two neighbours by 3 "
            "times; four more rounds count 1"
        ),
        FITTED,
        base="round_noise_descent",
        location="all agents and neighbours, round 1",
        ratio=FITTED.gaussian_ratio(sqrt((4.0**2 + 2 * 3.0**2 + 4) / 5)),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "single_round_claim",
        "epsilon of one round claimed for the run",
        "T rounds for one",
        MEAN,
        base="round_noise_descent",
        location="declared count",
        ratio=ratio_of_rounds(5, 1, MEAN),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "capped_count_descent",
        "cap on contributions that is not applied",
        "30 rounds for ten",
        LONG,
        base="round_noise_descent",
        location="declared count, from round 11 on",
        ratio=ratio_of_rounds(30, 10, LONG),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "late_turns_descent",
        "turns ignored after some rounds",
        ("each agent takes part at least once until round 7 and 13 times after it; 4 are counted"),
        TURNS,
        base="alternating_descent",
        location="all agents, from round 8 on",
        ratio=ratio_of_rounds(14, 4, TURNS),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "mean_for_sum_descent",
        "sensitivity of a mean for a sum",
        "N times the declared sensitivity",
        MEAN,
        base="round_noise_descent",
        location="declared sensitivity",
        ratio=MEAN.gaussian_ratio(RECORDS),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "name_and_shame_descent",
        "delta used in every round",
        ("an exact gradient with probability 1 - 0.99^10 = 0.096, above delta = 0.01"),
        SHAME,
        base="round_noise_descent",
        location="each agent with probability delta, each round",
        ratio=inf,
        neighbours="any",
    ),
    Entry(
        "late_noise_momentum",
        "sensitivity without the weight of momentum",
        ("a record moves the momentum of round t by (1 - 0.8^t)/0.2 times the declared change"),
        MEAN,
        base="momentum_descent",
        location="all agents, from round 2 on",
        ratio=MEAN.gaussian_ratio(sqrt(sum(((1 - 0.8**t) / 0.2) ** 2 for t in range(1, 6)) / 5)),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "small_share_sum",
        "shares of noise that are too small",
        "sigma/sqrt(n) on the sum instead of sigma, n = 4",
        MEAN,
        base="secure_sum_descent",
        location="all agents, all rounds",
        ratio=MEAN.gaussian_ratio(2),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "shown_terms_sum",
        "secret terms shown",
        "sigma/sqrt(n) on each term instead of sigma, n = 4",
        MEAN,
        base="secure_sum_descent",
        location="observable `terms`",
        ratio=MEAN.gaussian_ratio(2),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "one_sided_clip_descent",
        "sensitivity too small by the factor 2",
        "opposite gradients of norm C, while margins stay below 2.1",
        LOGISTIC,
        base="clipped_record_descent",
        location="declared sensitivity",
        ratio=LOGISTIC.gaussian_ratio(2),
        neighbours="the other label of a row of norm 1",
    ),
    Entry(
        "coordinate_clip_descent",
        "clip in the wrong norm",
        "opposite gradients along the diagonal, C in each coordinate",
        LOGISTIC,
        base="clipped_record_descent",
        location="all agents, all rounds",
        ratio=LOGISTIC.gaussian_ratio(sqrt(DIM)),
        neighbours="the other label of a row (1, ..., 1)/sqrt(d)",
    ),
    Entry(
        "whole_clip_descent",
        "clip of the mean instead of the records",
        (
            "the other label moves the mean by 1/N = 0.1 at every point, 0.02 is "
            "declared; with zero rows the mean is never clipped"
        ),
        LOGISTIC,
        base="clipped_record_descent",
        location="all agents, all rounds",
        ratio=LOGISTIC.gaussian_ratio(5),
        neighbours="the other label of a row of norm 1, and zero rows",
    ),
    Entry(
        "large_gradient_descent",
        "records above a bound pass unclipped",
        (
            "at the origin gradients of rows of norm 1 have norm 0.5 and pass, 5 "
            "times the clip; later rounds count at least 1"
        ),
        LOGISTIC,
        base="clipped_record_descent",
        location="all agents, round 1 at least",
        ratio=LOGISTIC.gaussian_ratio(sqrt((5**2 + 4) / 5)),
        neighbours="the other label of a row of norm 1",
    ),
    Entry(
        "laplace_l2_clip_descent",
        "Laplace noise for an l2 sensitivity",
        (
            "l1 norm sqrt(d) times the l2 norm along the diagonal; pure losses are "
            "proportional to it"
        ),
        PURE_LOGISTIC,
        base="laplace_clip_descent",
        location="all agents, all rounds",
        ratio=sqrt(DIM),
        neighbours="the other label of a row (1, ..., 1)/sqrt(d)",
    ),
    Entry(
        "exact_clip_count",
        "adaptive clip without noise",
        "exact leak: the count of short gradients",
        LOGISTIC,
        base="adaptive_clip_descent",
        location="observable `clip`, all rounds",
        ratio=inf,
        neighbours="a zero row and a row of norm 1",
    ),
    Entry(
        "round_robin_sampling",
        "sampling without randomness",
        (
            "a record is in two of ten samples with certainty: mu = 0.354 sqrt(2), "
            "epsilon(1e-5) = 1.99, claim 1"
        ),
        SAMPLED,
        base="poisson_descent",
        location="all agents, all rounds",
        ratio=1.99,
        neighbours="a record of norm 1 and none",
    ),
    Entry(
        "kept_sample_descent",
        "sample drawn once and kept",
        (
            "with probability 0.2 a record is in all ten samples: epsilon = ln(1 + "
            "0.2 (exp(e) - 1)) for e = epsilon of mu = 0.354 sqrt(10) at delta/0.2"
        ),
        SAMPLED,
        base="poisson_descent",
        location="all agents, from round 2 on",
        ratio=2.98,
        neighbours="a record of norm 1 and none",
    ),
    Entry(
        "common_coin_sampling",
        "one coin for all records",
        (
            "the coin shows in the sum of the other records: a binomial number K of "
            "releases of mu = 0.354, with the mixture of the deltas of mu sqrt(K)"
        ),
        SAMPLED,
        base="poisson_descent",
        location="all agents, all rounds",
        ratio=2.8,
        neighbours="a record of norm 1 and none, other gradients equal and long",
    ),
    Entry(
        "fourfold_rate_sampling",
        "rate larger than declared",
        "the account for rate 0.8",
        SAMPLED,
        base="poisson_descent",
        location="all agents, all rounds",
        ratio=4.03,
        neighbours="a record of norm 1 and none",
    ),
    Entry(
        "first_records_batch",
        "batches without randomness",
        ("record 0 is in all batches: mu = sqrt(5)/2.281, epsilon(1e-5) = 4.28, claim 1"),
        BATCHED,
        base="fixed_batch_descent",
        location="the first m records, all rounds",
        ratio=4.27,
        neighbours="the other label of record 0",
    ),
    Entry(
        "level_noise_tree",
        "noise of a level reused",
        "exact leak: P_3 - P_2 - P_1 = g_3 - g_1",
        LOGISTIC,
        base="tree_noise_descent",
        location="all agents, round 3",
        ratio=inf,
        neighbours="any change of a record of round 1 or 3",
    ),
    Entry(
        "leaf_count_tree",
        "nodes above the leaves not counted",
        "the record of round 1 is in the nodes of rounds 1, 2 and 4",
        LOGISTIC,
        base="tree_noise_descent",
        location="declared count",
        ratio=ratio_of_rounds(3, 1, LOGISTIC),
        neighbours="the other label of record 0, a row of norm 1",
    ),
    Entry(
        "every_round_tree",
        "records in every round instead of one",
        (
            "nodes of 1, 2, 1, 4, 1 leaves move by so many times the declared "
            "change; 3 are counted, while margins stay below 1.3"
        ),
        LOGISTIC,
        base="tree_noise_descent",
        location="all agents, from round 2 on",
        ratio=LOGISTIC.gaussian_ratio(sqrt((1 + 4 + 1 + 16 + 1) / 3)),
        neighbours="the other label of a row of norm 1",
    ),
    Entry(
        "one_coin_signs",
        "one coin for all coordinates",
        "exact leak: products of signs",
        PURE_MEAN,
        base="random_sign_gossip",
        location="all agents, round 1",
        ratio=inf,
        neighbours="means of which one coordinate changes its sign",
    ),
    Entry(
        "fresh_sign_rounds",
        "randomised response repeated",
        "T independent responses for one",
        PURE_MEAN,
        base="random_sign_gossip",
        location="all agents, from round 2 on",
        ratio=5.0,
        neighbours="means of which all coordinates change their signs",
    ),
    Entry(
        "unrounded_query_gossip",
        "discrete noise on a value off the grid",
        "exact leak: the remainder modulo the grid",
        MEAN,
        base="discrete_gaussian_gossip",
        location="all agents, round 1",
        ratio=inf,
        neighbours="means that differ by no multiple of 0.05",
    ),
    Entry(
        "present_rows_average",
        "divisor that depends on the data",
        "a record moves the average of one row by 2, 2/N is declared",
        LOGISTIC,
        base="row_average_gossip",
        location="all agents, round 1",
        ratio=LOGISTIC.gaussian_ratio(RECORDS),
        neighbours="opposite rows of norm 1, and zero rows",
    ),
    Entry(
        "equal_labels_average",
        "leak if all labels are equal",
        "exact leak: the exact average",
        LOGISTIC,
        base="row_average_gossip",
        location="an agent with equal labels, round 1",
        ratio=inf,
        neighbours="equal labels, and one label changed",
    ),
    Entry(
        "zero_average_gossip",
        "leak if a value is zero",
        ("exact leak: the message 0 has positive probability for one data set only"),
        LOGISTIC,
        base="row_average_gossip",
        location="an agent with a zero average, round 1",
        ratio=inf,
        neighbours="zero rows, and one row that is not zero",
    ),
    Entry(
        "duplicate_rows_average",
        "leak if records are duplicates",
        "exact leak: the exact average",
        LOGISTIC,
        base="row_average_gossip",
        location="an agent with two equal rows, round 1",
        ratio=inf,
        neighbours="two equal rows, and one of them changed",
    ),
    Entry(
        "unit_rows_average",
        "leak for records at the bound",
        "opposite rows of norm 1 move the average by 10/N, 2/N is declared",
        LOGISTIC,
        base="row_average_gossip",
        location="rows of norm 1, round 1",
        ratio=LOGISTIC.gaussian_ratio(5),
        neighbours="opposite rows of norm 1",
    ),
    Entry(
        "over_relaxed_admm",
        "method inherited with a claim that does not fit",
        ("the message moves by 1.8 times the minimiser, while minimisers stay in the box"),
        MEAN,
        base="output_noise_admm",
        location="all agents, all rounds",
        ratio=MEAN.gaussian_ratio(1.8),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "quarter_penalty_admm",
        "smaller penalty than declared",
        "(N + D)/(N + D/4) for D = 40, while minimisers stay in the box",
        PENALISED,
        base="output_noise_admm",
        location="all agents, all rounds",
        ratio=PENALISED.gaussian_ratio(50 / 20),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "hub_penalty_admm",
        "sensitivity of the best protected agent",
        ("(N + 80)/(N + 20) for degrees 4 and 1, while minimisers stay in the box"),
        HUB,
        base="output_noise_admm",
        location="leaves of a star, all rounds",
        ratio=HUB.gaussian_ratio(90 / 30),
        neighbours="opposite corners of the box, an agent other than agent 0",
    ),
    Entry(
        "exact_centre_admm",
        "local state that is not a message",
        (
            "the change of round t is N + D/2 times that of the round before, over "
            "N + D, while minimisers stay in the box"
        ),
        CENTRED,
        base="output_noise_admm",
        location="all agents, from round 2 on",
        ratio=CENTRED.gaussian_ratio(_exact_centre_factor(10, 100.0, 10)),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "warm_start_admm",
        "warm start from the exact minimiser",
        (
            "with D = 40 the first minimiser moves by (N + D/2)/N = 3 times the "
            "declared change, those of two neighbours by 1; four more rounds count "
            "1"
        ),
        PENALISED,
        base="output_noise_admm",
        location="all agents and neighbours, round 1",
        ratio=PENALISED.gaussian_ratio(sqrt((3**2 + 2 + 4) / 5)),
        neighbours="opposite corners of the box",
    ),
    Entry(
        "exact_dual_admm",
        "dual updated with the exact minimiser",
        "exact leak: the minimiser follows from two duals and public messages",
        MEAN,
        base="output_noise_admm",
        location="observable `dual`, all rounds",
        ratio=inf,
        neighbours="any",
    ),
)

ENTRIES = CORRECT + BROKEN
