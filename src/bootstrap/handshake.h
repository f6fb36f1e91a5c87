#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/config.h"
#include "bootstrap/connection.h"
#include "bootstrap/hello.h"

/// The handshake of docs/formats/bootstrap.md, for each side a state machine that takes frames and queues answers.
namespace ringbolt::bootstrap {

/// Rank 0's side of one connection. Not thread-safe. Knows nothing of time: its owner drops callers that are too
/// slow.
class AnsweringHandshake {
 public:
  /// `key`: key_of(config.secret). `config` must outlive this.
  AnsweringHandshake(const Config& config, const Key& key) : config_(&config), key_(&key) {}

  /// Takes the caller's next frame. What is wrong, in words for both sides; the caller has not been told yet. After
  /// words, or once proven, it is not called again.
  std::optional<std::string> take(const Frame& frame, Connection& connection);
  /// The caller has the secret, and belongs to this group as far as one can say without knowing the others.
  bool is_proven() const { return is_proven_; }
  /// Tells the caller so; from here on the connection's frames carry tags. Once, after is_proven().
  void welcome(Connection& connection) const;
  /// Whether the caller has said something that only we say.
  bool has_greeted() const { return !hello_bytes_.empty(); }
  const Hello& hello() const { return hello_; }

 private:
  std::optional<std::string> take_hello(const Frame& frame, Connection& connection);
  std::optional<std::string> take_proof(const Frame& frame);

  const Config* config_;
  const Key* key_;
  Hello hello_;
  std::vector<std::byte> hello_bytes_;
  std::vector<std::byte> challenge_bytes_;
  bool is_proven_ = false;
};

/// The side of all other ranks. Not thread-safe. `key` and `config` must outlive it.
class CallingHandshake {
 public:
  CallingHandshake(const Config& config, const Key& key, uint64_t incarnation);

  /// Queues the greeting; the caller flushes.
  void begin(Connection& connection);
  enum class Outcome : uint8_t {
    going_on,
    done,     ///< frames carry tags now
    refused,  ///< for good: problem() says why
    strange,  ///< whoever answers is no rank 0
  };
  /// Not called again after anything but going_on.
  Outcome take(const Frame& frame, Connection& connection);
  const std::string& problem() const { return problem_; }
  /// Whether rank 0 has answered, so that it knows of this rank.
  bool has_proven() const { return !challenge_bytes_.empty(); }

 private:
  Outcome end(Outcome outcome, std::string problem);
  Outcome take_challenge(const Frame& frame, Connection& connection);

  const Key* key_;
  Hello hello_;
  std::vector<std::byte> hello_bytes_;
  std::vector<std::byte> challenge_bytes_;
  std::string problem_;
};

/// "2, 3, 5", "none"; long lists are cut. Thread-safe.
std::string list_ranks(const std::vector<uint32_t>& ranks);

}  // namespace ringbolt::bootstrap
