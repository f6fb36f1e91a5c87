#include "bootstrap/handshake.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringbolt::bootstrap {
namespace {

// What MACs of a handshake stand for. One can't be passed off as another. Each is part of what its MAC is over
// (mac_of()).
constexpr const char* kProofOfCaller = "proof of the caller";
constexpr const char* kProofOfRoot = "proof of rank 0";
constexpr const char* kKeyToRoot = "key to rank 0";
constexpr const char* kKeyFromRoot = "key from rank 0";

void send(Connection& connection, FrameType type, std::vector<std::byte> payload) {
  connection.queue({.type = type}, make_payload(std::move(payload)));
}

std::vector<std::byte> bytes_of(const Mac& mac) { return {mac.begin(), mac.end()}; }

const char* about_secret(bool has_secret) { return has_secret ? "has a secret" : "has none"; }

}  // namespace

// Words that complete "<peer> ..." when the caller is to be refused; nothing: go on.
std::optional<std::string> AnsweringHandshake::take(const Frame& frame, Connection& connection) {
  // Each once, in this order; all else is out of turn.
  if (frame.header.type == FrameType::hello && hello_bytes_.empty()) {
    return take_hello(frame, connection);
  }
  if (frame.header.type == FrameType::proof && !challenge_bytes_.empty() && !is_proven_) {
    return take_proof(frame);
  }
  return fmt::format("sent a frame of type {} out of turn", static_cast<int>(frame.header.type));
}

std::optional<std::string> AnsweringHandshake::take_hello(const Frame& frame, Connection& connection) {
  auto hello = parse_hello(frame.payload);
  if (!hello) {
    return hello.error().text();
  }
  hello_ = std::move(*hello);
  // As it came: the MAC is over these bytes, and not over what was understood of them.
  hello_bytes_ = frame.payload;
  if (hello_.first_version > kVersion || hello_.last_version < kVersion) {
    return fmt::format("speaks versions {} to {} of the bootstrap protocol, rank 0 speaks {}", hello_.first_version,
                       hello_.last_version, kVersion);
  }
  const bool has_secret = !config_->secret.empty();
  if (hello_.has_secret != has_secret) {
    return fmt::format("calls itself rank {} and {}, while rank 0 {}: set RINGBOLT_SECRET on all ranks or on none",
                       hello_.rank, hello_.has_secret ? "has a secret" : "has no secret", about_secret(has_secret));
  }
  challenge_bytes_ = emit(Challenge{.has_secret = has_secret, .nonce = random_nonce()});
  send(connection, FrameType::challenge, challenge_bytes_);
  return std::nullopt;
}

std::optional<std::string> AnsweringHandshake::take_proof(const Frame& frame) {
  // In a time that does not depend on where they differ.
  if (!is_equal(mac_of(*key_, kProofOfCaller, hello_bytes_, challenge_bytes_), frame.payload)) {
    return fmt::format("calls itself rank {} and has another secret", hello_.rank);
  }
  // Only after the proof: a stranger learns no group's name.
  if (hello_.group != config_->group) {
    return fmt::format("is rank {} of group \"{}\", this is group \"{}\"", hello_.rank, hello_.group, config_->group);
  }
  is_proven_ = true;
  return std::nullopt;
}

// Both keys are made of both nonces: frames of an earlier connection don't fit.
void AnsweringHandshake::welcome(Connection& connection) const {
  send(connection, FrameType::welcome, bytes_of(mac_of(*key_, kProofOfRoot, hello_bytes_, challenge_bytes_)));
  // The welcome goes first; what follows carries tags.
  connection.flush();
  connection.authenticate(mac_of(*key_, kKeyToRoot, hello_bytes_, challenge_bytes_),
                          mac_of(*key_, kKeyFromRoot, hello_bytes_, challenge_bytes_), kMaxToRootBytes);
}

CallingHandshake::CallingHandshake(const Config& config, const Key& key, uint64_t incarnation) : key_(&key) {
  hello_.has_secret = !config.secret.empty();
  hello_.rank = config.rank;
  hello_.n_ranks = config.n_ranks;
  hello_.incarnation = incarnation;
  hello_.nonce = random_nonce();
  hello_.group = config.group;
  hello_bytes_ = emit(hello_);
}

void CallingHandshake::begin(Connection& connection) { send(connection, FrameType::hello, hello_bytes_); }

CallingHandshake::Outcome CallingHandshake::end(Outcome outcome, std::string problem) {
  problem_ = std::move(problem);
  return outcome;
}

CallingHandshake::Outcome CallingHandshake::take(const Frame& frame, Connection& connection) {
  switch (frame.header.type) {
    case FrameType::challenge:
      return take_challenge(frame, connection);
    case FrameType::refused:
      return end(Outcome::refused, "rank 0 refused: this caller " + printable(frame.payload, kMaxRefusalBytes));
    case FrameType::welcome:
      if (challenge_bytes_.empty() ||
          !is_equal(mac_of(*key_, kProofOfRoot, hello_bytes_, challenge_bytes_), frame.payload)) {
        return end(Outcome::strange, "answers as rank 0 and can't prove it: it has another secret");
      }
      // What follows the welcome is read with tags: the reader has not looked at it yet.
      connection.authenticate(mac_of(*key_, kKeyFromRoot, hello_bytes_, challenge_bytes_),
                              mac_of(*key_, kKeyToRoot, hello_bytes_, challenge_bytes_), kMaxFromRootBytes);
      return Outcome::done;
    default:
      return end(Outcome::strange,
                 fmt::format("answered with a frame of type {}", static_cast<int>(frame.header.type)));
  }
}

CallingHandshake::Outcome CallingHandshake::take_challenge(const Frame& frame, Connection& connection) {
  const auto challenge = parse_challenge(frame.payload);
  if (!challenge || !challenge_bytes_.empty()) {
    return end(Outcome::strange, challenge ? "challenged twice" : challenge.error().text());
  }
  // For good: to call again changes nothing.
  if (challenge->has_secret != hello_.has_secret) {
    return end(Outcome::refused, fmt::format("this rank {}, rank 0 {}", about_secret(hello_.has_secret),
                                             about_secret(challenge->has_secret)));
  }
  challenge_bytes_ = frame.payload;
  send(connection, FrameType::proof, bytes_of(mac_of(*key_, kProofOfCaller, hello_bytes_, challenge_bytes_)));
  return Outcome::going_on;
}

std::string list_ranks(const std::vector<uint32_t>& ranks) {
  constexpr size_t kMost = 12;
  if (ranks.empty()) {
    return "none";
  }
  const auto shown = ranks.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, ranks.size()));
  const std::string list = fmt::format("{}", fmt::join(ranks.begin(), shown, ", "));
  return ranks.size() > kMost ? fmt::format("{} and {} more", list, ranks.size() - kMost) : list;
}

}  // namespace ringbolt::bootstrap
