#include "plan/report.h"

#include <algorithm>

#include <fmt/format.h>

namespace ringbolt::tools::plan {
namespace {

using fabric::Fraction;

/// Where all nodes cannot use all of their ports, since each cable takes two.
bool leaves_port_free(uint32_t n_nodes, uint32_t n_ports) {
  return n_nodes % 2 == 1 && n_ports % 2 == 1 && n_ports < n_nodes - 1;
}

/// "It meets the bound", or by how much it does not.
std::string distance_to_bound(const Cabling& cabling, const Analysis& analysis) {
  const fabric::Distances& far = analysis.distances;
  const fabric::MooreBound& moore = analysis.moore;
  if (far.sum == moore.sum) {
    return "This cabling meets it: none is better.";
  }
  const uint32_t more = far.diameter - moore.diameter;
  return fmt::format("This cabling has {:.3f} on average, {:.1f} % above{}.", far.aspl(cabling.n_nodes()).value(),
                     (static_cast<double>(far.sum) / static_cast<double>(moore.sum) - 1) * 100,
                     more == 0 ? "" : fmt::format(", and {} hop{} more at most", more, more == 1 ? "" : "s"));
}

void explain_shape(const Cabling& cabling, const Analysis& analysis) {
  const uint32_t n_nodes = cabling.n_nodes();
  const uint32_t n_ports = analysis.n_ports;
  fmt::print("\nWhy this cabling: {}.\n", cabling.origin);
  fmt::print(
      "  From a node with {0} ports at most {0} others are one hop away, {0} x {1} two, and so on{2}: for {3} nodes "
      "that "
      "makes {4} hop{5} at least and {6:.3f} on average (Moore's bound). {7}\n",
      n_ports, n_ports - 1,
      leaves_port_free(n_nodes, n_ports)
          ? fmt::format("; {} x {} is odd, so one node has a port free, and {} others one hop away", n_nodes, n_ports,
                        n_ports - 1)
          : "",
      n_nodes, analysis.moore.diameter, analysis.moore.diameter == 1 ? "" : "s",
      (Fraction(analysis.moore.sum) / Fraction(n_nodes) / Fraction(n_nodes - 1)).value(),
      distance_to_bound(cabling, analysis));
}

/// Why routes of that discipline do not wait for each other in a circle, or that they do.
const char* explain_routes(const RouteCheck& check) {
  switch (check.relaying.discipline) {
    case fabric::Discipline::hop_classes:
      return "A class of buffers for each hop travelled makes circles impossible, whatever the routes, also while they "
             "change (Merlin and Schweitzer 1980).";
    case fabric::Discipline::dateline:
      return "On a ring two classes are enough: chunks change class at one cable (Dally and Seitz 1987). Before routes "
             "change, relays must be empty.";
    case fabric::Discipline::up_down:
      return "Routes go up a tree and then down, never up again, so no circle closes; some are longer for it (Autonet, "
             "1991).";
    case fabric::Discipline::one_class:
      break;
  }
  return check.deadlock.is_free() ? "Here shortest paths close no circle, as the check shows."
                                  : "Here shortest paths close a circle, as the check shows: they need more classes, "
                                    "or other routes.";
}

}  // namespace

void print_explanation(const Cabling& cabling, const Analysis& analysis) {
  if (!analysis.distances.is_connected) {
    return;
  }
  explain_shape(cabling, analysis);
  if (!analysis.rates) {
    return;
  }
  const Rates& rates = *analysis.rates;
  const Fraction by_shards = rates.shard_rate * Fraction(cabling.n_nodes()) / Fraction(2);
  fmt::print(
      "What the bounds mean, in cables:\n"
      "  broadcast   lambda = {}: so much must be cut to part some two nodes, and so much can be sent from one to all "
      "(Edmonds 1973).\n"
      "  all_gather  x* = {}: the least that leaves a set of nodes, over their number; the rate of the whole vector is "
      "N "
      "times that (ForestColl, arXiv 2402.06787).\n"
      "  all_reduce  tau = {}: the least between the parts of a partition, over the number of parts less one; so much "
      "can be "
      "packed into spanning trees (Nash-Williams, Tutte 1961).\n"
      "              reduce_scatter and all_gather of equal shards, one after the other, reach {}{}.\n"
      "  all_to_all  f <= {}: the least over cuts of what crosses over the pairs that it parts, or twice all cables "
      "over the sum "
      "of all distances.\n"
      "  bisection   the least that joins two halves of the nodes, one way{}.\n",
      rates.lambda.text(), rates.shard_rate.text(), rates.tree_rate.text(), by_shards.text(),
      by_shards < rates.tree_rate ? fmt::format(", {:.2f} times less", (rates.tree_rate / by_shards).value()) : "",
      rates.pair_bound.bound.text(),
      rates.bisection.is_exact ? "" : "; found by swaps of nodes, so there may be halves that less joins");
  print_schedules(analysis.calls);
  fmt::print(
      "Relaying: a chunk that waits at a relay holds a buffer that others wait for; in a circle that would be for "
      "ever.\n"
      "  {}\n",
      explain_routes(*analysis.check));
}

}  // namespace ringbolt::tools::plan
