#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

/// Reflected CRCs of 32 bits by a processor's own instruction, up to eight bytes at a time: x86's SSE 4.2 has that of
/// CRC-32C, ARMv8's CRC extension those of both polynomials. Whether it is there is found out at run time.
namespace ringbolt::base {

// What each processor has: a step of 8, 4 and 1 bytes.

#if defined(__x86_64__)

// Of each function that may use the instruction: the file as a whole is for any x86-64, and lambdas don't inherit it.
#define RINGBOLT_CRC_TARGET __attribute__((target("sse4.2")))
struct Crc32cSteps {
  RINGBOLT_CRC_TARGET static uint64_t of_8(uint64_t value, uint64_t word) { return _mm_crc32_u64(value, word); }
  RINGBOLT_CRC_TARGET static uint32_t of_4(uint32_t value, uint32_t word) { return _mm_crc32_u32(value, word); }
  RINGBOLT_CRC_TARGET static uint32_t of_1(uint32_t value, uint8_t byte) { return _mm_crc32_u8(value, byte); }
};
// Reads what the start-up code has found out by CPUID: no system call, any thread.
inline bool has_crc32c_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }

#elif defined(__aarch64__)

#define RINGBOLT_CRC_TARGET
// By the assembler's name: clang 14 declares the functions of arm_acle.h only where the whole file is for such
// processors. "+r": read and written. No memory is touched, and no flags.
#define RINGBOLT_CRC_STEP(instruction, value, word) \
  asm(".arch_extension crc\n\t" instruction : "+r"(value) : "r"(word))
struct Crc32Steps {
  static uint64_t of_8(uint64_t value, uint64_t word) {
    RINGBOLT_CRC_STEP("crc32x %w0, %w0, %x1", value, word);
    return value;
  }
  static uint32_t of_4(uint32_t value, uint32_t word) {
    RINGBOLT_CRC_STEP("crc32w %w0, %w0, %w1", value, word);
    return value;
  }
  static uint32_t of_1(uint32_t value, uint32_t byte) {
    RINGBOLT_CRC_STEP("crc32b %w0, %w0, %w1", value, byte);
    return value;
  }
};
struct Crc32cSteps {
  static uint64_t of_8(uint64_t value, uint64_t word) {
    RINGBOLT_CRC_STEP("crc32cx %w0, %w0, %x1", value, word);
    return value;
  }
  static uint32_t of_4(uint32_t value, uint32_t word) {
    RINGBOLT_CRC_STEP("crc32cw %w0, %w0, %w1", value, word);
    return value;
  }
  static uint32_t of_1(uint32_t value, uint32_t byte) {
    RINGBOLT_CRC_STEP("crc32cb %w0, %w0, %w1", value, byte);
    return value;
  }
};
#undef RINGBOLT_CRC_STEP
// getauxval(3), HWCAP_CRC32 of <asm/hwcap.h>: ARMv8.0 may lack the extension.
inline bool has_crc32c_instruction() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }

#else

#define RINGBOLT_CRC_TARGET
struct Crc32cSteps {  // never taken
  static uint64_t of_8(uint64_t value, uint64_t) { return value; }
  static uint32_t of_4(uint32_t value, uint32_t) { return value; }
  static uint32_t of_1(uint32_t value, uint32_t) { return value; }
};
inline bool has_crc32c_instruction() { return false; }

#endif

/// The register after `bytes`; without the inversion before and after. The processor has the instruction.
template <class Steps>
RINGBOLT_CRC_TARGET uint32_t crc_register_by_instruction(uint32_t value, std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  // memcpy into a word below: `bytes` need not be aligned, and compilers make one load of it.
  const std::byte* const words_end = at + bytes.size() / sizeof(uint64_t) * sizeof(uint64_t);
  // Little-endian machines: the first byte of a word is its lowest, as the reflected CRC wants it.
  uint64_t wide = value;  // as the instruction takes it: no step has to clear its upper half
  const auto take_word = [&](const std::byte* from) RINGBOLT_CRC_TARGET {
    uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    wide = Steps::of_8(wide, word);
  };
  // Bytes of a turn.
  constexpr ptrdiff_t kUnrolled = 8 * sizeof(uint64_t);  // headers of chunks are little longer
  for (; words_end - at >= kUnrolled; at += kUnrolled) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kUnrolled; i += sizeof(uint64_t)) {
      take_word(at + i);
    }
  }
  for (; at != words_end; at += sizeof(uint64_t)) {
    take_word(at);
  }
  value = static_cast<uint32_t>(wide);
  if (end - at >= static_cast<ptrdiff_t>(sizeof(uint32_t))) {
    uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    value = Steps::of_4(value, word);
    at += sizeof word;
  }
  for (; at != end; ++at) {
    value = Steps::of_1(value, std::to_integer<uint8_t>(*at));
  }
  return value;
}

}  // namespace ringbolt::base
