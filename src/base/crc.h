#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringbolt::base {

/// CRC-32 as zlib and Ethernet have it: polynomial 0x04C11DB7 reflected, all ones before and after. `crc` is that of
/// the bytes before, 0 at the start: crc32(crc32(0, a), b) is the CRC of a and b in a row. Uses carry-less
/// multiplication where the processor has it. Never blocks. Thread-safe.
uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes);

/// CRC-32C (Castagnoli) as iSCSI and SCTP have it: polynomial 0x1EDC6F41 reflected; otherwise like crc32(). Uses the
/// processor's own instruction where it has one.
uint32_t crc32c(uint32_t crc, std::span<const std::byte> bytes);

}  // namespace ringbolt::base
