"""An upstream that cuts, stalls, resets and sends garbage, behind the gateway: what the client is told of it.

Whatever happens, the client has what came before, no answer looks whole that is not, and no connection is held."""

from __future__ import annotations

import pytest
from gateway_server import served
from test_gateway_correctness import WAYS, Said, httpx2, said

import vendors
from faults import CUT, NEVER_OR_ONCE, STALLED, TIMEOUT, WHOLE, Fault, Outcome, by_aiohttp, every_http1, judge
from faulty_server import PATIENCE, serving

pytest.importorskip("aiohttp")

WORDS = ["Hello", " w\u00f6rld", " \U0001f600", " d\u2028e", " gnus"]
EVENTS = {vendor: vendors.VENDORS[vendor](WORDS) for vendor in ("openai", "anthropic")}
FAULTS = {vendor: every_http1(events) for vendor, events in EVENTS.items()}
NO_END_MARK = "cut before the last event, close"
"""HTTP does not tell, and of OpenAI's formats a whole answer needs no more than its reason to stop."""

ASKED = [WAYS[number] for number in (0, 1, 2, 5)]
"""A stream passed on of either vendor, and one written anew for a client of the standard and of the other vendor."""


class ToldError(Exception):
    """What a client is told: a status, an error in the stream, or a connection that is cut."""


@pytest.fixture(scope="module")
def faulty():
    with serving() as server:
        yield server


def expected_fault(way, name):
    fault = by_aiohttp(name, FAULTS[way.upstream][name])
    if way.upstream == "openai" and name == NO_END_MARK and not way.is_passed_on:
        return Fault(fault.answer, fault.events, WHOLE)
    if not way.is_passed_on and name.startswith(("a page", "another content type")):
        return Fault(fault.answer, 0, CUT, fails=True)
    return fault


@pytest.mark.parametrize("way", ASKED, ids=lambda way: f"{way.upstream}>{way.client or 'standard'}")
@pytest.mark.parametrize("name", FAULTS["openai"])
def test_a_fault(gateway_module, faulty, way, name):
    fault = expected_fault(way, name)
    faulty.answers = {"v1": fault.answer}
    silence = TIMEOUT if fault.verdict == STALLED or name == NEVER_OR_ONCE else PATIENCE
    upstream = gateway_module.Upstream(way.upstream, faulty.url("v1"))
    exchanges = []
    gateway = gateway_module.Gateway([upstream], on_end=exchanges.append, limits=gateway_module.Limits(silence=silence))
    with served(gateway) as port:
        outcome = asked(faulty, way, fault, f"http://127.0.0.1:{port}")
    assert gateway.open == 0
    faulty.until_open(0)
    is_held_back = name == "a length that is too short"  # aiohttp refuses all that came with what is too much
    judge(
        fault,
        outcome,
        lambda number: text(way, number),
        is_known=lambda error: isinstance(error, ToldError),
        is_timeout=lambda error: way.is_passed_on or any(one in str(error) for one in ("504", "timeout", "could not")),
        secrets=[word.strip() for word in WORDS],
        exact=not is_held_back,
    )
    (exchange,) = exchanges
    is_whole = outcome.complete or (way.upstream == "openai" and name == NO_END_MARK)
    assert (exchange.error is None) == is_whole


def text(way, number):
    """What so many events of the upstream say."""
    return said(way.upstream, b"".join(EVENTS[way.upstream][:number])).text


def asked(faulty, way, fault, url):
    """What a client makes of the gateway's answer. It lets the upstream go on when it has what came before a fault."""
    outcome, body, before = Outcome(None), b"", text(way, fault.events)
    seen = Said("", False, None)
    try:
        with httpx2.Client(timeout=2 * PATIENCE) as client, client.stream("POST", **way.request(url)) as response:
            if response.status_code != 200:
                raise ToldError(f"{response.status_code} {response.read().decode()}")
            outcome.items = ""
            if not before:
                faulty.proceed()
            for chunk in response.iter_raw():
                body += chunk
                seen = said(way.client, body[: body.rfind(b"\n\n") + 2])
                outcome.items = seen.text
                if seen.text == before:
                    faulty.proceed()
    except ToldError as error:
        outcome.error = error
    except httpx2.RemoteProtocolError:
        outcome.error = ToldError("cut")
    if seen.error is not None:
        outcome.error = outcome.error or ToldError(str(seen.error))
    outcome.complete = seen.is_whole and outcome.error is None
    return outcome
