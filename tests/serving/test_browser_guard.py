"""Requests that a browser sends for a foreign page."""

import pytest

from bayplan.serving.browser_guard import answer_everybody, refuse_foreign_names, refuse_pages

LOCAL = ["localhost", "localhost:10259", "127.0.0.1:10259", "127.9.9.9", "[::1]:10259", "LOCALHOST"]
FOREIGN = ["evil.example", "10.0.0.1:80", "localhost.evil.example", "127.0.0.1.evil.example", "[::"]


@pytest.mark.parametrize("host", LOCAL)
def test_a_name_of_this_machine_is_answered(host: str) -> None:
    assert refuse_foreign_names({"Host": host}) == ""
    assert refuse_foreign_names({"Host": "localhost", "Origin": f"http://{host}"}) == ""


@pytest.mark.parametrize("host", FOREIGN)
def test_another_name_is_refused(host: str) -> None:
    text = f"Forbidden: Host is '{host}', wanted localhost or an address of loopback"
    assert refuse_foreign_names({"Host": host}) == text
    origin = f"https://{host}"
    assert "Origin is" in refuse_foreign_names({"Host": "localhost", "Origin": origin})


@pytest.mark.parametrize("origin", ["null", "", "file://", "chrome-extension://abc"])
def test_an_origin_without_a_local_name_is_refused(origin: str) -> None:
    assert "Origin is" in refuse_foreign_names({"Host": "localhost", "Origin": origin})


def test_where_names_are_unknown_a_page_is_told_by_its_origin() -> None:
    assert refuse_pages({"Host": "anything.example"}) == ""
    assert refuse_pages({"Host": "localhost", "Origin": "http://localhost"}).startswith("Forbidden")


def test_what_is_refused_is_shown_short_and_without_control_characters() -> None:
    assert refuse_foreign_names({"Host": "\x1b" + "x" * 5000}).count("x") < 110
    assert "\x1b" not in refuse_foreign_names({"Host": "\x1b[2J.example"})


def test_a_server_with_credentials_answers_under_every_name() -> None:
    assert answer_everybody({"Host": "evil.example", "Origin": "https://evil.example"}) == ""
