#include "verbs/slab.h"

#include <sys/mman.h>

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/error.h"

namespace ringbolt::verbs {
namespace {

// Some devices place data 4 GiB too low in regions that cross such a boundary (docs/profiles.md).
constexpr uint64_t kFourGib = 1ULL << 32U;
constexpr int kMostTries = 3;  // for a place within one 4 GiB

size_t rounded_up(size_t value) { return (value + Slab::kPageBytes - 1) / Slab::kPageBytes * Slab::kPageBytes; }

// Up to the next page of the device: allocate() has made room for that.
std::byte* aligned(void* start) { return reinterpret_cast<std::byte*>(rounded_up(reinterpret_cast<uintptr_t>(start))); }

bool crosses_boundary(const std::byte* start, size_t length) {
  const auto first = reinterpret_cast<uintptr_t>(start);
  return first / kFourGib != (first + length - 1) / kFourGib;
}

}  // namespace

// What is longer than asked for is never shown to anybody. Mapped memory is zeros; that of a library may be anything.
Slab::Piece Slab::allocate(const ProtectionDomain& pd, size_t length_bytes) {
  const Calls& calls = pd.context().calls();
  Piece piece;
  piece.mapped_bytes = rounded_up(length_bytes) + kPageBytes;  // to begin on a page of the device
  // Memory that the device of the other end can reach without a copy, as Ringbolt's own library gives it.
  if (calls.alloc_buf != nullptr && calls.free_buf != nullptr) {
    piece.mapped = calls.alloc_buf(pd.get(), piece.mapped_bytes, &piece.buffer);
    if (piece.mapped != nullptr) {
      return piece;
    }
    // A library may refuse large ones, and private memory still works.
    piece.buffer = nullptr;
  }
  piece.mapped = ::mmap(nullptr, piece.mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (piece.mapped == MAP_FAILED) {
    throw base::Error(errno, "mmap", fmt::format("{}, {} bytes", pd.context().device(), length_bytes),
                      "ask for less memory, or end other programs");
  }
  return piece;
}

void Slab::free(const Library& library, const Piece& piece) {
  if (piece.buffer != nullptr) {
    library.calls().free_buf(piece.buffer);
  } else if (piece.mapped != nullptr) {
    ::munmap(piece.mapped, piece.mapped_bytes);
  }
}

// Throws base::Error without memory, and leaves nothing behind.
Slab::Slab(const ProtectionDomain& pd, size_t length_bytes, Contents contents) : library_(pd.context().library()) {
  RINGBOLT_ASSERT(length_bytes > 0);
  piece_ = allocate(pd, length_bytes);
  std::vector<Piece> unsuitable;
  // What is longer than 4 GiB crosses one anywhere.
  while (length_bytes <= kFourGib && crosses_boundary(aligned(piece_.mapped), length_bytes) &&
         unsuitable.size() < kMostTries) {
    unsuitable.push_back(piece_);  // held until the end, or the same place would come again
    try {
      piece_ = allocate(pd, length_bytes);
    } catch (const base::Error&) {
      piece_ = unsuitable.back();  // a slab that crosses is better than none
      unsuitable.pop_back();
      break;
    }
  }
  for (const Piece& one : unsuitable) {
    free(library_, one);
  }
  bytes_ = {aligned(piece_.mapped), length_bytes};
  if (piece_.buffer != nullptr && contents == Contents::zeros) {
    std::memset(bytes_.data(), 0, bytes_.size());  // no library promises that
  }
}

Slab::~Slab() { release(); }

Slab::Slab(Slab&& other) noexcept
    : library_(other.library_), piece_(std::exchange(other.piece_, {})), bytes_(std::exchange(other.bytes_, {})) {}

Slab& Slab::operator=(Slab&& other) noexcept {
  if (this != &other) {
    release();
    library_ = other.library_;
    piece_ = std::exchange(other.piece_, {});
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

// Not while a region of it is registered: whoever owns both destroys the region first.
void Slab::release() { free(library_, std::exchange(piece_, {})); }

}  // namespace ringbolt::verbs
