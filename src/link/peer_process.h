#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/unique_fd.h"

/// What the kernel tells about the process of a peer, and what we allow it. All thread-safe.
namespace ringbolt::link {

/// State T or t in /proc/<pid>/stat. False when it cannot be read.
bool is_process_stopped(pid_t pid);

/// process_vm_readv finds `expected` at `address` of the process: its memory can be read, and the pid is really the
/// one that sent us address and value.
bool is_memory_reachable(pid_t pid, uint64_t address, uint64_t expected);

/// /proc/sys/kernel/yama/ptrace_scope; 0 without Yama.
int yama_scope();

/// Under Yama's scope 1: lets `pid` (never all) read and write our memory. The kernel keeps one such pid per process,
/// so each call takes the permission from the peer before: its copies then fail with EPERM and it must use the ring.
void allow_memory_access(pid_t pid);

/// `fd` is an eventfd: to write one to it never blocks for as long as anybody reads it at all.
bool is_event_descriptor(int fd);

/// The same, and its reader does not block either.
bool is_bell(int fd);

/// `fd` is a regular file (a memfd is one), open for reading alone.
bool is_read_only_file(int fd);

/// A new descriptor of the same file, open for reading alone; not open, with errno set, when /proc is missing.
base::UniqueFd reopen_read_only(int fd);

}  // namespace ringbolt::link
