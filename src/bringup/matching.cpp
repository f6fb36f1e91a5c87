#include "bringup/matching.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "bringup/subnets.h"

namespace ringbolt::bringup {
namespace {

constexpr const char* kGiveMatrix = "name the cables in a device matrix, or give each cable a subnet of its own";

/// Where the card has the chosen address as an entry that `other` understands, that one.
// RoCE v1 and v2 have entries of their own for one address, and a peer of the other version never answers.
uint8_t index_for(const PortCard& card, GidType other) {
  const CardGid& chosen = card.chosen();
  const auto found = std::ranges::find_if(
      card.gids, [&](const CardGid& one) { return one.gid == chosen.gid && speak_alike(one.type, other); });
  return found == card.gids.end() || speak_alike(chosen.type, other) ? chosen.index : found->index;
}

/// The GIDs of two cards where no subnet says which.
// One side moves, not both: or they might miss each other the other way around.
std::pair<uint8_t, uint8_t> indices_alike(const PortCard& a, const PortCard& b) {
  const uint8_t of_a = index_for(a, b.chosen().type);
  return {of_a, of_a == a.gid_index ? index_for(b, a.chosen().type) : b.gid_index};
}

// An end that does not say how fast it is does not count.
uint32_t slower(uint32_t a, uint32_t b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

}  // namespace

Matching::Matching(const AllCards& cards, const Evidence& evidence) : cards_(cards), evidence_(evidence) {}

std::vector<PortOfRank> Matching::all_ports() const {
  std::vector<PortOfRank> ports;
  for (uint32_t rank = 0; rank < cards_.size(); ++rank) {
    for (uint32_t port = 0; port < cards_[rank].size(); ++port) {
      ports.push_back({rank, port});
    }
  }
  return ports;
}

std::string Matching::names(const std::vector<PortOfRank>& ports) const {
  std::string text;
  for (const PortOfRank port : ports) {
    text += (text.empty() ? "" : ", ") + fmt::format("{} ({})", name_of(cards_, port), text_of(card(port).gid()));
  }
  return text;
}

void Matching::add(PortOfRank a, PortOfRank b, KnownBy known_by,
                   std::optional<std::pair<uint8_t, uint8_t>> gid_indices) {
  auto indices = gid_indices.value_or(indices_alike(card(a), card(b)));
  if (b.rank < a.rank) {
    // `a` is always of the lower rank: all ranks must write down the same cable alike.
    std::swap(a, b);
    std::swap(indices.first, indices.second);
  }
  result_.cables.push_back(
      {a, b, indices.first, indices.second, slower(card(a).rate_mbps, card(b).rate_mbps), known_by});
  // From here on no other evidence is heard about the two.
  matched_.insert(a);
  matched_.insert(b);
}

// (1) The matrix.

bool Matching::has_matrix_shape() {
  const size_t n_ranks = cards_.size();
  bool is_square = evidence_.matrix.size() == n_ranks;
  // A matrix of another shape is left out as a whole: part of it would be misread.
  for (const auto& row : evidence_.matrix) {
    is_square = is_square && row.size() == n_ranks;
  }
  if (!is_square) {
    result_.conflicts.push_back(
        fmt::format("the device matrix is not {0} rows of {0} cells, one for each rank", n_ranks));
  }
  return is_square;
}

// Names that are not there are conflicts, and left out; the same device twice counts once.
std::vector<PortOfRank> Matching::cell(uint32_t from, uint32_t to) {
  std::vector<PortOfRank> ports;
  for (const std::string& device : evidence_.matrix[from][to]) {
    const auto& own = cards_[from];
    // Of a device with several ports the first: JACCL's files know no port numbers.
    const auto found = std::find_if(own.begin(), own.end(), [&](const PortCard& one) { return one.device == device; });
    if (found == own.end()) {
      std::string there;
      for (const PortCard& one : own) {
        there += (there.empty() ? "" : ", ") + one.device;
      }
      result_.conflicts.push_back(fmt::format("the device matrix names {} of rank {} towards rank {}; usable there: {}",
                                              device, from, to, there.empty() ? "none" : there));
      continue;
    }
    const PortOfRank port{from, static_cast<uint32_t>(found - own.begin())};
    if (std::find(ports.begin(), ports.end(), port) == ports.end()) {
      ports.push_back(port);
    }
  }
  return ports;
}

void Matching::take_cells(uint32_t lower, uint32_t higher) {
  Bundle bundle{cell(lower, higher), cell(higher, lower)};
  if (bundle.of_lower.empty() != bundle.of_higher.empty()) {
    const auto& named = bundle.of_lower.empty() ? bundle.of_higher : bundle.of_lower;
    result_.conflicts.push_back(fmt::format(
        "the device matrix names {} towards rank {}, and nothing the other way: complete it or empty the cell",
        names(named), bundle.of_lower.empty() ? lower : higher));
  } else if (bundle.of_lower.size() == 1 && bundle.of_higher.size() == 1) {
    add(bundle.of_lower[0], bundle.of_higher[0], KnownBy::kMatrix);
  } else if (!bundle.of_lower.empty()) {
    // Several cables between two ranks: the cell does not say which device meets which; subnets or trials do.
    bundles_.push_back(std::move(bundle));
  }
}

void Matching::take_matrix() {
  if (evidence_.matrix.empty() || !has_matrix_shape()) {
    return;
  }
  const auto n_ranks = static_cast<uint32_t>(cards_.size());
  for (uint32_t lower = 0; lower < n_ranks; ++lower) {
    if (!evidence_.matrix[lower][lower].empty()) {
      result_.conflicts.push_back(fmt::format("the device matrix names a device of rank {0} towards rank {0}", lower));
    }
    for (uint32_t higher = lower + 1; higher < n_ranks; ++higher) {
      take_cells(lower, higher);
    }
  }
  for (const PortOfRank port : all_ports()) {
    const auto has = [&](const Bundle& one) {
      return std::count(one.of_lower.begin(), one.of_lower.end(), port) != 0 ||
             std::count(one.of_higher.begin(), one.of_higher.end(), port) != 0;
    };
    // For the report alone: such a port is left to nobody, since may_pair() wants a bundle.
    if (!is_matched(port) && std::none_of(bundles_.begin(), bundles_.end(), has)) {
      note(port, "the device matrix does not name it together with a device of the other end");
    }
  }
}

/// With a matrix only what shares a bundle; otherwise any two of different ranks.
bool Matching::may_pair(PortOfRank a, PortOfRank b) const {
  if (a.rank == b.rank || barred_.contains(a) || barred_.contains(b)) {
    return false;
  }
  if (evidence_.matrix.empty()) {
    return true;
  }
  if (b.rank < a.rank) {
    std::swap(a, b);
  }
  return std::any_of(bundles_.begin(), bundles_.end(), [&](const Bundle& one) {
    return std::count(one.of_lower.begin(), one.of_lower.end(), a) != 0 &&
           std::count(one.of_higher.begin(), one.of_higher.end(), b) != 0;
  });
}

// (2) Subnets.

void Matching::take_subnets() {
  const std::vector<PortOfRank> ports = all_ports();
  std::vector<AddressOfPort> addresses;
  for (size_t i = 0; i < ports.size(); ++i) {
    for (const CardGid& one : card(ports[i]).gids) {
      if (!is_matched(ports[i])) {
        // All addresses of a port, not the chosen one alone: the peer's may be in the subnet of any.
        addresses.push_back({i, ports[i].rank, one.index, one.gid, one.type});
      }
    }
  }
  const SubnetPairs found = pairs_by_subnet(addresses);
  struct Ends {
    Fit fit;
    std::pair<uint8_t, uint8_t> indices;
  };
  std::map<PortOfRank, std::map<PortOfRank, Ends>> partners;
  for (const auto& [first, second] : found.pairs) {
    const AddressOfPort& x = addresses[first];
    const AddressOfPort& y = addresses[second];
    const PortOfRank a = ports[x.port];
    const PortOfRank b = ports[y.port];
    // Two ends of a cable differ; copies of one machine's settings do not.
    if (x.gid == y.gid) {
      note(a, fmt::format("{} has the same address, {}", name_of(cards_, b), text_of(x.gid)));
      note(b, fmt::format("{} has the same address, {}", name_of(cards_, a), text_of(x.gid)));
    } else if (may_pair(a, b)) {
      const Fit fit = fit_of(x, y);
      const auto known = partners[a].find(b);
      // Of several common subnets the one that fits best; kept at both ends alike.
      if (known == partners[a].end() || fit > known->second.fit) {
        partners[a].insert_or_assign(b, Ends{fit, {x.gid_index, y.gid_index}});
        partners[b].insert_or_assign(a, Ends{fit, {y.gid_index, x.gid_index}});
      }
    }
  }
  for (const auto& [a, others] : partners) {
    // Maps and sets in order throughout: every rank runs this on the same cards and must come to the same cables.
    const auto& [b, ends] = *others.begin();
    if (others.size() > 1) {
      std::vector<PortOfRank> all;
      for (const auto& [other, unused] : others) {
        all.push_back(other);
      }
      result_.conflicts.push_back(
          fmt::format("{} shares a subnet with each of {}: a cable has one other end", name_of(cards_, a), names(all)));
      barred_.insert(a);
      note(a, "it shares subnets with several ports");
      // Each cable once, and only where the other end knows no third port either.
    } else if (a < b && partners[b].size() == 1) {
      add(a, b, KnownBy::kSubnet, ends.indices);
    }
  }
  for (const auto& crowd : found.crowds) {
    // Several addresses of one port count once.
    std::set<PortOfRank> members;
    for (const size_t i : crowd) {
      if (!is_matched(ports[addresses[i].port])) {
        members.insert(ports[addresses[i].port]);
      }
    }
    // A matrix has said already who is meant, and so may another address.
    if (members.size() > 2 && evidence_.matrix.empty()) {
      result_.conflicts.push_back(fmt::format("{} ports are in one subnet: {}: {}", members.size(),
                                              names({members.begin(), members.end()}), kGiveMatrix));
      for (const PortOfRank port : members) {
        barred_.insert(port);
        note(port, "more than two ports are in its subnet");
      }
    }
  }
  for (const size_t i : found.alone) {
    note(ports[addresses[i].port], fmt::format("nobody else is in the subnet of {}", text_of(addresses[i].gid)));
  }
}

// (3) Trials.

// n^2 pairs at most of the n ports that neither matrix nor subnets have settled.
std::vector<TrialSuccess> Matching::open_pairs() const {
  std::vector<TrialSuccess> pairs;
  const std::vector<PortOfRank> ports = all_ports();
  // Both directions: a trial says that `from` reached `to`, which is not the converse.
  for (const PortOfRank from : ports) {
    for (const PortOfRank to : ports) {
      if (!is_matched(from) && !is_matched(to) && may_pair(from, to)) {
        pairs.push_back({from, to});
      }
    }
  }
  return pairs;
}

/// A switch, or a device that looks for nobody: then any pairing works, and the cells give one.
void Matching::pair_by_order_where_all_reach_all(const std::set<TrialSuccess>& mutual) {
  for (const Bundle& bundle : bundles_) {
    bool is_complete = true;
    for (const PortOfRank a : bundle.of_lower) {
      for (const PortOfRank b : bundle.of_higher) {
        is_complete = is_complete && !is_matched(a) && !is_matched(b) && mutual.contains({a, b});
      }
    }
    // Where not every pair works there are cables, and the trials below find them.
    const size_t n_pairs = is_complete ? std::min(bundle.of_lower.size(), bundle.of_higher.size()) : 0;
    for (size_t i = 0; i < n_pairs; ++i) {
      add(bundle.of_lower[i], bundle.of_higher[i], KnownBy::kMatrix);
    }
  }
}

/// Of ports that are matched all the same it says nothing.
void Matching::report_one_sided(const std::set<TrialSuccess>& trials) {
  for (const auto& [from, to] : trials) {
    if (!trials.contains({to, from}) && !is_matched(from) && !is_matched(to)) {
      result_.conflicts.push_back(fmt::format(
          "{} reaches {}, but not the other way: look at the addresses and the GID table of the latter, and try again",
          name_of(cards_, from), name_of(cards_, to)));
    }
  }
}

void Matching::take_trials() {
  const std::vector<TrialSuccess> open = open_pairs();
  const std::set<TrialSuccess> may_try(open.begin(), open.end());
  std::set<TrialSuccess> trials;
  for (const TrialSuccess& one : evidence_.trials) {
    if (may_try.contains(one)) {  // also keeps out a port's own rank, and ranks that there are not
      trials.insert(one);
    }
  }
  std::set<TrialSuccess> mutual;
  std::map<PortOfRank, std::vector<PortOfRank>> partners;
  for (const auto& [from, to] : trials) {
    if (trials.contains({to, from})) {
      mutual.insert({from, to});
      partners[from].push_back(to);
    }
  }
  pair_by_order_where_all_reach_all(mutual);
  for (const auto& [a, others] : partners) {
    if (is_matched(a)) {
      continue;
    }
    if (others.size() > 1) {
      result_.conflicts.push_back(fmt::format("{} reaches each of {}: a switch, not a cable? {}", name_of(cards_, a),
                                              names(others), kGiveMatrix));
      note(a, "it reaches several ports");
      // The list of a holds at least one, and each of these has a in its own.
    } else if (partners[others[0]].size() == 1) {
      add(a, others[0], KnownBy::kTrial);
    } else {
      note(a, fmt::format("{} reaches others too", name_of(cards_, others[0])));
    }
  }
  if (evidence_.are_trials_made) {
    report_one_sided(trials);
  }
}

Cables Matching::finish() {
  for (const PortOfRank port : all_ports()) {
    if (!is_matched(port)) {
      const auto known = reasons_.find(port);
      const char* usual =
          evidence_.are_trials_made
              ? "no port of another rank answers it: is its cable in, and this program at the other end?"
              : "its addresses do not say where it leads, and nobody has tried yet";
      result_.unmatched.push_back({port, known != reasons_.end() ? known->second : usual});
    }
  }
  // By names, which all ranks know alike; places in lists differ with what a rank has found usable.
  const auto key = [this](const Cable& one) {
    return std::tuple(one.a.rank, one.b.rank, card(one.a).device, card(one.b).device, card(one.a).port,
                      card(one.b).port);
  };
  std::sort(result_.cables.begin(), result_.cables.end(),
            [&](const Cable& x, const Cable& y) { return key(x) < key(y); });
  return std::move(result_);
}

}  // namespace ringbolt::bringup
