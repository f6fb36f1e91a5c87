#include "fabric/liveness.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "base/error.h"

namespace ringbolt::fabric {
namespace {

using Kind = LivenessChange::Kind;
using Reason = LivenessChange::Reason;

uint64_t ms(uint64_t ns) { return ns / 1'000'000; }

std::string list_of(uint64_t set) {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < kMaxWatchedRanks; ++rank) {
    if (((set >> rank) & 1) != 0) {
      ranks.push_back(rank);
    }
  }
  return fmt::format("{}", fmt::join(ranks, ", "));
}

}  // namespace

Liveness::Liveness(uint32_t self, uint32_t n_ranks, std::vector<WatchedCable> cables, const LivenessKnobs& knobs,
                   uint64_t now_ns)
    : self_(self),
      knobs_(knobs),
      ranks_(n_ranks),
      checked_ns_(now_ns),
      // All times are of the caller's monotonic clock; nothing here reads a clock, waits or locks (see the header).
      due_ns_(now_ns + knobs.suspect_ns),
      beat_ns_(now_ns) {
  // Sets of ranks are bits of 64.
  RINGBOLT_ASSERT(n_ranks <= kMaxWatchedRanks && self < n_ranks);
  for (Rank& rank : ranks_) {
    // As if all had just been heard: nobody is suspected for what came before.
    rank.progress_ns = rank.alive_since_ns = rank.host_ns = rank.side_ns = now_ns;
  }
  for (WatchedCable& end : cables) {
    RINGBOLT_ASSERT(end.peer < n_ranks && end.peer != self);
    cables_.push_back({.end = std::move(end), .heard_ns = now_ns, .error = {}});
  }
}

void Liveness::progress(uint32_t rank, uint64_t now_ns) {
  Rank& known = ranks_[rank];
  // progress_ns is never ahead of now_ns: forgive_own_pause() bounds it.
  if (now_ns - known.progress_ns >= knobs_.suspect_ns) {
    // After a silence cables count anew, for a rank that was frozen has used none of them.
    known.alive_since_ns = now_ns;
  }
  known.progress_ns = std::max(known.progress_ns, now_ns);
}

bool Liveness::is_credible(const Heartbeat& heartbeat) const {
  return heartbeat.n_ranks == ranks_.size() && heartbeat.rank < heartbeat.n_ranks && heartbeat.rank != self_ &&
         // Failed is for good: what such a rank sends later would split the group's opinions.
         heartbeat.incarnation != 0 && ranks_[heartbeat.rank].state != State::failed;
}

void Liveness::take(const Heartbeat& heartbeat, bool is_through_cable, uint64_t now_ns) {
  Rank& sender = ranks_[heartbeat.rank];
  if (sender.incarnation == 0) {
    // The first that is heard is believed.
    sender.incarnation = heartbeat.incarnation;
    // A restarted process has none of the group's state: it is another one, however it calls itself.
  } else if (sender.incarnation != heartbeat.incarnation) {
    if (sender.ended.empty()) {
      sender.ended = "another process has taken its place";
      sender.ended_reason = Reason::dead;
      sender.has_surely_ended = true;
      due_ns_ = now_ns;
    }
    return;
  }
  if (!is_through_cable) {
    sender.side_ns = now_ns;
  }
  // The sender's own count can be held up only by the sender; of others it repeats what it has heard.
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    // Only growth counts: an old message that was held up brings no news.
    if (rank != self_ && heartbeat.counters[rank] > ranks_[rank].counter) {
      ranks_[rank].counter = heartbeat.counters[rank];
      // News of one whose side channel is silent has to be passed on soon: others may have no other path to it.
      has_news_ = has_news_ || (is_through_cable && now_ns - ranks_[rank].side_ns >= 2 * knobs_.interval_ns);
      progress(rank, now_ns);
    }
    if (rank != self_ && ((heartbeat.hosts >> rank) & 1) != 0) {
      // The sender's knowledge may be that old. Not to host_seen_ns: what is repeated must not be passed on as seen,
      // or two ranks would keep a dead host alive for each other.
      ranks_[rank].host_ns = std::max(ranks_[rank].host_ns, now_ns - std::min(now_ns, host_window_ns()));
    }
  }
}

