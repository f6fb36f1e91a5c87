#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "base/assert.h"

namespace ringbolt::stream {

/// A WRITE to post: `length` bytes of the sending buffer from `offset` on (of a direct one, of the program's own
/// memory).
struct Write {
  uint64_t remote_address = 0;
  uint32_t remote_key = 0;
  uint32_t offset = 0;
  uint32_t length = 0;
  bool has_immediate = false;
  uint32_t immediate = 0;    ///< host order; on the wire most significant byte first
  bool is_signaled = false;  ///< asks for a completion, which stands for all before it
  uint64_t number = 0;       ///< from 1
  friend bool operator==(const Write&, const Write&) = default;
};

/// The peer's receive buffer, and our sending buffer that mirrors it: offsets are the same in both. Bytes are filled
/// in, then flushed by a WRITE; the buffer is filled to its very last byte and never wraps. Also counts the WRITEs that
/// the device has not finished, of which only some complete, and their bytes. Hot path. Pure. Not thread-safe.
class SendSpace {
 public:
  /// WRITEs that may be under way, and after how many one asks for a completion: at any time one of the last few did,
  /// so who waits for room in the queue waits for something.
  /// Four times kSignalEvery. The send queue is made for as many.
  static constexpr uint32_t kDepth = 192;
  static constexpr uint32_t kSignalEvery = 48;

  bool is_open() const { return is_open_; }
  /// Of the peer's buffer: constant once it is open.
  uint32_t length() const { return length_; }
  uint32_t room() const { return length_ - filled_; }
  /// Where the next byte goes.
  uint32_t offset() const { return filled_; }
  uint32_t unflushed() const { return filled_ - flushed_; }
  bool can_post() const { return posted_ - done_ < kDepth; }
  uint64_t posted() const { return posted_; }
  uint64_t done() const { return done_; }
  /// Bytes of the WRITEs that are done: in the peer's memory.
  uint64_t bytes_done() const { return bytes_done_; }

  /// The first announcement, or a later one, which begins at the front again. Returns how many bytes that were filled
  /// in and not flushed the caller has to move from moved_from() to the front: none, unless a peer announces too early.
  uint32_t open(uint64_t address, uint32_t length, uint32_t key) {
    RINGBOLT_ASSERT(!is_open_ || length == length_);
    address_ = address;
    key_ = key;
    length_ = length;
    is_open_ = true;
    const uint32_t left = unflushed();
    moved_from_ = flushed_;
    flushed_ = 0;
    filled_ = left;
    since_immediate_ = 0;
    return left;
  }
  uint32_t moved_from() const { return moved_from_; }
  /// Whether an announcement now would be in time: all of the buffer was written.
  bool is_spent() const { return flushed_ == length_; }

  void fill(uint32_t count) {
    RINGBOLT_ASSERT(count <= room());
    filled_ += count;
  }
  /// What was filled in since the last time, as one message; nothing if there is none or no place in the queue.
  /// The caller posts what it gets, in this order, or the connection has ended.
  std::optional<Write> flush(bool wants_completion) {
    if (unflushed() == 0 || !can_post()) {
      return std::nullopt;
    }
    return post(filled_ - flushed_, true, wants_completion);
  }
  /// A WRITE of at most `length` bytes from memory of the program's own; only while nothing is unflushed. The last, and
  /// what reaches the end of the buffer, tells the peer (section 1.3: segments before it need not).
  std::optional<Write> direct(uint32_t length, bool is_last) {
    RINGBOLT_ASSERT(unflushed() == 0);
    const uint32_t count = std::min(length, room());
    if (count == 0 || !can_post()) {
      return std::nullopt;
    }
    filled_ += count;
    // Whoever's memory that is wants to know when it is free, also when this much is all that there was room for.
    const bool is_end = (count == length && is_last) || room() == 0;
    return post(count, is_end, is_end);
  }
  /// The completion of that WRITE, and so of all before it: the queue is in order.
  void finish(uint64_t number) {
    if (number > done_) {
      done_ = std::min(number, posted_);
      bytes_done_ = bytes_up_to_[done_ % kPlaces];  // of the last kDepth WRITEs, as is every one that is not done
    }
  }

 private:
  static constexpr uint32_t kPlaces = 256;  // a power of two
  static_assert(kPlaces >= kDepth);

  Write post(uint32_t count, bool has_immediate, bool wants_completion) {
    const bool is_signaled = wants_completion || ++unsignaled_ == kSignalEvery;
    unsignaled_ = is_signaled ? 0 : unsignaled_;
    since_immediate_ += count;
    const Write write{.remote_address = address_ + flushed_,
                      .remote_key = key_,
                      .offset = flushed_,
                      .length = count,
                      .has_immediate = has_immediate,
                      .immediate = has_immediate ? since_immediate_ : 0,
                      .is_signaled = is_signaled,
                      .number = ++posted_};
    since_immediate_ = has_immediate ? 0 : since_immediate_;
    flushed_ += count;
    bytes_posted_ += count;
    bytes_up_to_[posted_ % kPlaces] = bytes_posted_;
    return write;
  }

  uint64_t address_ = 0;
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  uint64_t bytes_posted_ = 0;
  uint64_t bytes_done_ = 0;
  uint32_t key_ = 0;
  uint32_t length_ = 0;
  uint32_t filled_ = 0;
  uint32_t flushed_ = 0;
  uint32_t since_immediate_ = 0;
  uint32_t unsignaled_ = 0;
  uint32_t moved_from_ = 0;
  bool is_open_ = false;
  std::array<uint64_t, kPlaces> bytes_up_to_{};  // a WRITE's last byte, by its number
};

}  // namespace ringbolt::stream
