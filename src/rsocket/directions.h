#pragma once

#include <sys/socket.h>

#include <optional>

#include "rsocket/immediate.h"

namespace ringbolt::rsocket {

/// Which directions of a stream are open at this end, and what the peer has been told of that. Not thread-safe: under
/// the socket's lock.
/// Source: shutdown(2); rdma-core's librdmacm/docs/rsocket on control messages.
class Directions {
 public:
  bool may_read() const { return may_read_; }
  bool may_write() const { return may_write_; }
  /// The peer knows, or will, that we send no more.
  bool has_said_goodbye() const { return has_said_goodbye_; }

  /// `how`: SHUT_RD, SHUT_WR or SHUT_RDWR. Returns what the peer has to be told. Nothing: it is told no news, or not
  /// told that nobody reads; it will find out by what it gets no room for.
  /// Takes effect here whether the peer can be told or not.
  std::optional<Control> shut(int how) {
    may_read_ = may_read_ && how == SHUT_WR;
    may_write_ = may_write_ && how == SHUT_RD;
    if (may_write_) {
      return std::nullopt;
    }
    // The end of our stream is told once; a second message only if it says more.
    const Control what = may_read_ ? Control::shutdown : Control::disconnect;
    return has_said_goodbye_ && what == Control::shutdown ? std::nullopt : std::optional(what);
  }
  void said_goodbye() { has_said_goodbye_ = true; }
  /// The peer sends no more.
  void peer_finished() { may_read_ = false; }

 private:
  bool may_read_ = true;
  bool may_write_ = true;
  bool has_said_goodbye_ = false;
};

}  // namespace ringbolt::rsocket
