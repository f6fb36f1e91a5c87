#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ringbolt::link {

/// One mapped piece of anonymous shared memory (a memfd whose size is sealed, so that no other holder can shrink it
/// under us). Owns the mapping; keeps the descriptor only when asked. Not thread-safe.
class SharedSegment {
 public:
  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  ~SharedSegment();

  /// A fresh zero-filled segment named `name` in /proc/self/maps. Fails with ENOMEM, EMFILE.
  static base::Result<SharedSegment> create(const char* name, size_t length_bytes);
  /// The segment behind a peer's descriptor: EINVAL unless it is a memfd of exactly that length, sealed against
  /// resizing.
  static base::Result<SharedSegment> map(const base::UniqueFd& fd, size_t length_bytes, bool is_writable);

  bool is_mapped() const { return base_ != nullptr; }
  std::byte* data() const { return base_; }
  size_t length_bytes() const { return length_; }
  /// The descriptor of a segment that create() made; -1 after close_descriptor() and for mapped ones.
  int descriptor() const { return fd_.get(); }
  /// The mapping stays.
  void close_descriptor() { fd_.reset(); }

 private:
  base::UniqueFd fd_;
  std::byte* base_ = nullptr;
  size_t length_ = 0;
};

}  // namespace ringbolt::link
