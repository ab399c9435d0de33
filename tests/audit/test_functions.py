"""Test audits of functions of a data set."""

import ctypes
import itertools
import os
import random
import sqlite3
import subprocess
import threading
import warnings
from contextlib import closing
from functools import lru_cache, partial
from tempfile import NamedTemporaryFile
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

import private_consensus as pc
from private_consensus.audits import workers
from private_consensus.audits.frozen import freeze
from private_consensus.common.errors import InvalidInput

DATA = np.array([0.1, 0.4, 0.9])
NEIGHBOURS = [np.array([x, 0.4, 0.9]) for x in (0.0, 1.0, 0.5)]
CALLS = []


def noisy_mean(data, scale=1.0, sensitivity=1 / 3):
    return 2 * pc.gaussian(data.mean(), sensitivity, scale)


def all_mechanisms(data):
    total = pc.laplace(data.sum(), 1.0, 2.0)
    if total > 0:
        return total + pc.gamma_norm(data, 1.0, 1.0).sum()
    return total


def branch_on_data(data):
    value = pc.gaussian(data.mean(), 1 / 3, 1.0)
    return value if data[0] > 0.3 else -value


def further_release(data):
    value = pc.gaussian(data.mean(), 1 / 3, 1.0)
    return value + pc.gaussian(data.mean(), 1 / 3, 1.0) if data[0] > 0.3 else value


def own_noise(data):
    return data.mean() + np.random.default_rng(0).standard_normal()


def global_state(data):
    random.seed(int(10 * data[0]))
    np.random.seed(0)  # noqa: NPY002
    return pc.gaussian(data.mean(), 1 / 3, 1.0)


def error_on_large_data(data):
    if data[0] > 0.9:
        raise ValueError("too large")
    return pc.gaussian(data.mean(), 1 / 3, 1.0)


def always_fails(data):
    raise ValueError("always")


def number_of_calls(data):
    CALLS.append(data)
    return pc.gaussian(data.mean(), 1 / 3, 1.0) + len(CALLS)


def scale_of_data(data):
    return pc.gaussian(data.mean(), 1 / 3, 1.0 + data[0])


def shape_of_data(data):
    return pc.gaussian(data[data > 0.3], 1.0, 1.0).sum()


def wrong_number(data):
    return pc.gaussian(np.inf, 1.0, 1.0)


def cached_noise_free_mean(data, cache={}):  # noqa: B006
    return pc.gaussian(cache.setdefault("mean", data.mean()), 0.01, 1.0)


def function_of_data(data):
    return lambda: data.mean()


def printed_mean(data):
    print(data.mean())
    return pc.gaussian(data.mean(), 1 / 3, 1.0)


def warning_of_data(data):
    if data[0] > 0.3:
        warnings.warn("large", stacklevel=1)
    return pc.gaussian(data.mean(), 1 / 3, 1.0)


LATEST = [0.0]


def kept_mean(data):
    LATEST[0] = data.mean()
    return pc.gaussian(data.mean(), 1 / 3, 1.0)


def kept_output(data):
    LATEST[0] = float(pc.gaussian(data.mean(), 1 / 3, 1.0))
    print(LATEST[0])
    return (value for value in LATEST)


def late_values(data):
    pc.gaussian(data.mean(), 1 / 3, 1.0)
    return (float(value) for value in data)


class Labelled(np.ndarray):
    """Array with an attribute."""


def attribute_of_an_array(data):
    result = pc.gaussian(data, 1.0, 1.0).view(Labelled)
    result.total = data.sum()
    return result


def repeated_until_close(data):
    close = False
    while not close:
        value = pc.gaussian(data.mean(), 1 / 3, 1.0)
        close = abs(value - data.mean()) < 0.3
    return value


class Statistics:
    largest = 0.0
    values: ClassVar = []

    @staticmethod
    def noisy_mean(data):
        return noisy_mean(data)


def kept_in_a_class(data):
    Statistics.largest = max(Statistics.largest, data.max())
    return Statistics.noisy_mean(data)


SETTINGS = ModuleType("settings")


@lru_cache
def remembered(value):
    Statistics.values.append(value)
    SETTINGS.value = value


def kept_by_a_helper(chosen, data):
    output = float(noisy_mean(data))
    remembered(chosen(data, output))
    return output


