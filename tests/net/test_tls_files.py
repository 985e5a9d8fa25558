"""The names of a listener's TLS settings, for messages."""

from leafcuttr.net.tls_files import VERSIONS, TlsFiles


def test_names() -> None:
    assert TlsFiles("mqtt.tls", None).name("keystore.location") == "mqtt.tls.ssl.keystore.location"
    assert TlsFiles("", None).name("keystore.location") == "ssl.keystore.location"


def test_without_settings_both_versions_are_spoken_and_no_certificate_is_requested() -> None:
    found = TlsFiles("", "/key.pem")
    assert found.versions == VERSIONS == ("TLSv1.2", "TLSv1.3")
    assert (found.client_auth, found.cipher_suites) == ("none", ())