void Liveness::hear_cable(uint32_t cable, uint64_t now_ns) {
  Cable& known = cables_[cable];
  if (!known.is_up && now_ns - known.heard_ns >= knobs_.suspect_ns) {
    known.working_since_ns = now_ns;
  }
  known.heard_ns = now_ns;
}

void Liveness::heard_through(uint32_t cable, const Heartbeat& heartbeat, uint64_t now_ns) {
  // A heartbeat of a third rank would be evidence of a wrong cable, and is none of this one.
  if (cable >= cables_.size() || heartbeat.rank != cables_[cable].end.peer || !is_credible(heartbeat)) {
    return;
  }
  hear_cable(cable, now_ns);
  // Its process has just sent something.
  host_answered(heartbeat.rank, now_ns);
  take(heartbeat, true, now_ns);
}

void Liveness::heard(const Heartbeat& heartbeat, uint64_t now_ns) {
  if (is_credible(heartbeat)) {
    take(heartbeat, false, now_ns);
  }
}

void Liveness::heard_data(uint32_t cable, uint64_t now_ns) {
  if (cable < cables_.size() && ranks_[cables_[cable].end.peer].state != State::failed) {
    hear_cable(cable, now_ns);
    host_answered(cables_[cable].end.peer, now_ns);
    progress(cables_[cable].end.peer, now_ns);
  }
}

void Liveness::host_answered(uint32_t rank, uint64_t now_ns) {
  if (rank < ranks_.size()) {
    ranks_[rank].host_ns = ranks_[rank].host_seen_ns = now_ns;
  }
}

void Liveness::side_channel_closed(uint32_t rank, int errno_value, uint64_t now_ns) {
  if (rank < ranks_.size() && rank != self_ && ranks_[rank].ended.empty()) {
    ranks_[rank].ended = errno_value == 0 ? "its side channel was closed"
                                          : fmt::format("its side channel ended: {}", base::reason_of(errno_value));
    // What a kernel says when a process of its own ends. Anything else may be the network's doing.
    ranks_[rank].has_surely_ended = errno_value == 0 || errno_value == ECONNRESET || errno_value == EPIPE;
    ranks_[rank].ended_reason = Reason::dead;
    // The caller asks for next_deadline_ns() after each report, and so checks at once.
    due_ns_ = now_ns;
  }
}

void Liveness::left(uint32_t rank, uint64_t now_ns) {
  if (rank < ranks_.size() && rank != self_ && ranks_[rank].ended.empty()) {
    ranks_[rank].ended = "it has left the group";
    ranks_[rank].ended_reason = Reason::left;
    ranks_[rank].has_surely_ended = true;
    due_ns_ = now_ns;
  }
}

void Liveness::cable_error(uint32_t cable, const std::string& what, uint64_t now_ns) {
  if (cable < cables_.size()) {
    cables_[cable].error = what;
    due_ns_ = now_ns;
  }
}

void Liveness::cable_mended(uint32_t cable, uint64_t now_ns) {
  if (cable < cables_.size()) {
    cables_[cable].error.clear();
    // heal_ns begins here; until then it stays down.
    cables_[cable].working_since_ns = cables_[cable].mended_ns = now_ns;
  }
}

// The peer's word, and that something was heard of late, do without heal_ns.
bool Liveness::confirm_up(uint32_t cable, uint64_t now_ns) {
  if (cable >= cables_.size()) {
    return false;
  }
  Cable& known = cables_[cable];
  known.is_up = known.is_up || (known.error.empty() && now_ns - known.heard_ns < knobs_.suspect_ns);
  return known.is_up;
}

LivenessChange Liveness::change(Kind kind, uint32_t rank, std::string text) const {
  LivenessChange made;
  made.kind = kind;
  made.rank = rank;
  made.text = std::move(text);
  return made;
}

