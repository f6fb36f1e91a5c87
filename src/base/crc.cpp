#include "base/crc.h"

#ifdef RINGBOLT_HAS_ISAL
#include <isa-l/crc.h>
#else
#include <zlib.h>
#endif

namespace ringbolt::base {

#ifdef RINGBOLT_HAS_ISAL
namespace {

// ISA-L 2.30 folds from 256 bytes on with 512-bit registers and leaves their upper halves in use. On some processors
// each SSE instruction of the program then waits for them: 160 ns more for the checksum of the next small packet.
constexpr size_t kWideFrom = 256;

#ifdef __x86_64__
__attribute__((target("avx"))) void clear_upper_halves() { __builtin_ia32_vzeroupper(); }
bool has_upper_halves() { return __builtin_cpu_supports("avx") != 0; }
#else
void clear_upper_halves() {}
bool has_upper_halves() { return false; }
#endif

}  // namespace

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) {
  const uint32_t result = crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  if (bytes.size() >= kWideFrom && has_upper_halves()) {
    clear_upper_halves();
  }
  return result;
}

const char* crc32_library() { return "ISA-L"; }

#else

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    return crc;  // zlib takes a null pointer for "give me the first value"
  }
  return static_cast<uint32_t>(::crc32_z(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

const char* crc32_library() { return "zlib"; }

#endif

}  // namespace ringbolt::base
