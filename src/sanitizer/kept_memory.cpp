#include "sanitizer/kept_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

namespace ringbolt::sanitizer {
namespace {

// Bytes, as the others: a cache line, and enough for the 40 bytes of a datagram's routing header.
constexpr size_t kLeastPiece = 64;
// So that registering, which is slow on cards, is rare.
constexpr size_t kLeastChunk = size_t{2} << 20U;
constexpr size_t kMostPiece = size_t{16} << 20U;
constexpr size_t kMostBytes = size_t{1} << 30U;  // of one domain; beyond, receives go without

}  // namespace

KeptMemory::~KeptMemory() {
  for (const Chunk& one : chunks_) {
    calls_.remove(one.region);
    ::munmap(one.memory, one.length);
  }
}

KeptMemory::Piece KeptMemory::take(uint32_t length) {
  const size_t size = std::bit_ceil(std::max<size_t>(length, kLeastPiece));
  if (size > kMostPiece) {
    return {};
  }
  std::vector<Piece>& free = free_[static_cast<size_t>(std::countr_zero(size))];
  if (free.empty()) {
    const size_t chunk = std::max(size, kLeastChunk);
    if (total_bytes_ + chunk > kMostBytes) {
      return {};
    }
    void* const memory = ::mmap(nullptr, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return {};
    }
    uint32_t lkey = 0;
    void* const region = calls_.add(pd_, memory, chunk, &lkey);
    // The device may be out of regions: the program goes on without ours.
    if (region == nullptr) {
      ::munmap(memory, chunk);
      return {};
    }
    total_bytes_ += chunk;
    chunks_.push_back({memory, chunk, region});
    // From the end, so that pop_back() gives the first one first.
    for (size_t at = chunk; at >= size; at -= size) {
      free.push_back({static_cast<std::byte*>(memory) + at - size, lkey, 0});
    }
  }
  Piece piece = free.back();
  free.pop_back();
  piece.length = length;
  return piece;
}

void KeptMemory::give_back(const Piece& piece) {
  if (const auto shared = shares_.find(piece.memory); shared != shares_.end()) {
    if (--shared->second == 0) {
      shares_.erase(shared);
    }
    return;
  }
  const size_t size = std::bit_ceil(std::max<size_t>(piece.length, kLeastPiece));
  free_[static_cast<size_t>(std::countr_zero(size))].push_back(piece);
}

}  // namespace ringbolt::sanitizer
