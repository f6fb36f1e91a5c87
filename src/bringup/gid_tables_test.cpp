// Cables out of addresses, whatever the shape of the tables that drivers make of these.

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bringup/cables.h"
#include "bringup/gid_test_support.h"
#include "bringup/survey.h"

namespace ringbolt::bringup {
namespace {

using Table = std::vector<GidEntry>;

/// A port's addresses in the order in which kernels list them: link-local, IPv4, other IPv6.
struct Addresses {
  std::vector<Gid> link_local;
  std::vector<Gid> ipv4;
  std::vector<Gid> ipv6;
  std::vector<Gid> all() const {
    std::vector<Gid> list = link_local;
    list.insert(list.end(), ipv4.begin(), ipv4.end());
    list.insert(list.end(), ipv6.begin(), ipv6.end());
    return list;
  }
};

Table numbered(Table table) {
  for (size_t i = 0; i < table.size(); ++i) {
    table[i].index = static_cast<uint8_t>(i);
  }
  return table;
}

Table of_types(const std::vector<Gid>& gids, const std::vector<GidType>& types) {
  Table table;
  for (const Gid& gid : gids) {
    for (const GidType type : types) {
      table.push_back({.gid = gid, .type = type});
    }
  }
  return numbered(table);
}

constexpr GidType kV1 = GidType::kRoceV1;
constexpr GidType kV2 = GidType::kRoceV2;
constexpr GidType kUnknown = GidType::kUnknown;

struct Shape {
  const char* name;
  std::function<Table(const Addresses&, uint32_t port)> make;
};

Table with_holes(const Addresses& addresses, uint32_t port) {
  Table table(3 + port % 3);
  for (const GidEntry& entry : of_types(addresses.all(), {kV1, kV2})) {
    table.push_back(entry);
    table.resize(table.size() + port % 2);
  }
  return numbered(table);
}

/// As port cards of a Mac have them: one link-local address, a hole in some releases, IPv4, a second link-local one.
Table of_a_mac(const Addresses& addresses, size_t n_holes) {
  Table table = of_types(addresses.link_local, {kUnknown});
  table.resize(1 + n_holes);
  for (const auto& list : {addresses.ipv4, addresses.ipv6, {test::gid("fe80::1234")}}) {
    const Table more = of_types(list, {kUnknown});
    table.insert(table.end(), more.begin(), more.end());
  }
  table.resize(32);
  return numbered(table);
}

/// A VLAN on top of the port, on the same subnet everywhere, which is down.
Table beside_a_dead_vlan(const Addresses& addresses, uint32_t port) {
  Table table;
  for (const GidType type : {kV1, kV2}) {
    table.push_back({.gid = test::gid("10.200.0." + std::to_string(port + 1)),
                     .type = type,
                     .interface = "eth0.7",
                     .is_interface_up = false});
  }
  for (GidEntry entry : of_types(addresses.all(), {kV1, kV2})) {
    entry.interface = "eth0";
    entry.is_interface_up = true;
    table.push_back(entry);
  }
  return numbered(table);
}

Table shuffled(const Addresses& addresses, uint32_t port) {
  Table table = of_types(addresses.all(), {kV1, kV2});
  std::mt19937 random(port);
  std::shuffle(table.begin(), table.end(), random);
  return numbered(table);
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"plain", [](const Addresses& a, uint32_t) { return of_types(a.all(), {kUnknown}); }},
      {"v2", [](const Addresses& a, uint32_t) { return of_types(a.all(), {kV2}); }},
      {"v1", [](const Addresses& a, uint32_t) { return of_types(a.all(), {kV1}); }},
      {"v1 and v2",
       [](const Addresses& a, uint32_t) {
         return of_types(a.all(), {kV1, kV2});
       }},
      {"v2 and v1",
       [](const Addresses& a, uint32_t) {
         return of_types(a.all(), {kV2, kV1});
       }},
      {"doubled, of no type",
       [](const Addresses& a, uint32_t) {
         return of_types(a.all(), {kUnknown, kUnknown});
       }},
      {"holes", with_holes},
      {"mac", [](const Addresses& a, uint32_t) { return of_a_mac(a, 0); }},
      {"mac, late", [](const Addresses& a, uint32_t) { return of_a_mac(a, 1); }},
      {"IPv4 first",
       [](const Addresses& a, uint32_t) {
         return of_types(Addresses{a.ipv4, a.ipv6, a.link_local}.all(), {kV1, kV2});
       }},
      {"dead VLAN", beside_a_dead_vlan},
      {"shuffled", shuffled},
  };
  return all;
}

