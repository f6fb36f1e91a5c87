#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <optional>

namespace ringbolt::rsocket {

/// Walks over the pieces of a caller's iovec. Owns nothing. Not thread-safe.
/// A copy goes on from where the original was. The program's array and memory must stay.
class IoCursor {
 public:
  /// Nothing where the lengths add up to more than a call can report.
  /// `pieces`: null only for a count of 0.
  static std::optional<IoCursor> over(const iovec* pieces, size_t count) {
    size_t total = 0;
    for (size_t i = 0; i < count; ++i) {
      if (pieces[i].iov_len > SSIZE_MAX - total) {
        return std::nullopt;
      }
      total += pieces[i].iov_len;
    }
    return IoCursor(pieces, total);
  }

  size_t left() const { return left_; }

  /// The next `length` bytes if they lie in one piece, else null. `length` is at most left(), and not 0.
  const void* in_one_piece(size_t length) {
    skip_finished();
    return piece_->iov_len - at_ >= length ? static_cast<const std::byte*>(piece_->iov_base) + at_ : nullptr;
  }

  /// Copies the next `length` bytes, at most left(), to `target`, and goes on behind them.
  void gather(std::byte* target, size_t length) {
    walk(length, [&](std::byte* piece, size_t bytes) {
      std::memcpy(target, piece, bytes);
      target += bytes;
    });
  }
  /// The other way round.
  void scatter(const std::byte* source, size_t length) {
    walk(length, [&](std::byte* piece, size_t bytes) {
      std::memcpy(piece, source, bytes);
      source += bytes;
    });
  }
  void skip(size_t length) {
    walk(length, [](std::byte*, size_t) {});
  }

 private:
  IoCursor(const iovec* pieces, size_t total) : piece_(pieces), left_(total) {}

  void skip_finished() {
    // Ends before the array's end: only called while bytes are left.
    while (piece_->iov_len == at_) {
      ++piece_;
      at_ = 0;
    }
  }

  template <class Visit>
  void walk(size_t length, Visit visit) {
    while (length > 0) {
      skip_finished();
      const size_t bytes = std::min(length, piece_->iov_len - at_);
      visit(static_cast<std::byte*>(piece_->iov_base) + at_, bytes);
      at_ += bytes;
      left_ -= bytes;
      length -= bytes;
    }
  }

  const iovec* piece_;
  size_t at_ = 0;  ///< in *piece_
  size_t left_;
};

}  // namespace ringbolt::rsocket
