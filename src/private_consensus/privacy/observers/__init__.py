r"""Gaussian differential privacy against observers that see a part of the messages.

    system     an algorithm that is linear in private inputs and Gaussian noise (``systems``)
    observer   what is received, whose noise is known (``views``)
    changes    what a person's data may change: record or agent, once, constant, free (``changes``)
    mu         from below and from above, for inputs taken as given (``guarantees``)
    statement  what of it is a guarantee, and by which rule (``adaptivity``)

A :class:`Bracket` holds two certificates: a weighing of what is seen bounds mu from below, a shift
of the unknown noise from above. Where every message carries noise of its own they are computed in
floating point with all rounding errors bounded; else in exact rational arithmetic. No
pseudo-inverse decides what an observer can know.

A mean of mu over pairs is no guarantee for anyone; it is to be labelled as what it is.
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
from .guarantees import Bracket, all_victims, hears_everybody, mu, pairwise
from .laplace import laplace_epsilon
from .programs import (
    chebyshev_gossip,
    clean_state,
    decor,
    dimension_exchange,
    quadratic_admm,
    tracking,
    zip_dl,
)
from .systems import LinearSystem, Round, gossip, muffliato_gd, noised_descent
from .views import (
    Coalition,
    Eavesdropper,
    FinalModels,
    Observer,
    SecureSums,
    agent,
    secure_agent,
)

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
    "clean_state",
    "contraction_bound",
    "decor",
    "dimension_exchange",
    "gossip",
    "gradient_change",
    "hears_everybody",
    "laplace_epsilon",
    "light_cone_bound",
    "mu",
    "muffliato_gd",
    "noised_descent",
    "pairwise",
    "quadratic_admm",
    "secure_agent",
    "statement",
    "statements",
    "tracking",
    "zip_dl",
]
