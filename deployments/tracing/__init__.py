"""Traces of requests over all processes: the one room that knows OpenTelemetry. Without `telemetry.otlp_endpoint` nobody enters it."""
