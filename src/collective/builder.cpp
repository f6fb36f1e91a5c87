#include "collective/builder.h"

#include <algorithm>
#include <initializer_list>

#include "base/assert.h"
#include "collective/assignment.h"
#include "collective/tree_schedules.h"

namespace ringbolt::collective {
namespace {

constexpr uint32_t mask_of(std::initializer_list<Operation> operations) {
  uint32_t mask = 0;
  for (const Operation operation : operations) {
    mask |= 1u << static_cast<uint32_t>(operation);
  }
  return mask;
}

struct Builder {
  const char* name;
  // numbered as Operation
  uint32_t operations;                                                     ///< a bit for each
  enum class Order : uint8_t { none, of_partials, of_inputs } rank_order;  ///< by what is passed on
  bool (*fits)(const Problem&, const Topology&);
  Program (*build_for)(const Assignment&);
};

bool always(const Problem&, const Topology&) { return true; }
bool several_ranks(const Problem& problem, const Topology&) { return problem.n_ranks >= 2; }
bool three_ranks(const Problem& problem, const Topology&) { return problem.n_ranks >= 3; }
bool has_ring(const Problem&, const Topology& topology) { return topology.ring().has_value(); }
bool has_choice_of_paths(const Problem&, const Topology& topology) { return topology.has_choice_of_paths(); }
bool has_relays(const Problem&, const Topology& topology) { return topology.diameter() > 1; }

constexpr uint32_t kAllReduce = mask_of({Operation::all_reduce});
constexpr uint32_t kByShards = mask_of({Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather});
constexpr uint32_t kByTrees = kByShards | mask_of({Operation::broadcast, Operation::reduce});
constexpr uint32_t kAllButBarrier = kByTrees | mask_of({Operation::gather, Operation::scatter, Operation::all_to_all});

using Order = Builder::Order;

constexpr Builder kBuilders[] = {
    {"exchange", kAllReduce, Order::of_inputs, several_ranks, build_exchange},
    {"direct", kAllButBarrier, Order::of_inputs, always, build_direct},
    {"direct_tree", kAllReduce, Order::of_inputs, has_relays, build_direct_tree},
    {"chain", mask_of({Operation::all_reduce, Operation::reduce_scatter, Operation::reduce}), Order::of_partials,
     several_ranks, build_chain},
    {"doubling", kAllReduce, Order::none, several_ranks, build_doubling},
    {"halving", kAllReduce, Order::none, several_ranks, build_halving},
    {"tree", kByTrees | mask_of({Operation::barrier}), Order::none, several_ranks, build_tree},
    {"double_tree", kAllReduce, Order::none, three_ranks, build_double_tree},
    {"ring", kByShards, Order::none, has_ring, build_ring},
    {"two_way_ring", kByShards, Order::none, has_ring, build_two_way_ring},
    {"trees", kByTrees, Order::none, fits_trees, build_trees},
    {"split", kByShards | mask_of({Operation::all_to_all}), Order::of_inputs, has_choice_of_paths, build_split},
    {"path_trees", mask_of({Operation::gather, Operation::scatter}), Order::of_inputs, has_choice_of_paths,
     build_path_trees},
    {"dissemination", mask_of({Operation::barrier}), Order::of_inputs, always, build_dissemination},
};

const Builder& builder_of(std::string_view name) {
  const auto* builder = std::ranges::find(kBuilders, name, &Builder::name);
  RINGBOLT_ASSERT(builder != std::end(kBuilders));
  return *builder;
}

/// Inputs that are passed on as they are can be added up in any place in the order of ranks; partial sums only where
/// they keep all their bits on the way.
bool keeps_order(const Builder& builder, const Problem& problem) {
  return !reduces(problem.operation) || builder.rank_order == Order::of_inputs ||
         (builder.rank_order == Order::of_partials && !problem.rounds_partials);
}

bool fits(const Builder& builder, const Problem& problem, const Topology& topology) {
  return (builder.operations & mask_of({problem.operation})) != 0 &&
         (!problem.needs_rank_order || keeps_order(builder, problem)) && builder.fits(problem, topology);
}

const Builder& fitting_builder(std::string_view name, const Problem& problem, const Topology& topology) {
  const Builder& builder = builder_of(name);
  RINGBOLT_ASSERT(problem.n_ranks == topology.n_ranks());
  RINGBOLT_ASSERT(fits(builder, problem, topology));
  return builder;
}

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Builder& builder : kBuilders) {
    names.emplace_back(builder.name);
  }
  return names;
}

std::vector<std::string> candidates(const Problem& problem, const Topology& topology) {
  std::vector<std::string> names;
  for (const Builder& builder : kBuilders) {
    if (fits(builder, problem, topology)) {
      names.emplace_back(builder.name);
    }
  }
  return names;
}

bool is_rank_ordered(std::string_view name, const Problem& problem) { return keeps_order(builder_of(name), problem); }

Program build_for(std::string_view name, const Problem& problem, const Topology& topology, const Limits& limits,
                  uint32_t rank) {
  RINGBOLT_ASSERT(rank < problem.n_ranks);
  CommonParts common;
  return fitting_builder(name, problem, topology).build_for({problem, topology, limits, rank, common});
}

Schedule build(std::string_view name, const Problem& problem, const Topology& topology, const Limits& limits) {
  const Builder& builder = fitting_builder(name, problem, topology);
  Schedule schedule{std::string(name), is_rank_ordered(name, problem), {}};
  CommonParts common;
  for (uint32_t rank = 0; rank < problem.n_ranks; ++rank) {
    schedule.programs.push_back(builder.build_for({problem, topology, limits, rank, common}));
  }
  return schedule;
}

}  // namespace ringbolt::collective
