"""Ringbolt for Python. Of this package itself: groups of ranks and their collectives (ringbolt.join, docs/python.md). Each
imported for itself, since each needs something else: ringbolt.stream (byte streams over RDMA), ringbolt.redis and
ringbolt.valkey (connections over them for the packages of these names)."""

from ._group_library import GroupError, JoinError, version
from .group import Group, Reduction
from .joining import join
from .memory import Memory, Type
from .request import Request

__all__ = ["Group", "GroupError", "JoinError", "Memory", "Reduction", "Request", "Type", "join", "version"]
