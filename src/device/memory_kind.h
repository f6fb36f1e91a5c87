#pragma once

#include <cstdint>

namespace ringbolt::device {

/// Whether a part of these bytes of the process lies on its heap (what the kernel calls so: what malloc maps by itself
/// does not) or on its first thread's stack. False where /proc can't be read. Thread-safe; opens a file.
bool is_on_heap_or_stack(uint64_t address, uint64_t length);

}  // namespace ringbolt::device
