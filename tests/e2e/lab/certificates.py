"""A cluster's certificate authority, as kubeadm and kubespray make it; keys live only as long as the laboratory."""

import time

from .network import sh


DAY = 86400
RECORDS = """
[ca]
default_ca = records
[records]
database = {folder}/{name}.index
unique_subject = no
rand_serial = yes
new_certs_dir = {folder}
default_md = sha256
policy = anything
copy_extensions = copy
[anything]
commonName = supplied
organizationName = optional
"""


class Authority:
    def __init__(self, folder, name):
        self.folder = folder
        self.key = folder / f"{name}.key"
        self.certificate = folder / f"{name}.crt"
        self.records = folder / f"{name}.cnf"
        self.records.write_text(RECORDS.format(folder=folder, name=name))
        (folder / f"{name}.index").touch()
        request = folder / f"{name}.csr"
        sh("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kubernetes",
           "-addext", "basicConstraints=critical,CA:TRUE",
           "-addext", "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign",
           "-keyout", str(self.key), "-out", str(request))
        # Valid since yesterday: some hosts' clocks are slow.
        sh("openssl", "ca", "-batch", "-notext", "-selfsign", "-config", str(self.records), "-keyfile", str(self.key),
           "-startdate", moment(-DAY), "-enddate", moment(30 * DAY), "-in", str(request), "-out", str(self.certificate))

    def issue(self, name, subject, alternatives, *, valid=30 * DAY, usage="serverAuth", key_type="rsa:2048"):
        """A certificate for the alternative names (`DNS:…`, `IP:…`): the paths of certificate and key.

        `valid` is for how many seconds from now on; a negative one has expired.
        """
        certificate, key, request = (self.folder / f"{name}.{kind}" for kind in ("crt", "key", "csr"))
        options = ["-addext", f"extendedKeyUsage={usage}"]
        if alternatives:
            options += ["-addext", "subjectAltName=" + ",".join(alternatives)]
        if key_type == "ec":
            options += ["-pkeyopt", "ec_paramgen_curve:P-256"]
        sh("openssl", "req", "-newkey", key_type, "-nodes", "-subj", subject, *options,
           "-keyout", str(key), "-out", str(request))
        sh("openssl", "ca", "-batch", "-notext", "-config", str(self.records), "-cert", str(self.certificate),
           "-keyfile", str(self.key), "-startdate", moment(min(valid, 0) - DAY), "-enddate", moment(valid),
           "-in", str(request), "-out", str(certificate))
        return certificate, key


def moment(seconds_from_now):
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds_from_now))


SERVICE_NAMES = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]


def serving_names(hosts):
    """The alternative names that kubespray gives a serving certificate; `hosts` are name -> address."""
    return ([f"DNS:{name}" for name in [*SERVICE_NAMES, *hosts]] +
            [f"IP:{address}" for address in ("127.0.0.1", "::1", "10.96.0.1", *hosts.values())])


def key_pair(folder, name):
    """An RSA key and its public half, as service account tokens are signed with."""
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    sh("openssl", "genrsa", "-out", str(private), "2048")
    sh("openssl", "rsa", "-in", str(private), "-pubout", "-out", str(public))
    return private, public
