from datetime import timedelta

import pytest
from torch.distributed.constants import default_pg_timeout

from ddpk8s_trainer.distributed import HANG_VARIABLE, collective_timeout
from ddpk8s_trainer.errors import ConfigurationMistake


@pytest.mark.parametrize(
    ("hang", "timeout"),
    [
        (None, default_pg_timeout),
        ("", default_pg_timeout),
        ("20", default_pg_timeout),
        ("1200", default_pg_timeout),
        ("1500.5", timedelta(seconds=1800.5)),
        ("7200", timedelta(seconds=7500)),
    ],
)
def test_collectives_wait_longer_than_the_agent_when_it_looks_for_hangs(monkeypatch, hang, timeout):
    if hang is None:
        monkeypatch.delenv(HANG_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(HANG_VARIABLE, hang)
    assert collective_timeout() == timeout


@pytest.mark.parametrize("text", ["soon", "-1", "0", "nan", "inf", "1e300", "20m"])
def test_a_mistake_is_named_when_the_timeout_is_no_number_of_seconds(monkeypatch, text):
    monkeypatch.setenv(HANG_VARIABLE, text)
    with pytest.raises(ConfigurationMistake, match=f"DDPK8S_HANG_TIMEOUT is '{text}'"):
        collective_timeout()
