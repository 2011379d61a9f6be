"""Standby pools, for the stand-in for Azure: container group profiles with their revisions, pools that refill after a while, and groups that
are taken from them. What is asked of Microsoft.StandbyPool is not recorded: it is not in the description that the validator reads."""
import json
import re

VERSION = "2025-03-01"
PROFILE = "Microsoft.ContainerInstance/containerGroupProfiles"
POOL = "Microsoft.StandbyPool/standbyContainerGroupPools"


def error(status, code, message):
    return status, {"error": {"code": code, "message": message}}, {}


class Pool:
    """Groups that stand: when each of them was begun. One that was taken is gone from here for good."""

    def __init__(self, name, body, number, now, takes):
        self.name, self.body, self.takes, self.deleting = name, body, takes, None
        self.number = number  # gives the next number of a group
        self.groups, self.health = {}, "healthy"
        self.fill(now)

    @property
    def capacity(self):
        return self.body["properties"]["elasticityProfile"]["maxReadyCapacity"]

    def fill(self, now):
        while len(self.groups) < self.capacity:
            self.groups[self.number()] = now + self.takes
        for extra in sorted(self.groups)[self.capacity:]:
            del self.groups[extra]

    def take(self, now):
        """The number of one that is ready, or None."""
        for number, ready in sorted(self.groups.items()):
            if now >= ready:
                del self.groups[number]
                self.fill(now)
                return number
        return None

    def view(self, now):
        running = len([1 for ready in self.groups.values() if now >= ready])
        counts = {"Creating": len(self.groups) - running, "Running": running, "Deleting": 0}
        return {"provisioningState": "Succeeded", "status": {"code": "HealthState/" + self.health, "message": "No role is assigned." if self.health == "degraded" else ""},
                "instanceCountSummary": [{"instanceCountsByState": [{"state": s, "count": n} for s, n in counts.items()]}]}


class Standby:
    """fill_takes: seconds until a group of a pool is ready. is_registered: whether the subscription has the provider."""

    def __init__(self, fill_takes=0.0, delete_takes=0.05, is_registered=True):
        self.fill_takes, self.delete_takes, self.is_registered = fill_takes, delete_takes, is_registered
        self.profiles, self.pools, self.numbers = {}, {}, 0
        self.taken = []  # [(name of the group, number or None)]

    def number(self):
        self.numbers += 1
        return self.numbers

    # ---- requests

    def answer(self, handler, path, query, body, now):
        """Of both providers; None: it is for somebody else."""
        found = re.fullmatch(r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/(%s|%s)(?:/([^/]+))?(/runtimeViews/latest)?" % (PROFILE, POOL), path)
        if not found:
            return None
        kind, name, is_view = found.groups()
        for gone in [n for n, p in self.pools.items() if p.deleting is not None and now >= p.deleting]:
            del self.pools[gone]
        if kind == PROFILE:
            return self.profile(handler, path, name, body) if query.get("api-version") == "2025-09-01" else error(400, "InvalidApiVersionParameter", path)
        if query.get("api-version") != VERSION:
            return error(400, "InvalidApiVersionParameter", path)
        if not self.is_registered:
            return error(409, "MissingSubscriptionRegistration", "The subscription is not registered to use namespace 'Microsoft.StandbyPool'.")
        return self.pool(handler.command, path, name, body, is_view, now)

    def profile(self, handler, path, name, body):
        if name is None:
            names = sorted(self.profiles)
            return 200, {"value": [self.profiles[n] for n in names]}, {}
        known = self.profiles.get(name)
        if handler.command == "PUT":
            revision = known["properties"]["revision"] + 1 if known else 1
            self.profiles[name] = {"id": path, "name": name, "type": PROFILE, **body,
                                   "properties": {**body["properties"], "revision": revision, "registeredRevisions": list(range(1, revision + 1))}}
            return 200 if known else 201, self.profiles[name], {}
        if handler.command == "DELETE":
            if name in self.pools:
                return error(400, "ContainerGroupProfileInUse", "A standby pool has it.")
            return (200 if self.profiles.pop(name, None) else 204), None, {}
        return (200, known, {}) if known else error(404, "ResourceNotFound", path)

    def pool(self, command, path, name, body, is_view, now):
        known = self.pools.get(name)
        if name is None:
            return 200, {"value": [self.shown(p) for p in self.pools.values()]}, {}
        if command == "PUT":
            if known:
                known.body = body
                known.fill(now)
                return 200, self.shown(known), {}
            if body["properties"]["containerGroupProperties"]["containerGroupProfile"]["id"].rsplit("/", 1)[1] not in self.profiles:
                return error(400, "InvalidContainerGroupProfile", "There is no such profile.")
            self.pools[name] = Pool(name, body, self.number, now, self.fill_takes)
            return 201, self.shown(self.pools[name]), {}
        if command == "DELETE":
            if known:
                known.deleting = known.deleting or now + self.delete_takes
            return (202 if known else 204), None, {}
        if not known:
            return error(404, "ResourceNotFound", path)
        return 200, {"id": path, "name": "latest", "properties": known.view(now)} if is_view else self.shown(known), {}

    @staticmethod
    def shown(pool):
        return {"id": pool.name, "name": pool.name, "type": POOL, **pool.body, "properties": {**pool.body["properties"], "provisioningState": "Succeeded"}}

    # ---- taking

    def take(self, name, body, now):
        """(the whole body of the group, whether it stood) or an error."""
        asked = body["properties"]
        profile = self.profiles.get(asked["containerGroupProfile"]["id"].rsplit("/", 1)[1])
        pool = self.pools.get(asked["standbyPoolProfile"]["id"].rsplit("/", 1)[1])
        if not profile or not pool or asked["containerGroupProfile"]["revision"] not in profile["properties"]["registeredRevisions"]:
            return error(400, "InvalidContainerGroupProfile", "There is no such profile, revision or pool.")
        number = pool.take(now)
        self.taken.append((name, number))
        whole = json.loads(json.dumps({**body, "properties": {**profile["properties"], **asked}}))
        for key in ("revision", "registeredRevisions"):
            del whole["properties"][key]
        maps = {c["name"]: c["properties"]["configMap"] for c in asked["containers"]}
        whole["properties"]["containers"] = [{**c, "properties": {**c["properties"], "configMap": maps[c["name"]]}} for c in json.loads(json.dumps(profile["properties"]["containers"]))]
        whole["properties"]["isCreatedFromStandbyPool"] = number is not None
        return whole, number is not None
