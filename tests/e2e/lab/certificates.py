"""A cluster's certificate authority, as kubeadm and kubespray make it; keys live only as long as the laboratory."""

from .network import sh


class Authority:
    def __init__(self, folder, name):
        self.folder = folder
        self.key = folder / f"{name}.key"
        self.certificate = folder / f"{name}.crt"
        sh("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=kubernetes",
           "-addext", "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign",
           "-keyout", str(self.key), "-out", str(self.certificate))

    def issue(self, name, common_name, alternatives, days=30, usage="serverAuth", key_type="rsa:2048"):
        """A certificate for the alternative names (`DNS:…`, `IP:…`): the paths of certificate and key.

        Negative `days`: it has expired.
        """
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        options = ["-addext", f"extendedKeyUsage={usage}"]
        if alternatives:
            options += ["-addext", "subjectAltName=" + ",".join(alternatives)]
        if key_type == "ec":
            options += ["-pkeyopt", "ec_paramgen_curve:P-256"]
        request = sh("openssl", "req", "-newkey", key_type, "-nodes", "-subj", f"/CN={common_name}", *options,
                     "-keyout", str(key))
        sh("openssl", "x509", "-req", "-copy_extensions", "copyall", "-days", str(days), "-CA", str(self.certificate),
           "-CAkey", str(self.key), "-CAcreateserial", "-out", str(certificate), input=request)
        return certificate, key


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
