#include "bridge/relay.h"

#include <algorithm>
#include <cerrno>

namespace ringbolt::tools::bridge {
namespace {

// On the stack: what is thrown away.
constexpr size_t kScratchBytes = 16384;
constexpr uint64_t kLastWordsNs = 1'000'000'000;  // of sockets whose program is being ended

/// The first `most` bytes of both pieces.
Pieces first_of(const Pieces& pieces, size_t most) {
  const size_t first = std::min(pieces[0].size(), most);
  return {pieces[0].first(first), pieces[1].first(std::min(pieces[1].size(), most - first))};
}

}  // namespace

bool Relay::turn(uint64_t now_ns) {
  wants_ = {};
  if (is_stopping_ && (phase_ == Phase::open || phase_ == Phase::socket_ended)) {
    begin_flush(now_ns);
  }
  // Replies first: they make room in the peer.
  if (phase_ != Phase::fabric_ended && phase_ != Phase::over) {
    move_to_socket(now_ns);
  }
  if (phase_ == Phase::open) {
    move_to_fabric(now_ns);
  }
  if (phase_ == Phase::flushing) {
    look_at_flush(now_ns);
  }
  if (phase_ == Phase::fabric_ended) {
    discard();
  }
  look_at_deadline(now_ns);
  wants_.deadline_ns = deadline_ns();
  return phase_ != Phase::over;
}

void Relay::stop(std::string_view reason) {
  reason_ = reason_.empty() ? reason : reason_;
  is_stopping_ = true;
}

void Relay::move_to_socket(uint64_t now_ns) {
  for (size_t left = kTurnBytes; left > 0;) {
    const auto pieces = fabric_.peek();
    if (!pieces) {
      if (pieces.error().value != EAGAIN) {
        phase_ = Phase::over;  // it has failed: what came before has been written
        // The stream's own reason says more.
        reason_ = "";
        is_abrupt_ = true;
        return;
      }
      break;
    }
    if ((*pieces)[0].empty()) {
      end_fabric(now_ns);
      return;
    }
    if (socket_has_failed_) {  // nobody takes them
      fabric_.consume((*pieces)[0].size());
      left -= std::min(left, (*pieces)[0].size());
      continue;
    }
    const auto taken = socket_.write(first_of(*pieces, left));
    if (!taken) {
      if (taken.error().value != EAGAIN) {
        fail_socket(now_ns);
        return;
      }
      wants_.socket_writable = true;
      if (stalled_since_ns_ == 0) {
        stalled_since_ns_ = now_ns;
        ++moved_.socket_stalls;
      }
      return;
    }
    fabric_.consume(*taken);
    moved_.to_socket_bytes += *taken;
    left -= *taken;
    stalled_since_ns_ = 0;
    note_progress(now_ns);
  }
  wants_.fabric_readable = true;
}

/// Replies go on: the time limits of the end begin anew.
void Relay::note_progress(uint64_t now_ns) {
  if (phase_ == Phase::socket_ended || phase_ == Phase::flushing) {
    deadline_ns_ = now_ns + (phase_ == Phase::flushing ? settings_.flush_ns : settings_.linger_ns);
  }
}

void Relay::move_to_fabric(uint64_t now_ns) {
  for (size_t left = kTurnBytes; left > 0;) {
    const auto room = fabric_.room();
    if (room.empty()) {
      // A stream that has ended has no room any more; that it has ended is told behind its last byte.
      wants_.fabric_writable = !fabric_.is_ended();
      return;
    }
    const auto got = socket_.read(room.first(std::min(room.size(), left)));
    if (!got) {
      if (got.error().value != EAGAIN) {
        fail_socket(now_ns);
        return;
      }
      break;
    }
    if (*got == 0) {
      socket_has_ended_ = true;
      reason_ = reason_.empty() ? "socket-closed" : reason_;
      phase_ = Phase::socket_ended;
      deadline_ns_ = now_ns + settings_.linger_ns;
      if (socket_.has_gone()) {
        begin_flush(now_ns);
      }
      return;
    }
    moved_.to_fabric_bytes += *got;
    left -= *got;
    if (fabric_.send(room.first(*got)) != 0) {
      return;  // it has ended: peek() says so when all was taken
    }
  }
  wants_.socket_readable = true;
}

void Relay::fail_socket(uint64_t now_ns) {
  socket_has_failed_ = true;
  reason_ = reason_.empty() || reason_ == "socket-closed" ? "socket-reset" : reason_;
  begin_flush(now_ns);
}

/// The stream has ended, and all of its bytes were written.
void Relay::end_fabric(uint64_t now_ns) {
  if (socket_has_failed_ || socket_has_ended_) {
    phase_ = Phase::over;
    return;
  }
  // Closed with bytes unread a TCP socket would throw away what is on its way to the peer.
  socket_.shut_down();
  phase_ = Phase::fabric_ended;
  deadline_ns_ = now_ns + (is_stopping_ ? std::min(settings_.linger_ns, kLastWordsNs) : settings_.linger_ns);
}

void Relay::begin_flush(uint64_t now_ns) {
  phase_ = Phase::flushing;
  deadline_ns_ = now_ns + settings_.flush_ns;
  // What was wanted before is of no use in this phase.
  wants_ = {};
}

void Relay::look_at_flush(uint64_t now_ns) {
  if (!fabric_.is_drained()) {
    wants_.fabric_drained = true;
  } else if (!wants_.socket_writable) {
    end_fabric(now_ns);
  }
}

void Relay::discard() {
  std::array<std::byte, kScratchBytes> scratch;
  constexpr size_t kMostReads = kTurnBytes / kScratchBytes;
  for (size_t i = 0; i < kMostReads; ++i) {
    const auto got = socket_.read(scratch);
    if (!got && got.error().value == EAGAIN) {
      break;
    }
    if (!got || *got == 0) {
      phase_ = Phase::over;
      return;
    }
  }
  wants_ = {};
  wants_.socket_readable = true;
}

/// 0: none. Nobody waits for ever for a reader who is asleep, once one side has ended; but as long as it may wake up,
/// it has time, for what it did not take would be lost.
uint64_t Relay::deadline_ns() const {
  if (!wants_.socket_writable) {
    return deadline_ns_;
  }
  return phase_ != Phase::open || fabric_.is_ended() ? stalled_since_ns_ + settings_.stuck_ns : 0;
}

void Relay::look_at_deadline(uint64_t now_ns) {
  const uint64_t at_ns = deadline_ns();
  if (at_ns == 0 || now_ns < at_ns || phase_ == Phase::over) {
    return;
  }
  if (wants_.socket_writable) {
    give_up("socket-stuck");
    return;
  }
  switch (phase_) {
    case Phase::socket_ended:
      begin_flush(now_ns);
      look_at_flush(now_ns);
      break;
    case Phase::flushing:
      give_up("flush-timeout");
      break;
    default:  // the linger time of the socket's last words
      phase_ = Phase::over;
  }
}

void Relay::give_up(std::string_view reason) {
  reason_ = reason;
  is_abrupt_ = true;
  phase_ = Phase::over;
}

}  // namespace ringbolt::tools::bridge
