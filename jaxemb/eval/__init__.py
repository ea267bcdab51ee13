"""Protocols and metrics, each with its coverage and an interval."""