/// What end 0 or 1 of a cable is called.
struct Plan {
  const char* name;
  std::function<Addresses(uint32_t cable, uint32_t end)> make;
};

std::vector<Gid> gids(const std::vector<std::string>& texts) {
  std::vector<Gid> list;
  for (const std::string& text : texts) {
    list.push_back(test::gid(text));
  }
  return list;
}

std::string of_24(uint32_t cable, uint32_t end) {
  return "10.77." + std::to_string(cable) + "." + std::to_string(end + 1);
}
std::string of_30(uint32_t cable, uint32_t end) { return "10.78.0." + std::to_string(4 * cable + end + 1); }
std::string of_64(uint32_t cable, uint32_t end) {
  return "fd77:0:0:" + std::to_string(cable) + "::" + std::to_string(end + 1);
}
std::string of_link(uint32_t cable, uint32_t end) {
  return "fe80::" + std::to_string(cable + 1) + ":" + std::to_string(end + 1);
}

const std::vector<Plan>& plans() {
  static const std::vector<Plan> all = {
      {"24",
       [](uint32_t c, uint32_t e) {
         return Addresses{{}, gids({of_24(c, e)}), {}};
       }},
      {"30",
       [](uint32_t c, uint32_t e) {
         return Addresses{gids({of_link(c, e)}), gids({of_30(c, e)}), {}};
       }},
      {"64",
       [](uint32_t c, uint32_t e) {
         return Addresses{gids({of_link(c, e)}), {}, gids({of_64(c, e)})};
       }},
      {"both families",
       [](uint32_t c, uint32_t e) {
         return Addresses{gids({of_link(c, e)}), gids({of_30(c, e)}), gids({of_64(c, e)})};
       }},
      {"two of a family",
       [](uint32_t c, uint32_t e) {
         return Addresses{gids({of_link(c, e)}), gids({of_30(c, e), of_24(c, e)}), {}};
       }},
      {"several in a subnet",
       [](uint32_t c, uint32_t e) {
         return Addresses{gids({of_link(c, e)}), gids({of_24(c, e), of_24(c, e + 100)}),
                          gids({of_64(c, e), of_64(c, 4000 + e), of_64(c, 5000 + 7 * e)})};
       }},
  };
  return all;
}

struct Topology {
  const char* name;
  uint32_t n_ranks;
  std::vector<std::pair<uint32_t, uint32_t>> cables;
};

const std::vector<Topology>& topologies() {
  static const std::vector<Topology> all = {
      {"line:2", 2, {{0, 1}}},
      {"line:3", 3, {{0, 1}, {1, 2}}},
      {"ring:2", 2, {{0, 1}, {0, 1}}},
      {"ring:3", 3, {{0, 1}, {1, 2}, {0, 2}}},
      {"ring:4", 4, {{0, 1}, {1, 2}, {2, 3}, {0, 3}}},
      {"mesh:4", 4, {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}},
  };
  return all;
}

PortCard card_of(const std::string& device, Table table) {
  guess_types(table);
  PortCard card;
  card.device = device;
  card.gid_index = choose_gid(table).chosen.value().index;
  card.gids = card_gids(table, card.gid_index);
  return card;
}

/// Ports are named after their cables. `is_mixed`: each port has another driver.
AllCards cards_of(const Topology& topology, const Plan& plan, size_t shape, bool is_mixed) {
  AllCards cards(topology.n_ranks);
  for (uint32_t cable = 0; cable < topology.cables.size(); ++cable) {
    for (uint32_t end = 0; end < 2; ++end) {
      const uint32_t rank = end == 0 ? topology.cables[cable].first : topology.cables[cable].second;
      const uint32_t port = 2 * cable + end;
      const Shape& one = shapes()[(shape + (is_mixed ? port : 0)) % shapes().size()];
      cards[rank].push_back(card_of("cable" + std::to_string(cable), one.make(plan.make(cable, end), port)));
    }
  }
  return cards;
}

const CardGid& used(const PortCard& card, uint8_t index) {
  for (const CardGid& one : card.gids) {
    if (one.index == index) {
      return one;
    }
  }
  throw std::out_of_range("no GID " + std::to_string(index));
}

