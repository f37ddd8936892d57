"""A small laboratory: real etcd, real kube-apiservers, hosts as network namespaces, faults with their undo.

    network          hosts and the wires between them
    process          programs on a host, ended by their pid
    certificates     a cluster's authority and what it signs
    control_plane    etcd + kube-apiserver per host, three of them
    proxy            what is under test, on the worker
    faults           one function per fault; leaving its `with` block undoes it
    clients          kubectl and held connections, as the programs of a node use them
    handshakes       counts TLS handshakes on the wire
"""
