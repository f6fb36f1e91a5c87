#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/little_endian.h"
#include "bootstrap/calling.h"
#include "bootstrap/connections.h"
#include "bootstrap/handshake.h"
#include "bootstrap/sockets.h"

/// The part of SideChannel::Connections that runs exchanges: everybody gives its share to rank 0, which gives all
/// shares to everybody.
namespace ringbolt::bootstrap {
namespace {

// How often rank 0 tells the others whom all wait for, at most.
constexpr int kProgressMs = 100;
constexpr size_t kNumberBytes = 4;  ///< of the exchange, in front of a share
constexpr size_t kCountsBytes = 8;  ///< its number and that of the shares, in front of all shares

bool is_exchange(uint16_t kind) {
  return kind == static_cast<uint16_t>(Exchange::all_gather) || kind == static_cast<uint16_t>(Exchange::barrier);
}

Payload numbered(uint32_t number, std::span<const std::byte> share) {
  std::vector<std::byte> payload(kNumberBytes);
  base::put_le(std::span<std::byte>(payload), 0, number);
  payload.insert(payload.end(), share.begin(), share.end());
  return make_payload(std::move(payload));
}

}  // namespace

const char* name_of(Exchange exchange) { return exchange == Exchange::all_gather ? "all_gather" : "barrier"; }

Outcome<std::vector<std::vector<std::byte>>> SideChannel::Connections::exchange(Exchange which,
                                                                                std::span<const std::byte> mine,
                                                                                uint64_t deadline_ns) {
  if (failure_) {
    return tl::unexpected(*failure_);
  }
  if (mine.size() > kMaxShareBytes) {
    // The others would wait for this share for ever.
    fail(EMSGSIZE,
         fmt::format("rank {} gave {} bytes to all_gather, {} are the most", rank_, mine.size(), kMaxShareBytes),
         rank_);
    return tl::unexpected(*failure_);
  }
  // From here on events do not make fd() readable. Cleared below; it tells add_event() not to wake the descriptor that
  // the program sleeps on.
  current_ = which;
  // Exchanges are counted alike on all ranks, so a rank that has left one out is noticed.
  ++n_exchanges_;
  result_.reset();
  mark_pending(false);
  n_told_ = 0;
  heard_ns_ = base::now_ns();
  // Until a roster says more.
  missing_ = "rank 0";
  if (is_root()) {
    Frame own{{FrameType::gather, 0, static_cast<uint16_t>(which), 0, 0}, *numbered(n_exchanges_, mine)};
    take_share(rank_, own);
  } else {
    queue(0, {.type = FrameType::gather, .kind = static_cast<uint16_t>(which)}, numbered(n_exchanges_, mine));
  }
  while (!result_ && !failure_) {
    if (base::now_ns() >= deadline_ns) {
      fail(ETIMEDOUT,
           fmt::format("rank {}: the deadline of {} {} has passed; it waits for {}{}", rank_, name_of(which),
                       n_exchanges_, is_root() ? missing_ : whom_it_waits_for(missing_, heard_ns_, silent_ms_),
                       kIfStopped),
           rank_);
      break;
    }
    // 60 s for others is only a bound of the argument: events and the deadline end the wait.
    step(milliseconds_until(deadline_ns, is_root() ? kProgressMs : 60'000));
    tell_progress();
  }
  current_.reset();
  mark_pending(!events_.empty());
  if (!result_) {
    return tl::unexpected(*failure_);
  }
  return std::move(*std::exchange(result_, std::nullopt));
}

/// Rank 0: one more share, its own included.
void SideChannel::Connections::take_share(uint32_t peer, Frame& frame) {
  // From a rank that has proven itself: a bug, or another version. It is lost, not the group.
  if (frame.payload.size() < kNumberBytes || !is_exchange(frame.header.kind)) {
    end(peer, Event::Kind::lost, EPROTO);
    return;
  }
  const auto which = static_cast<Exchange>(frame.header.kind);
  const auto number = base::get_le<uint32_t>(frame.payload, 0);
  // The others may be one ahead, also while the last share is on its way out of here.
  const uint32_t expected = current_ && !result_ ? n_exchanges_ : n_exchanges_ + 1;
  const bool is_first =
      std::none_of(shares_.begin(), shares_.end(), [](const auto& share) { return share.has_value(); });
  // A second share of one rank, or one of another exchange: the ranks are out of step, which nothing mends.
  if (number != expected || shares_[peer]) {
    fail(EPROTO,
         fmt::format("rank {} called {} as its exchange {}, rank 0 is at {}", peer, name_of(which), number, expected),
         kEveryone);
    return;
  }
  if (is_first) {
    first_kind_ = which;
    first_caller_ = fmt::format("rank {} called {}", peer, name_of(which));
  } else if (which != first_kind_) {
    fail(EPROTO, fmt::format("exchange {}: {}, rank {} called {}", number, first_caller_, peer, name_of(which)),
         kEveryone);
    return;
  }
  frame.payload.erase(frame.payload.begin(), frame.payload.begin() + kNumberBytes);
  // 16 MiB at most (kMaxShareBytes, which the connection has checked by the frame's length). Before it is kept: the
  // bound is one of rank 0's memory, too.
  const size_t total = gathered_bytes() + frame.payload.size();
  if (total > kMaxGatheredBytes) {
    fail(EMSGSIZE,
         fmt::format("all_gather {} has {} bytes or more in all, {} are the most", number, total, kMaxGatheredBytes),
         kEveryone);
    return;
  }
  shares_[peer] = std::move(frame.payload);
  finish_if_complete();
}

size_t SideChannel::Connections::gathered_bytes() const {
  size_t total = 0;
  for (const auto& share : shares_) {
    total += share ? share->size() : 0;
  }
  return total;
}

void SideChannel::Connections::finish_if_complete() {
  if (std::ranges::any_of(shares_, [](const auto& share) { return !share; })) {
    return;
  }
  // docs/formats/bootstrap.md: number, count, and the length in front of each share.
  std::vector<std::byte> all(kCountsBytes + 4 * size_t{n_ranks_});
  all.reserve(all.size() + gathered_bytes());
  base::put_le(std::span<std::byte>(all), 0, n_exchanges_);
  base::put_le(std::span<std::byte>(all), 4, n_ranks_);
  for (uint32_t rank = 0; rank < n_ranks_; ++rank) {
    base::put_le(std::span<std::byte>(all), kCountsBytes + 4 * size_t{rank},
                 static_cast<uint32_t>(shares_[rank]->size()));
    all.insert(all.end(), shares_[rank]->begin(), shares_[rank]->end());
  }
  // Before anything is sent: sending may end a peer, which must find the exchange complete.
  result_.emplace();
  for (auto& share : shares_) {
    result_->push_back(std::move(*share));
    share.reset();
  }
  queue_to_all_but(rank_, {.type = FrameType::gathered, .kind = static_cast<uint16_t>(first_kind_)},
                   make_payload(std::move(all)));
}

void SideChannel::Connections::take_from_rank(uint32_t peer, Frame& frame) {
  switch (frame.header.type) {
    case FrameType::gather:
      if (!failure_) {
        take_share(peer, frame);
      }
      return;
    case FrameType::message:
      forward(peer, frame);
      return;
    // Of a rank that gives up: all others hear it from fail() here, with its words.
    case FrameType::abort:
      fail(ECONNABORTED, printable(frame.payload, kMaxRefusalBytes), peer);
      return;
    default:
      end(peer, Event::Kind::lost, EPROTO);
  }
}

void SideChannel::Connections::take_from_root(Frame& frame) {
  heard_ns_ = base::now_ns();
  switch (frame.header.type) {
    case FrameType::gathered:
      take_shares(frame);
      return;
    case FrameType::roster:
      missing_ = "rank " + list_ranks(missing_in(frame.payload, n_ranks_));
      return;
    case FrameType::message:
      if (frame.header.rank < n_ranks_) {
        add_event({Event::Kind::message, frame.header.rank, frame.header.kind, 0, std::move(frame.payload)},
                  (frame.header.flags & kLatestOnly) != 0);
        return;
      }
      break;
    case FrameType::abort:
      if (!failure_) {
        failure_ = Failure{ECONNABORTED, printable(frame.payload, kMaxRefusalBytes)};
      }
      return;
    case FrameType::lost:
      if (frame.payload.size() >= kLostBytes && frame.header.rank < n_ranks_ && frame.header.rank != 0 &&
          frame.header.rank != rank_) {
        end(frame.header.rank, base::get_le<uint32_t>(frame.payload, 4) != 0 ? Event::Kind::left : Event::Kind::lost,
            static_cast<int>(base::get_le<uint32_t>(frame.payload, 0)),
            printable(std::span(frame.payload).subspan(kLostBytes), kMaxRefusalBytes));
        return;
      }
      break;
    default:
      break;
  }
  end(0, Event::Kind::lost, EPROTO);
}

/// Not rank 0: all shares.
void SideChannel::Connections::take_shares(const Frame& frame) {
  const std::span<const std::byte> payload(frame.payload);
  const size_t header = kCountsBytes + 4 * size_t{n_ranks_};
  // Lengths are only read once there is room for all of them.
  if (payload.size() < header || !current_ || result_ || base::get_le<uint32_t>(payload, 0) != n_exchanges_ ||
      base::get_le<uint32_t>(payload, 4) != n_ranks_) {
    if (!failure_) {  // else it is the answer to an exchange that was given up here
      end(0, Event::Kind::lost, EPROTO);
    }
    return;
  }
  std::vector<std::vector<std::byte>> shares;
  size_t at = header;
  for (uint32_t rank = 0; rank < n_ranks_; ++rank) {
    const size_t length = base::get_le<uint32_t>(payload, kCountsBytes + 4 * size_t{rank});
    // `at` never goes beyond the end, so the difference does not wrap around.
    if (length > payload.size() - at) {
      end(0, Event::Kind::lost, EPROTO);
      return;
    }
    const auto share = payload.subspan(at, length);
    shares.emplace_back(share.begin(), share.end());
    at += length;
  }
  result_ = std::move(shares);
}

/// This and every later exchange fails, here and on all ranks but `except`, who know.
void SideChannel::Connections::fail(int errno_value, std::string text, uint32_t except) {
  if (failure_) {
    return;
  }
  failure_ = Failure{errno_value, text};
  // Shared by all connections: one copy for any number of ranks.
  const Payload payload = make_payload(as_payload(text));
  if (is_root()) {
    queue_to_all_but(except, {.type = FrameType::abort}, payload);
  } else {
    queue(0, {.type = FrameType::abort}, payload);
  }
}

/// Rank 0: those who wait learn for whom, and that it is there still.
void SideChannel::Connections::tell_progress() {
  const auto n_there = static_cast<size_t>(
      std::count_if(shares_.begin(), shares_.end(), [](const auto& share) { return share.has_value(); }));
  const uint64_t now_ns = base::now_ns();
  if (!is_root() || result_ || failure_ || (n_told_ == n_there && now_ns < tell_again_ns_)) {
    return;
  }
  n_told_ = n_there;
  tell_again_ns_ = now_ns + roster_again_ms_ * 1'000'000;
  std::vector<std::byte> mask((n_ranks_ + 7) / 8);
  for (uint32_t rank = 0; rank < n_ranks_; ++rank) {
    mask[rank / 8] |= shares_[rank] ? std::byte{1} << (rank % 8) : std::byte{0};
  }
  missing_ = "rank " + list_ranks(missing_in(mask, n_ranks_));
  queue_to_all_but(rank_, {.type = FrameType::roster}, make_payload(std::move(mask)));
}

}  // namespace ringbolt::bootstrap
