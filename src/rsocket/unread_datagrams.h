#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "rsocket/address.h"
#include "rsocket/io_cursor.h"

namespace ringbolt::rsocket {

/// The datagrams that have come in and nobody has read, in their order. Owns their bytes. Not thread-safe: under the
/// socket's lock.
/// Source: udp(7), recv(2).
class UnreadDatagrams {
 public:
  /// Those beyond this are dropped, as a full socket buffer drops them.
  /// Of up to 2 KiB each: 1 MiB.
  static constexpr size_t kMost = 512;

  bool is_empty() const { return unread_.empty(); }
  void add(const Address& from, std::span<const std::byte> bytes) {
    if (unread_.size() < kMost) {
      unread_.push_back({from, {bytes.begin(), bytes.end()}});
    }
  }
  /// Copies the oldest one, as much as fits; the rest of it is lost. `stays`: MSG_PEEK. Returns how much was copied;
  /// `tells_whole`, MSG_TRUNC: how long it is. `from`: null, or where to put who sent it. Precondition: !is_empty().
  size_t take(IoCursor& to, bool stays, bool tells_whole, Address* from) {
    const Message& oldest = unread_.front();
    const size_t length = std::min(to.left(), oldest.bytes.size());
    to.scatter(oldest.bytes.data(), length);
    if (from != nullptr) {
      *from = oldest.from;
    }
    const size_t told = tells_whole ? oldest.bytes.size() : length;
    if (!stays) {
      unread_.pop_front();
    }
    return told;
  }

 private:
  struct Message {
    Address from;
    std::vector<std::byte> bytes;
  };

  std::deque<Message> unread_;
};

}  // namespace ringbolt::rsocket
