"""Privacy losses to observers, for ``config/observers.yaml``."""

from collections.abc import Iterator, Mapping
from typing import Any

from private_consensus.audits.observers import KINDS, Observed
from private_consensus.core import algorithms
from private_consensus.core.randomness import Streams
from private_consensus.core.simulation import Setting, calibrated
from private_consensus.privacy import Budget

from ..results.cells import environment_of


def observer_rows(configuration: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the largest and the median epsilon by graph, algorithm, observer and distance.

    All algorithms are observed on the first graph, and that of the figure on all graphs.
    ``accounted`` is the accountant's epsilon against the eavesdropper.
    """
    budget, horizon = Budget(**configuration["budget"]), configuration["horizon"]
    for graph, network in configuration["graphs"].items():
        environment = environment_of({**configuration, "network": network}, {})
        streams = Streams(0, (0,))
        problem, built = environment.problem(streams), environment.network(streams).of_run(0)
        for title, parameters in configuration["algorithms"].items():
            drawn = title == configuration["drawn"]
            if not drawn and graph != next(iter(configuration["graphs"])):
                continue
            options = {key: value for key, value in parameters.items() if key != "name"}
            algorithm = algorithms.load(parameters["name"])(**options)
            noisy = calibrated(Setting(algorithm, budget, horizon), problem, built)
            observed = Observed(noisy, problem, built, horizon)
            for kind in KINDS:
                result = observed.result(kind, budget.delta)
                labels = {"graph": graph, "algorithm": title, "observer": kind}
                for row in result.summary():
                    yield {**labels, **row, "accounted": result.accounted, "drawn": drawn}
