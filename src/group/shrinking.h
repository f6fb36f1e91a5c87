#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fabric/agreement.h"

namespace ringbolt::group {

/// How the members of one group agree on who is left of it and on the number of the group that these become. Ranks are
/// those of the mesh.
///
/// Messages may get lost on one way if they come on another: each is numbered, so that what comes twice or in another
/// order is sorted out here. Until this rank has begun what comes is kept. Pure but for `send`. Not thread-safe.
/// All under the mesh's lock, by whose rules `send` is called, too: it must not block or call back.
class Shrinking {
 public:
  using Send = std::function<void(uint32_t rank, std::span<const std::byte> bytes)>;
  struct Outcome {
    fabric::RankSet members = 0;
    uint16_t id = 0;  ///< of their group; the same on all
  };

  /// `group`: the number of the one that is shrunk.
  Shrinking(uint32_t self, fabric::RankSet members, uint16_t group, Send send);

  /// This rank wants to shrink the group. `ended`: for certain. `next_id`: the first number that no group of this rank
  /// has had, of those for groups that are shrunk.
  void begin(fabric::RankSet ended, fabric::RankSet suspects, uint16_t next_id);
  void suspect(uint32_t rank, bool is_certain);
  /// Any bytes are safe.
  /// `from` is known by who has brought it. Format: number of the message (4), wish or group's number (2), then
  /// fabric::emit(); little-endian.
  void receive(uint32_t from, std::span<const std::byte> bytes);

  /// What has been decided, once for each begin().
  std::optional<Outcome> take_outcome();
  /// The others go on without this rank.
  bool is_fenced() const { return agreement_.is_fenced(); }
  /// Whom it waits for, or has given up: for messages to people.
  fabric::RankSet suspects() const { return agreement_.suspects(); }
  bool has_begun() const { return has_begun_; }

 private:
  struct Message {
    fabric::Agreement::Message agreement;
    uint16_t id = 0;  ///< of a vote: the voter's wish; of a commit: the group's
  };
  void take(uint32_t from, const Message& message);
  void carry_out(const fabric::Agreement::Output& output);
  uint16_t wish_of(uint32_t epoch) const;
  uint16_t own_wish(uint32_t epoch);
  uint16_t id_of(uint32_t epoch, fabric::RankSet failed);

  /// Messages that one rank may be ahead: an honest one sends a few for each epoch.
  static constexpr uint32_t kMostEarly = 256;
  /// Numbers are alike to the group's modulo this.
  static constexpr uint16_t kApart = 64;
  const uint32_t self_;
  // A number is chosen so that groups which are shrunk at the same time get different ones.
  const uint16_t group_;
  fabric::RankSet members_;  // of the epoch that carry_out() has come to
  Send send_;
  fabric::Agreement agreement_;
  bool has_begun_ = false;
  uint16_t wish_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint16_t> wishes_;  // [epoch, rank]
  // By epoch and who has failed: of one that was suspected meanwhile this rank may hear a commit that nobody follows.
  std::map<std::pair<uint32_t, fabric::RankSet>, uint16_t> ids_;
  std::deque<Outcome> outcomes_;
  std::vector<uint32_t> next_sent_;                     // [rank]
  std::vector<uint32_t> next_received_;                 // [rank]
  std::vector<std::map<uint32_t, Message>> early_;      // [rank], by number
  std::vector<std::pair<uint32_t, Message>> unopened_;  // before begin()
};

inline constexpr size_t kShrinkingBytes = 6 + fabric::kAgreementBytes;

}  // namespace ringbolt::group
