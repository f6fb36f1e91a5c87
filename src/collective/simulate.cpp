#include "collective/simulate.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

#include "collective/contributions.h"
#include "collective/layout.h"

namespace ringbolt::collective {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

/// One direction of the cables of two neighbours.
struct Link {
  double bytes_per_us = 0;
  bool is_busy = false;
  uint64_t bytes = 0;
  double busy_us = 0;
  std::deque<uint32_t> hops;  ///< that wait for their turn
};

/// A lane's way over one link.
struct Hop {
  uint32_t lane = 0;
  uint32_t link = 0;
  uint32_t n_waiting = 0;
  uint32_t n_sent = 0;
};

struct Lane {
  uint32_t sender = kNone;  ///< number of a step
  uint32_t receiver = kNone;
  uint32_t first_hop = 0;
  uint32_t n_hops = 0;
  uint32_t n_arrived = 0;
  uint32_t n_used = 0;
  Contributions::Set set;
};

struct StepState {
  const Step* step = nullptr;
  uint32_t rank = 0;
  uint32_t n_chunks = 1;
  uint32_t n_done = 0;
  uint32_t first_lane = 0;  ///< in lanes_of_steps_: those of its sources, then of its targets
  uint32_t first_waiter = kNone;
  Contributions::Set set;
};

/// A step that waits for another of its rank, and the next that waits for the same.
struct Waiter {
  uint32_t step = 0;
  uint32_t next = kNone;
};

struct Event {
  double time_us = 0;
  uint64_t order = 0;
  enum class Kind : uint8_t { link_free, hop_done, chunk_sent } kind = Kind::link_free;
  uint32_t index = 0;  ///< of the link, the hop, or the lane
  bool operator>(const Event& other) const {
    return time_us != other.time_us ? time_us > other.time_us : order > other.order;
  }
};

uint64_t key_of(uint32_t from, uint32_t to, uint32_t lane) {
  return (static_cast<uint64_t>(from) << 42) | (static_cast<uint64_t>(to) << 21) | lane;
}

class Simulation {
 public:
  Simulation(const Schedule& schedule, const Problem& problem, const Topology& topology)
      : schedule_(schedule), topology_(topology), model_(topology.model()), contributions_(problem) {
    add_links();
    add_steps();
    rank_free_us_.resize(topology.n_ranks());
  }

  tl::expected<Simulated, std::string> run() {
    for (uint32_t step = 0; step < steps_.size(); ++step) {
      ready_.push_back(step);
    }
    work();
    while (!events_.empty() && objection_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_us_ = event.time_us;
      handle(event);
      work();
    }
    return finish();
  }

 private:
  void add_links() {
    links_.resize(topology_.n_links());
    for (uint32_t link = 0; link < links_.size(); ++link) {
      links_[link].bytes_per_us = topology_.rate_of_link(link);
    }
  }

  void add_steps() {
    std::unordered_map<uint64_t, uint32_t> lanes;
    const auto lane_of = [&](uint32_t from, uint32_t to, uint32_t number) {
      const auto [place, is_new] = lanes.try_emplace(key_of(from, to, number), static_cast<uint32_t>(lanes_.size()));
      if (is_new) {
        lanes_.emplace_back();
      }
      return place->second;
    };
    for (uint32_t rank = 0; rank < schedule_.programs.size(); ++rank) {
      const auto first_step = static_cast<uint32_t>(steps_.size());
      for (const Step& step : schedule_.programs[rank].steps) {
        const auto number = static_cast<uint32_t>(steps_.size());
        StepState state;
        state.step = &step;
        state.rank = rank;
        state.n_chunks =
            std::max<uint32_t>(1, static_cast<uint32_t>((step.bytes + step.chunk_bytes - 1) / step.chunk_bytes));
        state.first_lane = static_cast<uint32_t>(lanes_of_steps_.size());
        for (const Source& source : step.sources) {
          if (source.kind == Source::Kind::lane) {
            lanes_of_steps_.push_back(lane_of(source.peer, rank, source.lane));
            lanes_[lanes_of_steps_.back()].receiver = number;
          } else if (source.after != kNoStep) {
            StepState& other = steps_[first_step + source.after];
            waiters_.push_back({number, other.first_waiter});
            other.first_waiter = static_cast<uint32_t>(waiters_.size() - 1);
          }
        }
        for (const Target& target : step.targets) {
          if (target.kind == Target::Kind::lane) {
            lanes_of_steps_.push_back(lane_of(rank, target.peer, target.lane));
            add_hops(number, lanes_of_steps_.back(), rank, target);
          }
        }
        steps_.push_back(std::move(state));
      }
      first_steps_.push_back(first_step);
    }
  }

