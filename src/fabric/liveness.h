#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/heartbeat.h"

namespace ringbolt::fabric {

/// When silence means something. Nanoseconds. Each limit is to be a few times the one above it, interval_ns the
/// least: nothing checks that.
struct LivenessKnobs {
  uint64_t interval_ns = 100'000'000;   ///< heartbeats are due this often
  uint64_t suspect_ns = 350'000'000;    ///< silent that long: suspect
  uint64_t failed_ns = 1'000'000'000;   ///< silent that long: failed, unless only frozen
  uint64_t frozen_ns = 10'000'000'000;  ///< frozen that long: failed
  uint64_t heal_ns = 3'000'000'000;     ///< a cable that works again must do so that long
  /// Somebody calls host_answered(), or looks after cables when a process is frozen. Without that a frozen process
  /// can't be told from a host that is gone: both count as frozen.
  bool knows_hosts = true;
};

/// This rank's end of a cable.
struct WatchedCable {
  uint32_t peer = 0;   ///< rank at the other end
  std::string device;  ///< ours, for words: "rdma_en2"
};

/// What has become of a rank or a cable.
struct LivenessChange {
  enum class Kind : uint8_t {
    cable_down,    ///< the rank at its other end lives: another path will do; again, if it is mended and stays silent
    cable_up,      ///< again, for heal_ns
    rank_suspect,  ///< nothing has been heard for suspect_ns
    rank_frozen,   ///< its process makes no progress, its host answers: stopped, in a debugger, swapped out
    rank_back,     ///< suspect or frozen no more
    rank_failed,   ///< for good; see `reason`
    partition,     ///< several ranks fell silent together
    self_paused,   ///< this process itself was stopped: nothing is held against others for that time
  };
  enum class Reason : uint8_t {
    none,
    dead,         ///< its side channel was closed or reset, or a new process is in its place
    left,         ///< it has said goodbye
    frozen,       ///< for frozen_ns
    unreachable,  ///< nothing from it or its host on any path
  };
  Kind kind = Kind::rank_suspect;
  Reason reason = Reason::none;  ///< of rank_failed
  uint32_t rank = 0;             ///< whom it is about; of a cable, the other end
  uint32_t cable = 0;            ///< of a cable: its index
  uint64_t silent = 0;           ///< of a partition: who is silent, bit r for rank r
  bool is_certain = false;       ///< of rank_failed: its process has ended, whatever the network did
  std::string text;              ///< in words, with rank, cables, devices and times
};

/// Tells dead, frozen and unreachable ranks and cut cables apart, from what this rank hears. It never calls a cut cable
/// a rank's failure while any path brings news of the rank: progress counters travel with everybody's heartbeats, so
/// news of a rank beyond a cut comes through others.
///
/// A failure is reported within its limit (failed_ns, frozen_ns) plus one interval plus the time that news takes, given
/// that check() is called at next_deadline_ns(). A closed side channel is reported at the next check(). A failed rank
/// stays failed.
///
/// `now_ns` is any clock that never goes back; pure otherwise. Not thread-safe. Copies all that it is given. Numbers
/// of cables are places in `cables`; ranks below n_ranks, 64 at most.
class Liveness {
 public:
  Liveness(uint32_t self, uint32_t n_ranks, std::vector<WatchedCable> cables, const LivenessKnobs& knobs,
           uint64_t now_ns);

  /// A heartbeat through one of this rank's cables. One that can't be (of a rank that is not at the other end, of
  /// another number of ranks) is dropped.
  void heard_through(uint32_t cable, const Heartbeat& heartbeat, uint64_t now_ns);
  /// A heartbeat through the side channel.
  void heard(const Heartbeat& heartbeat, uint64_t now_ns);
  /// Data of the group through a cable: as good as a heartbeat for the cable, and as progress of the rank at its other
  /// end. A number that is no cable's is passed over, as in the other reports.
  void heard_data(uint32_t cable, uint64_t now_ns);
  /// The rank's host acknowledges what the side channel sends, say (TCP_INFO's last acknowledgement). To be called
  /// every interval while it does.
  void host_answered(uint32_t rank, uint64_t now_ns);
  /// From here on nobody calls host_answered() for ranks beyond this one's own cables: rank 0, which knew, is gone. A
  /// death is noticed by silence alone from then on, so that a frozen rank counts as dead.
  void hosts_unknown() { has_lost_hosts_ = true; }
  /// The side channel says that the rank's connection has ended; `errno_value` 0: closed.
  void side_channel_closed(uint32_t rank, int errno_value, uint64_t now_ns);
  void left(uint32_t rank, uint64_t now_ns);
  /// This rank's device says that the port is down, or a queue pair on it has failed.
  void cable_error(uint32_t cable, const std::string& what, uint64_t now_ns);
  /// The port is up again, the queue pairs are connected anew.
  void cable_mended(uint32_t cable, uint64_t now_ns);

