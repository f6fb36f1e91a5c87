"""Ringbolt for Python. Of this package itself: groups of ranks and their collectives (ringbolt.join, docs/python.md). Each
imported for itself, since each needs something else: ringbolt.stream (byte streams over RDMA), ringbolt.redis and
ringbolt.valkey (connections over them for the packages of these names)."""

from ._group_library import GroupError, JoinError, version
from .group import Group, Reduction
from .joining import join
from .memory import Memory, Type
from .request import Request

for _one in (Group, GroupError, JoinError, Memory, Reduction, Request, Type):
    _one.__module__ = "ringbolt"  # by which a program knows them, in its tracebacks, too

__all__ = ["Group", "GroupError", "JoinError", "Memory", "Reduction", "Request", "Type", "join", "version"]
