"""Resource groups, deployments and deleted vaults of Azure, for cagelib.arm: a template is worked out as far as that can be done here, its
resources come one after the other as they need each other, and all of it goes wrong when it is told to. Requests are held to what is
documented: versions of the API, parts of a body, parameters as {name: {value}}."""
import os
import re
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "contract"))

from contractlib import arm as contract  # noqa: E402

from .arm import SUBSCRIPTION, stamp  # noqa: E402
from .arm_standby import POOL, PROFILE  # noqa: E402

VERSION, VAULT_VERSION = "2021-04-01", "2023-07-01"
ROOT = "/subscriptions/%s" % SUBSCRIPTION
CONTAINERS, VAULT = "Microsoft.ContainerInstance/containerGroups", "Microsoft.KeyVault/vaults"
PAGE = 5
SIGNED = "&t=638485032018035520&c=MII%s&s=%s&h=%s" % ("Ab-_" * 600, "x" * 342, "h" * 43)  # as long as addresses of operations are


def error(status, code, message, details=()):
    return status, {"error": {"code": code, "message": message, **({"details": list(details)} if details else {})}}, {}


class Worked(contract.Template):
    """A template with its parameters, in one resource group."""

    def __init__(self, document, base, location, **given):
        super().__init__(document, **given)
        self.base, self.location = base, location

    def call(self, name, arguments):
        if name == "guid":
            return str(uuid.uuid5(uuid.NAMESPACE_URL, "|".join(self.evaluate(a) for a in arguments)))
        if name == "resourceGroup":
            return {"id": self.base, "location": self.location}
        return super().call(name, arguments)

    def placed(self, ident):
        return ident.replace(contract.GROUP, self.base)

    def all(self):
        """[(id, resource, ids that it needs)]"""
        rows = {self.placed(i): r for i, r in self.resources().items()}
        return [(i, r, [self.placed(n) for n in r.get("dependsOn", ()) if self.placed(n) in rows]) for i, r in rows.items()]

    def outputs(self):
        shown = {}
        for name, output in self.document.get("outputs", {}).items():
            shown[name] = {"type": output["type"].capitalize()}
            if not output["type"].lower().startswith("secure"):
                shown[name]["value"] = self.value(output["value"])
        return shown


