import time
from timeit import repeat

from ddpk8s_trainer.metrics import Recorder, StepTimer
from ddpk8s_trainer.metrics.timer import PARTS


def test_parts_add_up_to_the_wall_time_when_time_is_lapped():
    began = time.perf_counter()
    timer = StepTimer()
    time.sleep(0.02)
    timer.lap("data")
    time.sleep(0.05)
    timer.lap("forward")
    time.sleep(0.01)
    split = timer.take()
    ended = time.perf_counter()
    assert list(split) == list(PARTS)
    # A sleep may last longer, never shorter.
    assert split["data"] >= 0.02
    assert split["forward"] >= 0.05
    assert split["other"] >= 0.01
    assert split["backward"] == split["optimizer"] == 0
    assert 0.08 <= sum(split.values()) <= ended - began


def test_time_is_counted_once_when_taken_twice():
    timer = StepTimer()
    time.sleep(0.05)
    timer.lap("backward")
    assert timer.take()["backward"] >= 0.05
    assert timer.take()["backward"] == 0


def test_same_part_accumulates_when_lapped_often():
    timer = StepTimer()
    for _ in range(3):
        time.sleep(0.01)
        timer.lap("data")
        timer.lap("forward")
    assert timer.take()["data"] >= 0.03


def test_a_lap_costs_next_to_nothing_when_compared_with_the_smallest_tensor_operation():
    # A ratio, since machines differ: a lap against adding two one-element tensors.
    import torch

    torch.set_num_threads(1)
    timer, one = StepTimer(), torch.ones(1)
    lap = min(repeat(lambda: timer.lap("data"), number=2000, repeat=7))
    add = min(repeat(lambda: one + one, number=2000, repeat=7))
    assert lap < add


def test_other_ranks_timer_stays_at_zero_when_lapped():
    recorder = Recorder()
    time.sleep(0.01)
    recorder.timer.lap("data")
    assert set(recorder.timer.take().values()) == {0.0}
