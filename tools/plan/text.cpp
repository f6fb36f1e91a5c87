#include "plan/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/picture.h"
#include "table.h"

namespace ringbolt::tools::plan {
namespace {

using collective::Operation;
using fabric::Fraction;
using fabric::PlannedCable;
using Kind = Table::Kind;

const char* plural(size_t count) { return count == 1 ? "" : "s"; }

std::string gbps_text(double rate, const Cabling& cabling) { return fmt::format("{:.1f}", rate * cabling.unit_gbps); }

void print_cables(const Cabling& cabling, const Analysis& analysis) {
  Table table("cables",
              {{"ID", Kind::kNumber},
               {"FROM"},
               {"TO"},
               {"RAIL", Kind::kNumber},
               {"GBPS", Kind::kNumber},
               {"FROM_ADDRESS"},
               {"TO_ADDRESS"},
               {"CUT_HOPS", Kind::kNumber},
               {"CUT_ALL_REDUCE_GBPS", Kind::kNumber}},
              false);
  for (size_t index = 0; index < cabling.plan.cables.size(); ++index) {
    const PlannedCable& cable = cabling.plan.cables[index];
    std::string hops;
    std::string rate;
    if (!analysis.cuts.empty()) {
      const fabric::CutCost& cut = analysis.cuts[index];
      hops = cut.is_connected ? fmt::format("{}", cut.diameter) : "parts";
      rate = cut.is_connected && analysis.has_cut_rates ? gbps_text(cut.tree_rate.value(), cabling) : "";
    }
    const auto address = [&](bool is_lower) {
      return fmt::format("{}/{}", fabric::address_text(fabric::end_address(cabling.pool, cable.id, is_lower)),
                         cabling.pool.prefix_length);
    };
    table.add({fmt::format("{}", cable.id), cabling.end_text(cable.a), cabling.end_text(cable.b),
               fmt::format("{}", cable.rail), fmt::format("{}", cabling.speed_gbps(cable)), address(true),
               address(false), hops, rate});
  }
  table.print();
}

void print_distances(const Cabling& cabling, const Analysis& analysis) {
  const fabric::Distances& far = analysis.distances;
  fmt::print(
      "Any two nodes are at most {} hop{} apart, {:.3f} on average; no cabling of so many ports goes below {} and "
      "{:.3f}.\n",
      far.diameter, plural(far.diameter), far.aspl(cabling.n_nodes()).value(), analysis.moore.diameter,
      (Fraction(analysis.moore.sum) / Fraction(cabling.n_nodes()) / Fraction(cabling.n_nodes() - 1)).value());
  if (!analysis.cuts.empty()) {
    fmt::print("{}\n", analysis.worst_cut.is_connected
                           ? fmt::format("With one cable cut, whichever, they are at most {} apart.",
                                         analysis.worst_cut.diameter)
                           : std::string("There is a cable whose cut parts them."));
  }
}

void print_pair_rates(const Cabling& cabling, const Rates& rates) {
  const fabric::SplitRate& reached = rates.pair_split;
  const Fraction& bound = rates.pair_bound.bound;
  const auto text = [&](const std::string& rate, double value) {
    return fmt::format("{} ({} Gb/s)", rate, gbps_text(value, cabling));
  };
  const std::string of_bound = text(bound.text(), bound.value());
  constexpr double kRounded = 1e-9;  // of what is not exact
  if (reached.exact ? *reached.exact == bound : reached.value > bound.value() * (1 - kRounded)) {
    fmt::print("all_to_all over shortest paths reaches its bound of {}.\n", of_bound);
    return;
  }
  fmt::print("all_to_all over shortest paths reaches {} of the {} that bounds it{}.\n",
             text(reached.exact ? reached.exact->text() : fmt::format("{:.4f}", reached.value), reached.value),
             of_bound, rates.pair_bound.has_all_cuts ? "" : ", for which not every cut was tried");
}

void print_bisection(const Cabling& cabling, const fabric::Bisection& bisection) {
  const Fraction& rate = bisection.rate;
  fmt::print("Bisection: {}{} cable{} ({} Gb/s each way).\n", bisection.is_exact ? "" : "at most ", rate.text(),
             rate == Fraction(1) ? "" : "s", gbps_text(rate.value(), cabling));
}

void print_rates(const Cabling& cabling, const Analysis& analysis) {
  const Rates& rates = *analysis.rates;
  const auto after = [&](const Fraction& rate) {
    return analysis.has_cut_rates && analysis.worst_cut.is_connected ? gbps_text(rate.value(), cabling) : std::string();
  };
  const Fraction n(cabling.n_nodes());
  Table table("rates", {{"COLLECTIVE"}, {"BOUND"}, {"GBPS", Kind::kNumber}, {"AFTER_CUT", Kind::kNumber}}, false);
  const auto row = [&](const char* what, const Fraction& rate, const std::string& cut) {
    table.add({what, rate.text(), gbps_text(rate.value(), cabling), cut});
  };
  row("all_reduce", rates.tree_rate, after(analysis.worst_cut.tree_rate));
  row("all_gather, reduce_scatter", n * rates.shard_rate, after(n * analysis.worst_cut.shard_rate));
  row("broadcast, reduce", rates.lambda, after(analysis.worst_cut.lambda));
  row("all_to_all, each pair", rates.pair_bound.bound, "");
  fmt::print("\nThe most that collectives can do, in cables of {} Gb/s and in Gb/s of the whole vector:\n",
             cabling.unit_gbps);
  table.print();
  print_pair_rates(cabling, rates);
  print_bisection(cabling, rates.bisection);
}

void print_times(const Cabling& cabling, const Analysis& analysis, double alpha_us) {
  fmt::print("\nPredicted from {} us a hop and {} Gb/s a cable; nothing of it is measured:\n", alpha_us,
             cabling.unit_gbps);
  Table table("times",
              {{"BYTES", Kind::kNumber},
               {"ALL_REDUCE", Kind::kNumber},
               {"BY"},
               {"ALL_GATHER", Kind::kNumber},
               {"BROADCAST", Kind::kNumber},
               {"ALL_TO_ALL", Kind::kNumber}},
              false);
  for (const double bytes : kPredictedBytes) {
    const auto time_of = [&](Operation operation) {
      return time_text(call_of(analysis.calls, operation, bytes).choice.predicted_us);
    };
    table.add({bytes_text(bytes), time_of(Operation::all_reduce),
               call_of(analysis.calls, Operation::all_reduce, bytes).choice.name, time_of(Operation::all_gather),
               time_of(Operation::broadcast), time_of(Operation::all_to_all)});
  }
  table.print();
}

void print_check(const Cabling& cabling, const Analysis& analysis, bool is_whole) {
  const RouteCheck& check = *analysis.check;
  fmt::print("\nRelaying: {}; {} buffer class{} a relay, routes of {} hop{} at most, {} allowed.\n",
             fabric::discipline_text(check.relaying.discipline), check.relaying.n_relay_classes,
             check.relaying.n_relay_classes == 1 ? "" : "es", check.use.most_hops, plural(check.use.most_hops),
             check.relaying.most_hops);
  if (check.is_good()) {
    fmt::print(
        "Checked: all {} routes are there and free of deadlock; their {} channels have an order that every route "
        "follows ({} dependencies).\n",
        size_t{cabling.n_nodes()} * (cabling.n_nodes() - 1), check.deadlock.order.size(), check.deadlock.n_arcs);
  }
  if (is_whole && check.deadlock.is_free()) {
    fmt::print("The order: {}\n", channels_text(cabling, check.deadlock.order));
  }
}

void print_relays(const Cabling& cabling, const RelayPlan& plan) {
  fmt::print(
      "\n{} only relay{}. The group of the other {} is at most {} hop{} apart, {:.3f} on average. What it takes, "
      "predicted, with thinner cables where nobody of it shares one:\n",
      names_text(cabling, plan.relays), plan.relays.size() == 1 ? "s" : "", plan.members.size(), plan.diameter,
      plural(plan.diameter), plan.average_hops);
  Table table("group", {{"COLLECTIVE"}, {"BYTES", Kind::kNumber}, {"SCHEDULE"}, {"TIME", Kind::kNumber}}, false);
  for (const RelayPlan::Call& call : plan.calls) {
    table.add({call.name, bytes_text(call.bytes), call.choice.name, time_text(call.choice.predicted_us)});
  }
  table.print();
}

}  // namespace

std::string bytes_text(double bytes) {
  return bytes < 1024         ? fmt::format("{:.0f} B", bytes)
         : bytes < 1048576    ? fmt::format("{:.0f} KiB", bytes / 1024)
         : bytes < 1073741824 ? fmt::format("{:.0f} MiB", bytes / 1048576)
                              : fmt::format("{:.0f} GiB", bytes / 1073741824);
}

std::string time_text(double time_us) {
  return time_us < 1000 ? fmt::format("{:.1f} us", time_us) : fmt::format("{:.2f} ms", time_us / 1000);
}

void print_text(const Cabling& cabling, const Analysis& analysis, const PlanOptions& options) {
  const size_t n_cables = cabling.plan.cables.size();
  const bool have_all = std::ranges::all_of(
      cabling.model.nodes, [&](const cluster::Node& node) { return node.ports.size() == cabling.plan.n_ports; });
  fmt::print("{}: {} nodes of {}{} port{}, {} cable{}; {}.\n\n", cabling.shape, cabling.n_nodes(),
             have_all ? "" : "up to ", cabling.plan.n_ports, plural(cabling.plan.n_ports), n_cables, plural(n_cables),
             cabling.origin);
  if (const std::string drawn = picture(cabling); !drawn.empty()) {
    fmt::print("{}\n", drawn);
  }
  print_cables(cabling, analysis);
  fmt::print("\nThe nodes themselves are {} ({}) to {} ({}), to which relayed routes lead.\n",
             fabric::address_text(fabric::node_address(cabling.pool, 0)), cabling.node_name(0),
             fabric::address_text(fabric::node_address(cabling.pool, cabling.n_nodes() - 1)),
             cabling.node_name(cabling.n_nodes() - 1));
  if (analysis.distances.is_connected) {
    print_distances(cabling, analysis);
  }
  if (analysis.rates) {
    print_rates(cabling, analysis);
    print_times(cabling, analysis, options.alpha_us);
  }
  if (analysis.check) {
    print_check(cabling, analysis, options.is_checked);
  }
  if (analysis.group && analysis.distances.is_connected) {
    print_relays(cabling, *analysis.group);
  }
  if (options.explains) {
    print_explanation(cabling, analysis);
  }
  for (const std::string& note : analysis.notes) {
    fmt::print("note: {}\n", note);
  }
}

}  // namespace ringbolt::tools::plan
