"""Azure Monitor, as far as cage asks it for anything: metrics of container groups, by minutes. It refuses what the real one refuses, comes
as late as it is told, and says what it is told to say."""
import urllib.parse
from datetime import datetime, timezone

VERSION = "2023-10-01"
METRICS = {"CpuUsage": ("Count", True), "MemoryUsage": ("Bytes", True), "NetworkBytesReceivedPerSecond": ("Bytes", False), "NetworkBytesTransmittedPerSecond": ("Bytes", False)}
STEPS = {"PT1M": 60, "PT5M": 300, "PT15M": 900, "PT30M": 1800, "PT1H": 3600, "PT6H": 21600, "PT12H": 43200}


def stamp(when):
    return datetime.fromtimestamp(when, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text):
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()


def bad(message):
    return 400, {"code": "BadRequest", "message": message}, {}


class Monitor:
    """values: metric to what each point of it has, {"average", "maximum"}; a metric that is not there has no data. lag: seconds that are not told yet.
    turn: a function (count, name of a metric, points) that gives other points. told: what was answered."""

    def __init__(self, values=None, lag=0.0, turn=None):
        self.values = {"CpuUsage": {"average": 250.0, "maximum": 900.0}, "MemoryUsage": {"average": 1e8, "maximum": 2e8},
                       "NetworkBytesReceivedPerSecond": {"average": 1000.5, "maximum": 4000.0}, "NetworkBytesTransmittedPerSecond": {"average": 10.0, "maximum": 20.0}}
        self.values = self.values if values is None else values
        self.lag, self.turn, self.told = lag, turn or (lambda count, name, points: points), []

    def __call__(self, path, query, now):
        names = query.get("metricnames", "").split(",")
        flt = query.get("$filter")
        if query.get("api-version") != VERSION or not set(names) <= set(METRICS) or query.get("interval") not in STEPS:
            return bad("which version, metric or interval?")
        for name in names:
            if flt and not METRICS[name][1]:
                return bad("Metric: %s does not support requested dimension combination: containername, supported ones are: , TraceId: {0}" % name)
        if not set(query.get("aggregation", "").split(",")) <= {"average", "maximum", "minimum"} or flt not in (None, "containerName eq 'agent'"):
            return bad("which aggregation or filter?")
        start, end = (seconds(t) for t in query["timespan"].split("/"))
        answer = self.answer(names, start, end, query["interval"], flt, now)
        self.told.append((names, answer))
        return 200, answer, {}

    def points(self, name, start, end, step, now):
        at = start // step * step
        points = []
        while at < end:
            points.append({"timeStamp": stamp(at), **(self.values[name] if at <= now - self.lag and name in self.values else {})})
            at += step
        return points

    def answer(self, names, start, end, interval, flt, now):
        meta = [{"name": {"value": "containername", "localizedValue": "containername"}, "value": "agent"}] if flt else []
        rows = []
        for name in names:
            points = self.turn(len(self.told), name, self.points(name, start, end, STEPS[interval], now))
            rows.append({"id": "x", "type": "Microsoft.Insights/metrics", "name": {"value": name, "localizedValue": name}, "unit": METRICS[name][0],
                         "timeseries": [{"metadatavalues": meta, "data": points}] if points else [], "errorCode": "Success"})
        return {"cost": 0, "timespan": "%s/%s" % (stamp(start), stamp(end)), "interval": interval, "value": rows, "namespace": "Microsoft.ContainerInstance/containerGroups",
                "resourceregion": "westeurope"}


def is_monitor(path):
    return "/providers/Microsoft.Insights/" in urllib.parse.unquote(path)
