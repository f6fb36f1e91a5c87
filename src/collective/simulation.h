#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "collective/contributions.h"
#include "collective/simulate.h"
#include "collective/simulation_clock.h"

namespace ringbolt::collective {

/// One run of simulate(): what each step, transfer and link has done so far. Used once.
/// `schedule`, `problem` and `topology` must outlive it. Not thread-safe.
class Simulation {
 public:
  Simulation(const Schedule& schedule, const Problem& problem, const Topology& topology);
  tl::expected<Simulated, std::string> run();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// One direction of the cables of two neighbours.
  struct Link {
    double bytes_per_us = 0;
    bool is_busy = false;
    uint32_t sending = 0;  ///< the hop whose chunk is on the cable
    uint64_t bytes = 0;
    double busy_us = 0;
    std::deque<uint32_t> hops;  ///< that wait for their turn
  };

  /// A transfer's way over one link. Holds all that sending a chunk takes: with a million transfers, what costs is to
  /// look elsewhere.
  struct Hop {
    uint64_t bytes = 0;  ///< of the transfer
    uint32_t chunk_bytes = 0;
    uint32_t transfer = 0;
    uint32_t link = 0;
    uint32_t n_after = 0;  ///< hops of the transfer that follow
    uint32_t n_waiting = 0;
    uint32_t n_sent = 0;
  };

  struct Transfer {
    uint32_t sender = kNone;  ///< number of a step
    uint32_t receiver = kNone;
    uint32_t first_hop = 0;
    uint32_t n_arrived = 0;
    uint32_t n_used = 0;
    Contributions::Set set;
  };

  struct StepState {
    const Step* step = nullptr;
    uint32_t rank = 0;
    uint32_t n_chunks = 1;
    uint32_t n_done = 0;
    uint32_t first_transfer = 0;  ///< in transfers_of_steps_: those of its sources, then of its targets
    uint32_t first_waiter = kNone;
    Contributions::Set set;
  };

  /// A step that waits for another of its rank, and the next that waits for the same.
  struct Waiter {
    uint32_t step = 0;
    uint32_t next = kNone;
  };

  // simulation_steps.cpp: what there is
  class TransferNumbers;
  void add_links();
  void add_steps();
  void add_step(const Step& step, uint32_t rank, uint32_t first_step, TransferNumbers& numbers);
  void add_hops(const Step& step, uint32_t transfer, uint32_t rank, const Target& target);

  // simulate.cpp: what happens
  void work();
  uint32_t n_needed(const StepState& state, const Source& source) const;
  bool can_go(uint32_t number) const;
  void go(uint32_t number);
  void add_contributions(StepState& state);
  void queue(uint32_t index);
  void send(uint32_t number);
  void handle(const SimulationClock::Event& event);
  void arrive(uint32_t hop);
  tl::expected<Simulated, std::string> finish() const;

  const Schedule& schedule_;
  const Topology& topology_;
  const CostModel& model_;
  Contributions contributions_;
  std::vector<Link> links_;
  std::vector<Hop> hops_;
  std::vector<Transfer> transfers_;
  std::vector<StepState> steps_;
  std::vector<Waiter> waiters_;
  std::vector<uint32_t> first_steps_;  // of every rank
  std::vector<uint32_t> transfers_of_steps_;
  std::vector<double> rank_free_us_;
  std::vector<uint32_t> ready_;
  SimulationClock clock_;
  double last_us_ = 0;
  uint64_t n_messages_ = 0;
  std::string objection_;
};

}  // namespace ringbolt::collective
