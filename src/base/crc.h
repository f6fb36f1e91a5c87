#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringbolt::base {

/// CRC-32 as zlib and Ethernet have it: polynomial 0x04C11DB7 reflected, all ones before and after. `crc` is that of
/// the bytes before, 0 at the start: crc32(crc32(0, a), b) is the CRC of a and b in a row. Uses carry-less
/// multiplication where the processor has it. Never blocks. Thread-safe.
uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes);

/// crc32(0, message) of a message that lies at the end of `blocks`, with its first four bytes inverted and zeros before
/// it: of a multiple of 16 bytes, at least 16, there is no odd end that other steps would have to take, which are most
/// of what a message of some dozens of bytes costs.
uint32_t crc32_of_blocks(std::span<const std::byte> blocks);

/// CRC-32C (Castagnoli) as iSCSI and SCTP have it: polynomial 0x1EDC6F41 reflected; otherwise like crc32(). Uses the
/// processor's own instruction where it has one.
uint32_t crc32c(uint32_t crc, std::span<const std::byte> bytes);

/// crc32c(0, bytes) of as many as the header of a collective's chunk has, which each message needs twice: without the
/// loops, which are most of what so few bytes cost.
uint32_t crc32c_of_72(std::span<const std::byte, 72> bytes);

}  // namespace ringbolt::base
