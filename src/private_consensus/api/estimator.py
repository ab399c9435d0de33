"""Logistic regression on the agents of a network, as an estimator of scikit-learn."""

from __future__ import annotations

import dataclasses
import secrets
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from private_consensus.audits.judging import SLACK
from private_consensus.common.errors import InvalidInput, arguments, require
from private_consensus.core import algorithms, networks
from private_consensus.core.algorithms.base import Algorithm, step_parameters
from private_consensus.core.networks import Network
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.randomness import Streams
from private_consensus.core.splitting import SCALARS, UnscaledColumns, split
from private_consensus.privacy import Budget

from .results import Result, simulate


class DecentralizedLogisticRegression(ClassifierMixin, BaseEstimator):
    r"""Binary logistic regression, trained by agents on a network.

    The records are assigned to agents at random (:func:`private_consensus.split`). An algorithm of
    the registry runs for ``horizon`` iterations within the privacy budget. The average of the
    released models is used for predictions. The guarantee covers the model of one call of ``fit``.

    Parameters
    ----------
    algorithm : str, default "muffliato_gd"
        Name of an algorithm that solves logistic regression.
    epsilon : float, default 1.0
        Epsilon of the budget per call of ``fit``; ``inf`` for no privacy.
    delta : float, default 1e-5
        Delta of the budget.
    agents : int, default 10
        Number of agents, or the number of records if that is smaller.
    network : str or Network, default "ring"
        Name of a graph family, or a network with as many agents.
    horizon : int, default 100
        Number of iterations.
    bound : float or None, default None
        l2 norm to which ``fit`` scales longer records; predictions do not scale records. None: the
        largest norm of a record, which is computed from the records and allowed for an infinite
        ``epsilon`` only.
    classes : sequence of two labels or None, default None
        Label set. None: computed from the records, which is allowed for an infinite ``epsilon``
        only.
    ridge : float, default 0.001
        Weight of the regulariser.
    parameters : dict or None, default None
        Parameters of the algorithm. The default of a step size is 1/L, with the smoothness L.
    random_state : int, RandomState or None, default None
        Seed of the assignment of records to agents and of the noise. An application needs None:
        equal seeds give equal noise, which cancels in the difference of two models.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        Labels in ascending order.
    coef_ : ndarray, shape (1, features)
        Coefficients.
    intercept_ : ndarray, shape (1,)
        Intercept.
    result_ : Result
        Result of the simulation, with its guarantee and models.
    n_features_in_ : int
        Number of features.
    n_iter_ : int
        Number of iterations.
    """

    def __init__(
        self,
        algorithm: str = "muffliato_gd",
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        agents: int = 10,
        network: str | Network = "ring",
        horizon: int = 100,
        bound: float | None = None,
        classes: Sequence[object] | None = None,
        ridge: float = 0.001,
        parameters: dict[str, object] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.algorithm = algorithm
        self.epsilon = epsilon
        self.delta = delta
        self.agents = agents
        self.network = network
        self.horizon = horizon
        self.bound = bound
        self.classes = classes
        self.ridge = ridge
        self.parameters = parameters
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> DecentralizedLogisticRegression:
        """Fit the model to records.

        Parameters
        ----------
        X : array_like, shape (records, features)
            Features.
        y : array_like, shape (records,)
            Labels with two classes.

        Returns
        -------
        DecentralizedLogisticRegression
            The estimator itself.

        Raises
        ------
        InvalidInput
            If ``epsilon`` is finite and ``bound`` or ``classes`` is None, or if the accountant's
            guarantee for the algorithm is weaker than the budget, or not proven.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        budget = Budget(self.epsilon, self.delta)
        self.classes_ = self._label_set(y, budget)
        bound = self._row_bound(X, budget)
        seed = self._seed()
        agents = min(arguments.whole("agents", self.agents, 1), len(X))
        labels = tuple(self.classes_.tolist())
        is_known = np.isin(y, self.classes_)
        require(bool(is_known.all()), "y", y[~is_known][:1].tolist(), f"labels of classes={labels}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnscaledColumns)  # fit has no argument for bounds
            shares = split(X, label=y, agent=agents, labels=labels, clip=bound, seed=seed)
        problem = shares.logistic_regression(self.ridge)
        expected = "a mapping of parameters of the algorithm, or None"
        parameters = {} if self.parameters is None else self.parameters
        arguments.instance("parameters", parameters, Mapping, expected)
        algorithm = _with_default_steps(self.algorithm, parameters, problem)
        self.result_: Result = simulate(
            algorithm, problem, self._network(agents), budget, self.horizon,
            runs=1, seed=seed, iterations=[self.horizon],
        )  # fmt: skip
        guarantee = self.result_.guarantee
        expected = f"an algorithm with a proven guarantee of {budget} for this horizon"
        within = guarantee.proven and guarantee.epsilon <= budget.epsilon * (1 + SLACK)
        require(within or not budget.private, "algorithm", self.algorithm, expected)
        coefficients = shares.coefficients(self.result_.models.average[0])
        self.intercept_ = np.array([coefficients.pop("intercept")])
        self.coef_ = np.array([list(coefficients.values())])
        self.n_iter_ = self.horizon
        return self

    def _seed(self) -> int:
        """Return the root seed of the random streams; without a random state it is secret."""
        if self.random_state is None:
            return secrets.randbits(127)
        try:
            random = check_random_state(self.random_state)
        except (TypeError, ValueError) as error:
            expected = "None, a whole number from 0 to 2**32 - 1, or a RandomState"
            raise InvalidInput("random_state", self.random_state, expected) from error
        return int(random.randint(2**31 - 1))

    def _label_set(self, y: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the two labels in ascending order."""
        if self.classes is None:
            expected = "the two labels; they are computed from records for epsilon=inf only"
            require(not budget.private, "classes", None, expected)
        else:
            expected = "two different labels"
            labels = np.unique(arguments.items("classes", self.classes, SCALARS, expected))
            require(len(labels) == 2, "classes", self.classes, expected)
            return labels
        labels = unique_labels(y)
        if len(labels) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass: "
                f"{len(labels)} classes"
            )
        if len(labels) < 2:
            raise ValueError(f"Classifier can't train when only one class is present: {labels}")
        return labels

    def _row_bound(self, X: np.ndarray, budget: Budget) -> float:
        """Return the l2 norm to which longer records are scaled."""
        if self.bound is not None:
            return self.bound
        expected = "an l2 norm; it is computed from records for epsilon=inf only"
        require(not budget.private, "bound", None, expected)
        return float(np.linalg.norm(X, axis=1).max()) or 1.0

    def _network(self, agents: int) -> Network:
        """Return the network of the agents."""
        if not isinstance(self.network, str):
            return self.network
        name = {1: "single", 2: "complete"}.get(agents, self.network)
        return networks.build(Streams(0, (0,)), name, agents)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the log odds of the second class; shape (records,)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return X @ self.coef_[0] + self.intercept_[0]

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the more probable class of each record; shape (records,)."""
        odds = self.decision_function(X)  # refuses an estimator that is not fitted
        return self.classes_[(odds > 0).astype(int)]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the probabilities of both classes; shape (records, 2)."""
        odds = np.clip(self.decision_function(X), -700.0, 700.0)
        second = 1.0 / (1.0 + np.exp(-odds))
        return np.column_stack([1.0 - second, second])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _with_default_steps(
    name: str, values: Mapping[str, object], problem: LogisticRegression
) -> Algorithm:
    """Return an algorithm with parameters; missing step sizes are the defaults, in units of 1/L."""
    kind = algorithms.load(name)
    names = [field.name for field in dataclasses.fields(kind)]
    for parameter in values:
        expected = f"a parameter of {name}: {', '.join(names)}"
        require(parameter in names, "parameters", parameter, expected)
    steps = step_parameters(kind(**values))
    scale = 1.0 / float(np.max(problem.smoothness))
    defaults = {step: kind.ranges[step].default * scale for step in steps if step not in values}
    return kind(**defaults, **values)
