"""Tests of rank aggregation."""