  void add_hops(uint32_t step, uint32_t lane, uint32_t rank, const Target& target) {
    lanes_[lane].sender = step;
    lanes_[lane].first_hop = static_cast<uint32_t>(hops_.size());
    lanes_[lane].n_hops = static_cast<uint32_t>(target.via.size() + 1);
    uint32_t node = rank;
    for (size_t hop = 0; hop <= target.via.size(); ++hop) {
      const uint32_t next = hop < target.via.size() ? target.via[hop] : target.peer;
      hops_.push_back({lane, topology_.link(node, next), 0, 0});
      node = next;
    }
  }

  /// All steps that may go on do.
  void work() {
    while (!ready_.empty() && objection_.empty()) {
      const uint32_t step = ready_.back();
      ready_.pop_back();
      while (objection_.empty() && can_go(step)) {
        go(step);
      }
    }
  }

  /// What the step that `source` waits for must have done before chunk `chunk`: as check() has it, by position.
  uint32_t n_needed(const StepState& state, const Source& source) const {
    const StepState& other = steps_[first_steps_[state.rank] + source.after];
    if (source.after_all) {
      return other.n_chunks;
    }
    uint64_t first = 0;
    bool is_written = false;
    for (const Target& target : other.step->targets) {
      if (target.kind == Target::Kind::local) {
        first = target.offset;
        is_written = true;
      }
    }
    for (const Source& read : other.step->sources) {
      if (!is_written && read.kind == Source::Kind::local) {
        first = read.offset;
      }
    }
    const uint64_t start = source.offset + static_cast<uint64_t>(state.n_done) * state.step->chunk_bytes;
    const uint64_t end = std::min(std::min(start + state.step->chunk_bytes, source.offset + state.step->bytes),
                                  first + other.step->bytes);
    return end <= std::max(start, first) ? 0 : static_cast<uint32_t>((end - 1 - first) / other.step->chunk_bytes) + 1;
  }

  bool can_go(uint32_t number) const {
    const StepState& state = steps_[number];
    if (state.n_done == state.n_chunks) {
      return false;
    }
    uint32_t place = state.first_lane;
    for (const Source& source : state.step->sources) {
      if (source.kind == Source::Kind::lane) {
        const Lane& lane = lanes_[lanes_of_steps_[place++]];
        if (lane.n_arrived == state.n_done) {
          return false;
        }
      } else if (source.after != kNoStep &&
                 steps_[first_steps_[state.rank] + source.after].n_done < n_needed(state, source)) {
        return false;
      }
    }
    for (const Target& target : state.step->targets) {
      if (target.kind == Target::Kind::lane &&
          state.n_done - lanes_[lanes_of_steps_[place++]].n_used >= kChunksPerLane) {
        return false;
      }
    }
    return true;
  }

  void go(uint32_t number) {
    StepState& state = steps_[number];
    if (state.n_done == 0) {
      add_contributions(state);
    }
    double done_us = now_us_;
    if (model_.chunk_us > 0) {
      double& free_us = rank_free_us_[state.rank];
      done_us = free_us = std::max(free_us, now_us_) + model_.chunk_us;
    }
    last_us_ = std::max(last_us_, done_us);
    uint32_t place = state.first_lane;
    for (const Source& source : state.step->sources) {
      if (source.kind == Source::Kind::lane) {
        Lane& lane = lanes_[lanes_of_steps_[place++]];
        if (++lane.n_used < steps_[lane.sender].n_chunks) {
          ready_.push_back(lane.sender);
        }
      }
    }
    for (const Target& target : state.step->targets) {
      if (target.kind == Target::Kind::lane) {
        const uint32_t lane = lanes_of_steps_[place++];
        if (done_us > now_us_) {
          add_event(done_us, Event::Kind::chunk_sent, lane);
        } else {
          queue(lanes_[lane].first_hop);
        }
      }
    }
    ++state.n_done;
    for (uint32_t waiter = state.first_waiter; waiter != kNone; waiter = waiters_[waiter].next) {
      ready_.push_back(waiters_[waiter].step);
    }
  }

