#include "bootstrap/reception.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/little_endian.h"
#include "bootstrap/calling.h"

namespace ringbolt::bootstrap {
namespace {

constexpr uint64_t kMsNs = 1'000'000;
// Four times a second at most, or a thousand ranks would get a million of them.
constexpr uint64_t kRosterPeriodNs = 250 * kMsNs;
// For one who is refused to read why: closing over what it has sent would reset the connection.
constexpr uint64_t kRefusedLingerNs = 1'000 * kMsNs;
/// Callers that have proven nothing yet, besides one for each rank; each holds a descriptor.
constexpr size_t kMaxStrangers = 64;
// An error message stays readable however many strangers call.
constexpr size_t kMaxRefusalsToldOf = 8;

}  // namespace

Reception::Reception(const Config& config, const Key& key, uint64_t deadline_ns)
    : config_(config), key_(key), members_(config.n_ranks) {
  if (config.listening_fd >= 0) {
    // Not owned.
    listening_fds_.push_back(config.listening_fd);
    // The port is known where ranks have told each other of it before.
    where_ = config.port != 0 ? to_text({config.host, config.port}) : "an inherited socket";
  } else {
    own_listening_ = Listening::open(config.host, config.port, config.bind_address, deadline_ns);
    where_ = own_listening_.where;
    for (const base::UniqueFd& fd : own_listening_.sockets) {
      listening_fds_.push_back(fd.get());
    }
  }
}

std::vector<Connection> Reception::run(uint64_t deadline_ns) {
  while (n_joined_ < config_.n_ranks) {
    if (base::now_ns() >= deadline_ns) {
      fail(ETIMEDOUT,
           n_joined_ == 1 ? "none of the others has come" : "not come: rank " + list_ranks(missing()) + kIfMissing);
    }
    // At least every most_wait_ms(), which bounds each wait below.
    if (is_called_off(config_)) {
      fail(ECANCELED, "the meeting is called off; not come: rank " + list_ranks(missing()));
    }
    wait(deadline_ns);
    drop_finished();
    tell_roster();
  }
  std::vector<Connection> connections(config_.n_ranks);
  const Payload nothing = make_payload({});
  for (uint32_t rank = 1; rank < config_.n_ranks; ++rank) {
    members_[rank].connection.queue({.type = FrameType::start}, nothing);
    members_[rank].connection.flush();
    // What did not leave yet is sent by their new owner.
    connections[rank] = std::move(members_[rank].connection);
  }
  return connections;
}

/// Waits until something happens, and deals with it.
void Reception::wait(uint64_t deadline_ns) {
  std::vector<pollfd> waiting;
  uint64_t until = std::min(deadline_ns, roster_due_ns());
  const bool is_accepting = base::now_ns() >= accept_again_ns_;
  for (const int fd : listening_fds_) {
    // poll() passes over negative ones, and places stay what they are.
    waiting.push_back({is_accepting ? fd : -1, POLLIN, 0});
  }
  until = is_accepting ? until : std::min(until, accept_again_ns_);
  for (uint32_t rank = 1; rank < config_.n_ranks; ++rank) {
    const Connection& connection = members_[rank].connection;
    // -1 for those who are not here yet, which poll(2) passes over.
    waiting.push_back({connection.fd(), static_cast<short>(POLLIN | (connection.has_output() ? POLLOUT : 0)), 0});
  }
  // New ones are put behind these, below.
  const size_t n_callers = callers_.size();
  for (const Caller& caller : callers_) {
    until = std::min(until, caller.deadline_ns);
    waiting.push_back(
        {caller.connection.fd(), static_cast<short>(POLLIN | (caller.connection.has_output() ? POLLOUT : 0)), 0});
  }
  // Timed out, or a signal: the caller looks at deadlines in either case.
  if (::poll(waiting.data(), waiting.size(), milliseconds_until(until, most_wait_ms(config_))) <= 0) {
    return;
  }
  size_t at = listening_fds_.size();
  for (uint32_t rank = 1; rank < config_.n_ranks; ++rank, ++at) {
    if (waiting[at].revents != 0 && members_[rank].connection.is_open()) {
      serve_member(rank);
    }
  }
  // A list: serving one neither moves nor removes others. drop_finished() removes them later.
  auto caller = callers_.begin();
  for (size_t i = 0; i < n_callers; ++i, ++at, ++caller) {
    if (waiting[at].revents != 0) {
      serve(*caller, (waiting[at].revents & ~POLLOUT) != 0);
    }
  }
  for (size_t i = 0; i < listening_fds_.size(); ++i) {
    if (waiting[i].revents != 0) {
      accept_all(listening_fds_[i]);
    }
  }
}

void Reception::accept_all(int listening_fd) {
  constexpr int kMostAtOnce = 64;
  for (int i = 0; i < kMostAtOnce; ++i) {
    Accepted accepted = accept_from(listening_fd);
    if (accepted.error == EMFILE || accepted.error == ENFILE || accepted.error == ENOBUFS || accepted.error == ENOMEM) {
      // The listening socket would stay readable, and poll() return at once.
      accept_again_ns_ = base::now_ns() + 50 * kMsNs;
      return;
    }
    if (accepted.error == EAGAIN) {
      return;
    }
    if (accepted.error != 0) {
      continue;  // a connection that has ended before it was taken
    }
    // So however many strangers call, each rank finds a place.
    if (callers_.size() >= kMaxStrangers + config_.n_ranks) {
      callers_.pop_front();  // the one who has been silent longest; a rank calls again
    }
    callers_.push_back({Connection(std::move(accepted.socket), std::move(accepted.peer)),
                        AnsweringHandshake(config_, key_), base::now_ns() + config_.handshake_timeout_ms * kMsNs,
                        false});
  }
}

void Reception::serve(Caller& caller, bool has_input) {
  caller.connection.flush();
  if (!has_input) {
    return;
  }
  // Whatever one who was refused goes on saying, nobody keeps.
  const std::optional<int> ended = caller.is_refused ? caller.connection.discard() : caller.connection.receive();
  while (!caller.is_refused && caller.connection.is_open()) {
    auto frame = caller.connection.next();
    if (!frame) {
      dismiss(caller, frame.error().text());
    } else if (!*frame) {
      break;
    } else if (const auto problem = caller.handshake.take(**frame, caller.connection)) {
      dismiss(caller, *problem);
    } else if (caller.handshake.is_proven()) {
      admit(caller);
    }
  }
  caller.connection.flush();
  // Its end is looked at after its frames; drop_finished() closes it.
  if (ended) {
    caller.deadline_ns = 0;
  }
}

/// Tells a caller why it is refused, and keeps the reason for those who wait in vain.
void Reception::dismiss(Caller& caller, const std::string& reason) {
  ++n_refused_;
  const std::string line = fmt::format("{} {}", caller.connection.peer(), reason);
  if (refusals_.size() < kMaxRefusalsToldOf) {
    refusals_.push_back(line);
  }
  caller.is_refused = true;
  caller.deadline_ns = base::now_ns() + kRefusedLingerNs;
  // Only one who speaks the protocol is answered.
  if (caller.handshake.has_greeted()) {
    caller.connection.queue({.type = FrameType::refused}, make_payload(as_payload(reason)));
  }
  caller.connection.flush();
  caller.connection.shut_output();
}

void Reception::admit(Caller& caller) {
  const Hello& hello = caller.handshake.hello();
  std::string contradiction;
  if (hello.n_ranks != config_.n_ranks) {
    contradiction =
        fmt::format("is rank {} of {}, while rank 0 was told of {} ranks", hello.rank, hello.n_ranks, config_.n_ranks);
  } else if (hello.rank == 0 || hello.rank >= config_.n_ranks) {
    contradiction = fmt::format("calls itself rank {} of {}", hello.rank, config_.n_ranks);
  } else if (members_[hello.rank].connection.is_open() && members_[hello.rank].incarnation != hello.incarnation) {
    contradiction =
        fmt::format("calls itself rank {}, and so does {}", hello.rank, members_[hello.rank].connection.peer());
  }
  // It has the secret: no stranger, but a job that was started wrongly, which no waiting mends.
  if (!contradiction.empty()) {
    const std::string who = caller.connection.peer();
    dismiss(caller, contradiction);
    fail(EINVAL, fmt::format("{} {}", who, contradiction));
  }
  Member& member = members_[hello.rank];
  // One that calls again, since its first connection broke unnoticed, takes its own place.
  n_joined_ += member.connection.is_open() ? 0U : 1U;
  caller.handshake.welcome(caller.connection);
  // The older connection of this rank, if there was one, is closed by being overwritten.
  member = {std::move(caller.connection), hello.incarnation};
  caller.connection = Connection();
}

void Reception::serve_member(uint32_t rank) {
  Connection& connection = members_[rank].connection;
  connection.flush();
  const std::optional<int> ended = connection.receive();
  const auto frame = connection.next();
  // Only output was possible.
  if (!ended && frame && !*frame) {
    return;
  }
  std::string why = fmt::format("rank {} ({}) ", rank, connection.peer());
  int error = ECONNRESET;
  if (frame && *frame && (*frame)->header.type == FrameType::goodbye) {
    why += "has given up waiting for the others";
    const std::vector<std::byte>& reason = (*frame)->payload;
    error = reason.size() == kGoodbyeBytes && base::get_le<uint32_t>(reason, 0) == ETIMEDOUT ? ETIMEDOUT : error;
  } else if (!frame) {
    why += frame.error().text();
  } else {
    why += fmt::format("was lost before all had come{}{}", ended.value_or(0) == 0 ? "" : ": ",
                       ended.value_or(0) == 0 ? "" : base::reason_of(*ended));
  }
  const std::string others = list_ranks(missing());
  connection = Connection();
  // For the words of fail(), which does not return.
  --n_joined_;
  // One rank that is lost now ends the meeting: it would be missing in the first exchange anyhow.
  fail(error, why + "; not come: rank " + others + (error == ETIMEDOUT ? kIfMissing : ""));
}

void Reception::drop_finished() {
  const uint64_t now = base::now_ns();
  for (Caller& caller : callers_) {
    // 0: it has ended.
    if (caller.connection.is_open() && !caller.is_refused && now >= caller.deadline_ns && caller.deadline_ns != 0) {
      dismiss(caller, fmt::format("did not say within {} ms who it is", config_.handshake_timeout_ms));
    }
  }
  callers_.remove_if([now](const Caller& caller) { return !caller.connection.is_open() || now >= caller.deadline_ns; });
}

/// When those who wait are to be told next, in base::now_ns(). UINT64_MAX: nobody is there.
uint64_t Reception::roster_due_ns() const {
  if (n_joined_ == 1) {
    return UINT64_MAX;
  }
  return n_told_ == n_joined_ ? next_roster_ns_ - kRosterPeriodNs + config_.roster_again_ms * kMsNs : next_roster_ns_;
}

/// Those who wait learn for whom, and that rank 0 is there still.
void Reception::tell_roster() {
  const uint64_t now = base::now_ns();
  if (now < roster_due_ns()) {
    return;
  }
  n_told_ = n_joined_;
  next_roster_ns_ = now + kRosterPeriodNs;
  std::vector<std::byte> mask((config_.n_ranks + 7) / 8);
  // Rank 0 is here. Bit r mod 8 of byte r / 8 is rank r.
  mask[0] |= std::byte{1};
  for (uint32_t rank = 1; rank < config_.n_ranks; ++rank) {
    if (members_[rank].connection.is_open()) {
      mask[rank / 8] |= std::byte{1} << (rank % 8);
    }
  }
  const Payload payload = make_payload(std::move(mask));
  for (Member& member : members_) {
    if (member.connection.is_open()) {
      member.connection.queue({.type = FrameType::roster}, payload);
      // Once, without waiting: who does not read now finds out when the connection ends.
      member.connection.flush();
    }
  }
}

std::vector<uint32_t> Reception::missing() const {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 1; rank < config_.n_ranks; ++rank) {
    if (!members_[rank].connection.is_open()) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

void Reception::fail(int error, const std::string& why) {
  std::string words = why;
  if (n_refused_ != 0) {
    words +=
        fmt::format("; refused: {}{}", fmt::join(refusals_, "; "),
                    n_refused_ > refusals_.size() ? fmt::format("; and {} more", n_refused_ - refusals_.size()) : "");
  }
  for (Member& member : members_) {
    if (member.connection.is_open()) {
      member.connection.queue({.type = FrameType::abort}, make_payload(as_payload(words)));
      member.connection.flush();
      member.connection.shut_output();
    }
  }
  for (Caller& caller : callers_) {
    if (caller.connection.is_open() && !caller.is_refused) {
      dismiss(caller, "came too late: " + words);
    }
  }
  throw base::Error(error, fmt::format("meet {} ranks at {}", config_.n_ranks, where_), "rank 0", words);
}

}  // namespace ringbolt::bootstrap