def kept_in_a_result(chosen, data):
    class Model:
        def __init__(self, value):
            self.predict = lambda: value

    return [Model(chosen(data, noisy_mean(data)))]


def settings_of_numpy(chosen, data):
    np.set_printoptions(precision=3 if chosen(data, noisy_mean(data)) > 0.5 else 8)


NUMBERS = itertools.count()


def numbered(data):
    next(NUMBERS)
    return noisy_mean(data)


def exact_mean(data):
    return pc.exact(data.mean(), "a test")


@pytest.mark.parametrize(
    ("function", "verdict", "reason"),
    [
        (noisy_mean, "not contradicted", ""),
        (all_mechanisms, "not contradicted", ""),
        (partial(noisy_mean, sensitivity=0.25), "understated", "1.2 times its sensitivity"),
        (branch_on_data, "leaks", "returned value"),
        (further_release, "leaks", "number of releases depends on the data"),
        (own_noise, "leaks", "returned value"),
        (global_state, "leaks", "states of random numbers"),
        (error_on_large_data, "leaks", "only the neighbour fails: ValueError: too large"),
        (always_fails, "not executed", "always"),
        (number_of_calls, "leaks", "variables outside"),
        (scale_of_data, "leaks", "mechanism of release 1 depends on the data"),
        (shape_of_data, "leaks", "shape of release 1 depends on the data"),
        (wrong_number, "refused", "not finite"),
        (cached_noise_free_mean, "leaks", "variables outside"),
        (printed_mean, "leaks", "printed texts"),
        (warning_of_data, "leaks", "warnings"),
        (kept_mean, "leaks", "variables outside"),
        (kept_in_a_class, "leaks", "variables outside"),
        (kept_output, "not contradicted", ""),
        (numbered, "not contradicted", ""),
        (late_values, "leaks", "returned value"),
        (attribute_of_an_array, "leaks", "returned value"),
        (repeated_until_close, "leaks", "number of releases"),
        (function_of_data, "leaks", "returned value"),
        (exact_mean, "no finite guarantee", "without noise"),
    ],
)
def test_a_function_is_audited_by_its_noise_calls(function, verdict, reason):
    result = pc.audit_function(function, DATA, NEIGHBOURS, delta=1e-5)
    assert result.verdict == verdict and reason in result.reason, result


def test_epsilon_is_the_largest_of_executions_whose_releases_depend_on_outputs():
    def until_positive(data):
        while pc.gaussian(data.mean(), 1 / 3, 1.0) < 0.5:
            pass

    result = pc.audit_function(until_positive, DATA, NEIGHBOURS, delta=1e-5)
    single = pc.account([pc.Release("gaussian", 1 / 3, 1.0)], 1e-5).epsilon
    assert result.epsilon > 1.2 * single and "depend on earlier outputs" in result.notes[0]


def of_the_data(data, output):
    return float(data[0])


def of_the_output(data, output):
    return float(output)


def of_a_neighbour(data, output):
    return float(output) if data[0] < 1 else 0.0


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (kept_by_a_helper, "variables outside"),
        (kept_in_a_result, "returned value"),
        (settings_of_numpy, "settings of NumPy"),
    ],
)
def test_values_outside_of_a_function_may_depend_on_outputs_only(function, reason):
    for chosen in (of_the_data, of_a_neighbour):
        result = pc.audit_function(partial(function, chosen), DATA, NEIGHBOURS, delta=1e-5)
        assert result.verdict == "leaks" and reason in result.reason
    result = pc.audit_function(partial(function, of_the_output), DATA, NEIGHBOURS, delta=1e-5)
    assert result.verdict == "not contradicted"


def appended(path, text):
    with open(path, "a") as file:
        file.write(text)


def replaced(path, text):
    with NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    os.replace(file.name, path)


def in_a_temporary_file(path, text):
    with NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)


def in_a_database(path, text):
    with closing(sqlite3.connect(path.with_suffix(".db"))) as database, database:
        database.execute("create table if not exists value (text)")
        database.execute("insert into value values (?)", (text,))


def by_a_library_in_another_language(path, text):
    library = ctypes.CDLL(None)
    descriptor = library.creat(bytes(path.with_suffix(".txt2")), 0o600)
    library.write(descriptor, text.encode(), len(text))
    library.close(descriptor)


