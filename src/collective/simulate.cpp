#include "collective/simulate.h"

#include <algorithm>

#include <fmt/format.h>

#include "collective/layout.h"
#include "collective/simulation.h"

namespace ringbolt::collective {

tl::expected<Simulated, std::string> Simulation::run() {
  for (uint32_t step = 0; step < steps_.size(); ++step) {
    ready_.push_back(step);
  }
  work();
  while (!clock_.is_empty() && objection_.empty()) {
    handle(clock_.next());
    work();
  }
  return finish();
}

/// All steps that may go on do.
void Simulation::work() {
  while (!ready_.empty() && objection_.empty()) {
    const uint32_t step = ready_.back();
    ready_.pop_back();
    while (objection_.empty() && can_go(step)) {
      go(step);
    }
  }
}

/// What the step that `source` waits for must have done before chunk `chunk`: as check() has it, by position.
uint32_t Simulation::n_needed(const StepState& state, const Source& source) const {
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
  const uint64_t end =
      std::min(std::min(start + state.step->chunk_bytes, source.offset + state.step->bytes), first + other.step->bytes);
  return end <= std::max(start, first) ? 0 : static_cast<uint32_t>((end - 1 - first) / other.step->chunk_bytes) + 1;
}

bool Simulation::can_go(uint32_t number) const {
  const StepState& state = steps_[number];
  if (state.n_done == state.n_chunks) {
    return false;
  }
  uint32_t place = state.first_transfer;
  for (const Source& source : state.step->sources) {
    if (source.kind == Source::Kind::transfer) {
      const Transfer& transfer = transfers_[transfers_of_steps_[place++]];
      if (transfer.n_arrived == state.n_done) {
        return false;
      }
    } else if (source.after != kNoStep &&
               steps_[first_steps_[state.rank] + source.after].n_done < n_needed(state, source)) {
      return false;
    }
  }
  for (const Target& target : state.step->targets) {
    if (target.kind == Target::Kind::transfer &&
        state.n_done - transfers_[transfers_of_steps_[place++]].n_used >= kChunksPerTransfer) {
      return false;
    }
  }
  return true;
}

void Simulation::go(uint32_t number) {
  StepState& state = steps_[number];
  if (state.n_done == 0) {
    add_contributions(state);
  }
  double done_us = clock_.now_us();
  if (model_.chunk_us > 0) {
    double& free_us = rank_free_us_[state.rank];
    done_us = free_us = std::max(free_us, clock_.now_us()) + model_.chunk_us;
  }
  last_us_ = std::max(last_us_, done_us);
  uint32_t place = state.first_transfer;
  for (const Source& source : state.step->sources) {
    if (source.kind == Source::Kind::transfer) {
      Transfer& transfer = transfers_[transfers_of_steps_[place++]];
      if (++transfer.n_used < steps_[transfer.sender].n_chunks) {
        ready_.push_back(transfer.sender);
      }
    }
  }
  for (const Target& target : state.step->targets) {
    if (target.kind == Target::Kind::transfer) {
      const uint32_t transfer = transfers_of_steps_[place++];
      if (done_us > clock_.now_us()) {
        clock_.add_chunk(done_us, transfer);
      } else {
        queue(transfers_[transfer].first_hop);
      }
    }
  }
  ++state.n_done;
  for (uint32_t waiter = state.first_waiter; waiter != kNone; waiter = waiters_[waiter].next) {
    ready_.push_back(waiters_[waiter].step);
  }
}

void Simulation::add_contributions(StepState& state) {
  Contributions::Set set;
  if (state.step->bytes == 0) {  // nothing is added up, and nothing is waited for within a rank
    set = contributions_.of_rank(state.rank);
  }
  uint32_t place = state.first_transfer;
  for (const Source& source : state.step->sources) {
    if (state.step->bytes == 0) {
      break;
    }
    Contributions::Set more;
    if (source.kind == Source::Kind::transfer) {
      more = std::move(transfers_[transfers_of_steps_[place++]].set);
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
  place = state.first_transfer +
          static_cast<uint32_t>(std::ranges::count(state.step->sources, Source::Kind::transfer, &Source::kind));
  for (const Target& target : state.step->targets) {
    if (target.kind == Target::Kind::transfer) {
      transfers_[transfers_of_steps_[place++]].set = set;
    } else if (target.buffer == Buffer::output) {
      contributions_.note_output(state.rank, state.step->bytes, set);
    }
  }
  if (state.first_waiter != kNone) {
    state.set = std::move(set);
  }
}

/// A chunk waits for the link.
void Simulation::queue(uint32_t index) {
  Hop& hop = hops_[index];
  Link& link = links_[hop.link];
  if (hop.n_waiting++ == 0) {
    link.hops.push_back(index);
  }
  if (!link.is_busy) {
    send(hop.link);
  }
}

void Simulation::send(uint32_t number) {
  Link& link = links_[number];
  link.is_busy = !link.hops.empty();
  if (!link.is_busy) {
    return;
  }
  const uint32_t index = link.hops.front();
  link.hops.pop_front();
  Hop& hop = hops_[index];
  const uint64_t start = static_cast<uint64_t>(hop.n_sent++) * hop.chunk_bytes;
  const uint64_t bytes = std::min<uint64_t>(hop.chunk_bytes, hop.bytes - start);
  if (--hop.n_waiting > 0) {
    link.hops.push_back(index);
  }
  const double busy_us = static_cast<double>(bytes) / link.bytes_per_us;
  link.bytes += bytes;
  link.busy_us += busy_us;
  ++n_messages_;
  if (!link.hops.empty()) {
    __builtin_prefetch(&hops_[link.hops.front()]);  // by its turn it is there
  }
  link.sending = index;
  clock_.add_link(busy_us, number);
}

void Simulation::handle(const SimulationClock::Event& event) {
  using Kind = SimulationClock::Event::Kind;
  switch (event.kind) {
    case Kind::link_free:
      clock_.arrive_after(event, links_[event.index].sending);
      send(event.index);
      break;
    case Kind::chunk_sent:
      queue(transfers_[event.index].first_hop);
      break;
    case Kind::arrival:
      arrive(event.index);
      break;
  }
}

void Simulation::arrive(uint32_t hop) {
  if (hops_[hop].n_after > 0) {
    queue(hop + 1);
  } else {
    Transfer& transfer = transfers_[hops_[hop].transfer];
    ++transfer.n_arrived;
    ready_.push_back(transfer.receiver);
  }
}

tl::expected<Simulated, std::string> Simulation::finish() const {
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
  Simulated result{std::max(clock_.now_us(), last_us_), n_messages_, 0, 0};
  for (const Link& link : links_) {
    result.most_bytes = std::max(result.most_bytes, link.bytes);
    result.busiest_us = std::max(result.busiest_us, link.busy_us);
  }
  return result;
}

tl::expected<Simulated, std::string> simulate(const Schedule& schedule, const Problem& problem,
                                              const Topology& topology) {
  return Simulation(schedule, problem, topology).run();
}

}  // namespace ringbolt::collective
