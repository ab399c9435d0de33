"""Gaussian differential privacy against observers of a part of the messages.

    system     an algorithm that is linear in private inputs and Gaussian noise (``systems``)
    observer   the observed messages, and the agents whose noise is known (``views``)
    changes    allowed changes of private inputs, for the neighbouring relation (``changes``)
    mu         lower and upper bound, for fixed inputs (``guarantees``)
    statement  guaranteed mu, and the rule that proves it (``adaptivity``)

A :class:`Bracket` contains two bounds. A linear combination of the observations bounds mu from
below, a shift of the unknown noise bounds mu from above. If every message has independent noise,
the bounds are computed in floating point with all rounding errors bounded, otherwise in exact
rational arithmetic.
No result depends on a pseudo-inverse.

A mean of mu over pairs is no guarantee for any agent and must be labelled as a mean.
"""

from .adaptivity import (
    Inputs,
    Statement,
    contraction_bound,
    light_cone_bound,
    statement,
    statements,
)
from .changes import Changes, Constant, Cyclic, Free, Once, gradient_change
from .guarantees import Bracket, all_victims, mu, pairwise, receives_all_messages
from .laplace import laplace_epsilon
from .programs import chebyshev_gossip, decor, zip_dl
from .systems import LinearSystem, Round, gossip, muffliato_gd, noised_descent
from .views import Coalition, Eavesdropper, FinalModels, Observer, SecureSums, agent, secure_agent

__all__ = [
    "Bracket",
    "Changes",
    "Coalition",
    "Constant",
    "Cyclic",
    "Eavesdropper",
    "FinalModels",
    "Free",
    "Inputs",
    "LinearSystem",
    "Observer",
    "Once",
    "Round",
    "SecureSums",
    "Statement",
    "agent",
    "all_victims",
    "chebyshev_gossip",
    "contraction_bound",
    "decor",
    "gossip",
    "gradient_change",
    "laplace_epsilon",
    "light_cone_bound",
    "mu",
    "muffliato_gd",
    "noised_descent",
    "pairwise",
    "receives_all_messages",
    "secure_agent",
    "statement",
    "statements",
    "zip_dl",
]