@pytest.mark.parametrize(
    "write",
    [appended, replaced, in_a_temporary_file, in_a_database, by_a_library_in_another_language],
)
def test_written_files_may_depend_on_outputs_only(write, tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("earlier")

    def function(chosen, data):
        write(path, str(chosen(data, noisy_mean(data))))

    result = pc.audit_function(partial(function, of_the_data), DATA, NEIGHBOURS, delta=1e-5)
    assert result.verdict == "leaks" and "written files" in result.reason
    result = pc.audit_function(partial(function, of_the_output), DATA, NEIGHBOURS, delta=1e-5)
    assert result.verdict == "not contradicted"
    assert path.read_text() == "earlier"
    restored = write is not by_a_library_in_another_language
    assert (list(tmp_path.iterdir()) == [path]) == restored


def test_environment_variables_of_the_data_are_leaks_and_other_processes_are_refused():
    def exported(data):
        os.environ["VALUE"] = f"{data[0]}"

    result = pc.audit_function(exported, DATA, NEIGHBOURS)
    assert result.verdict == "leaks" and "environment" in result.reason
    result = pc.audit_function(lambda data: subprocess.run(["true"]), DATA, NEIGHBOURS)
    assert result.verdict == "refused" and "subprocess.Popen" in result.reason


def test_a_function_that_waits_for_ever_is_not_executed(monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 0.2)
    result = pc.audit_function(lambda data: threading.Event().wait(), DATA, NEIGHBOURS)
    assert (result.verdict, result.reason) == ("not executed", workers.BLOCKED)


def test_gaussian_noise_has_no_guarantee_at_delta_0():
    result = pc.audit_function(noisy_mean, DATA, NEIGHBOURS)
    assert result.verdict == "no finite guarantee" and "needs delta > 0" in result.reason


def test_neighbours_that_equal_the_data_are_noted():
    result = pc.audit_function(noisy_mean, DATA, [DATA.copy(), *NEIGHBOURS], delta=1e-5)
    assert "equal to the data set: neighbours 1" in result.notes


def test_the_largest_excess_is_quoted():
    less, more = DATA.copy(), DATA.copy()
    less[0], more[0] = DATA[0] - 0.5, DATA[0] - 1.0
    result = pc.audit_function(partial(noisy_mean, sensitivity=0.1), DATA, [less, more], delta=1e-5)
    assert f"changes by {max(result.reached.values()):.6g} times" in result.reason
    assert "(neighbour 2)" in result.reason


def test_a_recording_gives_the_releases_for_the_accountant():
    with pc.recording(seed=1) as record:
        first = noisy_mean(DATA)
        noisy_mean(DATA)
    epsilon = pc.account(record.releases, 1e-5).epsilon
    expected = pc.privacy.gaussian_epsilon(np.sqrt(2) / 3, 1e-5)
    assert epsilon == pytest.approx(expected, rel=1e-6)
    with pc.recording(seed=1):
        assert noisy_mean(DATA) == first
    assert noisy_mean(DATA) != noisy_mean(DATA)


def test_invalid_arguments_are_refused():
    for call in (
        lambda: pc.gaussian(0.0, 1.0, 0.0),
        lambda: pc.laplace(0.0, -1.0, 1.0),
        lambda: pc.gamma_norm(0.0, np.nan, 1.0),
        lambda: pc.audit_function(noisy_mean, DATA, []),
        lambda: pc.audit_function(None, DATA, NEIGHBOURS),
    ):
        with pytest.raises(InvalidInput):
            call()


def test_frozen_values_are_equal_for_identical_values_only():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    values = [
        0.0, -0.0, 0, False, None, "0", (0,), [0], {"a": 1, "b": 2}, {"b": 2, "a": 1}, {1, 2},
        np.zeros(2), np.zeros(2, np.float32), np.zeros((2, 1)), -np.zeros(2), np.array([np.nan, 0]),
        masked, np.ma.array([1.0, 2.0]), pc.Budget(1.0), pc.Budget(1.0, 1e-5),
    ]  # fmt: skip
    frozen = [freeze(value) for value in values]
    assert len(set(frozen)) == len(values)
    work = np.zeros(2)
    before = freeze(work)
    work += 1
    assert freeze(work) != before == freeze(np.zeros(2))
