"""nginx as kubespray puts it on each worker: a static pod with /etc/nginx from the host."""

import json

import images
from lab.peers import nginx_settings
from worker import MANIFESTS

IMAGE = "localhost/nginx:lab"
FILES = ["/usr/sbin/nginx", "/usr/lib/nginx/modules/ngx_stream_module.so"]
MANIFEST = MANIFESTS / "nginx-proxy.yml"


def image(folder):
    """The path of the archive."""
    root = folder / "root"
    for file in FILES:
        for each in [file, *images.libraries(file)]:
            images.copy(each, root)
    for name in ("var/lib/nginx", "var/log/nginx", "run", "etc"):
        (root / name).mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/\n")
    (root / "etc/group").write_text("root:x:0:\n")
    return images.pack(folder, IMAGE, 'ENTRYPOINT ["/usr/sbin/nginx", "-e", "stderr", "-g", "daemon off; user root;"]')


def configuration(addresses):
    return f"""
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
{nginx_settings(addresses)}http {{
  server {{
    listen 127.0.0.1:8081;
    location /healthz {{
      access_log off;
      return 200;
    }}
  }}
}}
"""


def manifest():
    probe = {"httpGet": {"host": "127.0.0.1", "path": "/healthz", "port": 8081}}
    container = {"name": "nginx-proxy", "image": IMAGE, "imagePullPolicy": "IfNotPresent",
                 "resources": {"requests": {"cpu": "25m", "memory": "32M"}}, "livenessProbe": probe,
                 "readinessProbe": probe,
                 "volumeMounts": [{"mountPath": "/etc/nginx", "name": "etc-nginx", "readOnly": True}]}
    return json.dumps({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "nginx-proxy", "namespace": "kube-system", "labels": {"k8s-app": "kube-nginx"}},
        "spec": {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet",
                 "priorityClassName": "system-node-critical", "containers": [container],
                 "volumes": [{"name": "etc-nginx", "hostPath": {"path": "/etc/nginx"}}]}})
