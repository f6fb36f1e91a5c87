#include "bootstrap/calling.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/little_endian.h"
#include "bootstrap/handshake.h"
#include "bootstrap/sockets.h"

namespace ringbolt::bootstrap {
namespace {

constexpr uint64_t kMsNs = 1'000'000;

/// What came of waiting for a frame.
// Without a frame: an errno, and words that follow the peer's name.
struct Awaited {
  std::optional<Frame> frame;
  int error = 0;
  std::string problem;
};

// Blocks until a frame has come, the connection has ended, or `deadline_ns`.
Awaited await_frame(const Config& config, Connection& connection, uint64_t deadline_ns) {
  std::optional<int> ended;
  for (;;) {
    connection.flush();
    auto frame = connection.next();
    if (!frame) {
      return {{}, EPROTO, frame.error().text()};
    }
    if (*frame) {
      return {std::move(*frame), 0, {}};
    }
    // Only after what came before the end has been read: a refusal may be among it.
    if (ended) {
      return {{}, *ended == 0 ? ECONNRESET : *ended, "closed the connection"};
    }
    if (base::now_ns() >= deadline_ns) {
      return {{}, ETIMEDOUT, "did not answer in time"};
    }
    if (is_called_off(config)) {
      return {{}, ECANCELED, "was left: the meeting is called off"};
    }
    // The peer's end, an error and a signal all lead back to the top.
    pollfd waiting{connection.fd(), static_cast<short>(POLLIN | (connection.has_output() ? POLLOUT : 0)), 0};
    if (::poll(&waiting, 1, milliseconds_until(deadline_ns, most_wait_ms(config))) > 0 &&
        (waiting.revents & ~POLLOUT) != 0) {
      ended = connection.receive();
    }
  }
}

// Used once, by one thread.
class Calling {
 public:
  Calling(const Config& config, const Key& key, uint64_t deadline_ns)
      : config_(config), key_(key), deadline_ns_(deadline_ns), incarnation_(random_number()) {}

  // Throws base::Error; what can pass is tried again until the deadline.
  Connection run() {
    // Rank 0 is usually there within some milliseconds; later on, half a second between calls costs nobody anything.
    uint64_t pause_ms = 10;
    for (;;) {
      Dialled dialled = dial({config_.host, config_.port}, deadline_ns_);
      if (dialled.error != 0) {
        problem_ = dialled.problem + (dialled.advice.empty() ? "" : "; " + dialled.advice);
      }
      if (dialled.error == 0) {
        Connection connection(std::move(dialled.socket), std::move(dialled.peer));
        if (shake_hands(connection)) {
          wait_for_others(connection);
          return connection;
        }
      }
      if (is_called_off(config_)) {
        fail(ECANCELED, fmt::format("the meeting is called off; the last try: {}", problem_));
      }
      // An address that did not answer may be the one where it listens: then the next try may reach it.
      if (config_.is_root_listening && dialled.have_all_refused) {
        fail(ECONNREFUSED, "rank 0 has ended, for nobody listens where it said that it does: look at its output");
      }
      // Another try would begin too late.
      if (base::now_ns() + pause_ms * kMsNs >= deadline_ns_) {
        fail(ETIMEDOUT, fmt::format("rank 0 does not answer; the last try: {}", problem_));
      }
      ::poll(nullptr, 0, static_cast<int>(pause_ms));
      pause_ms = std::min<uint64_t>(pause_ms * 3 / 2, 500);
    }
  }

