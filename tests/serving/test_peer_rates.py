"""Rates for each peer address."""

import pytest

from bayplan.clock import ManualClock
from bayplan.serving.peer_rates import PEERS_MAX, PeerRates, Rate, peer_of


def takes(rates: PeerRates, address: str, count: int) -> int:
    """How many of so many tries get a token."""
    return sum(rates.try_take(address) for _ in range(count))


def test_each_peer_has_its_own_rate() -> None:
    clock = ManualClock()
    rates = PeerRates(Rate(2, 3), clock, total=Rate(100, 100))
    assert [takes(rates, "10.0.0.1", 9), takes(rates, "10.0.0.2", 9)] == [3, 3]
    clock.advance_to(1.0)
    assert takes(rates, "10.0.0.1", 9) == 2


def test_all_peers_together_have_a_rate() -> None:
    rates = PeerRates(Rate(1, 1), ManualClock(), total=Rate(1, 5))
    assert sum(rates.try_take(f"10.0.0.{number}") for number in range(100)) == 5


def test_the_peers_seen_last_are_remembered() -> None:
    rates = PeerRates(Rate(1, 1), ManualClock(), total=Rate(1, 10 * PEERS_MAX))
    assert takes(rates, "first", 2) == 1
    for number in range(PEERS_MAX - 1):
        rates.try_take(f"p{number}")
    assert not rates.try_take("first")
    for number in range(PEERS_MAX):
        rates.try_take(f"q{number}")
    assert rates.try_take("first")


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:0:1:2:3:4:5", "2001:db8:0:1::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
    ],
)
def test_one_host_of_ipv6_is_one_peer(address: str, peer: str) -> None:
    assert peer_of(address) == peer
