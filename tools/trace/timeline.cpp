#include "trace/timeline.h"

#include <algorithm>
#include <deque>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/calling_place.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/process_start.h"
#include "cluster/read_file.h"
#include "trace/counter.h"
#include "trace/words.h"

namespace ringbolt::tools::trace_command {
namespace {

using trace::Kind;

constexpr size_t kMostFileBytes = size_t{4} << 30U;
constexpr uint8_t kReceived = 0x80;  // IBV_WC_RECV

/// Ticks to nanoseconds, for all processes of one start of one host: each knows some moments by both clocks.
class HostClock {
 public:
  void add(const trace::Moment& moment) {
    if (moment.ns == 0) {
      return;
    }
    first_ = first_.ns == 0 || moment.ticks < first_.ticks ? moment : first_;
    last_ = moment.ticks > last_.ticks ? moment : last_;
  }
  uint64_t ns(uint64_t ticks) const {
    const double span = static_cast<double>(last_.ticks - first_.ticks);
    const double rate = last_.ticks <= first_.ticks ? 1 : static_cast<double>(last_.ns - first_.ns) / span;
    const auto since = static_cast<double>(static_cast<int64_t>(ticks - first_.ticks));
    return first_.ns + static_cast<uint64_t>(static_cast<int64_t>(since * rate));
  }

 private:
  trace::Moment first_;
  trace::Moment last_;
};

/// By starts of hosts.
class HostClocks {
 public:
  explicit HostClocks(const std::vector<Recording>& all) {
    for (const Recording& one : all) {
      for (const trace::Moment& moment : one.file.moments) {
        clocks_[one.file.boot].add(moment);
      }
    }
    // Here and now: the further apart two moments are, the better.
    if (const auto own = clocks_.find(trace::boot_number()); own != clocks_.end()) {
      own->second.add({trace::read_counter(), base::now_ns()});
    }
  }
  uint64_t ns(const trace::TraceFile& file, uint64_t ticks) const {
    return file.has_counter ? clocks_.at(file.boot).ns(ticks) : ticks;
  }

 private:
  std::map<uint64_t, HostClock> clocks_;
};

bool are_ends(const Side& a, const Side& b) {
  return a.pair.peer_qpn == b.pair.qpn && b.pair.peer_qpn == a.pair.qpn && a.pair.peer_gid == b.pair.gid &&
         b.pair.peer_gid == a.pair.gid;
}

/// Requests of a queue that were not seen to end yet.
class Open {
 public:
  void post(Side& side, size_t at, bool is_send) {
    waiting_.push_back(side.spans.size());
    side.spans.push_back({at, {}, is_send, false});
  }
  /// The first that has this number; of sends those before it are over as well which ask for no completion.
  void poll(Side& side, size_t at, bool is_send, bool signals_all) {
    const trace::Record& wanted = side.events[at].record;
    const auto has_it = [&](size_t span) {
      const trace::Record& post = side.events[side.spans[span].posted].record;
      const bool tells = !is_send || signals_all || (post.flags & trace::kSignaled) != 0 || wanted.status != 0;
      return post.wr_id == wanted.wr_id && tells;
    };
    const auto found = std::ranges::find_if(waiting_, has_it);
    if (found == waiting_.end()) {
      return;  // posted before the oldest event that is left
    }
    std::deque<size_t> kept;
    for (auto one = waiting_.begin(); one != found; ++one) {
      const trace::Record& post = side.events[side.spans[*one].posted].record;
      if (is_send && !signals_all && (post.flags & trace::kSignaled) == 0) {
        side.spans[*one].polled = at;
      } else {
        kept.push_back(*one);
      }
    }
    side.spans[*found].polled = at;
    waiting_.erase(waiting_.begin(), found + 1);
    waiting_.insert(waiting_.begin(), kept.begin(), kept.end());
  }
  void drop(Side& side) {
    for (const size_t one : waiting_) {
      side.spans[one].is_dropped = true;
    }
    waiting_.clear();
  }