  /// The rank at its other end says that the cable is up: whether it is heard here as well. Then it is up here, too,
  /// and check() does not tell of that. False of a cable that is none of this rank's.
  bool confirm_up(uint32_t cable, uint64_t now_ns);

  /// What has changed since the last call. Each change is told once. May be called early, and must not be called with
  /// an earlier time than before.
  std::vector<LivenessChange> check(uint64_t now_ns);
  /// When to call check() again if nothing is heard until then. On the caller's clock; in the past if something waits
  /// to be told.
  uint64_t next_deadline_ns() const;

  /// What this rank's heartbeat says now, to be sent through its cables, and through the side channel once an interval.
  /// `turn`: its progress thread's own count; must grow.
  Heartbeat heartbeat(uint32_t epoch, uint64_t incarnation, uint64_t turn, uint64_t now_ns);
  /// When the next one is due through the cables: an interval after the last, or sooner, if there is news of ranks of
  /// which the side channel brings none. So news gets round a large ring without rank 0 in time.
  uint64_t next_heartbeat_ns() const;

  bool is_cable_up(uint32_t cable) const { return cable < cables_.size() && cables_[cable].is_up; }
  /// Ranks that have failed, bit r for rank r.
  uint64_t failed_ranks() const;

 private:
  // A rank's own state is not kept: it stays `alive` in its own eyes.
  enum class State : uint8_t { alive, suspect, frozen, failed };
  struct Rank {
    State state = State::alive;
    uint64_t incarnation = 0;  ///< 0: not heard yet
    uint64_t counter = 0;
    uint64_t progress_ns = 0;     ///< when the counter was last seen to grow
    uint64_t alive_since_ns = 0;  ///< since when without a gap of suspect_ns
    uint64_t host_ns = 0;         ///< when its host was last known to answer
    uint64_t host_seen_ns = 0;    ///< the same, at first hand
    uint64_t side_ns = 0;         ///< when the side channel last brought its heartbeat
    std::string ended;            ///< how its process has, if it has
    LivenessChange::Reason ended_reason = LivenessChange::Reason::none;
    bool has_surely_ended = false;
  };
  struct Cable {
    WatchedCable end;
    bool is_up = true;
    uint64_t heard_ns = 0;
    uint64_t working_since_ns = 0;  ///< while it is down: since when it is heard without a gap
    uint64_t mended_ns = 0;         ///< when it was last connected anew, or said to have stayed silent since
    std::string error;
  };

  void progress(uint32_t rank, uint64_t now_ns);
  void take(const Heartbeat& heartbeat, bool is_through_cable, uint64_t now_ns);
  bool is_credible(const Heartbeat& heartbeat) const;
  void hear_cable(uint32_t cable, uint64_t now_ns);
  void forgive_own_pause(uint64_t now_ns, std::vector<LivenessChange>& changes);
  void check_rank(uint32_t rank, uint64_t now_ns, std::vector<LivenessChange>& changes);
  void check_cable(uint32_t cable, uint64_t now_ns, std::vector<LivenessChange>& changes);
  void check_partition(uint64_t now_ns, std::vector<LivenessChange>& changes);
  LivenessChange change(LivenessChange::Kind kind, uint32_t rank, std::string text) const;
  LivenessChange failure(uint32_t rank, LivenessChange::Reason reason, std::string text);
  std::string cables_to(uint32_t rank, uint64_t now_ns) const;
  uint64_t host_ns(const Rank& rank) const;
  uint64_t host_window_ns() const { return knobs_.interval_ns + knobs_.interval_ns / 2; }

  const uint32_t self_;
  const LivenessKnobs knobs_;
  bool has_lost_hosts_ = false;
  std::vector<Rank> ranks_;
  std::vector<Cable> cables_;
  uint64_t checked_ns_;
  uint64_t due_ns_;                     ///< when the last check() wanted to be called again
  uint64_t beat_ns_;                    ///< when the last heartbeat was made
  bool has_news_ = false;               ///< for the neighbours, since then
  uint64_t unsuspecting_until_ns_ = 0;  ///< after a pause of our own the others get time to be heard
  uint64_t cut_off_ = 0;                ///< ranks of the last partition that was reported
};

}  // namespace ringbolt::fabric
