#pragma once

#include <cstddef>

namespace ringbolt::base {

/// Copies memory of this process that may not be there, or not be writable, whatever was agreed upon: false then, and
/// some of it may have been copied. For what a program handed over and may have unmapped since. Costs a system call.
/// Where the kernel forbids process_vm_readv the pages are looked at first, and memory that another thread unmaps in the
/// instant between is a segmentation fault. Thread-safe.
bool guarded_copy(void* target, const void* source, size_t length_bytes);

/// Whether all of it is there and can be read, or written as well. Thread-safe.
bool is_accessible(const void* memory, size_t length_bytes, bool for_writing);

}  // namespace ringbolt::base
