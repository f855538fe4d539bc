"""A clock that is wrong on one node changes nothing: times of different nodes are never compared."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.agent.gang import Gang

SHIFT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) { const char *text = getenv("SHIFT_SECONDS"); return text ? atol(text) : 0; }
int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += shift();
    return code;
}
time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *now, void *zone) {
    int (*real)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
    int code = real(now, zone);
    if (now) now->tv_sec += shift();
    return code;
}
"""


@pytest.fixture
def shift(tmp_path: Path) -> Path:
    """A library that sets the clock of a process wrong."""
    if not shutil.which("gcc"):
        pytest.skip("no wrong clock: there is no gcc to build one with")
    source, library = tmp_path / "shift.c", tmp_path / "shift.so"
    source.write_text(SHIFT)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.mark.parametrize("seconds", [900, -900])
def test_the_same_rank_is_named_when_a_clock_is_wrong(watched: Gang, shift: Path, seconds: int) -> None:
    gang = watched
    gang.environment[1] = {"LD_PRELOAD": str(shift), "SHIFT_SECONDS": str(seconds)}
    gang.trains("""
        if RANK == 3: touch("time-3", int(time.time()))
        if RANK == 3: raise ValueError("boom")
    """).start_all()
    assert gang.outcome() == ([0, 0], {0: "charged", 1: "trained"})
    assert abs(gang.number("time-3") - time.time() - seconds) < 100, "the clock was not wrong"
    assert gang.why().startswith("rank 3 on node 1")
    assert "ValueError: boom" in gang.why()
