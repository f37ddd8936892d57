"""The three tables of docs/benchmark.md, each measured side by side: one fault hits all proxies at once.

    table           cells, bounds, and how they are printed
    rig             runs rows on racks, several at once
    clients         what a client's connections see while a server is lost
    false_alarms    what a client's connections see while nothing is lost
    leases          what kubelets' leases see, on real kube-apiservers
"""
