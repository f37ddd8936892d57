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

    def issue(self, name, common_name, alternatives):
        """A serving certificate for the alternative names (`DNS:…`, `IP:…`): the paths of certificate and key."""
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        request = sh("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={common_name}",
                     "-addext", "subjectAltName=" + ",".join(alternatives),
                     "-addext", "extendedKeyUsage=serverAuth", "-keyout", str(key))
        sh("openssl", "x509", "-req", "-copy_extensions", "copyall", "-days", "30", "-CA", str(self.certificate),
           "-CAkey", str(self.key), "-CAcreateserial", "-out", str(certificate), input=request)
        return certificate, key


def key_pair(folder, name):
    """An RSA key and its public half, as service account tokens are signed with."""
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    sh("openssl", "genrsa", "-out", str(private), "2048")
    sh("openssl", "rsa", "-in", str(private), "-pubout", "-out", str(public))
    return private, public