LivenessChange Liveness::failure(uint32_t rank, Reason reason, std::string text) {
  ranks_[rank].state = State::failed;
  LivenessChange made = change(Kind::rank_failed, rank, std::move(text));
  made.reason = reason;
  made.is_certain = ranks_[rank].has_surely_ended;
  return made;
}

std::string Liveness::cables_to(uint32_t rank, uint64_t now_ns) const {
  std::string words;
  for (uint32_t i = 0; i < cables_.size(); ++i) {
    const Cable& cable = cables_[i];
    if (cable.end.peer == rank) {
      words += fmt::format("; cable {} ({}) silent for {} ms", i, cable.end.device, ms(now_ns - cable.heard_ns));
    }
  }
  return words.empty() ? "; no cable of this rank leads there" : words;
}

uint64_t Liveness::host_ns(const Rank& rank) const { return std::max(rank.host_ns, rank.progress_ns); }

void Liveness::check_rank(uint32_t rank, uint64_t now_ns, std::vector<LivenessChange>& changes) {
  Rank& known = ranks_[rank];
  if (rank == self_ || known.state == State::failed) {
    return;
  }
  // progress() and the pauses that are forgiven never put it behind now_ns.
  const uint64_t silence = now_ns - known.progress_ns;
  const std::string where = cables_to(rank, now_ns);
  // Certain or not, nothing more is to be expected of it: no limit is waited for.
  if (!known.ended.empty()) {
    const char* what = known.ended_reason == Reason::left ? "left" : "is dead";
    changes.push_back(
        failure(rank, known.ended_reason,
                fmt::format("rank {} {}: {}; last heard {} ms ago{}", rank, what, known.ended, ms(silence), where)));
    return;
  }
  if (silence < knobs_.suspect_ns) {
    if (known.state != State::alive) {
      known.state = State::alive;
      changes.push_back(change(Kind::rank_back, rank, fmt::format("rank {} makes progress again", rank)));
    }
    return;
  }
  const uint64_t host_silence = now_ns - host_ns(known);
  // Ordered by what is known: nobody knows of hosts; its host is silent as well; its host answers.
  if (silence >= knobs_.failed_ns && has_lost_hosts_) {
    changes.push_back(failure(rank, Reason::unreachable,
                              fmt::format("rank {} is dead or frozen: nothing from it for {} ms on any path, and since "
                                          "rank 0 has gone nobody knows whether its host answers{}",
                                          rank, ms(silence), where)));
  } else if (silence >= knobs_.failed_ns && knobs_.knows_hosts && host_silence >= knobs_.failed_ns) {
    changes.push_back(failure(rank, Reason::unreachable,
                              fmt::format("rank {} is unreachable: nothing from it or its host for {} ms on any path{}",
                                          rank, ms(silence), where)));
  } else if (silence >= knobs_.frozen_ns) {
    changes.push_back(
        failure(rank, Reason::frozen,
                fmt::format("rank {} is frozen: its process has made no progress for {} ms, the limit is {}{}", rank,
                            ms(silence), ms(knobs_.frozen_ns), where)));
  } else if (silence >= knobs_.failed_ns && known.state != State::frozen) {
    // Not failed yet: a process in a debugger may go on, up to frozen_ns.
    known.state = State::frozen;
    changes.push_back(change(
        Kind::rank_frozen, rank,
        fmt::format("rank {} is frozen: its process has made no progress for {} ms and its host {} "
                    "(stopped, in a debugger, or out of memory?){}",
                    rank, ms(silence), knobs_.knows_hosts ? "answers" : "has not closed the side channel", where)));
    // Suspicion alone has no consequences but words, and so waits after an own pause.
  } else if (known.state == State::alive && now_ns >= unsuspecting_until_ns_) {
    known.state = State::suspect;
    changes.push_back(
        change(Kind::rank_suspect, rank, fmt::format("rank {} has been silent for {} ms{}", rank, ms(silence), where)));
  }
}