void expect_all_cables(const AllCards& cards, const Topology& topology) {
  const Cables found = match_cables(cards, {});
  EXPECT_TRUE(found.conflicts.empty()) << found.conflicts.at(0);
  EXPECT_TRUE(found.unmatched.empty()) << found.unmatched.at(0).reason;
  EXPECT_EQ(found.cables.size(), topology.cables.size());
  for (uint32_t rank = 0; rank < topology.n_ranks; ++rank) {
    EXPECT_TRUE(trial_pairs(cards, {}, rank).empty());
  }
  for (const Cable& one : found.cables) {
    const PortCard& a = cards[one.a.rank][one.a.port];
    const PortCard& b = cards[one.b.rank][one.b.port];
    EXPECT_EQ(a.device, b.device);
    const CardGid& of_a = used(a, one.gid_index_a);
    const CardGid& of_b = used(b, one.gid_index_b);
    EXPECT_GE(common_bits(of_a.gid, of_b.gid), is_ipv4(of_a.gid) ? 120U : 64U)
        << text_of(of_a.gid) << " " << text_of(of_b.gid);
    const auto has_v2 = [](const PortCard& card) { return card.chosen().type != kV1; };
    if (has_v2(a) && has_v2(b)) {
      EXPECT_NE(of_a.type, kV1);
      EXPECT_NE(of_b.type, kV1);
    }
  }
}

TEST(GidTables, of_every_shape_and_address_plan_give_every_cable) {
  for (const Topology& topology : topologies()) {
    for (const Plan& plan : plans()) {
      for (size_t shape = 0; shape < shapes().size(); ++shape) {
        for (const bool is_mixed : {false, true}) {
          SCOPED_TRACE(std::string(topology.name) + ", " + plan.name + ", " + shapes()[shape].name +
                       (is_mixed ? " and others" : ""));
          expect_all_cables(cards_of(topology, plan, shape, is_mixed), topology);
        }
      }
    }
  }
}

/// All of one cable reach each other, and nobody else.
std::vector<TrialSuccess> successes(const AllCards& cards) {
  std::vector<TrialSuccess> trials;
  for (uint32_t rank = 0; rank < cards.size(); ++rank) {
    for (const TrialSuccess& pair : trial_pairs(cards, {}, rank)) {
      if (cards[pair.from.rank][pair.from.port].device == cards[pair.to.rank][pair.to.port].device) {
        trials.push_back(pair);
      }
    }
  }
  return trials;
}

TEST(GidTables, of_addresses_that_say_nothing_leave_it_to_trials) {
  const Plan plan{"link-local", [](uint32_t c, uint32_t e) { return Addresses{gids({of_link(c, e)}), {}, {}}; }};
  for (const Topology& topology : topologies()) {
    for (size_t shape = 0; shape < shapes().size(); ++shape) {
      SCOPED_TRACE(std::string(topology.name) + ", " + shapes()[shape].name);
      const AllCards cards = cards_of(topology, plan, shape, true);
      const Cables found = match_cables(cards, {.are_trials_made = true, .trials = successes(cards)});
      EXPECT_TRUE(found.conflicts.empty());
      EXPECT_EQ(found.cables.size(), topology.cables.size());
    }
  }
}

TEST(GidTables, of_v1_alone_have_the_other_end_speak_it_too) {
  const Addresses a{gids({"fe80::1"}), gids({"10.0.0.1"}), {}};
  const Addresses b{gids({"fe80::2"}), gids({"10.0.0.2"}), {}};
  AllCards cards = {{card_of("a", of_types(a.all(), {kV1}))}, {card_of("b", of_types(b.all(), {kV1, kV2}))}};
  const auto expect_v1 = [&](const Evidence& evidence) {
    const Cables found = match_cables(cards, evidence);
    ASSERT_EQ(found.cables.size(), 1U);
    EXPECT_EQ(used(cards[0][0], found.cables[0].gid_index_a).type, kV1);
    EXPECT_EQ(used(cards[1][0], found.cables[0].gid_index_b).type, kV1);
  };
  expect_v1({});
  expect_v1({.matrix = {{{}, {"a"}}, {{"b"}, {}}}});
}

TEST(GidTables, without_types_take_the_later_of_two_alike_as_v2) {
  Table table = of_types(gids({"fe80::1", "10.0.0.1"}), {kUnknown, kUnknown});
  guess_types(table);
  EXPECT_EQ(choose_gid(table).chosen->index, 3);
  Table thrice = of_types(gids({"10.0.0.1"}), {kUnknown, kUnknown, kUnknown});
  guess_types(thrice);
  EXPECT_EQ(thrice[0].type, kUnknown);  // of no kernel
  Table known = of_types(gids({"10.0.0.1"}), {kV2, kUnknown});
  guess_types(known);
  EXPECT_EQ(known[1].type, kUnknown);
}

}  // namespace
}  // namespace ringbolt::bringup
