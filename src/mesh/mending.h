#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/cable.h"

namespace ringbolt::mesh {

/// What one end of a cable says to the other while it is connected anew.
struct MendingWord {
  /// Where the sender's end is. The order matters: queue pairs without a past, both connected, at work.
  enum class Stage : uint8_t { failed = 0, reset = 1, connected = 2, working = 3 };
  uint32_t fabric_cable = 0;
  uint16_t incarnation = 0;  ///< of the connection that it is about
  Stage stage = Stage::failed;
  engine::CableAddress address = {};
};

/// docs/formats/liveness.md.
std::vector<std::byte> emit(const MendingWord& word);
/// Any bytes are safe.
std::optional<MendingWord> parse_mending(std::span<const std::byte> bytes);

/// How one end of a cable that has failed and the other one connect it anew: each makes its queue pairs forget their
/// past; when both have, each connects; when both have, each begins to send. So nothing of an earlier connection is
/// ever taken for the new one's. What one end says it says again and again until it is heard. Pure. Not thread-safe.
class Mending {
 public:
  using Stage = MendingWord::Stage;
  enum class Step : uint8_t { nothing, reset, connect, start };

  Stage stage() const { return stage_; }
  uint16_t incarnation() const { return incarnation_; }
  /// As the newest word has it; the next hear() may change what the reference shows.
  const engine::CableAddress& peer() const { return peer_.address; }

  /// Our end has failed, at connection `incarnation`.
  void fail(uint16_t incarnation);
  /// What the peer says: whether our end has to fail, if it works, since the other one has begun anew.
  /// Older words than the newest one change nothing: they come twice, and by two ways.
  bool hear(const MendingWord& word);
  /// Whether the peer should be answered: it still waits for us.
  bool owes_answer(const MendingWord& word) const;
  /// What is to be done now; done() says that it was.
  /// It depends on the state alone: asking again without done() gives the same.
  Step next() const;
  void done(Step step);
  /// For reset: which connection is to be made.
  uint16_t next_incarnation() const;

 private:
  Stage stage_ = Stage::working;
  // What bring-up has made counts as the first connection, at both ends.
  uint16_t incarnation_ = 1;
  MendingWord peer_;
};

}  // namespace ringbolt::mesh
