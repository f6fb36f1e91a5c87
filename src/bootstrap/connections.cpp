#include "bootstrap/connections.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/little_endian.h"
#include "bootstrap/hello.h"
#include "bootstrap/sockets.h"

namespace ringbolt::bootstrap {
namespace {

// No rank: there are kMaxRanks at most.
constexpr uint32_t kPendingMark = UINT32_MAX;
// What a rank that does not call poll() may have waiting; then its peers are told that it is lost.
constexpr size_t kMaxEventBytes = size_t{64} << 20;

bool is_host_answering(int fd, uint32_t within_ms) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
    return false;
  }
  // Milliseconds (linux/tcp.h).
  if (info.tcpi_last_ack_recv <= within_ms) {
    return true;
  }
  // The buffers of a process that stands still fill up. Its host closes the window, and from then on is asked at ever
  // longer intervals only whether that has changed: 3 s after some seconds. It answers as long as all that it took has
  // been acknowledged, more waits, and no question but the last, which is under way, is open.
  int waiting_bytes = 0;
  return ::ioctl(fd, SIOCOUTQNSD, &waiting_bytes) == 0 && waiting_bytes > 0 && info.tcpi_unacked == 0 &&
         info.tcpi_probes <= 1;
}

}  // namespace

SideChannel::Connections::Connections(const Config& config, std::vector<Connection> connections)
    : rank_(config.rank),
      n_ranks_(config.n_ranks),
      roster_again_ms_(config.roster_again_ms),
      silent_ms_(config.silent_ms),
      connections_(std::move(connections)),
      is_output_watched_(n_ranks_),
      is_gone_(n_ranks_),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      pending_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      shares_(n_ranks_) {
  // One place per rank, closed where there is no connection: only rank 0 has one to each of the others.
  connections_.resize(n_ranks_);
  if (!epoll_.is_open() || !pending_.is_open()) {
    throw base::Error(errno, "epoll", fmt::format("rank {} of {}", rank_, n_ranks_), "are descriptors left? ulimit -n");
  }
  const auto add = [this](int fd, uint32_t mark) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = mark;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw base::Error(errno, "epoll_ctl", fmt::format("rank {} of {}", rank_, n_ranks_));
    }
  };
  // The program sleeps on the epoll descriptor alone: events that wait in memory must make it readable too.
  add(pending_.get(), kPendingMark);
  for (uint32_t peer = 0; peer < n_ranks_; ++peer) {
    if (connections_[peer].is_open()) {
      add(connections_[peer].fd(), peer);
    }
  }
  // Frames may have come with the last of the handshake, and no socket will tell of them again.
  for (uint32_t peer = 0; peer < n_ranks_; ++peer) {
    take_frames(peer);
    watch(peer);
  }
}

// Blocks for a second at most, and only if a peer does not read.
SideChannel::Connections::~Connections() {
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  const uint64_t deadline = base::now_ns() + kPatienceNs;
  const Payload nothing = make_payload({});
  std::vector<pollfd> waiting;
  for (Connection& connection : connections_) {
    if (connection.is_open()) {
      connection.queue({.type = FrameType::goodbye}, nothing);
    }
  }
  do {
    waiting.clear();
    for (Connection& connection : connections_) {
      if (connection.is_open()) {
        connection.flush();
        if (connection.has_output()) {
          waiting.push_back({connection.fd(), POLLOUT, 0});
        }
      }
    }
    // A second for all together; poll() ends early where one of them fails, which flush() then sees.
  } while (!waiting.empty() && base::now_ns() < deadline &&
           ::poll(waiting.data(), waiting.size(), milliseconds_until(deadline, 1000)) != 0);
  for (Connection& connection : connections_) {
    if (connection.is_open()) {
      connection.shut_output();
      // Closing over unread bytes would reset the connection, maybe before the other end has read ours.
      static_cast<void>(connection.receive());
    }
  }
}

// EPOLLOUT only while something waits, or an idle socket would wake all the time.
void SideChannel::Connections::watch(uint32_t peer) {
  const bool is_wanted = connections_[peer].has_output();
  if (!connections_[peer].is_open() || is_output_watched_[peer] == is_wanted) {
    return;
  }
  epoll_event event{};
  event.events = EPOLLIN | (is_wanted ? EPOLLOUT : 0U);
  event.data.u32 = peer;
  // Refused when the kernel has no memory, or when the program has closed descriptors that are not its own.
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connections_[peer].fd(), &event) == 0) {
    is_output_watched_[peer] = is_wanted;
  } else {
    end(peer, Event::Kind::lost, errno);
  }
}

