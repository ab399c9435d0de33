"""What type checkers and editors read: every name that is exported, and where from."""

from . import algorithms as algorithms
from . import networks as networks
from . import privacy as privacy
from . import problems as problems
from .algorithms.base import Algorithm as Algorithm
from .algorithms.base import Iterative as Iterative
from .audits.audit import audit as audit
from .errors import InvalidInput as InvalidInput
from .library import simulate as simulate
from .networks import Network as Network
from .privacy import Budget as Budget
from .privacy import Guarantee as Guarantee
from .privacy import Relation as Relation
from .privacy import Release as Release
from .privacy import account as account
from .privacy import calibrate as calibrate
from .privacy import observers as observers
from .privacy import zcdp_epsilon as zcdp_epsilon
from .problems import Problem as Problem
from .randomness import Streams as Streams
from .splitting import split as split

__version__: str
__all__: list[str]

def __dir__() -> list[str]: ...
