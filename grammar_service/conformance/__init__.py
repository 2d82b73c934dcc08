"""How right a way of compiling schemas is, instance by instance."""

from grammar_service.conformance.report import ConformanceReport, Row
from grammar_service.conformance.run import run_conformance

__all__ = ["ConformanceReport", "Row", "run_conformance"]