void SideChannel::Connections::step(int timeout_ms) {
  // What does not fit is ready at the next call. After a signal (EINTR) nothing is: callers ask again.
  std::array<epoll_event, 64> ready{};
  const int n_ready = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), timeout_ms);
  for (int i = 0; i < n_ready; ++i) {
    const epoll_event& event = ready[static_cast<size_t>(i)];
    // An earlier one of this batch may have ended it.
    if (event.data.u32 != kPendingMark && connections_[event.data.u32].is_open()) {
      serve(event.data.u32, (event.events & ~static_cast<uint32_t>(EPOLLOUT)) != 0);
    }
  }
}

void SideChannel::Connections::serve(uint32_t peer, bool has_input) {
  Connection& connection = connections_[peer];
  connection.flush();
  if (has_input) {
    // What came before the end first: a goodbye makes it an orderly one.
    const std::optional<int> ended = connection.receive();
    take_frames(peer);
    if (ended && connection.is_open()) {
      end(peer, Event::Kind::lost, *ended);
    }
  }
  watch(peer);
}

void SideChannel::Connections::take_frames(uint32_t peer) {
  while (connections_[peer].is_open()) {
    auto frame = connections_[peer].next();
    // No frame of the protocol: the stream can't be found again, so that the connection ends.
    if (!frame) {
      end(peer, Event::Kind::lost, EPROTO);
    } else if (!*frame) {
      return;
    } else if ((*frame)->header.type == FrameType::goodbye) {
      end(peer, Event::Kind::left, 0);
    } else if (is_root()) {
      take_from_rank(peer, **frame);
    } else {
      take_from_root(**frame);
    }
  }
}

/// `peer` is gone, as this rank sees by itself or as rank 0 says.
void SideChannel::Connections::end(uint32_t peer, Event::Kind how, int errno_value, std::string where) {
  if (is_gone_[peer]) {
    return;
  }
  if (where.empty()) {
    where = connections_[peer].peer();
  }
  // First: what follows comes back here for others, and must not for this one.
  is_gone_[peer] = true;
  connections_[peer] = Connection();  // leaves the epoll set by being closed
  add_event({how, peer, 0, errno_value, {}}, false);
  if (is_root()) {
    std::vector<std::byte> payload(kLostBytes);
    base::put_le(std::span<std::byte>(payload), 0, static_cast<uint32_t>(errno_value));
    base::put_le<uint32_t>(payload, 4, how == Event::Kind::left ? 1 : 0);
    const auto letters = as_payload(where);
    payload.insert(payload.end(), letters.begin(), letters.end());
    queue_to_all_but(peer, {.type = FrameType::lost, .rank = peer}, make_payload(std::move(payload)));
  }
  if (!failure_) {
    const std::string when = current_ ? fmt::format(" in {} {}", name_of(*current_), n_exchanges_) : "";
    std::string text = fmt::format("rank {} has left the group{}", peer, when);
    if (how == Event::Kind::lost) {
      text = fmt::format("rank {} was lost{}: {}{}", peer, when,
                         errno_value == 0 ? "its connection was closed" : base::reason_of(errno_value),
                         where.empty() ? "" : fmt::format("; it was at {}: look at its output there", where));
    }
    failure_ = Failure{errno_value == 0 ? ECONNRESET : errno_value, std::move(text)};
  }
}

void SideChannel::Connections::queue(uint32_t peer, const FrameHeader& header, const Payload& payload) {
  Connection& connection = connections_[peer];
  if (!connection.is_open()) {
    return;
  }
  // Its buffer is full: the peer has not read for long. Waiting would let one rank stop all others.
  if (!connection.queue(header, payload)) {
    if ((header.flags & kLatestOnly) == 0) {
      end(peer, Event::Kind::lost, ENOBUFS);
    }
    return;
  }
  connection.flush();
  watch(peer);
}

void SideChannel::Connections::queue_to_all_but(uint32_t excluded, const FrameHeader& header, const Payload& payload) {
  for (uint32_t peer = 0; peer < n_ranks_; ++peer) {
    if (peer != excluded) {
      queue(peer, header, payload);
    }
  }
}

