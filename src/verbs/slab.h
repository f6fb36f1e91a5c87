#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "verbs/objects.h"

namespace ringbolt::verbs {

/// What memory holds at first. Untouched memory takes no room until it is used, where the system allows that.
enum class Contents : bool { zeros, anything };

/// One piece of memory that a device can work with: it begins on a page of 16 KiB and, up to 4 GiB, crosses no
/// 4 GiB boundary if that can be had (a device over Thunderbolt was seen to deliver beyond one 4 GiB too low).
/// Where the library gives out memory that it shares between processes, it is such memory, and other processes' devices
/// on this machine reach it with a plain copy. Outlives its regions; its protection domain outlives it. Owns the
/// memory, and gives it back to whom it is from. Moving it leaves the bytes where they are.
class Slab {
 public:
  static constexpr size_t kPageBytes = 16384;

  /// Of at least one byte. Throws base::Error when memory runs out.
  Slab(const ProtectionDomain& pd, size_t length_bytes, Contents contents = Contents::zeros);
  ~Slab();
  Slab(Slab&& other) noexcept;
  Slab& operator=(Slab&& other) noexcept;

  /// As long as asked for; the rest of the last page is not in it.
  std::span<std::byte> bytes() const { return bytes_; }
  /// Whether the library gave the memory.
  bool is_of_library() const { return piece_.buffer != nullptr; }

 private:
  struct Piece {
    void* mapped = nullptr;
    size_t mapped_bytes = 0;
    ibv_buf* buffer = nullptr;
  };
  static Piece allocate(const ProtectionDomain& pd, size_t length_bytes);
  static void free(const Library& library, const Piece& piece);
  void release();

  Library library_;
  Piece piece_;
  std::span<std::byte> bytes_;
};

}  // namespace ringbolt::verbs
