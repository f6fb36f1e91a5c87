#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringbolt::base {

/// CRC-32 as zlib and Ethernet have it: polynomial 0x04C11DB7 reflected, all ones before and after. `crc` is that of
/// the bytes before, 0 at the start: crc32(crc32(0, a), b) is the CRC of a and b in a row. Uses carry-less
/// multiplication where the library was built with ISA-L. Blocks never. Thread-safe.
uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes);

/// "ISA-L" or "zlib": what crc32() calls.
const char* crc32_library();

}  // namespace ringbolt::base
