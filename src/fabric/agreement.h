#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ringbolt::fabric {

/// A set of ranks: bit r stands for rank r.
using RankSet = uint64_t;
inline constexpr uint32_t kMaxAgreeingRanks = 64;

constexpr RankSet set_of(uint32_t rank) { return RankSet{1} << rank; }

/// Which members of a group have failed: every member that goes on decides the same sets in the same order. Floods
/// suspicions until all whom one does not suspect say the same, then commits; a majority must agree, and whoever is
/// excluded is told and leaves ("fenced"), so false suspicion costs a rank and never the agreement.
///
/// Messages between two live ranks must arrive in order and at most once; the group's side channel and relays do that.
/// Pure: no clock, no I/O. Not thread-safe. About 2 n^2 messages of 16 bytes for a decision.
/// Source: FloodSet (Lynch 1996, chapter 6), with fencing and a quorum; used as MPI's ULFM does (Herault et al. 2015).
class Agreement {
 public:
  enum class Kind : uint8_t { vote = 1, commit = 2 };
  struct Message {
    Kind kind = Kind::vote;
    uint32_t epoch = 0;
    RankSet failed = 0;
    friend bool operator==(const Message&, const Message&) = default;
  };
  struct Decision {
    uint32_t epoch = 0;  ///< which is over now
    RankSet failed = 0;  ///< members of it who are none of the next one
    friend bool operator==(const Decision&, const Decision&) = default;
  };
  /// What to do after an input, in this order: the messages to send, each to one rank, then what was decided. Nothing
  /// of it is kept: what is not sent is lost, and the agreement with it, since nobody repeats.
  struct Output {
    std::vector<std::pair<uint32_t, Message>> messages;
    std::vector<Decision> decisions;
    /// The others go on without this rank: fail all operations and leave.
    bool is_fenced = false;
  };
  struct Rules {
    /// Only those who are more than half of the epoch's members may decide, or exactly half with its lowest. False only
    /// if every suspicion is certain (the process has ended): then any number of survivors may go on, one included.
    bool needs_majority = true;
    /// Only for a test that shows what it is good for.
    bool tells_excluded = true;
  };

  /// `members` contains `self`; ranks up to 63.
  Agreement(uint32_t self, RankSet members, Rules rules);
  Agreement(uint32_t self, RankSet members) : Agreement(self, members, Rules()) {}

  /// This rank takes part: it votes for what it suspects, be it nobody, so that all can agree that none has failed.
  /// Without this only a suspicion opens the epoch's votes.
  Output open();
  /// This rank no longer believes in these. Those who are no members, and itself, are left out.
  Output suspect(RankSet ranks);
  /// Likewise, and their processes have ended for certain: they don't count when a majority is asked for, since nobody
  /// could go on with them elsewhere.
  Output suspect_certainly(RankSet ranks);
  /// A message from `from`; any values are safe.
  Output receive(uint32_t from, const Message& message);

  uint32_t epoch() const { return epoch_; }
  RankSet members() const { return members_; }
  /// Suspected in this epoch, and not decided.
  RankSet suspects() const { return failed_; }
  bool is_fenced() const { return is_fenced_; }
  /// Whether `ranks` may decide in this epoch.
  bool is_quorum(RankSet ranks) const;

 private:
  struct Waiting {
    uint32_t from = 0;
    Message message;
  };
  void add_suspects(RankSet ranks, Output& output);
  void take(uint32_t from, const Message& message, Output& output);
  void take_vote(uint32_t from, RankSet failed, Output& output);
  void decide_if_all_agree(Output& output);
  void decide(RankSet failed, Output& output);
  void send(RankSet to, Kind kind, RankSet failed, Output& output) const;

  const uint32_t self_;
  const Rules rules_;
  uint32_t epoch_ = 1;
  RankSet members_;
  RankSet failed_ = 0;
  RankSet ended_ = 0;  ///< for certain
  bool is_open_ = false;
  bool is_fenced_ = false;
  std::array<std::optional<RankSet>, kMaxAgreeingRanks> votes_{};
  // Kept for the late: a rank that votes in an old epoch is told how that ended.
  std::vector<RankSet> commits_;  ///< by epoch, from 1
  // At most kMaxWaiting, so a rank that lies about epochs costs no memory.
  std::vector<Waiting> waiting_;  ///< of later epochs
};

inline constexpr size_t kAgreementBytes = 16;
/// 0: kind, 1 byte; 1: zeros, 3; 4: epoch, 4; 8: the set, 8. Little-endian. docs/formats/liveness.md.
std::array<std::byte, kAgreementBytes> emit(const Agreement::Message& message);
/// Errors: EBADMSG.
base::Result<Agreement::Message> parse_agreement(std::span<const std::byte> in);

}  // namespace ringbolt::fabric
