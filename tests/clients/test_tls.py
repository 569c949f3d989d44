"""TLS with the clients that people have: curl, openssl, Python."""

import json
import ssl
import subprocess
import time
import urllib.request

import pytest


class Certificates:
    """An authority and what it signed, made by openssl."""

    def __init__(self, openssl, folder):
        self.openssl, self.folder = openssl, folder
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                 "-subj", "/CN=An authority", "-keyout", "ca.key", "-out", "ca.pem")
        self.issue("router", "DNS:router.internal,IP:127.0.0.1")
        self.issue("client", "DNS:client.internal")

    def run(self, *arguments):
        subprocess.run([self.openssl, *arguments], cwd=self.folder, check=True, capture_output=True)

    def issue(self, name, names):
        self.run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                 "-keyout", f"{name}.key", "-out", f"{name}.csr")
        (self.folder / "names").write_text(f"subjectAltName={names}\n")
        self.run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                 "-days", "2", "-extfile", "names", "-out", f"{name}.pem")

    def path(self, name):
        return str(self.folder / name)


@pytest.fixture(scope="module")
def certificates(needs, tmp_path_factory):
    return Certificates(needs("openssl"), tmp_path_factory.mktemp("certificates"))


def serve(start, router, certificates, name, tls):
    """A router with TLS, in front of another one, as a load balancer's instance would be."""
    file = certificates.folder / f"{name}.yaml"
    file.write_text(
        f"tls: {tls}\nendpoints:\n- name: chat\n  variants:\n"
        f"  - {{ name: AllTraffic, instances: [{{ url: \"{router.url}\" }}] }}\n"
    )
    return start("serve", "--config", str(file))


@pytest.fixture(scope="module")
def secure(start, router, certificates):
    return serve(start, router, certificates, "secure", "{ cert: router.pem, key: router.key }")


@pytest.fixture(scope="module")
def mutual(start, router, certificates):
    return serve(start, router, certificates, "mutual", "{ cert: router.pem, key: router.key, client_ca: ca.pem }")


def curl(needs, url, *options):
    command = [needs("curl"), "--silent", "--show-error", "--max-time", "30", *options, url]
    return subprocess.run(command, capture_output=True, text=True)


BODY = json.dumps({"model": "", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8, "stream": True})


def ask(*options):
    return ["--header", "content-type: application/json", "--data-binary", BODY, *options]


@pytest.mark.parametrize(("option", "version"), [("--http2", "2"), ("--http1.1", "1.1")])
def test_curl_agrees_on_a_protocol_within_tls(needs, secure, certificates, option, version):
    options = ask("--cacert", certificates.path("ca.pem"), option, "--write-out", "\n%{http_version}")
    answer = curl(needs, secure.url + "/v1/chat/completions", *options)
    body, spoken = answer.stdout.rsplit("\n", 1)
    assert spoken == version, answer.stderr
    assert body.rstrip().endswith("data: [DONE]")


def test_curl_does_not_believe_what_its_authorities_have_not_signed(needs, secure):
    assert curl(needs, secure.url + "/health").returncode == 60


def test_curl_is_let_in_with_its_certificate_only(needs, mutual, certificates):
    believing = ["--cacert", certificates.path("ca.pem")]
    own = ["--cert", certificates.path("client.pem"), "--key", certificates.path("client.key")]
    assert curl(needs, mutual.url + "/health", *believing, *own, "--write-out", "%{http_code}").stdout.endswith("200")
    refused = curl(needs, mutual.url + "/health", *believing)
    assert refused.returncode != 0 and not refused.stdout


@pytest.mark.parametrize(
    ("version", "agreed"), [("-tls1", False), ("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)]
)
def test_openssl_agrees_on_no_old_version(needs, secure, version, agreed):
    # Security level 0 lets this machine's openssl offer what is too old.
    command = [needs("openssl"), "s_client", "-connect", secure.url.removeprefix("https://"), version, "-cipher", "ALL:@SECLEVEL=0"]
    said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    assert ("Cipher is (NONE)" not in said.stdout) == agreed, said.stdout + said.stderr


# What testssl.sh tells of: no key, no certificate, no forward secrecy, block ciphers with a MAC beside them, old ones.
@pytest.mark.parametrize("weak", ["eNULL", "aNULL", "EXPORT", "RC4", "3DES", "kRSA", "PSK", "CAMELLIA:SEED:IDEA:ARIA",
                                  "ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA384:ECDHE-ECDSA-AES128-SHA256"])
def test_openssl_agrees_on_no_weak_cipher(needs, secure, weak):
    address = secure.url.removeprefix("https://")
    command = [needs("openssl"), "s_client", "-connect", address, "-tls1_2", "-cipher", f"{weak}:@SECLEVEL=0"]
    said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    # What this machine's openssl does not know itself, it cannot offer.
    assert "Cipher is (NONE)" in said.stdout or "no cipher match" in said.stderr, said.stdout + said.stderr


def test_openssl_can_neither_renegotiate_nor_compress(needs, secure):
    command = [needs("openssl"), "s_client", "-connect", secure.url.removeprefix("https://"), "-tls1_2"]
    asking = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    asking.stdin.write("R\n")
    asking.stdin.flush()
    deadline, tried = time.monotonic() + 30, False
    while True:
        try:
            said, _ = asking.communicate(timeout=1.5)
            break
        except subprocess.TimeoutExpired as silence:
            # Whatever comes of it has as long again to come.
            if tried or time.monotonic() > deadline:
                asking.kill()
                said, _ = asking.communicate()
                break
            tried = "RENEGOTIATING" in str(silence.stdout)
    agreed, renegotiated = said.split("RENEGOTIATING")
    assert "Compression: NONE" in agreed and "Secure Renegotiation IS supported" in agreed, said
    # A handshake would show a certificate.
    assert "depth=" not in renegotiated and "verify" not in renegotiated, said


def test_python_speaks_to_it(secure, certificates):
    context = ssl.create_default_context(cafile=certificates.path("ca.pem"))
    with urllib.request.urlopen(secure.url + "/v1/models", context=context, timeout=30) as answer:
        assert json.load(answer)["data"]
    context = ssl.create_default_context()
    with pytest.raises(OSError):
        urllib.request.urlopen(secure.url + "/v1/models", context=context, timeout=30)


def test_a_client_in_the_clear_is_told(needs, secure):
    answer = curl(needs, secure.url.replace("https://", "http://") + "/health", "--write-out", "\n%{http_code}")
    body, status = answer.stdout.rsplit("\n", 1)
    assert status == "400" and "use https://" in json.loads(body)["error"]["message"]
