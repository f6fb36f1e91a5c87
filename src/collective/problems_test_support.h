#pragma once

#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "collective/layout.h"
#include "collective/problem.h"
#include "fabric/builders.h"
#include "fabric/golden_graphs_test_support.h"

// Of tests alone: problems and the graphs on which they are solved.

namespace ringbolt::collective {

inline constexpr Operation kOperations[] = {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                            Operation::broadcast,  Operation::reduce,         Operation::gather,
                                            Operation::scatter,    Operation::all_to_all,     Operation::barrier};

/// How test programs name it.
inline void PrintTo(Operation operation, std::ostream* out) { *out << operation_text(operation); }

struct NamedGraph {
  std::string name;
  fabric::Graph graph;
};

/// What acceptance asks for.
inline std::vector<NamedGraph> usual_graphs() {
  using namespace fabric;
  std::vector<NamedGraph> graphs = {
      {"1", Graph{1}},
      {"2", full_mesh(2)},
      {"line:3", line(3)},
      {"ring:4", ring(4)},
      {"ring:5", ring(5)},
      {"mesh:4", full_mesh(4)},
      {"star:5", star(5)},
      {"petersen", petersen()},
      {"torus:3x3", torus({3, 3})},
      {"uneven rails", fabric::graph_of(4, {{0, 1, 1}, {0, 1, 4}, {1, 2, 1}, {2, 3, 2}, {0, 3, 1}})},
  };
#ifdef NDEBUG
  constexpr uint64_t kRandomGraphs = 6;
#else
  constexpr uint64_t kRandomGraphs = 2;  // sanitizers make them slow
#endif
  for (uint64_t seed = 0; seed < kRandomGraphs; ++seed) {
    graphs.push_back({"random " + std::to_string(seed), random_connected_graph(seed, 16)});
  }
  return graphs;
}

/// The vector, or each share, has `n_elements`. With `are_uneven` shares differ, and some are empty.
inline Problem problem_of(Operation operation, uint32_t n_ranks, uint64_t n_elements, uint32_t element_bytes,
                          uint32_t root = 0, bool are_uneven = false) {
  Problem problem{operation, n_ranks, root, {}, element_bytes};
  const bool has_one_share =
      operation == Operation::all_reduce || operation == Operation::broadcast || operation == Operation::reduce;
  const uint64_t n = n_ranks;
  uint64_t n_shares = has_one_share ? 1 : operation == Operation::all_to_all ? n * n : n;
  n_shares = operation == Operation::barrier ? 0 : n_shares;
  for (uint64_t share = 0; share < n_shares; ++share) {
    const uint64_t count = are_uneven && !has_one_share ? share * 5 % 7 * n_elements / 3 : n_elements;
    problem.shares.push_back(count * element_bytes);
  }
  return problem;
}

inline std::string text_of(const Problem& problem) {
  return std::string(operation_text(problem.operation)) + " of " + std::to_string(problem.n_ranks) + " ranks, root " +
         std::to_string(problem.root) + ", " + std::to_string(total_bytes(problem)) + " bytes in elements of " +
         std::to_string(problem.element_bytes);
}

}  // namespace ringbolt::collective