void Liveness::check_cable(uint32_t cable, uint64_t now_ns, std::vector<LivenessChange>& changes) {
  Cable& known = cables_[cable];
  const Rank& peer = ranks_[known.end.peer];
  if (peer.state == State::failed) {
    return;
  }
  const uint64_t silence = now_ns - known.heard_ns;
  const auto report = [&](Kind kind, std::string text) {
    LivenessChange made = change(kind, known.end.peer, std::move(text));
    made.cable = cable;
    changes.push_back(std::move(made));
  };
  if (known.is_up) {
    // Of a rank that was silent itself nothing can be told of its cables until it has had time to use them again.
    const uint64_t unexcused = now_ns - std::max(known.heard_ns, peer.alive_since_ns);
    // Of a rank that is suspect nothing can be said of its cables: it may be the rank.
    const bool is_silent = peer.state == State::alive && unexcused >= knobs_.failed_ns;
    if (is_silent || !known.error.empty()) {
      known.is_up = false;
      known.working_since_ns = now_ns;
      report(Kind::cable_down,
             known.error.empty()
                 ? fmt::format(
                       "cable {} ({}) to rank {} is down: silent for {} ms, while the rank is heard on other paths",
                       cable, known.end.device, known.end.peer, ms(silence))
                 : fmt::format("cable {} ({}) to rank {} is down: {}", cable, known.end.device, known.end.peer,
                               known.error));
    }
    return;
  }
  const uint64_t mended_in_vain = now_ns - std::max(known.heard_ns, known.mended_ns);
  if (known.error.empty() && peer.state == State::alive && known.mended_ns > 0 && mended_in_vain >= knobs_.heal_ns) {
    known.mended_ns = now_ns;
    // Once more for the same cable: whoever mends it is to try again.
    report(Kind::cable_down,
           fmt::format("cable {} ({}) to rank {} is still down: silent for {} ms since it was connected anew", cable,
                       known.end.device, known.end.peer, ms(mended_in_vain)));
  }
  // The time of healing begins anew with each gap.
  if (silence >= knobs_.suspect_ns || !known.error.empty()) {
    known.working_since_ns = now_ns;
  } else if (now_ns - known.working_since_ns >= knobs_.heal_ns) {
    known.is_up = true;
    report(Kind::cable_up,
           fmt::format("cable {} ({}) to rank {} is up again", cable, known.end.device, known.end.peer));
  }
}

/// Many silent at once: the network is the likelier cause. Who may go on is for the agreement to say.
void Liveness::check_partition(uint64_t now_ns, std::vector<LivenessChange>& changes) {
  uint64_t fresh = 0;
  uint64_t silent = 0;
  for (const LivenessChange& made : changes) {
    if (made.kind == Kind::rank_failed && made.reason == Reason::unreachable) {
      fresh |= uint64_t{1} << made.rank;
    }
  }
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    // Those of a moment ago count too: a cut is not noticed by all in the same check.
    const bool is_unreachable = ranks_[rank].state == State::failed && ranks_[rank].ended.empty() &&
                                now_ns - host_ns(ranks_[rank]) < knobs_.failed_ns + knobs_.suspect_ns;
    silent |= is_unreachable ? uint64_t{1} << rank : 0;
  }
  silent |= fresh;
  // Told when somebody new belongs to those who are cut off, not at each check.
  if (fresh == 0 || std::popcount(silent) < 2 || (silent & ~cut_off_) == 0) {
    return;
  }
  cut_off_ = silent;
  const auto n_left = ranks_.size() - static_cast<size_t>(std::popcount(failed_ranks()));
  LivenessChange made =
      change(Kind::partition, self_,
             fmt::format("ranks {} fell silent together: is the network cut? rank {} still reaches {} of {} "
                         "ranks, itself included",
                         list_of(silent), self_, n_left, ranks_.size()));
  made.silent = silent;
  changes.push_back(std::move(made));
}

