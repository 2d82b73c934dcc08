"""Schemas of manifests, pipelines and settings."""

from __future__ import annotations

from load_tests.corpus.families.building import (
    Schema,
    flag,
    formatted,
    many,
    names,
    number,
    one_of,
    record,
    spelled,
    text,
    unspelled,
    whole,
)

LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def infrastructure() -> dict[str, Schema]:
    """Schemas by name."""
    return {
        "pod_manifest": _manifest("Pod", _pod()),
        "deployment_manifest": unspelled(_manifest("Deployment", _deployment())),
        "job_manifest": unspelled(_manifest("CronJob", _job())),
        "pipeline": _pipeline(),
        "package_manifest": _package(),
        "feature_flags": many(_flag_rule()),
        "alert_rules": unspelled(_alerts()),
        "firewall": many(_firewall_rule(), 1, 500),
    }


def _metadata() -> Schema:
    return record({"name": spelled(LABEL)}, {"namespace": spelled(LABEL), "labels": names(text()), "annotations": names(text())})


def _manifest(kind: str, spec: Schema) -> Schema:
    return record({"apiVersion": text(), "kind": {"const": kind}, "metadata": _metadata(), "spec": spec})


def _container() -> Schema:
    variable = record({"name": spelled("^[A-Z_][A-Z0-9_]*$")}, {"value": text()})
    quantity = spelled("^[0-9]+(m|Mi|Gi)?$")
    amounts = record({}, {"cpu": quantity, "memory": quantity})
    probe = record({}, {"path": text(), "port": whole(1, 65535), "period_s": whole(1), "timeout_s": whole(1), "failures": whole(1)})
    return record(
        {"name": spelled(LABEL), "image": text()},
        {
            "command": many(text()),
            "args": many(text()),
            "env": many(variable),
            "ports": many(record({"containerPort": whole(1, 65535)}, {"protocol": one_of(["TCP", "UDP"])})),
            "resources": record({}, {"limits": amounts, "requests": amounts}),
            "livenessProbe": probe,
            "readinessProbe": probe,
            "imagePullPolicy": one_of(["Always", "Never", "IfNotPresent"]),
        },
    )


def _pod() -> Schema:
    volume = record({"name": spelled(LABEL)}, {"emptyDir": record({}), "configMap": record({"name": text()}), "secretName": text()})
    toleration = record({"key": text()}, {"operator": one_of(["Exists", "Equal"]), "value": text(), "effect": text()})
    return record(
        {"containers": many(_container(), 1)},
        {
            "initContainers": many(_container()),
            "volumes": many(volume),
            "nodeSelector": names(text()),
            "tolerations": many(toleration),
            "restartPolicy": one_of(["Always", "OnFailure", "Never"]),
            "serviceAccountName": text(),
            "hostNetwork": flag(),
            "terminationGracePeriodSeconds": whole(0),
        },
    )


def _template() -> Schema:
    return record({"metadata": _metadata(), "spec": _pod()})


def _deployment() -> Schema:
    rolling = record({}, {"maxSurge": spelled("^[0-9]+%?$"), "maxUnavailable": spelled("^[0-9]+%?$")})
    strategy = record({"type": one_of(["Recreate", "RollingUpdate"])}, {"rollingUpdate": rolling})
    return record(
        {"selector": record({"matchLabels": names(text())}), "template": _template()},
        {"replicas": whole(0, 1000), "strategy": strategy, "paused": flag(), "revisionHistoryLimit": whole(0)},
    )


def _job() -> Schema:
    return record(
        {"schedule": text(), "jobTemplate": record({"spec": record({"template": _template()}, {"backoffLimit": whole(0)})})},
        {"suspend": flag(), "concurrencyPolicy": one_of(["Allow", "Forbid", "Replace"])},
    )


def _pipeline() -> Schema:
    command = record(
        {"run": text()}, {"name": text(), "if": text(), "env": names(text()), "working-directory": text(), "timeout": whole(1)}
    )
    action = record({"uses": text()}, {"name": text(), "if": text(), "with": names(text()), "env": names(text())})
    job = record(
        {"runs-on": text(), "steps": many({"anyOf": [command, action]}, 1)},
        {"needs": many(text()), "if": text(), "timeout-minutes": whole(1, 360), "strategy": record({"matrix": names(many(text()))})},
    )
    return record({"name": text(), "on": many(one_of(["push", "pull_request", "schedule"]), 1), "jobs": names(job)}, {"env": names(text())})


def _package() -> Schema:
    person = record({"name": text()}, {"email": formatted("email"), "url": formatted("uri")})
    return record(
        {"name": spelled("^[a-z][a-z0-9-]*$"), "version": spelled("^[0-9]+\\.[0-9]+\\.[0-9]+(-[a-z0-9.]+)?$")},
        {
            "description": text(),
            "keywords": many(text()),
            "homepage": formatted("uri"),
            "license": text(),
            "author": person,
            "contributors": many(person),
            "files": many(text()),
            "scripts": names(text()),
            "dependencies": names(text()),
            "devDependencies": names(text()),
            "engines": names(text()),
            "private": flag(),
        },
    )


def _flag_rule() -> Schema:
    clause = record({"attribute": text(), "operator": one_of(["in", "matches", "before", "after"]), "values": many(text(), 1)})
    variation = record({"name": text(), "weight": number(0, 100)})
    return record(
        {"key": spelled(LABEL), "on": flag(), "variations": many(variation, 1)}, {"clauses": many(clause), "prerequisites": many(text())}
    )


def _alerts() -> Schema:
    rule = record(
        {"alert": text(), "expr": text(), "for": spelled("^[0-9]+[smhd]$"), "severity": one_of(["page", "ticket", "info"])},
        {"labels": names(text()), "summary": text(200), "runbook": formatted("uri")},
    )
    return record({"groups": many(record({"name": text(), "rules": many(rule, 1)}, {"interval": spelled("^[0-9]+[smhd]$")}), 1)})


def _firewall_rule() -> Schema:
    return record(
        {"action": one_of(["allow", "deny"]), "source": formatted("ipv4"), "protocol": one_of(["tcp", "udp", "icmp"])},
        {"ports": many(whole(0, 65535), 1, 16), "comment": text(60), "log": flag()},
    )