  void add_contributions(StepState& state) {
    Contributions::Set set;
    if (state.step->bytes == 0) {  // nothing is added up, and nothing is waited for within a rank
      set = contributions_.of_rank(state.rank);
    }
    uint32_t place = state.first_lane;
    for (const Source& source : state.step->sources) {
      if (state.step->bytes == 0) {
        break;
      }
      Contributions::Set more;
      if (source.kind == Source::Kind::lane) {
        more = std::move(lanes_[lanes_of_steps_[place++]].set);
      } else if (source.buffer == Buffer::input) {
        more = contributions_.of_rank(state.rank);
      } else if (source.after != kNoStep) {
        more = steps_[first_steps_[state.rank] + source.after].set;
      }
      set = !more ? nullptr : !set ? more : contributions_.sum_of(set, more);
      if (!set) {
        objection_ = fmt::format("rank {}: a step adds up a rank twice, or what is not there", state.rank);
        return;
      }
    }
    place = state.first_lane +
            static_cast<uint32_t>(std::ranges::count(state.step->sources, Source::Kind::lane, &Source::kind));
    for (const Target& target : state.step->targets) {
      if (target.kind == Target::Kind::lane) {
        lanes_[lanes_of_steps_[place++]].set = set;
      } else if (target.buffer == Buffer::output) {
        contributions_.note_output(state.rank, state.step->bytes, set);
      }
    }
    if (state.first_waiter != kNone) {
      state.set = std::move(set);
    }
  }

  void add_event(double time_us, Event::Kind kind, uint32_t index) {
    events_.push({time_us, n_events_++, kind, index});
  }

  /// A chunk waits for the link.
  void queue(uint32_t index) {
    Hop& hop = hops_[index];
    Link& link = links_[hop.link];
    if (hop.n_waiting++ == 0) {
      link.hops.push_back(index);
    }
    if (!link.is_busy) {
      send(hop.link);
    }
  }

  void send(uint32_t number) {
    Link& link = links_[number];
    link.is_busy = !link.hops.empty();
    if (!link.is_busy) {
      return;
    }
    const uint32_t index = link.hops.front();
    link.hops.pop_front();
    Hop& hop = hops_[index];
    const Step& step = *steps_[lanes_[hop.lane].sender].step;
    const uint64_t start = static_cast<uint64_t>(hop.n_sent++) * step.chunk_bytes;
    const uint64_t bytes = std::min<uint64_t>(step.chunk_bytes, step.bytes - start);
    if (--hop.n_waiting > 0) {
      link.hops.push_back(index);
    }
    const double busy_us = static_cast<double>(bytes) / link.bytes_per_us;
    link.bytes += bytes;
    link.busy_us += busy_us;
    ++n_messages_;
    add_event(now_us_ + busy_us, Event::Kind::link_free, number);
    add_event(now_us_ + busy_us + model_.latency_us, Event::Kind::hop_done, index);
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::link_free:
        send(event.index);
        break;
      case Event::Kind::chunk_sent:
        queue(lanes_[event.index].first_hop);
        break;
      case Event::Kind::hop_done: {
        Lane& lane = lanes_[hops_[event.index].lane];
        if (event.index + 1 < lane.first_hop + lane.n_hops) {
          queue(event.index + 1);
        } else {
          ++lane.n_arrived;
          ready_.push_back(lane.receiver);
        }
        break;
      }
    }
  }

  tl::expected<Simulated, std::string> finish() const {
    if (!objection_.empty()) {
      return tl::unexpected(objection_);
    }
    for (const StepState& state : steps_) {
      if (state.n_done < state.n_chunks) {
        return tl::unexpected(fmt::format("rank {}: {} of {} chunks of a step are done, and it waits for ever",
                                          state.rank, state.n_done, state.n_chunks));
      }
    }
    if (std::string objection = contributions_.objection(); !objection.empty()) {
      return tl::unexpected(std::move(objection));
    }
    Simulated result{std::max(now_us_, last_us_), n_messages_, 0, 0};
    for (const Link& link : links_) {
      result.most_bytes = std::max(result.most_bytes, link.bytes);
      result.busiest_us = std::max(result.busiest_us, link.busy_us);
    }
    return result;
  }

  const Schedule& schedule_;
  const Topology& topology_;
  const CostModel& model_;
  Contributions contributions_;
  std::vector<Link> links_;
  std::vector<Hop> hops_;
  std::vector<Lane> lanes_;
  std::vector<StepState> steps_;
  std::vector<Waiter> waiters_;
  std::vector<uint32_t> first_steps_;  // of every rank
  std::vector<uint32_t> lanes_of_steps_;
  std::vector<double> rank_free_us_;
  std::vector<uint32_t> ready_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_us_ = 0;
  double last_us_ = 0;
  uint64_t n_events_ = 0;
  uint64_t n_messages_ = 0;
  std::string objection_;
};

}  // namespace

tl::expected<Simulated, std::string> simulate(const Schedule& schedule, const Problem& problem,
                                              const Topology& topology) {
  return Simulation(schedule, problem, topology).run();
}

}  // namespace ringbolt::collective
