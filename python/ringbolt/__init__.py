"""Ringbolt for Python: ringbolt.stream (byte streams over RDMA), ringbolt.redis and ringbolt.valkey (connections over
them for the packages of these names). Each is imported for itself, since each needs something else."""
