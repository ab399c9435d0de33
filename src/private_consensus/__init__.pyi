"""Exported names of the package with their modules, for type checkers and editors."""

from . import privacy as privacy
from .api.results import simulate as simulate
from .audits.auditing import audit as audit
from .audits.functions import audit_function as audit_function
from .audits.functions import exact as exact
from .audits.functions import gamma_norm as gamma_norm
from .audits.functions import gaussian as gaussian
from .audits.functions import laplace as laplace
from .audits.functions import recording as recording
from .audits.observers import observe as observe
from .common.errors import InvalidInput as InvalidInput
from .core import algorithms as algorithms
from .core import networks as networks
from .core import problems as problems
from .core.algorithms.base import Algorithm as Algorithm
from .core.networks import Network as Network
from .core.problems import Problem as Problem
from .core.randomness import Streams as Streams
from .core.splitting import split as split
from .privacy import Budget as Budget
from .privacy import Relation as Relation
from .privacy import Release as Release
from .privacy import account as account
from .privacy import calibrate as calibrate
from .privacy import mechanisms as mechanisms

__version__: str
__all__: list[str]

def __dir__() -> list[str]: ...
