#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/calling.h"
#include "bootstrap/connection.h"
#include "bootstrap/handshake.h"
#include "bootstrap/side_channel.h"
#include "bootstrap/sockets.h"

/// Ranks as threads of one process.
namespace ringbolt::bootstrap::test {

/// A deadline that only a test that hangs reaches.
inline uint64_t soon() { return base::now_ns() + 60'000'000'000; }

/// Some ranks with a free port to meet at.
class Party {
 public:
  explicit Party(uint32_t n_ranks, const std::string& host = "127.0.0.1") : listening_(Listening::open(host, 0, "")) {
    config.n_ranks = n_ranks;
    config.host = host;
    config.port = listening_.port;
    config.timeout_ms = 60'000;
  }

  Config config;

  Config of(uint32_t rank) const {
    Config own = config;
    own.rank = rank;
    own.listening_fd = rank == 0 ? listening_.sockets[0].get() : -1;
    return own;
  }

  /// Each rank in a thread of its own; the group's life ends with `body`.
  void run(const std::function<void(SideChannel&)>& body) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < config.n_ranks; ++rank) {
      threads.emplace_back([this, rank, &body] {
        try {
          SideChannel side_channel = SideChannel::join(of(rank));
          body(side_channel);
        } catch (const base::Error& error) {
          ADD_FAILURE() << error.what();
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

 private:
  Listening listening_;
};

/// A rank played by hand, which stays until its end: it knows who has come besides, for rank 0 tells it.
class Witness {
 public:
  explicit Witness(const Config& config)
      : n_ranks_(config.n_ranks), connection_(std::move(dial({config.host, config.port}, soon()).socket), "rank 0") {
    const Key key = key_of(config.secret);
    CallingHandshake handshake(config, key, 1);
    handshake.begin(connection_);
    auto outcome = CallingHandshake::Outcome::going_on;
    while (outcome == CallingHandshake::Outcome::going_on) {
      const auto frame = next();
      outcome = frame ? handshake.take(*frame, connection_) : CallingHandshake::Outcome::strange;
    }
    EXPECT_EQ(outcome, CallingHandshake::Outcome::done) << handshake.problem();
  }
  /// Waits until these have come. False: they don't.
  bool sees(const std::vector<uint32_t>& ranks) {
    for (auto frame = next(); frame; frame = next()) {
      if (frame->header.type != FrameType::roster) {
        return false;
      }
      const auto missing = missing_in(frame->payload, n_ranks_);
      if (std::none_of(ranks.begin(), ranks.end(), [&](uint32_t rank) {
            return std::find(missing.begin(), missing.end(), rank) != missing.end();
          })) {
        return true;
      }
    }
    return false;
  }
  /// Waits until rank 0 has said this. False: it says no more.
  bool hears(FrameType type) {
    for (auto frame = next(); frame; frame = next()) {
      if (frame->header.type == type) {
        return true;
      }
    }
    return false;
  }

 private:
  /// What rank 0 says next; nothing when it says no more.
  std::optional<Frame> next() {
    for (const uint64_t deadline = soon(); base::now_ns() < deadline;) {
      connection_.flush();
      auto frame = connection_.next();
      if (!frame || *frame) {
        return frame ? std::move(*frame) : std::nullopt;
      }
      pollfd waiting{connection_.fd(), POLLIN, 0};
      if (::poll(&waiting, 1, 60'000) != 1 || connection_.receive()) {
        break;
      }
    }
    return std::nullopt;
  }

  const uint32_t n_ranks_;
  Connection connection_;
};

/// Events one by one.
class Inbox {
 public:
  explicit Inbox(SideChannel& side_channel) : side_channel_(side_channel) {}

  Event next();

 private:
  SideChannel& side_channel_;
  std::deque<Event> events_;
};

/// Polls until there are `n` events, or more that came with the last.
inline std::vector<Event> wait_for_events(SideChannel& side_channel, size_t n) {
  std::vector<Event> events;
  while (events.size() < n) {
    pollfd waiting{side_channel.fd(), POLLIN, 0};
    if (::poll(&waiting, 1, 60'000) == 0) {
      ADD_FAILURE() << "only " << events.size() << " of " << n << " events came";
      break;
    }
    for (Event& event : side_channel.poll()) {
      events.push_back(std::move(event));
    }
  }
  return events;
}

inline Event Inbox::next() {
  if (events_.empty()) {
    for (Event& event : wait_for_events(side_channel_, 1)) {
      events_.push_back(std::move(event));
    }
  }
  if (events_.empty()) {
    return {};
  }
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

/// Polls until one of this kind comes, and gives it.
inline Event wait_for_event(SideChannel& side_channel, Event::Kind kind) {
  for (;;) {
    const auto events = wait_for_events(side_channel, 1);
    const auto found = std::find_if(events.begin(), events.end(), [kind](const Event& e) { return e.kind == kind; });
    if (found != events.end() || events.empty()) {
      return events.empty() ? Event{} : *found;
    }
  }
}

}  // namespace ringbolt::bootstrap::test
