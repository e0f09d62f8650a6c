"""Rates for each peer address, so that one peer cannot use up what all share.

A peer is an IPv4 address or the first 64 bits of an IPv6 address, which one host owns. Peers that
were not seen for longest are forgotten when there are too many; a total rate bounds them all.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from typing import final

from bayplan.adapters.live.rate_limit import TokenBucket
from bayplan.clock import Clock

PEERS_MAX = 1000
_IPV6_HOST_BITS = 64


@dataclass(frozen=True, slots=True)
class Rate:
    """``burst`` at once, then ``per_second``."""

    per_second: float
    burst: int


@final
class PeerRates:
    """A token bucket for each peer, and one for all of them."""

    def __init__(self, rate: Rate, clock: Clock, *, total: Rate) -> None:
        self._rate = rate
        self._clock = clock
        self._total = self._bucket(total)
        #: Those seen last are at the end.
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def try_take(self, address: str) -> bool:
        """Take a token of this peer and one of all, if both are there now."""
        peer = peer_of(address)
        bucket = self._buckets.pop(peer, None) or self._bucket(self._rate)
        self._buckets[peer] = bucket
        if len(self._buckets) > PEERS_MAX:
            self._buckets.popitem(last=False)
        return bucket.try_take() and self._total.try_take()

    def _bucket(self, rate: Rate) -> TokenBucket:
        return TokenBucket(rate.per_second, rate.burst, self._clock, asyncio.sleep)


def peer_of(address: str) -> str:
    """The part of an address that tells hosts apart."""
    try:
        found = IPv6Address(address.partition("%")[0])
    except AddressValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Address(int(found) >> _IPV6_HOST_BITS << _IPV6_HOST_BITS))
