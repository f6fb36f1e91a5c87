#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace ringbolt::sanitizer {

/// Whether all of it is mapped still: msync(2) says so at a tenth of what it costs to ask for each page, and does
/// nothing with MS_ASYNC. Memory whose protection was changed since it was registered is a segmentation fault to who
/// touches it, here as in the device. Thread-safe.
/// A system call. Another thread may unmap it right after: then the program has two mistakes, and dies of the second.
inline bool is_mapped(uint64_t address, size_t length_bytes) {
  static const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t first = address / page * page;
  return length_bytes == 0 ||
         ::msync(reinterpret_cast<void*>(first), static_cast<size_t>(address - first) + length_bytes, MS_ASYNC) == 0;
}

}  // namespace ringbolt::sanitizer
