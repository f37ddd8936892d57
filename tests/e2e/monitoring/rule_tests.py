"""Cases for `promtool test rules`: fleets of simulated workers, and the alerts that must fire, and no others.

promtool's clock starts at 0, so `time()` is the number of seconds since the start of a case.
"""

STEP = 30  # seconds between two scrapes
STATES = ("unknown", "ready", "slow", "shutting_down", "not_ready", "refused", "hung", "dead", "impostor", "unresolved")
DAY = 86400
WORKERS = 50  # promtool looks at no more than ten thousand samples at once, so thousands are for fleet.py


def steady(value, minutes):
    return f"{value}x{minutes * 60 // STEP}"


def sequence(*phases):
    """`(value, minutes)` after each other, a sample a step."""
    return " ".join(f"{value}x{max(int(minutes * 60 / STEP) - 1, 0)}" for value, minutes in phases)


class Fleet:
    """Workers with all that the rules look at, well unless told otherwise."""

    def __init__(self, workers, minutes, upstreams=("cp1", "cp2", "cp3"), members=3, cluster=""):
        self.series, self.workers, self.minutes, self.cluster = {}, range(workers), minutes, cluster
        self.upstreams = upstreams
        for worker in self.workers:
            self.make_well(worker, members)

    def make_well(self, worker, members):
        for name, value in (("kubelane_ready", 1), ("kubelane_panic_mode", 0), ("kubelane_config_fallback", 0),
                            ("kubelane_stored_connections", 20), ("kubelane_stored_connections_limit", 508),
                            ("kubelane_restored_connections_total", 20), ("kubelane_unrestored_connections_total", 0),
                            ("process_start_time_seconds", 1000), ("up", 1)):
            self.put([worker], name, {}, steady(value, self.minutes))
        self.put([worker], "kubelane_discovery_last_success_timestamp_seconds", {}, f"1+{STEP}x{self.minutes * 2}")
        self.quorum([worker], members, sequence((members - (members // 2 + 1), self.minutes)))
        for upstream in self.upstreams:
            self.state([worker], upstream, ("ready", self.minutes))
            labels = {"upstream": upstream}
            self.put([worker], "kubelane_upstream_certificate_expiry_timestamp_seconds", labels,
                     steady(300 * DAY, self.minutes))
            self.put([worker], "kubelane_probes_total", {**labels, "outcome": "passed"}, f"0+{STEP}x{self.minutes * 2}")

    def put(self, workers, name, labels, values):
        for worker in workers:
            common = {"instance": f"worker{worker}:9180", "job": "kubelane"}
            if self.cluster:
                common["cluster"] = self.cluster
            inner = ",".join(f'{key}="{value}"' for key, value in sorted({**common, **labels}.items()))
            self.series[f"{name}{{{inner}}}"] = values

    def quorum(self, workers, members, spare):
        self.put(workers, "kubelane_control_plane_quorum", {"kind": "members"}, steady(members, self.minutes))
        self.put(workers, "kubelane_control_plane_quorum", {"kind": "spare"}, spare)

    def state(self, workers, upstream, *phases):
        """`(state, minutes)` after each other."""
        for state in STATES:
            values = sequence(*((int(state == now), minutes) for now, minutes in phases))
            self.put(workers, "kubelane_upstream_state", {"state": state, "upstream": upstream}, values)

    def first(self, share):
        """So many of a hundred workers."""
        return self.workers[:len(self.workers) * share // 100]


def case(name, fleets, expected):
    """`expected`: minute -> the alerts that fire then, as {name or (name, upstream): how many}."""
    series = {}
    for fleet in fleets:
        series.update(fleet.series)
    return {
        "name": name,
        "interval": f"{STEP}s",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "promql_expr_test": [{
            "expr": 'count by (alertname, upstream) (ALERTS{alertstate="firing"})',
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": labels_of(alert), "value": count} for alert, count in alerts.items()],
        } for minute, alerts in expected.items()],
    }


def labels_of(alert):
    name, upstream = alert if isinstance(alert, tuple) else (alert, None)
    return f'{{alertname="{name}"' + (f', upstream="{upstream}"' if upstream else "") + "}"


def changed(share, minutes, name, labels, values, **options):
    """A fleet of which some workers show something else."""
    fleet = Fleet(WORKERS, minutes, **options)
    fleet.put(fleet.first(share), name, labels, values)
    return [fleet]


def down(share, which, minutes, state="dead", for_minutes=None, **options):
    """A fleet to whose first `share` these upstreams are down from minute 5 on."""
    fleet = Fleet(WORKERS, minutes, **options)
    length = for_minutes or minutes - 5
    for upstream in which:
        fleet.state(fleet.first(share), upstream, ("ready", 5), (state, length), ("ready", minutes - 5 - length + 1))
    return fleet


def without_api_server(share, panic):
    fleet = Fleet(WORKERS, 30)
    some = fleet.first(share)
    fleet.put(some, "kubelane_ready", {}, sequence((1, 5), (0, 26)))
    fleet.put(some, "kubelane_panic_mode", {}, sequence((0, 5), (int(panic), 26)))
    return [fleet]


def api_servers():
    five = {"upstreams": ("cp1", "cp2", "cp3", "cp4", "cp5"), "members": 5}
    yield case("no API server usable, on every tenth worker", without_api_server(10, False),
               {5: {}, 8: {"KubelaneNoApiServerUsable": 1}})
    yield case("no API server usable, on three in a hundred", without_api_server(3, False),
               {10: {}, 20: {"KubelaneWorkersWithoutApiServer": 1}})
    yield case("panic mode", without_api_server(10, True),
               {5: {}, 8: {"KubelaneNoApiServerUsable": 1, "KubelanePanicMode": 1}})
    short = changed(10, 30, "kubelane_panic_mode", {}, sequence((0, 5), (1, 0.5), (0, 25)))
    yield case("panic mode for half a minute", short, {6: {}, 8: {}})
    some = changed(5, 30, "kubelane_panic_mode", {}, steady(1, 30))
    yield case("panic mode on five in a hundred", some, {20: {}})
    yield case("one API server left", [down(20, ("cp1", "cp2"), 30)],
               {6: {}, 9: {"KubelaneOneApiServerLeft": 1},
                20: {"KubelaneOneApiServerLeft": 1, ("KubelaneApiServerDownForSomeWorkers", "cp1"): 1,
                     ("KubelaneApiServerDownForSomeWorkers", "cp2"): 1}})
    yield case("the only API server is not one that is left", [Fleet(WORKERS, 30, upstreams=("cp1",), members=1)], {20: {}})
    yield case("two left of three, on a fifth of the workers, not for long", [down(20, ("cp1",), 30, for_minutes=8)],
               {9: {}, 20: {}})
    yield case("one of five is down", [down(100, ("cp4",), 30, **five)],
               {7: {}, 10: {("KubelaneApiServerDown", "cp4"): 1}})
    yield case("one of five restarts", [down(100, ("cp4",), 30, state="refused", for_minutes=2, **five)],
               {7: {}, 10: {}})
    yield case("one of five is slow", [down(100, ("cp4",), 30, state="slow", **five)], {20: {}})
    yield case("one of five is down for a fifth of the workers", [down(20, ("cp4",), 30, **five)],
               {14: {}, 17: {("KubelaneApiServerDownForSomeWorkers", "cp4"): 1}})
    yield case("one of five is down for one worker in thirty", [down(3, ("cp4",), 30, **five)], {20: {}})
    yield from certificates()


def certificates():
    name, labels = "kubelane_upstream_certificate_expiry_timestamp_seconds", {"upstream": "cp2"}
    soon = changed(100, 60, name, labels, steady(13 * DAY, 60))
    yield case("a certificate expires in 13 days", soon,
               {10: {}, 20: {("KubelaneApiServerCertificateExpiring", "cp2"): 1}})
    renewed = changed(100, 60, name, labels, sequence((13 * DAY, 10), (300 * DAY, 50)))
    yield case("a certificate is renewed in time", renewed, {9: {}, 20: {}})
    later = changed(100, 60, name, labels, steady(15 * DAY, 60))
    yield case("a certificate expires in 15 days", later, {30: {}})


def quorum():
    lost = "KubelaneControlPlaneQuorumLost"
    last = "KubelaneControlPlaneOneFailureFromQuorumLoss"

    def spare(share, values, members=3, **options):
        fleet = Fleet(WORKERS, 30, members=members, **options)
        fleet.quorum(fleet.first(share), members, values)
        return [fleet]
    yield case("no member to spare", spare(100, sequence((1, 5), (0, 26))), {7: {}, 9: {last: 1}})
    yield case("no member to spare for two minutes", spare(100, sequence((1, 5), (0, 2), (1, 24))), {7: {}, 10: {}})
    yield case("no member to spare as a third of the workers see it", spare(33, steady(0, 30)), {20: {}})
    yield case("two members never have one to spare", [Fleet(WORKERS, 30, members=2)], {20: {}})
    yield case("quorum lost", spare(100, sequence((0, 2), (-1, 29))), {2: {}, 4: {lost: 1}})
    yield case("one member too few of five for half a minute", spare(100, sequence((0, 2), (-1, 0.5), (1, 28)), 5),
               {3: {}, 5: {}})


def itself():
    unauthorized = {"outcome": "unauthorized", "upstream": "cp1"}
    yield case("401 from probes", changed(7, 30, "kubelane_probes_total", unauthorized, "0+1x60"),
               {9: {}, 12: {"KubelaneProbesUnauthorized": 1}})
    yield case("401 from some probes, once", changed(7, 30, "kubelane_probes_total", unauthorized, "0x4 3x56"),
               {9: {}, 15: {}})
    discovery = "kubelane_discovery_last_success_timestamp_seconds"
    yield case("discovery stale", changed(10, 60, discovery, {}, steady(60, 60)),
               {17: {}, 25: {"KubelaneDiscoveryStale": 1}})
    yield case("discovery stale on two in a hundred", changed(2, 60, discovery, {}, steady(60, 60)), {30: {}})
    yield case("no discovery", changed(100, 60, discovery, {}, steady(0, 60)), {30: {}})
    stored = "kubelane_stored_connections"
    yield case("descriptor store full", changed(2, 30, stored, {}, steady(500, 30)),
               {9: {}, 12: {"KubelaneDescriptorStoreFull": 1}})
    yield case("descriptor store half full", changed(2, 30, stored, {}, steady(250, 30)), {20: {}})
    nowhere = Fleet(WORKERS, 30)
    for name in (stored, stored + "_limit"):
        nowhere.put(nowhere.workers, name, {}, steady(0, 30))
    yield case("no descriptor store", [nowhere], {20: {}})
    yield from restarts()
    yield case("last good configuration", changed(2, 30, "kubelane_config_fallback", {}, sequence((0, 2), (1, 29))),
               {9: {}, 14: {"KubelaneConfigurationFallback": 1}})
    yield case("last good configuration, mended at once",
               changed(2, 30, "kubelane_config_fallback", {}, sequence((0, 2), (1, 5), (0, 24))), {9: {}, 14: {}})
    yield case("a fifth of the workers is not scraped", changed(20, 30, "up", {}, sequence((1, 2), (0, 29))),
               {9: {}, 14: {"KubelaneWorkersNotScraped": 1}})
    yield case("some workers are not scraped", changed(5, 30, "up", {}, steady(0, 30)), {20: {}})


def restarts():
    alert = {"KubelaneRestartsWithoutAdoption": 1}
    given_up = changed(3, 40, "kubelane_unrestored_connections_total", {}, sequence((0, 5), (20, 36)))
    yield case("a restart gives connections up", given_up, {4: {}, 8: alert, 30: {}})
    starts = changed(2, 40, "process_start_time_seconds", {}, sequence((1, 5), (2, 1), (3, 1), (4, 34)))
    starts[0].put([0], "kubelane_restored_connections_total", {}, steady(0, 40))
    yield case("restarts without a store", starts, {6: {}, 9: alert, 30: {}})
    kept = changed(100, 40, "process_start_time_seconds", {}, sequence((1, 5), (2, 1), (3, 1), (4, 34)))
    yield case("restarts that keep connections", kept, {9: {}, 20: {}})
    upgrade = changed(100, 40, "process_start_time_seconds", {}, sequence((1, 5), (2, 36)))
    upgrade[0].put(upgrade[0].workers, "kubelane_restored_connections_total", {}, steady(0, 40))
    yield case("an upgrade of workers without a store", upgrade, {9: {}, 20: {}})


def calm():
    yield case("an hour of calm", [Fleet(WORKERS, 60)], {minute: {} for minute in range(1, 61)})


def two_clusters():
    """What is wrong with one cluster is said of that one."""
    bad = Fleet(50, 30, cluster="bad")
    bad.put(bad.workers, "kubelane_ready", {}, sequence((1, 5), (0, 26)))
    made = case("two clusters, one without API servers", [bad, Fleet(50, 30, cluster="good")],
                {8: {"KubelaneNoApiServerUsable": 1}})
    made["promql_expr_test"].append({
        "expr": 'count by (cluster) (ALERTS{alertstate="firing"})', "eval_time": "8m",
        "exp_samples": [{"labels": '{cluster="bad"}', "value": 1}]})
    yield made


def all_cases(names=(calm, api_servers, quorum, itself, two_clusters)):
    return [each for group in names for each in group()]


def alerts_that_fire(cases):
    """Names of the alerts that some case expects."""
    return {sample["labels"].split('"')[1]
            for each in cases for check in each["promql_expr_test"] for sample in check["exp_samples"]
            if "alertname" in sample["labels"]}


def document(rules, cases):
    """A promtool test file; JSON is YAML."""
    return {"rule_files": [str(rules)], "evaluation_interval": f"{STEP}s", "tests": cases}