/// Who was not there to listen can't blame the others for silence.
void Liveness::forgive_own_pause(uint64_t now_ns, std::vector<LivenessChange>& changes) {
  // Later than was asked for, not than the last check: nobody has to look more often than that.
  const uint64_t late = now_ns - std::max(checked_ns_, std::min(due_ns_, now_ns));
  if (late < knobs_.suspect_ns) {
    return;
  }
  unsuspecting_until_ns_ = now_ns + knobs_.suspect_ns;
  // Never into the future, where silence would count backwards.
  const auto forgive = [now_ns, late](uint64_t& since) { since = std::min(now_ns, since + late); };
  for (Rank& rank : ranks_) {
    forgive(rank.progress_ns);
    forgive(rank.host_ns);
  }
  for (Cable& cable : cables_) {
    forgive(cable.heard_ns);
  }
  changes.push_back(
      change(Kind::self_paused, self_,
             fmt::format("rank {} itself stood still for {} ms: was it stopped, or is the machine overloaded?", self_,
                         ms(late))));
}

std::vector<LivenessChange> Liveness::check(uint64_t now_ns) {
  std::vector<LivenessChange> changes;
  forgive_own_pause(now_ns, changes);
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    check_rank(rank, now_ns, changes);
  }
  check_partition(now_ns, changes);
  for (uint32_t cable = 0; cable < cables_.size(); ++cable) {
    check_cable(cable, now_ns, changes);
  }
  checked_ns_ = now_ns;
  // Every rank's and cable's next limit; what is heard until then moves it away.
  due_ns_ = now_ns + knobs_.suspect_ns;
  // Limits that have passed have had their effect in this check.
  const auto consider = [this, now_ns](uint64_t at) { due_ns_ = at > now_ns ? std::min(due_ns_, at) : due_ns_; };
  for (const Rank& rank : ranks_) {
    if (rank.state != State::failed && &rank != &ranks_[self_]) {
      consider(rank.progress_ns + knobs_.suspect_ns);
      consider(rank.progress_ns + knobs_.failed_ns);
      consider(host_ns(rank) + knobs_.failed_ns);
      consider(rank.progress_ns + knobs_.frozen_ns);
    }
  }
  for (const Cable& cable : cables_) {
    consider(std::max(cable.heard_ns, ranks_[cable.end.peer].alive_since_ns) + knobs_.failed_ns);
    // 0 lies behind, and so changes nothing.
    consider(cable.is_up ? 0 : cable.working_since_ns + knobs_.heal_ns);
    consider(cable.is_up ? 0 : std::max(cable.heard_ns, cable.mended_ns) + knobs_.heal_ns);
  }
  return changes;
}

uint64_t Liveness::next_deadline_ns() const { return due_ns_; }

Heartbeat Liveness::heartbeat(uint32_t epoch, uint64_t incarnation, uint64_t turn, uint64_t now_ns) {
  beat_ns_ = now_ns;
  has_news_ = false;
  Heartbeat made{
      .rank = self_, .n_ranks = static_cast<uint32_t>(ranks_.size()), .epoch = epoch, .incarnation = incarnation};
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    made.counters[rank] = rank == self_ ? turn : ranks_[rank].counter;
    // At first hand only: see take().
    const bool answers = ranks_[rank].host_seen_ns != 0 && now_ns - ranks_[rank].host_seen_ns < host_window_ns();
    made.hosts |= answers || rank == self_ ? uint64_t{1} << rank : 0;
  }
  return made;
}

uint64_t Liveness::next_heartbeat_ns() const {
  // 5 ms with the usual interval: across a ring of 64 ranks in a third of a second.
  constexpr uint64_t kNewsPerInterval = 20;
  return beat_ns_ + (has_news_ ? knobs_.interval_ns / kNewsPerInterval : knobs_.interval_ns);
}

uint64_t Liveness::failed_ranks() const {
  uint64_t failed = 0;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    failed |= ranks_[rank].state == State::failed ? uint64_t{1} << rank : 0;
  }
  return failed;
}

}  // namespace ringbolt::fabric