class Deployment:
    """One that was taken: when each of its resources begins and ends is known from the start."""

    def __init__(self, name, group, body, azure, now):
        p = body["properties"]
        given = {n: v["value"] for n, v in p["parameters"].items() if "value" in v}
        self.before = None  # the one of the same name, which is still seen for a while
        self.name, self.group, self.body, self.tags, self.made, self.canceled = name, group, body, body.get("tags", {}), now, None
        self.worked = Worked(p["template"], group.base, group.location, **given)
        self.rows, self.begins, self.ends, self.errors = self.worked.all(), {}, {}, {}
        left = list(self.rows)
        while left:  # those whose needs are met, one round after the other
            ready = [row for row in left if all(n in self.ends for n in row[2])]
            blocked = [row for row in ready if any(n in self.errors or self.begins[n] is None for n in row[2])]
            for ident, resource, needs in ready:
                never = (ident, resource, needs) in blocked
                self.begins[ident] = None if never else max([now] + [self.ends[n] for n in needs])
                self.ends[ident] = None if never else self.begins[ident] + azure.takes
                wrong = azure.fails(resource, ident)
                if wrong and not never:
                    self.errors[ident] = wrong
            for ident in [i for i, e in self.ends.items() if e is None]:
                self.ends[ident] = now
            if not ready:
                raise AssertionError("a template that goes round in circles")
            left = [row for row in left if row not in ready]
        self.done = max([now + azure.takes] + [e for e in self.ends.values() if e is not None])

    def stops(self):
        return self.canceled if self.canceled is not None else self.done

    def state(self, now):
        if self.canceled is not None:
            return "Canceled"
        if now < min(self.made + 0.02, self.done):
            return "Accepted"
        if now < self.done:
            return "Running"
        return "Failed" if self.errors else "Succeeded"

    def is_active(self, now):
        return self.state(now) in ("Accepted", "Running")

    def made_by(self, now):
        """Resources that are there: one that has begun when it is canceled is still made."""
        return [row for row in self.rows if self.begins[row[0]] is not None and row[0] not in self.errors and self.begins[row[0]] < self.stops()
                and self.ends[row[0]] <= now]

    def shown(self, now):
        p = {"provisioningState": self.state(now), "timestamp": stamp(self.made), "mode": "Incremental", "correlationId": str(uuid.uuid4()), "duration": "PT1S",
             "dependencies": [{"id": i, "resourceType": r["type"], "resourceName": r["name"], "dependsOn": [{"id": n} for n in needs]} for i, r, needs in self.rows if needs]}
        if p["provisioningState"] == "Succeeded":
            p["outputs"] = self.worked.outputs()
        if p["provisioningState"] == "Failed":
            p["error"] = {"code": "DeploymentFailed", "message": "At least one resource deployment operation failed.",
                          "details": [e["error"] for e in self.errors.values()]}
        ident = "%s/providers/Microsoft.Resources/deployments/%s" % (self.group.base, self.name)
        return {"id": ident, "name": self.name, "type": "Microsoft.Resources/deployments", "tags": self.tags, "properties": p}

    def operations(self, now):
        shown = []
        for ident, resource, _ in self.rows:
            if self.begins[ident] is None or self.begins[ident] > now or self.begins[ident] >= self.stops():
                continue
            state = "Running" if now < self.ends[ident] else "Failed" if ident in self.errors else "Succeeded"
            p = {"provisioningOperation": "Create", "provisioningState": state, "timestamp": stamp(now), "statusCode": "Conflict" if state == "Failed" else "OK",
                 "targetResource": {"id": ident, "resourceType": resource["type"], "resourceName": resource["name"]}}
            if state == "Failed":
                p["statusMessage"] = self.errors[ident]
            shown.append({"id": ident + "/operations/x", "operationId": uuid.uuid4().hex, "properties": p})
        return shown + [{"id": "x", "operationId": "1", "properties": {"provisioningOperation": "EvaluateDeploymentOutput", "provisioningState": "Succeeded"}}]


class ResourceGroup:
    def __init__(self, name, location, tags):
        self.name, self.location, self.tags = name, location, tags
        self.base = "%s/resourceGroups/%s" % (ROOT, name)
        self.resources, self.deployments, self.gone_at = {}, {}, None

    def shown(self):
        return {"id": self.base, "name": self.name, "type": "Microsoft.Resources/resourceGroups", "location": self.location, "tags": self.tags,
                "properties": {"provisioningState": "Succeeded" if self.gone_at is None else "Deleting"}}