 private:
  std::deque<size_t> waiting_;
};

void find_spans(Side& side) {
  Open sends;
  Open receives;
  const bool is_shared = side.pair.shared_queue != 0;
  for (size_t i = 0; i < side.events.size(); ++i) {
    const trace::Record& one = side.events[i].record;
    const bool is_receive = (one.code & kReceived) != 0;
    if (one.kind == Kind::post_send) {
      sends.post(side, i, true);
    } else if (one.kind == Kind::post_receive || one.kind == Kind::post_shared) {
      receives.post(side, i, false);
    } else if (one.kind == Kind::completion_polled) {
      (is_receive ? receives : sends).poll(side, i, !is_receive, side.pair.signals_all);
    } else if (one.kind == Kind::state && one.code == 0) {
      sends.drop(side);
      receives.drop(side);
    }
  }
  if (is_shared) {  // what others have taken from the queue is not known here
    std::erase_if(side.spans, [](const Span& one) { return !one.is_send && !one.polled; });
  }
}

void find_arrows(Timeline& timeline, size_t from) {
  const Side& side = timeline.sides[from];
  if (!side.peer) {
    return;
  }
  const Side& other = timeline.sides[*side.peer];
  std::map<uint32_t, std::vector<size_t>> received;  // by number
  for (size_t i = 0; i < other.events.size(); ++i) {
    const trace::Record& one = other.events[i].record;
    if (one.kind == Kind::completion_polled && (one.code & kReceived) != 0 && one.number != 0) {
      received[one.number].push_back(i);
    }
  }
  for (size_t i = 0; i < side.events.size(); ++i) {
    const trace::Record& one = side.events[i].record;
    if (one.kind != Kind::post_send || one.number == 0) {
      continue;
    }
    const auto found = received.find(one.number);
    if (found == received.end()) {
      continue;
    }
    // A queue pair that was reset counts anew.
    const auto at =
        std::ranges::find_if(found->second, [&](size_t place) { return other.events[place].ns >= side.events[i].ns; });
    if (at != found->second.end()) {
      timeline.arrows.push_back({from, *side.peer, i, *at});
    }
  }
}

void find_peers(std::vector<Side>& sides) {
  std::multimap<std::pair<uint32_t, uint32_t>, size_t> by_numbers;
  for (size_t i = 0; i < sides.size(); ++i) {
    by_numbers.emplace(std::pair(sides[i].pair.qpn, sides[i].pair.peer_qpn), i);
  }
  for (size_t i = 0; i < sides.size(); ++i) {
    if (sides[i].pair.peer_qpn == 0) {
      continue;
    }
    const auto [begin, end] = by_numbers.equal_range({sides[i].pair.peer_qpn, sides[i].pair.qpn});
    for (auto one = begin; one != end; ++one) {
      if (are_ends(sides[i], sides[one->second])) {
        sides[i].peer = one->second;
      }
    }
  }
}

Side side_of(const Recording& recording, size_t index, const trace::QueuePair& pair, const HostClocks& clocks) {
  Side side{index, pair};
  for (const trace::Record& one : recording.file.events) {
    if (trace::concerns(one, pair.qpn, &pair)) {
      side.events.push_back({clocks.ns(recording.file, one.ticks), one});
    }
  }
  return side;
}

}  // namespace

std::string Recording::label() const {
  const std::string who = fmt::format("{} ({})", file.program, file.pid);
  return file.node.empty() ? who : fmt::format("node {} {}", file.node, who);
}

std::vector<const Span*> Side::under_way(bool sends) const {
  std::vector<const Span*> found;
  for (const Span& one : spans) {
    if (one.is_send == sends && !one.polled && !one.is_dropped) {
      found.push_back(&one);
    }
  }
  return found;
}

std::vector<Recording> read_recordings(const std::vector<std::string>& paths, bool is_lenient) {
  std::vector<Recording> all;
  for (const std::string& path : paths) {
    try {
      const std::string bytes = cluster::read_file(path, kMostFileBytes);
      Recording one{trace::parse_trace(std::as_bytes(std::span(bytes)), path), path};
      one.is_running = base::is_same_process(static_cast<pid_t>(one.file.pid), one.file.process_start) &&
                       one.file.boot == trace::boot_number() && !one.file.has_ended;
      all.push_back(std::move(one));
    } catch (const base::Error&) {
      if (!is_lenient) {
        throw;
      }
    }
  }
  std::ranges::sort(all, [](const Recording& a, const Recording& b) {
    return std::tie(a.file.node, a.file.pid) < std::tie(b.file.node, b.file.pid);
  });
  return all;
}

Timeline make_timeline(std::vector<Recording> recordings, const Selection& selection) {
  const HostClocks clocks(recordings);
  Timeline timeline;
  timeline.recordings = std::move(recordings);
  for (size_t i = 0; i < timeline.recordings.size(); ++i) {
    for (const trace::QueuePair& pair : timeline.recordings[i].file.queue_pairs) {
      if (Side side = side_of(timeline.recordings[i], i, pair, clocks); !side.events.empty()) {
        timeline.sides.push_back(std::move(side));
      }
    }
  }
  find_peers(timeline.sides);
  std::vector<bool> is_wanted;
  for (const Side& side : timeline.sides) {
    const uint32_t pid = timeline.recordings[side.recording].file.pid;
    is_wanted.push_back((!selection.pid || *selection.pid == pid) &&
                        (!selection.queue_pair || *selection.queue_pair == side.pair.qpn));
  }
  for (size_t i = 0; i < timeline.sides.size(); ++i) {
    const std::optional<size_t> peer = timeline.sides[i].peer;
    is_wanted[i] = is_wanted[i] || (peer && is_wanted[*peer] && timeline.sides[*peer].peer == i);
  }
  std::vector<Side> wanted;
  for (size_t i = 0; i < timeline.sides.size(); ++i) {
    if (is_wanted[i]) {
      wanted.push_back(std::move(timeline.sides[i]));
      wanted.back().peer.reset();
    }
  }
  timeline.sides = std::move(wanted);
  find_peers(timeline.sides);
  timeline.begin_ns = UINT64_MAX;
  for (Side& side : timeline.sides) {
    find_spans(side);
    timeline.begin_ns = std::min(timeline.begin_ns, side.events.front().ns);
    timeline.end_ns = std::max(timeline.end_ns, side.events.back().ns);
  }
  if (selection.since_s) {
    const auto span_ns = static_cast<uint64_t>(*selection.since_s * 1e9);
    timeline.begin_ns = std::max(timeline.begin_ns, timeline.end_ns - std::min(timeline.end_ns, span_ns));
  }
  for (size_t i = 0; i < timeline.sides.size(); ++i) {
    find_arrows(timeline, i);
  }
  return timeline;
}

std::string place_text(const Recording& recording, uint64_t address) {
  const auto found = recording.file.places.find(address);
  return found == recording.file.places.end() ? "" : base::place_in(found->second.file, found->second.offset - 1);
}

std::string told_text(const Recording& recording, const trace::Record& record) {
  const auto found = std::ranges::find_if(recording.file.words, [&](const trace::Words& one) {
    return record.kind == Kind::words && one.number == record.number && one.ticks == record.ticks;
  });
  return found == recording.file.words.end() ? "" : found->text;
}

std::vector<Conversation> conversations_of(const Timeline& timeline) {
  std::vector<Conversation> all;
  for (size_t i = 0; i < timeline.sides.size(); ++i) {
    const std::optional<size_t> peer = timeline.sides[i].peer;
    if (!peer || *peer >= i) {
      all.push_back({i, peer == i ? std::nullopt : peer});
    } else if (timeline.sides[*peer].peer != i) {  // that one has a newer peer
      all.push_back({i, std::nullopt});
    }
  }
  return all;
}

std::vector<Step> steps_of(const Timeline& timeline, const Conversation& of, size_t most, uint64_t until_ns) {
  std::vector<Step> steps;
  const auto add = [&](size_t side) {
    for (size_t i = 0; i < timeline.sides[side].events.size(); ++i) {
      const uint64_t ns = timeline.sides[side].events[i].ns;
      if (ns >= timeline.begin_ns && ns <= until_ns) {
        steps.push_back({side, i});
      }
    }
  };
  add(of.left);
  if (of.right) {
    add(*of.right);
  }
  std::ranges::stable_sort(steps, {}, [&](const Step& one) { return timeline.sides[one.side].events[one.event].ns; });
  if (most != 0 && steps.size() > most) {
    steps.erase(steps.begin(), steps.end() - static_cast<ptrdiff_t>(most));
  }
  return steps;
}

double since_us(const Timeline& timeline, uint64_t ns) {
  return static_cast<double>(static_cast<int64_t>(ns - timeline.begin_ns)) / 1e3;
}

std::string type_name(uint8_t type) {
  switch (type) {  // ibv_qp_type
    case 2:
      return "RC";
    case 3:
      return "UC";
    case 4:
      return "UD";
    default:
      return fmt::format("type {}", type);
  }
}

}  // namespace ringbolt::tools::trace_command