 private:
  /// False: try again; problem_ says why.
  bool shake_hands(Connection& connection) {
    // The same incarnation each time: to rank 0 it is one process that calls again.
    CallingHandshake handshake(config_, key_, incarnation_);
    handshake.begin(connection);
    for (;;) {
      // Once rank 0 knows of us it must not see us go.
      const uint64_t patience = base::now_ns() + config_.handshake_timeout_ms * kMsNs;
      const Awaited awaited =
          await_frame(config_, connection, handshake.has_proven() ? deadline_ns_ : std::min(deadline_ns_, patience));
      if (!awaited.frame) {
        // A try that the deadline cut short says less than the one before it.
        if (awaited.error != ETIMEDOUT || base::now_ns() < deadline_ns_ || problem_.empty()) {
          problem_ = fmt::format("{} {}", connection.peer(), awaited.problem);
        }
        return false;
      }
      switch (handshake.take(*awaited.frame, connection)) {
        case CallingHandshake::Outcome::going_on:
          break;
        case CallingHandshake::Outcome::done:
          return true;
        case CallingHandshake::Outcome::refused:
          // For good: rank 0 would refuse the next call as well. Throws, as all fail() below.
          fail(EACCES, handshake.problem());
        case CallingHandshake::Outcome::strange:
          problem_ = fmt::format("{} {}", connection.peer(), handshake.problem());
          return false;
      }
    }
  }

  void wait_for_others(Connection& connection) {
    std::string who = "somebody";
    uint64_t heard_ns = base::now_ns();
    for (;;) {
      const Awaited awaited = await_frame(config_, connection, deadline_ns_);
      if (!awaited.frame) {
        if (awaited.error == ETIMEDOUT || awaited.error == ECANCELED) {
          // So that the others hear at once, and not when they run out of time.
          std::vector<std::byte> why(kGoodbyeBytes);
          base::put_le(std::span<std::byte>(why), 0, static_cast<uint32_t>(awaited.error));
          connection.queue({.type = FrameType::goodbye}, make_payload(std::move(why)));
          connection.flush();
          if (base::now_ns() - heard_ns >= config_.silent_ms * kMsNs) {
            fail(awaited.error, "it waits for " + whom_it_waits_for(who, heard_ns, config_.silent_ms) + kIfStopped);
          }
          fail(awaited.error, fmt::format("rank 0 still waits for {}{}", who, kIfMissing));
        }
        fail(awaited.error,
             fmt::format("rank 0 ({}) {} while it waited for {}", connection.peer(), awaited.problem, who));
      }
      heard_ns = base::now_ns();
      switch (awaited.frame->header.type) {
        case FrameType::start:
          return;
        case FrameType::roster:
          who = "rank " + list_ranks(missing_in(awaited.frame->payload, config_.n_ranks));
          break;
        case FrameType::abort:
          fail(ECONNABORTED, "rank 0 says: " + printable(awaited.frame->payload, kMaxRefusalBytes));
        default:
          fail(EPROTO,
               fmt::format("rank 0 sent a frame of type {} too early", static_cast<int>(awaited.frame->header.type)));
      }
    }
  }

  [[noreturn]] void fail(int error, const std::string& words) {
    const std::string source = config_.source.empty() ? "" : fmt::format(" (from {})", config_.source);
    throw base::Error(error, fmt::format("meet the others at {}{}", to_text({config_.host, config_.port}), source),
                      fmt::format("rank {} of {}", config_.rank, config_.n_ranks), words);
  }

  const Config& config_;
  const Key& key_;
  const uint64_t deadline_ns_;
  const uint64_t incarnation_;
  // Of the last try that told something.
  std::string problem_;
};

}  // namespace

Connection call_root(const Config& config, const Key& key, uint64_t deadline_ns) {
  return Calling(config, key, deadline_ns).run();
}

std::string whom_it_waits_for(const std::string& who, uint64_t heard_ns, uint64_t silent_ms) {
  const uint64_t silent_ns = base::now_ns() - heard_ns;
  if (silent_ns < silent_ms * kMsNs) {
    return who;
  }
  return fmt::format("rank 0, which has said nothing for {} ms{}", silent_ns / kMsNs,
                     who == "rank 0" ? "" : fmt::format(" and waited for {} before", who));
}

std::vector<uint32_t> missing_in(std::span<const std::byte> mask, uint32_t n_ranks) {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < n_ranks; ++rank) {
    // A mask that is too short is missing all the rest.
    if (rank / 8 >= mask.size() || (mask[rank / 8] & (std::byte{1} << (rank % 8))) == std::byte{0}) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace ringbolt::bootstrap