class Deployments:
    """style: how operations are told, "async", "location" or "none". takes: seconds of a resource. fails: (resource, id) -> its error, or None.
    keeps: so many deletions of a resource group fail. changes: {type: delta} of what-if. echo: what a failing PUT says, with the request in it."""

    def __init__(self, arm, style="async", takes=0.05, fails=None, keeps=0, delete_takes=0.1, protected=True, changes=None, unseen=0):
        self.arm, self.style, self.takes, self.fails_with, self.keeps = arm, style, takes, fails or (lambda resource, ident: None), keeps
        self.delete_takes, self.protected, self.changes, self.unseen = delete_takes, protected, changes or {}, unseen
        self.groups, self.deleted_vaults, self.operations, self.taken, self.removed = {}, {}, {}, [], []
        arm.more.append(self.answer)

    def fails(self, resource, ident):
        if resource["type"] == VAULT and resource["name"] in self.deleted_vaults:
            return {"error": {"code": "ConflictError", "message": "A vault with the same name already exists in deleted state."}}
        return self.fails_with(resource, ident)

    # ---- time goes on

    def settle(self, now):
        for name, group in list(self.groups.items()):
            for deployment in group.deployments.values():
                for ident, resource, needs in deployment.made_by(now):
                    if ident not in deployment.__dict__.setdefault("added", set()):
                        deployment.added.add(ident)
                        group.resources[ident] = {**resource, "needs": needs}
            if group.gone_at is not None and now >= group.gone_at:
                for ident, resource in group.resources.items():
                    self.forget(ident, resource, now)
                self.removed.append(self.groups.pop(name))
                for container in list(self.arm.groups):
                    self.arm.gone.append(self.arm.groups.pop(container))
                self.arm.standby.pools.clear()
                self.arm.standby.profiles.clear()

    def forget(self, ident, resource, now):
        if resource["type"] == VAULT:
            where = "%s/providers/Microsoft.KeyVault/locations/%s/deletedVaults/%s" % (ROOT, "westeurope", resource["name"])
            p = {"vaultId": ident, "location": "westeurope", "tags": resource.get("tags", {}), "deletionDate": stamp(now), "scheduledPurgeDate": stamp(now + 90 * 86400)}
            if self.protected:
                p["purgeProtectionEnabled"] = True
            self.deleted_vaults[resource["name"]] = {"id": where, "name": resource["name"], "type": "Microsoft.KeyVault/deletedVaults", "properties": p}

    # ---- requests

    def answer(self, handler, path, query, body, now):
        """What this part of Azure says; None: the request is not for it."""
        self.settle(now)
        routes = [(r"/operationresults/(\w+)", self.result), (r"/resourcegroups/([^/]+)", self.group), (r"/resourcegroups/([^/]+)/resources", self.resources),
                  (r"/resourcegroups/([^/]+)/providers/microsoft\.resources/deployments", self.deployments),
                  (r"/resourcegroups/([^/]+)/providers/microsoft\.resources/deployments/([^/]+)", self.deployment),
                  (r"/resourcegroups/([^/]+)/providers/microsoft\.resources/deployments/([^/]+)/(\w+)", self.verb),
                  (r"/providers/microsoft\.keyvault/deletedvaults", self.vaults), (r"/providers/microsoft\.keyvault/locations/\w+/deletedvaults/([^/]+)/purge", self.purge),
                  (r"(/resourcegroups/[^/]+/providers/.+)", self.resource)]
        for pattern, route in routes:
            found = re.fullmatch(pattern, path[len(ROOT):], re.IGNORECASE)
            if path.startswith(ROOT) and found and not self.is_elsewhere(path):
                wanted = VAULT_VERSION if "keyvault" in pattern else VERSION
                if route != self.resource and query.get("api-version") != wanted:
                    return error(400, "InvalidApiVersionParameter", "The api-version '%s' is invalid." % query.get("api-version"))
                return route(handler.command, query, body, now, *found.groups())
        return None

    @staticmethod
    def is_elsewhere(path):
        """Container groups are cagelib.arm's own, pools and profiles those of cagelib.arm_standby."""
        return any("/%s" % kind in path for kind in (CONTAINERS, POOL, PROFILE)) and path.count("/providers/") == 1

    def paged(self, items, query, path):
        at = int(query.get("$skiptoken", 0))
        page = {"value": items[at:at + PAGE]}
        if at + PAGE < len(items):
            page["nextLink"] = "%s%s?api-version=%s&$skiptoken=%d" % (self.arm.url, path, query["api-version"], at + PAGE)
        return 200, page, {}

    def found(self, name):
        return self.groups.get(name.lower())

    @staticmethod
    def no_group(name):
        return error(404, "ResourceGroupNotFound", "Resource group '%s' could not be found." % name)

    # ---- what takes time

    def later(self, status, until, end):
        """end: the last answer. Told in one of three ways."""
        if self.style == "none":
            return None
        key = "op%d" % len(self.operations)
        self.operations[key] = (until, end)
        where = "%s%s/operationresults/%s?api-version=%s%s" % (self.arm.url, ROOT, key, VERSION, SIGNED)
        return status, None, {"Azure-AsyncOperation" if self.style == "async" else "Location": where, "Retry-After": "0"}

    def result(self, method, query, body, now, key):
        until, end = self.operations[key]
        status, answer, headers = end()
        if now < until:
            return (202, None, {"Retry-After": "0"}) if self.style == "location" else (200, {"status": "Running"}, {})
        if self.style == "location":
            return status, answer, headers
        if status < 300:
            return 200, {"status": "Succeeded", **({"properties": answer["properties"]} if answer and "properties" in answer else {})}, {}
        return 200, {"status": "Failed", **answer}, {}

    # ---- resource groups

    def group(self, method, query, body, now, name):
        group = self.found(name)
        if method == "PUT":
            if set(body) - {"location", "tags"} or not body.get("location"):
                return error(400, "LocationRequired", "The location property is required for this definition.")
            if group and (group.gone_at is not None or group.location != body["location"]):
                return error(409, "ResourceGroupBeingDeleted" if group.gone_at else "InvalidResourceGroupLocation", "The resource group is there already.")
            self.groups[name.lower()] = group = group or ResourceGroup(name, body["location"], {})
            group.tags = body.get("tags", {})
            return 201, group.shown(), {}
        if not group:
            return self.no_group(name)
        return self.delete_group(group, now) if method == "DELETE" else (200, group.shown(), {})

    def delete_group(self, group, now):
        if self.keeps > 0:
            self.keeps -= 1
            blocked = error(409, "ResourceGroupDeletionBlocked", "Deletion of resource group failed.", [{"code": "ScopeLocked", "message": "The vault can't be deleted."}])
            return self.later(202, now + self.delete_takes, lambda: blocked) or blocked
        if group.gone_at is None:
            group.gone_at = now + self.delete_takes
        return self.later(202, group.gone_at, lambda: (200, None, {})) or (200, None, {})

    def resources(self, method, query, body, now, name):
        group = self.found(name)
        if not group:
            return self.no_group(name)
        shown = [{"id": i, "name": r["name"], "type": r["type"], "location": r.get("location", "westeurope"), "tags": r.get("tags", {})}
                 for i, r in group.resources.items() if "scope" not in r]
        shown += [{"id": g.shown(now)["id"], "name": g.name, "type": CONTAINERS, "location": "westeurope", "tags": g.body.get("tags", {})} for g in self.arm.groups.values()]
        pooled = [(PROFILE, n, p) for n, p in self.arm.standby.profiles.items()] + [(POOL, n, p.body) for n, p in self.arm.standby.pools.items()]
        shown += [{"id": "%s/providers/%s/%s" % (group.base, kind, n), "name": n, "type": kind, "location": "westeurope", "tags": p.get("tags", {})} for kind, n, p in pooled]
        return self.paged(shown, query, group.base + "/resources")

    def resource(self, method, query, body, now, path):
        ident, group = ROOT + path, self.found(path.split("/")[2])
        key = next((i for i in (group.resources if group else {}) if i.lower() == ident.lower()), None)
        if method != "DELETE" or not key:
            return (204, None, {}) if method == "DELETE" else error(404, "ResourceNotFound", "The Resource was not found.")
        resource = group.resources[key]
        if query.get("api-version") != resource["apiVersion"]:
            return error(400, "NoRegisteredProviderFound", "No registered resource provider found for the API version '%s'." % query.get("api-version"))
        if any(key in other["needs"] for other in group.resources.values()) or (self.arm.groups and "virtualNetworks" in key):
            return error(400, "InUseResourceCannotBeDeleted", "%s is used by another one." % key)
        group.resources.pop(key)
        self.forget(key, resource, now)
        return self.later(202, now + self.takes, lambda: (204, None, {})) or (200, None, {})

    # ---- deployments

    def deployments(self, method, query, body, now, name):
        group = self.found(name)
        if not group:
            return self.no_group(name)
        return self.paged([x.shown(now) for x in group.deployments.values()], query, "%s/providers/Microsoft.Resources/deployments" % group.base)

    @staticmethod
    def wrong_body(body, extra=()):
        """What is documented to be there, and nothing else."""
        p = body.get("properties", {}) if isinstance(body, dict) else {}
        template, parameters = p.get("template"), p.get("parameters")
        if set(body) - {"properties", "tags"} or set(p) - {"mode", "template", "parameters", *extra} or p.get("mode") != "Incremental":
            return error(400, "InvalidRequestContent", "The request content was invalid.")
        if not isinstance(template, dict) or not {"$schema", "contentVersion", "resources"} <= set(template):
            return error(400, "InvalidTemplate", "Deployment template parse failed.")
        if not isinstance(parameters, dict) or any(set(v) not in ({"value"}, {"reference"}) for v in parameters.values()):
            return error(400, "InvalidRequestContent", "The parameters are no objects with a value.")
        declared = template.get("parameters", {})
        if set(parameters) - set(declared) or {n for n, d in declared.items() if "defaultValue" not in d} - set(parameters):
            return error(400, "InvalidTemplate", "Deployment template validation failed: the parameters are others.")
        return None

    def deployment(self, method, query, body, now, name, key):
        group = self.found(name)
        if not group:
            return self.no_group(name)
        there = group.deployments.get(key)
        if method == "PUT":
            return self.put(group, there, key, body, now)
        if there and method == "GET" and now < there.made + self.unseen:
            there = there.before
        if not there:
            return (204, None, {}) if method == "DELETE" else error(404, "DeploymentNotFound", "Deployment '%s' could not be found." % key)
        if method == "DELETE":
            group.deployments.pop(key)
            return self.later(202, now, lambda: (204, None, {})) or (204, None, {})
        return 200, there.shown(now), {}

    def put(self, group, there, key, body, now):
        wrong = self.wrong_body(body)
        if wrong:
            return wrong
        if group.gone_at is not None:
            return error(409, "ResourceGroupBeingDeleted", "The resource group is in deprovisioning state.")
        if there and there.is_active(now):
            return error(409, "DeploymentActive", "Unable to edit or replace deployment '%s': previous deployment is still active." % key)
        made = group.deployments[key] = Deployment(key, group, body, self, now)
        made.before = there
        self.taken.append(made)
        told = self.later(201, made.done, lambda: (200, made.shown(made.done), {}))
        return 201, made.shown(now), told[2] if told else {}

    def verb(self, method, query, body, now, name, key, verb):
        group = self.found(name)
        there = group.deployments.get(key) if group else None
        if verb.lower() == "whatif" and method == "POST":
            return self.what_if(group, name, body, now)
        if not there:
            return error(404, "DeploymentNotFound", "Deployment '%s' could not be found." % key)
        if verb == "operations" and method == "GET":
            return self.paged(there.operations(now), query, "%s/providers/Microsoft.Resources/deployments/%s/operations" % (group.base, key))
        if verb == "exportTemplate" and method == "POST":
            return 200, {"template": there.body["properties"]["template"]}, {}
        if verb == "cancel" and method == "POST":
            if not there.is_active(now):
                return error(409, "DeploymentCannotBeCancelled", "The deployment is not active.")
            there.canceled = now
            return 204, None, {}
        return error(405, "MethodNotAllowed", verb)

    def what_if(self, group, name, body, now):
        if not group:
            return self.no_group(name)
        wrong = self.wrong_body(body, ("whatIfSettings",))
        settings = body.get("properties", {}).get("whatIfSettings", {})
        if wrong or settings.get("resultFormat") != "FullResourcePayloads":
            return wrong or error(400, "InvalidRequestContent", "resultFormat")
        p = body["properties"]
        rows = Worked(p["template"], group.base, group.location, **{n: v["value"] for n, v in p["parameters"].items() if "value" in v}).all()
        changes = [self.change(group, ident, resource) for ident, resource, _ in rows]
        changes += [{"resourceId": i, "changeType": "Ignore"} for i in group.resources if i not in {row[0] for row in rows}]
        end = 200, {"status": "Succeeded", "properties": {"changes": changes}}, {}
        return self.later(202, now + self.takes, lambda: end) or end

    def change(self, group, ident, resource):
        if ident not in group.resources:
            return {"resourceId": ident, "changeType": "Create", "after": resource}
        delta = self.changes.get(resource["type"])
        return {"resourceId": ident, "changeType": "Modify" if delta else "NoChange", "before": resource, "after": resource, **({"delta": delta} if delta else {})}

    # ---- vaults

    def vaults(self, method, query, body, now):
        return self.paged(list(self.deleted_vaults.values()), query, ROOT + "/providers/Microsoft.KeyVault/deletedVaults")

    def purge(self, method, query, body, now, name):
        vault = self.deleted_vaults.get(name)
        if method != "POST" or not vault:
            return error(404, "DeletedVaultNotFound", "The specified deleted vault '%s' does not exist." % name)
        if vault["properties"].get("purgeProtectionEnabled"):
            return error(400, "MethodNotAllowed", "Operation 'DeletedVaultPurge' is not allowed.")
        self.deleted_vaults.pop(name)
        return self.later(202, now + self.takes, lambda: (200, None, {})) or (200, None, {})
