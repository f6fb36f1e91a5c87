#include "base/crc.h"

#ifdef RINGBOLT_HAS_ISAL
#include <isa-l/crc.h>
#else
#include <zlib.h>
#endif

namespace ringbolt::base {

#ifdef RINGBOLT_HAS_ISAL

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) {
  return crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
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
