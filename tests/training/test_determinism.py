import subprocess
import sys

import numba
import torch

from pathdex.training.determinism import deterministic, seed_step, set_threads


def test_deterministic_algorithms_are_on_inside_and_as_before_outside() -> None:
    assert not torch.are_deterministic_algorithms_enabled()
    with deterministic(torch.device("cpu")):
        assert torch.are_deterministic_algorithms_enabled()
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_failure_inside_restores_what_was_before() -> None:
    try:
        with deterministic(torch.device("cpu")):
            raise ValueError
    except ValueError:
        pass
    assert not torch.are_deterministic_algorithms_enabled()


def test_threads_are_those_of_torch_and_of_compiled_code() -> None:
    before = torch.get_num_threads(), numba.get_num_threads()
    set_threads(1)
    assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)
    set_threads(None)
    assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)
    torch.set_num_threads(before[0])
    numba.set_num_threads(before[1])


def test_a_seeded_step_draws_what_torch_draws_with_that_seed() -> None:
    torch.manual_seed(7)
    expected = torch.rand(5)
    seed_step(7, torch.device("cpu"))
    assert torch.rand(5).equal(expected)


def test_the_compiler_of_torch_is_not_imported() -> None:
    program = (
        "import sys, torch; from pathdex.training.determinism import deterministic\n"
        "with deterministic(torch.device('cpu')): torch.rand(2).sum()\n"
        "assert 'torch._inductor' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
