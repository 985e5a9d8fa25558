"""The settings of tokens: which ones count for a listener, and what is missing without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr.config.settings import Settings
from leafcuttr.errors import StartError
from leafcuttr.state.security.bearer.checking import claim_rules, key_settings, read_key_source
from leafcuttr.state.security.bearer.key_source import KeySettings
from leafcuttr.state.security.bearer.token import ClaimRules
from support.token_issuer import Issuer

ALL, LISTENER, MECHANISM = "", "listener.name.in.", "listener.name.in.oauthbearer."
URL = "sasl.oauthbearer.jwks.endpoint.url"


def test_the_narrowest_counts() -> None:
    given: dict[str, str] = {}
    for prefix, url in ((ALL, "https://a/"), (LISTENER, "https://b/"), (MECHANISM, "https://c/")):
        given[prefix + URL] = url
        assert key_settings(Settings(given), "IN")[0] == prefix + URL
        assert key_settings(Settings(given), "IN")[1].url == url
    assert key_settings(Settings(given), "OTHER")[1].url == "https://a/"


def test_all_of_them() -> None:
    prefix = f"{MECHANISM}sasl.oauthbearer."
    settings = Settings(
        {
            f"{prefix}jwks.endpoint.url": "https://issuer/",
            f"{prefix}jwks.endpoint.refresh.ms": "60000",
            f"{prefix}jwks.endpoint.retry.backoff.ms": "200",
            f"{prefix}jwks.endpoint.retry.backoff.max.ms": "4000",
            f"{prefix}expected.issuer": "i",
            f"{prefix}expected.audience": "a, b",
            f"{prefix}sub.claim.name": "email",
            f"{prefix}scope.claim.name": "scp",
            f"{prefix}clock.skew.seconds": "7",
        }
    )
    found = key_settings(settings, "in", "/ca.pem")[1]
    assert found == KeySettings("https://issuer/", 60, 0.2, 4, ca_file="/ca.pem")
    assert claim_rules(settings, "in") == ClaimRules("i", ("a", "b"), "email", "scp", 7)


def test_the_defaults_are_those_of_kafka() -> None:
    assert claim_rules(Settings(), "IN") == ClaimRules(None, (), "sub", "scope", 30)
    found = key_settings(Settings({URL: "https://a/"}), "IN")[1]
    assert (found.refresh_s, found.backoff_s, found.most_backoff_s) == (3600, 0.1, 10)


def test_without_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    url = path.as_uri()
    for given, line in (
        (
            {},
            f"the listener IN offers OAUTHBEARER, and nothing says which keys sign its tokens: {URL} is the issuer's "
            "JSON Web Key Set (https:, or file: and a path)",
        ),
        (
            {f"{LISTENER}{URL}": url},
            f"{LISTENER}{URL}={url}: no keys to check tokens with: No such file or directory",
        ),
        ({URL: "keys"}, f"{URL}=keys: no keys to check tokens with: it is no URL of https: or http:"),
    ):
        with pytest.raises(StartError) as caught:
            read_key_source(Settings(given), "IN")
        assert str(caught.value) == line


def test_with_keys(tmp_path: Path) -> None:
    issuer = Issuer()
    issuer.add("ES256", "a")
    found = read_key_source(Settings({URL: issuer.write(tmp_path / "keys.json")}), "IN")
    assert found.keys.has("a")
