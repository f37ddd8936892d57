"""A small laboratory: real etcd, real kube-apiservers, hosts as network namespaces, faults with their undo.

    network          hosts and the wires between them
    process          programs on a host, ended by their pid
    certificates     a cluster's authority and what it signs
    control_plane    etcd + kube-apiserver per host, three of them
    rack             three small HTTPS servers that say what they are told to, and a worker for each proxy
    proxy, peers     what is under test, on a worker: kubelane; nginx and HAProxy
    faults           one function per fault; leaving its `with` block undoes it
    clients          kubectl and held connections, as the programs of a node use them
    kubelets         hollow kubelets, and who watches their leases
    load_client      an open-loop client on held and fresh connections
    progress         what is being done at the moment
    handshakes       counts TLS handshakes on the wire
    root, container  a Debian with systemd, and a machine that boots it
    package          kubelane as a Debian package

Programs: https_server.py (a server of a rack), load.py (the open-loop client), delay.py (packets come late).
"""
