"""Mechanisms that use local sensitivity: smooth sensitivity, propose-test-release, triangles of a graph."""