base::Result<void> SideChannel::Connections::send(uint32_t to, uint16_t kind, std::span<const std::byte> bytes,
                                                  bool is_latest_only) {
  if (to >= n_ranks_ && to != kEveryone) {
    return base::fail(EINVAL);
  }
  if (bytes.size() > kMaxMessageBytes) {
    return base::fail(EMSGSIZE);
  }
  if (to == rank_) {
    // Copied: `bytes` is the caller's.
    add_event({Event::Kind::message, rank_, kind, 0, {bytes.begin(), bytes.end()}}, is_latest_only);
    return {};
  }
  if ((to != kEveryone && is_gone_[to]) || (!is_root() && is_gone_[0])) {
    return base::fail(ENOTCONN);
  }
  const Payload payload = make_payload({bytes.begin(), bytes.end()});
  FrameHeader header{FrameType::message, is_latest_only ? kLatestOnly : uint8_t{0}, kind, to, 0};
  if (!is_root()) {
    // One that is only of interest if it is new may be left out.
    if (!connections_[0].queue(header, payload) && !is_latest_only) {
      return base::fail(ENOBUFS);
    }
    connections_[0].flush();
    watch(0);
    return {};
  }
  // What a rank writes there is whom it is for; what rank 0 writes is whom it is from.
  header.rank = rank_;
  if (to == kEveryone) {
    queue_to_all_but(rank_, header, payload);
  } else {
    queue(to, header, payload);
  }
  return {};
}

/// A message from `from`, which rank 0 passes on, takes, or both.
void SideChannel::Connections::forward(uint32_t from, Frame& frame) {
  const uint32_t to = frame.header.rank;
  if (frame.payload.size() > kMaxMessageBytes || (to >= n_ranks_ && to != kEveryone)) {
    end(from, Event::Kind::lost, EPROTO);
    return;
  }
  const bool is_latest_only = (frame.header.flags & kLatestOnly) != 0;
  if (to == kEveryone || to == rank_) {
    add_event({Event::Kind::message, from, frame.header.kind, 0, frame.payload}, is_latest_only);
  }
  if (to != rank_) {
    FrameHeader header = frame.header;
    header.rank = from;
    const Payload payload = make_payload(std::move(frame.payload));
    if (to == kEveryone) {
      queue_to_all_but(from, header, payload);
    } else {
      queue(to, header, payload);
    }
  }
}

void SideChannel::Connections::add_event(Event event, bool is_latest_only) {
  const uint32_t from = event.rank;
  if (is_latest_only) {
    for (size_t i = 0; i < events_.size(); ++i) {
      if (event_is_latest_only_[i] && events_[i].rank == from && events_[i].message_kind == event.message_kind) {
        event_bytes_ += event.bytes.size();
        event_bytes_ -= events_[i].bytes.size();
        events_[i] = std::move(event);
        return;
      }
    }
  }
  event_bytes_ += event.bytes.size();
  // Of this rank's own messages none is refused: it would end itself.
  const bool is_too_much = event.kind == Event::Kind::message && event_bytes_ > kMaxEventBytes && from != rank_;
  events_.push_back(std::move(event));
  event_is_latest_only_.push_back(is_latest_only);
  mark_pending(!current_.has_value());  // the thread that is in an exchange must not wake up of it
  if (is_too_much) {
    end(is_root() ? from : 0, Event::Kind::lost, ENOBUFS);  // nobody polls here
  }
}

void SideChannel::Connections::mark_pending(bool is_pending) {
  if (is_pending == is_marked_) {
    return;
  }
  is_marked_ = is_pending;
  uint64_t count = 1;
  // Never blocks: the eventfd is non-blocking, and holds 0 or 1.
  const ssize_t done =
      is_pending ? ::write(pending_.get(), &count, sizeof count) : ::read(pending_.get(), &count, sizeof count);
  if (done != sizeof count && !failure_) {  // nobody who sleeps on the descriptor can be woken any more
    failure_ = Failure{errno, fmt::format("rank {}'s own event descriptor: {}; does the program close descriptors that "
                                          "are not its own?",
                                          rank_, base::reason_of(errno))};
  }
}

// A system call or two for each peer.
uint64_t SideChannel::Connections::hosts_answering(uint32_t within_ms) const {
  uint64_t answering = 0;
  // Bits of the answer.
  for (uint32_t peer = 0; peer < std::min<uint32_t>(n_ranks_, 64); ++peer) {
    if (connections_[peer].is_open() && is_host_answering(connections_[peer].fd(), within_ms)) {
      answering |= uint64_t{1} << peer;
    }
  }
  return answering;
}

std::vector<Event> SideChannel::Connections::poll() {
  step(0);
  mark_pending(false);
  event_is_latest_only_.clear();
  event_bytes_ = 0;
  // In the order in which they came; of kLatestOnly messages the newest in the oldest one's place.
  return std::exchange(events_, {});
}

}  // namespace ringbolt::bootstrap
