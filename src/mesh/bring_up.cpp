#include "mesh/bring_up.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <span>

#include "base/clock.h"
#include "bringup/common_type.h"
#include "bringup/survey.h"
#include "bringup/trial.h"
#include "mesh/failure.h"
#include "mesh/measuring_stage.h"
#include "mesh/settings.h"
#include "mesh/shares.h"
#include "verbs/codes.h"
#include "verbs/errand.h"
#include "verbs/errno_meaning.h"
#include "verbs/library.h"

namespace ringbolt::mesh {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
/// Of one candidate at one port; less when the deadline is near (make_trials()).
constexpr uint64_t kTrialTimeoutMs = 2000;
/// What a port counts as that does not know its rate: only the relation to the other cables of the fabric matters.
constexpr uint32_t kDefaultRateMbps = 40'000;

/// Runs a stage that may throw; what it threw in words, or nothing.
std::string trouble_of(const std::function<void()>& stage) {
  try {
    stage();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string text_of(const bringup::UnusablePort& port) {
  return port.is_stuck ? port.reason : fmt::format("{}: {}", port.device, port.reason);
}

/// So much time is left for the words of whoever gives up a call of the driver to reach all others; a quarter of what
/// is left if that is less.
constexpr uint64_t kWordsNs = 1'000 * kMillisecond;

uint64_t left_ns(uint64_t deadline_ns) {
  const uint64_t now_ns = base::now_ns();
  return std::max(deadline_ns, now_ns) - now_ns;
}

struct Trial {
  bringup::TrialSuccess pair;
  // False: the driver's call still runs in a thread of its own, so that nothing is known of this pair.
  bool has_returned = true;  // and found the other end
};

/// Bring-up, stage by stage, in the order of its members. Each stage is an exchange that all ranks take part in, so a
/// rank that fails in one still has to come to share() with its words: nothing may throw between the exchanges but
/// what trouble_of() catches, or what all ranks find alike. One thread, which blocks until `deadline_ns` at most.
struct Stage {
  bootstrap::SideChannel& side_channel;
  const BringUpPlan& plan;
  uint64_t deadline_ns = plan.deadline_ns;         // of all ranks
  uint64_t driver_deadline_ns = plan.deadline_ns;  // calls of the driver are given up then
  uint32_t session = 0;
  std::optional<verbs::Library> library = {};
  bringup::AllCards cards = {};
  std::vector<bringup::UnusablePort> unusable = {};  // of this rank
  std::vector<bringup::TrialSuccess> stuck = {};     // of all ranks: trials that have not returned

  void agree();
  bringup::Survey look();
  void exchange_cards();
  bringup::Cables match();
  std::vector<Trial> make_trials(const std::vector<bringup::TrialSuccess>& pairs);
  std::vector<engine::LocalCable> local_cables(const bringup::Cables& found, const BroughtUp& made);
  std::shared_ptr<engine::Station> connect(const engine::EnginePlan& engine_plan,
                                           const std::vector<engine::LocalCable>& local);
  void measure(BroughtUp& made);
  std::string parts_text(const fabric::Graph& graph, const bringup::Cables& found) const;
  std::string stuck_text() const;
};

/// The deadline of all is the earliest of any: it is told as time that is left, since the clocks of hosts differ.
void Stage::agree() {
  const Settings ours{plan.checksums, plan.is_measured, check_of(plan.matrix),
                      static_cast<uint32_t>(std::random_device()()),
                      static_cast<uint32_t>(std::min<uint64_t>(left_ns(deadline_ns) / kMillisecond, UINT32_MAX))};
  const auto shares = share(side_channel, emit(ours), {}, deadline_ns);
  const uint64_t now_ns = base::now_ns();
  for (uint32_t rank = 0; rank < shares.size(); ++rank) {
    const Settings theirs = parse_settings(shares[rank], rank, ours);
    // Random, so that packets of an earlier group, which may still come, belong to no rank of this one.
    session = rank == 0 ? theirs.random : session;
    deadline_ns = std::min(deadline_ns, now_ns + theirs.left_ms * kMillisecond);
  }
  driver_deadline_ns = deadline_ns - std::min(kWordsNs, left_ns(deadline_ns) / 4);
}

bringup::Survey Stage::look() {
  library = verbs::within<verbs::Library>(driver_deadline_ns, [choice = plan.verbs](verbs::Whereabouts& where) {
    where.set_subject(fmt::format("opening the verbs library (RINGBOLT_VERBS={})", choice));
    return verbs::Library::open(choice);
  });
  bringup::Survey mine = bringup::survey(*library, driver_deadline_ns);
  if (mine.usable.empty()) {
    std::string why = mine.unusable.empty() ? "there is no port: no cable leads to this node" : "no port is usable";
    for (const auto& port : mine.unusable) {
      why += "; " + text_of(port);
    }
    throw JoinError(fmt::format("{} (library {}): ringbolt devices lists what there is", why, library->name()));
  }
  if (mine.usable.size() > bringup::kMostCards) {
    throw JoinError(
        fmt::format("{} ports are usable (library {}), and groups know {} of a rank at most: take down what "
                    "leads to no rank",
                    mine.usable.size(), library->name(), bringup::kMostCards));
  }
  return mine;
}

/// What a card says is checked by parse_cards(); whether it is true nobody can tell before the cables are tried.
void Stage::exchange_cards() {
  bringup::Survey mine;
  const std::string trouble = trouble_of([&] { mine = look(); });
  const auto shares =
      share(side_channel, trouble.empty() ? bringup::emit_cards(mine.cards()) : std::vector<std::byte>(), trouble,
            deadline_ns);
  for (uint32_t rank = 0; rank < shares.size(); ++rank) {
    auto parsed = bringup::parse_cards(shares[rank]);
    if (!parsed) {
      throw JoinError(fmt::format("rank {} described its ports wrongly: {}", rank, parsed.error().text()));
    }
    cards.push_back(std::move(*parsed));
  }
  unusable = std::move(mine.unusable);
}

bringup::Cables Stage::match() {
  bringup::Evidence evidence;
  evidence.matrix = plan.matrix;
  bool has_pairs = false;
  for (uint32_t rank = 0; rank < side_channel.n_ranks(); ++rank) {
    has_pairs = has_pairs || !bringup::trial_pairs(cards, evidence, rank).empty();
  }
  // Pure, of what all ranks share: all come to the same answer, and none waits for an exchange that others leave out.
  if (!has_pairs) {
    return bringup::match_cables(cards, evidence);
  }
  std::vector<Trial> mine;
  const std::string trouble =
      trouble_of([&] { mine = make_trials(bringup::trial_pairs(cards, evidence, side_channel.rank())); });
  base::ByteWriter writer;
  for (const Trial& trial : mine) {
    writer.put(static_cast<uint8_t>(trial.has_returned));
    writer.put(trial.pair.from.port);
    writer.put(trial.pair.to.rank);
    writer.put(trial.pair.to.port);
  }
  const auto shares = share(side_channel, writer.bytes(), trouble, deadline_ns);
  for (uint32_t rank = 0; rank < shares.size(); ++rank) {
    for (base::ByteReader reader(shares[rank]); !reader.is_at_end();) {
      const bool has_returned = reader.take<uint8_t>() != 0;
      bringup::TrialSuccess success;
      success.from = {rank, reader.take<uint32_t>()};
      success.to.rank = reader.take<uint32_t>();
      success.to.port = reader.take<uint32_t>();
      // Numbers that come from a peer become indices from here on.
      if (!reader.is_sound() || success.from.port >= cards[rank].size() || success.to.rank >= cards.size() ||
          success.to.port >= cards[success.to.rank].size()) {
        throw JoinError(fmt::format("rank {} described its trials wrongly", rank));
      }
      (has_returned ? evidence.trials : stuck).push_back(success);
    }
  }
  evidence.are_trials_made = true;
  return bringup::match_cables(cards, evidence);
}

/// Blocks until driver_deadline_ns at most: each port gets an equal share of the time that those before it have left.
/// A trial that fails with an errno says that no cable joins the two, and is left out.
std::vector<Trial> Stage::make_trials(const std::vector<bringup::TrialSuccess>& pairs) {
  std::map<uint32_t, std::vector<bringup::PortOfRank>> by_port;
  for (const bringup::TrialSuccess& pair : pairs) {
    by_port[pair.from.port].push_back(pair.to);
  }
  std::vector<Trial> trials;
  size_t n_ports = by_port.size();
  for (const auto& [port, others] : by_port) {
    const bringup::PortCard& card = cards[side_channel.rank()][port];
    std::vector<bringup::TrialCandidate> candidates;
    for (const bringup::PortOfRank& other : others) {
      const bringup::PortCard& their_card = cards[other.rank][other.port];
      candidates.push_back({their_card.gid(), their_card.lid});
    }
    verbs::Path path;
    path.port = card.port;
    path.gid_index = card.gid_index;
    const auto type = card.capabilities.has_uc ? IBV_QPT_UC : IBV_QPT_RC;
    const uint64_t share_ns = left_ns(driver_deadline_ns) / n_ports--;
    // Of each port so many may be stuck for that long.
    const uint64_t share_ms = share_ns / kMillisecond / bringup::kMostStuckTrials;
    const auto timeout_ms = static_cast<uint32_t>(std::clamp<uint64_t>(share_ms, 1, kTrialTimeoutMs));
    const auto errors =
        bringup::try_candidates(*library, card.device, type, path, candidates, timeout_ms, base::now_ns() + share_ns);
    for (size_t i = 0; i < others.size(); ++i) {
      if (errors[i] == 0 || errors[i] == EINPROGRESS) {
        trials.push_back({{{side_channel.rank(), port}, others[i]}, errors[i] == 0});
      }
    }
  }
  return trials;
}

/// Chunks may take detours: two hops longer than the longest shortest path after the worst single cut, six at least;
/// but no path is longer than all ranks one after the other.
uint32_t hop_classes(const fabric::Graph& graph) {
  uint32_t longest = fabric::distances(graph).diameter;
  for (size_t cable = 0; cable < graph.cables.size(); ++cable) {
    const fabric::Distances distances = fabric::distances(fabric::without_cable(graph, cable));
    longest = distances.is_connected ? std::max(longest, distances.diameter) : longest;
  }
  return std::min({std::max(longest + 2, 6U), graph.n_nodes - 1, engine::kHopClasses});
}

/// In the order of the fabric's cables. What both ends have to do alike (type, MTU, frames) follows from both cards,
/// which both ends have.
std::vector<engine::LocalCable> Stage::local_cables(const bringup::Cables& found, const BroughtUp& made) {
  const uint32_t self = side_channel.rank();
  std::vector<engine::LocalCable> local;
  const uint32_t n_hop_classes = hop_classes(made.graph);
  for (uint32_t i = 0; i < found.cables.size(); ++i) {
    const bringup::Cable& cable = found.cables[i];
    if (cable.a.rank != self && cable.b.rank != self) {
      continue;
    }
    const bool is_a = cable.a.rank == self;
    const bringup::PortOfRank mine = is_a ? cable.a : cable.b;
    const bringup::PortOfRank theirs = is_a ? cable.b : cable.a;
    const bringup::PortCard& card = cards[self][mine.port];
    const bringup::PortCard& their_card = cards[theirs.rank][theirs.port];
    engine::CablePlan end;
    end.peer = theirs.rank;
    end.port = card.port;
    end.gid_index = is_a ? cable.gid_index_a : cable.gid_index_b;
    end.type = bringup::common_type(card.capabilities, their_card.capabilities, IBV_QPT_UC).value_or(IBV_QPT_RC);
    end.mtu = verbs::mtu_code(std::min(card.mtu_bytes, their_card.mtu_bytes));
    end.counts_frames = card.capabilities.counts_frames || their_card.capabilities.counts_frames;
    end.rate = cable.rate_mbps > 0 ? cable.rate_mbps : kDefaultRateMbps;
    end.n_hop_classes = n_hop_classes;
    end.name = made.cables[i].text();
    local.push_back({card.device, end, i});
  }
  return local;
}

/// A station and what the other ends of its cables must be told.
struct Ends {
  std::shared_ptr<engine::Station> station;
  std::vector<engine::CableAddress> addresses;  // [local cable]

  // Empty where nothing was made: then share() sends the words instead.
  std::vector<std::byte> emit() const {
    base::ByteWriter writer;
    for (uint32_t i = 0; i < addresses.size(); ++i) {
      writer.put(station->fabric_cable(i));
      writer.put_bytes(std::as_bytes(std::span(addresses[i].gid.raw)));
      writer.put(addresses[i].lid);
      for (size_t size = 0; size < 2; ++size) {
        writer.put(addresses[i].qp_number[size]);
        writer.put(addresses[i].psn[size]);
      }
    }
    return writer.bytes();
  }
};

/// Throws JoinError.
/// Any bytes are safe; a fabric cable that this rank has no end of is not looked up by anybody.
std::map<uint32_t, engine::CableAddress> parse_ends(std::span<const std::byte> bytes, uint32_t rank) {
  std::map<uint32_t, engine::CableAddress> addresses;  // [fabric cable]
  for (base::ByteReader reader(bytes); !reader.is_at_end();) {
    const auto fabric_cable = reader.take<uint32_t>();
    engine::CableAddress address;
    for (uint8_t& byte : address.gid.raw) {
      byte = reader.take<uint8_t>();
    }
    address.lid = reader.take<uint16_t>();
    for (size_t size = 0; size < 2; ++size) {
      address.qp_number[size] = reader.take<uint32_t>();
      address.psn[size] = reader.take<uint32_t>();
    }
    if (!reader.is_sound()) {
      throw JoinError(fmt::format("rank {} described its queue pairs wrongly", rank));
    }
    addresses[fabric_cable] = address;
  }
  return addresses;
}

/// The station belongs to the thread that works on it until that has come back.
std::shared_ptr<engine::Station> Stage::connect(const engine::EnginePlan& engine_plan,
                                                const std::vector<engine::LocalCable>& local) {
  Ends mine;
  std::string trouble = trouble_of([&] {
    mine = verbs::within<Ends>(driver_deadline_ns, [on = *library, engine_plan, local](verbs::Whereabouts&) {
      Ends made{std::make_shared<engine::Station>(on, engine_plan, local), {}};
      for (uint32_t i = 0; i < made.station->n_cables(); ++i) {
        made.addresses.push_back(made.station->address(i));
      }
      return made;
    });
  });
  const auto shares = share(side_channel, mine.emit(), trouble, deadline_ns);
  // Every rank has one here: had any been in trouble, share() would have thrown on all.
  const std::shared_ptr<engine::Station> station = std::move(mine.station);
  trouble = trouble_of([&] {
    std::map<uint32_t, engine::CableAddress> peers;  // [local cable]
    for (uint32_t rank = 0; rank < shares.size(); ++rank) {
      const auto theirs = parse_ends(shares[rank], rank);
      for (uint32_t i = 0; rank != side_channel.rank() && i < station->n_cables(); ++i) {
        if (const auto found = theirs.find(station->fabric_cable(i)); found != theirs.end()) {
          peers[i] = found->second;
        }
      }
    }
    verbs::within(driver_deadline_ns, [station, peers](verbs::Whereabouts& where) {
      for (const auto& [cable, peer] : peers) {
        where.set_subject(station->cable(cable).plan().name);
        station->connect(cable, peer);
      }
    });
  });
  share(side_channel, {}, trouble, deadline_ns);  // nobody sends before all are connected
  return station;
}

/// The same figures on all ranks make the same model and graph on all, which schedules are chosen by.
void Stage::measure(BroughtUp& made) {
  made.links = measure_links(side_channel, made.station->engine(), made.graph, deadline_ns);
  const MeasuredModel model = model_of(made.links, made.graph);
  made.model = model.model;
  made.n_measured_links = model.n_links;
  for (size_t i = 0; i < made.graph.cables.size(); ++i) {
    made.graph.cables[i].capacity = made.graph.cables[i].capacity / fabric::Fraction(model.thinner[i]);
  }
}

/// Words for a graph in several parts: who can't reach whom, and why ports of the smaller part have no cable.
std::string Stage::parts_text(const fabric::Graph& graph, const bringup::Cables& found) const {
  const auto hops = fabric::hops_from(fabric::neighbours(graph), 0);
  std::vector<uint32_t> near;
  std::vector<uint32_t> far;
  for (uint32_t rank = 0; rank < graph.n_nodes; ++rank) {
    (hops[rank] == fabric::kUnreachable ? far : near).push_back(rank);
  }
  std::string text =
      fmt::format("no cables lead from ranks {} to ranks {}", fmt::join(near, ", "), fmt::join(far, ", "));
  for (const auto& port : found.unmatched) {
    text += fmt::format("; {}: {}", bringup::name_of(cards, port.port), port.reason);
  }
  for (const auto& port : unusable) {
    text += fmt::format("; rank {}: {}", side_channel.rank(), text_of(port));
  }
  return text + stuck_text();
}

/// A device may hang when it looks for somebody who is not at its cable: of interest only where a cable is missing.
std::string Stage::stuck_text() const {
  std::string text;
  for (const bringup::TrialSuccess& pair : stuck) {
    text += fmt::format("; {} towards {}: {} has not returned", bringup::name_of(cards, pair.from),
                        bringup::name_of(cards, pair.to), verbs::name_of(verbs::Step::kToRtr));
  }
  return text.empty() ? text : fmt::format("{}: {}", text, verbs::advice_if_stuck(verbs::Step::kToRtr));
}

}  // namespace

std::string CableWords::text() const { return fmt::format("cable {}-{} ({} to {})", a, b, device_a, device_b); }

BroughtUp bring_up(bootstrap::SideChannel& side_channel, const BringUpPlan& plan) {
  Stage stage{side_channel, plan};
  stage.agree();
  stage.exchange_cards();
  const bringup::Cables found = stage.match();
  if (!found.conflicts.empty()) {
    // All ranks find the same conflicts, as match_cables() is pure: nobody waits for those who throw here.
    throw JoinError(fmt::format("{}{}", fmt::join(found.conflicts, "; "), stage.stuck_text()));
  }
  BroughtUp made;
  made.session = stage.session;
  made.graph.n_nodes = side_channel.n_ranks();
  uint32_t slowest = UINT32_MAX;
  for (const bringup::Cable& cable : found.cables) {
    slowest = std::min(slowest, cable.rate_mbps > 0 ? cable.rate_mbps : kDefaultRateMbps);
  }
  for (const bringup::Cable& cable : found.cables) {
    const uint32_t rate = cable.rate_mbps > 0 ? cable.rate_mbps : kDefaultRateMbps;
    fabric::join(made.graph, cable.a.rank, cable.b.rank, fabric::Fraction(rate) / fabric::Fraction(slowest));
    const char* how = cable.known_by == bringup::KnownBy::kMatrix   ? "device file"
                      : cable.known_by == bringup::KnownBy::kSubnet ? "subnet"
                                                                    : "trial";
    made.cables.push_back({cable.a.rank, cable.b.rank, stage.cards[cable.a.rank][cable.a.port].device,
                           stage.cards[cable.b.rank][cable.b.port].device, cable.rate_mbps, how});
  }
  for (const auto& port : found.unmatched) {
    made.unmatched.push_back(fmt::format("{}: {}", bringup::name_of(stage.cards, port.port), port.reason));
  }
  for (const auto& port : stage.unusable) {
    if (port.is_stuck) {
      made.unmatched.push_back(fmt::format("rank {}'s {}", side_channel.rank(), port.reason));
    }
  }
  if (side_channel.n_ranks() > 1) {
    // Alike on all ranks, too; a chunk's header has room for kMostVia relays.
    const fabric::Distances distances = fabric::distances(made.graph);
    if (!distances.is_connected) {
      throw JoinError(stage.parts_text(made.graph, found));
    }
    if (distances.diameter > engine::kMostVia + 1) {
      throw JoinError(
          fmt::format("the cabling has a diameter of {} hops and {} is the most: take fewer machines, or more ports "
                      "of each, with which ringbolt plan finds shorter ways",
                      distances.diameter, engine::kMostVia + 1));
    }
    engine::EnginePlan engine_plan{side_channel.rank(), side_channel.n_ranks(), stage.session, plan.checksums, {}};
    for (const bringup::Cable& cable : found.cables) {
      engine_plan.fabric.push_back({cable.a.rank, cable.b.rank});
    }
    made.station = stage.connect(engine_plan, stage.local_cables(found, made));
    if (plan.is_measured) {
      stage.measure(made);
    }
  }
  return made;
}

}  // namespace ringbolt::mesh
