#include "circuit/network.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "bringup/gid_test_support.h"
#include "circuit/devices.h"
#include "verbs/soft_device_test_support.h"

// What members know of their cables while these are pulled, plugged in, and plugged in elsewhere: each with a node of
// its own.
namespace ringbolt::circuit {
namespace {

using PortId = std::pair<NodeId, uint16_t>;

/// Who is cabled to whom, and which addresses ports have.
struct Cabling {
  void plug(PortId a, PortId b) {
    cables[a] = b;
    cables[b] = a;
  }
  void pull(PortId a) {
    cables.erase(cables.at(a));
    cables.erase(a);
  }
  /// Unless a test says otherwise, one that says nothing of who is at the other end.
  std::optional<std::string> address_of(PortId port) const {
    const auto found = addresses.find(port);
    return found != addresses.end() ? found->second
                                    : "127.77." + std::to_string(port.first) + "." + std::to_string(port.second + 1);
  }
  std::map<PortId, PortId> cables;
  std::map<PortId, std::optional<std::string>> addresses;
};

class CabledPorts final : public OwnPorts {
 public:
  CabledPorts(const Cabling& cabling, NodeId node, uint16_t n) : cabling_(cabling), node_(node), cards_(n) {
    for (uint16_t port = 0; port < n; ++port) {
      (void)(is_active(port) && look_again(port));
    }
  }
  const std::vector<bringup::PortCard>& cards() const override { return cards_; }
  bool is_active(uint16_t port) const override { return cabling_.cables.contains({node_, port}); }
  bool look_again(uint16_t port) override {
    ++n_looks;
    const auto address = cabling_.address_of({node_, port});
    if (!address) {
      return false;
    }
    cards_[port] = {.device = "en" + std::to_string(port),
                    .rate_mbps = 40'000,
                    .gid_index = 1,
                    .gids = {{1, bringup::test::gid(*address)}}};
    cards_[port].capabilities.has_rc = true;
    return true;
  }
  std::vector<int> try_candidates(uint16_t port, std::span<const bringup::TrialCandidate> there) override {
    std::vector<int> errors;
    const auto other = cabling_.cables.find({node_, port});
    for (const bringup::TrialCandidate& one : there) {
      const auto address = other == cabling_.cables.end() ? std::nullopt : cabling_.address_of(other->second);
      errors.push_back(address && one.gid == bringup::test::gid(*address) ? 0 : ENETUNREACH);
    }
    return errors;
  }
  int n_looks = 0;

 private:
  const Cabling& cabling_;
  const NodeId node_;
  std::vector<bringup::PortCard> cards_;
};

struct Member {
  Member(const Cabling& cabling, NodeId node, uint16_t n_ports)
      : ports(cabling, node, n_ports), network(ports, node, node) {}
  CabledPorts ports;
  Network network;
};

class Networks : public testing::Test {
 protected:
  Member& add(NodeId node, uint16_t n_ports = 2) {
    return *(members[node] = std::make_unique<Member>(cabling, node, n_ports));
  }
  /// One look of one member, and what it has to say then.
  void look(NodeId node) {
    Network& network = members.at(node)->network;
    bool has_news = network.look_at_ports(now_ns);
    has_news = network.try_ports(now_ns) || has_news;
    if (has_news || !announced.contains(node)) {
      announced.insert(node);
      for (const auto& [other, member] : members) {
        if (other != node) {
          member->network.hear(announcement_of(node));
        }
      }
    }
  }
  void settle() {
    for (int round = 0; round < 100; ++round) {
      now_ns += 50'000'000;
      for (const auto& [node, member] : members) {
        look(node);
      }
    }
  }
  membership::Announcement announcement_of(NodeId node) const {
    membership::Announcement one;
    one.contact.member = node;
    one.node = node;
    one.name = "n" + std::to_string(node);
    one.details = emit(members.at(node)->network.own());
    return one;
  }
  /// The pairs of ports by which `from` reaches `to` directly.
  std::set<std::pair<uint16_t, uint16_t>> cables(NodeId from, NodeId to) {
    std::set<std::pair<uint16_t, uint16_t>> found;
    for (const PlannedPath& one : members.at(from)->network.paths_to(to)) {
      if (one.path.size() == 2) {
        found.insert({one.path[0].exit.port, one.path[1].entry.port});
      }
    }
    return found;
  }
  using Pairs = std::set<std::pair<uint16_t, uint16_t>>;

  Cabling cabling;
  std::map<NodeId, std::unique_ptr<Member>> members;
  std::set<NodeId> announced;
  uint64_t now_ns = 1'000'000'000;
};

TEST_F(Networks, use_a_port_that_comes_up_later) {
  cabling.plug({1, 0}, {2, 0});
  add(1);
  add(2);
  settle();
  EXPECT_EQ(cables(1, 2), (Pairs{{0, 0}}));
  cabling.plug({1, 1}, {2, 1});
  settle();
  EXPECT_EQ(cables(1, 2), (Pairs{{0, 0}, {1, 1}}));
  EXPECT_EQ(cables(2, 1), (Pairs{{0, 0}, {1, 1}}));
  EXPECT_EQ(members.at(1)->network.take_come_up(), std::vector<uint16_t>{1});
}

TEST_F(Networks, tell_of_links_at_ports_that_only_another_member_of_the_node_has) {
  cabling.plug({1, 1}, {2, 1});
  add(1);
  add(2);
  settle();
  CabledPorts ports(cabling, 1, 1);
  Network late(ports, 1, 100);  // member 1 counts for the node
  late.hear(announcement_of(1));
  late.hear(announcement_of(2));
  EXPECT_EQ(late.text_of_links(), "? to n2");
}

TEST_F(Networks, wait_for_a_port_to_have_an_address) {
  cabling.plug({1, 0}, {2, 0});
  cabling.plug({1, 1}, {2, 1});
  cabling.addresses[{1, 1}] = std::nullopt;
  const Member& one = add(1);
  add(2);
  const int n_before = one.ports.n_looks;
  settle();
  EXPECT_EQ(cables(2, 1), (Pairs{{0, 0}}));
  EXPECT_LE(one.ports.n_looks - n_before, 8) << "rarer and rarer in 5 s";
  cabling.addresses.clear();
  settle();
  EXPECT_EQ(cables(2, 1), (Pairs{{0, 0}, {1, 1}}));
}

TEST_F(Networks, find_where_a_port_leads_that_was_cabled_anew) {
  cabling.plug({1, 0}, {2, 0});
  add(1);
  add(2);
  add(3);
  settle();
  EXPECT_EQ(cables(1, 2), (Pairs{{0, 0}}));
  EXPECT_EQ(cables(1, 3), Pairs());
  cabling.pull({1, 0});
  settle();
  EXPECT_EQ(cables(1, 2), Pairs());
  cabling.plug({1, 0}, {3, 1});
  settle();
  EXPECT_EQ(cables(1, 2), Pairs());
  EXPECT_EQ(cables(1, 3), (Pairs{{0, 1}}));
  EXPECT_EQ(cables(3, 1), (Pairs{{1, 0}}));
  EXPECT_EQ(members.at(1)->network.own().found, (std::vector<FoundCable>{{0, 3, 1}}))
      << "what was found before is gone";
  cabling.pull({1, 0});
  cabling.plug({1, 0}, {2, 0});
  cabling.pull({1, 0});
  settle();
  cabling.plug({1, 0}, {2, 0});
  settle();
  EXPECT_EQ(cables(1, 2), (Pairs{{0, 0}})) << "as at first";
  EXPECT_EQ(cables(1, 3), Pairs());
}

TEST_F(Networks, find_anew_what_only_the_other_end_has_seen_come_and_go) {
  cabling.plug({1, 0}, {2, 0});
  cabling.plug({1, 1}, {2, 1});
  add(1);
  add(2);
  settle();
  EXPECT_EQ(cables(1, 2), (Pairs{{0, 0}, {1, 1}}));
  cabling.pull({1, 0});
  cabling.pull({1, 1});
  look(2);
  cabling.plug({1, 0}, {2, 1});  // crossed, before the first one looks
  cabling.plug({1, 1}, {2, 0});
  settle();
  EXPECT_EQ(cables(1, 2), (Pairs{{0, 1}, {1, 0}}));
  EXPECT_EQ(cables(2, 1), (Pairs{{0, 1}, {1, 0}}));
}

TEST_F(Networks, take_the_addresses_that_a_port_has_when_it_comes_back) {
  cabling.addresses = {{{1, 0}, "10.1.0.1"}, {{2, 0}, "10.1.0.2"}, {{3, 0}, "10.2.0.2"}};
  cabling.plug({1, 0}, {2, 0});
  cabling.plug({3, 0}, {3, 1});
  add(1);
  add(2);
  add(3);
  settle();
  EXPECT_EQ(cables(1, 2), (Pairs{{0, 0}}));
  cabling.pull({1, 0});
  cabling.pull({3, 0});
  settle();
  cabling.addresses[{1, 0}] = "10.2.0.1";
  cabling.plug({1, 0}, {3, 0});
  settle();
  EXPECT_EQ(cables(1, 2), Pairs());
  EXPECT_EQ(cables(1, 3), (Pairs{{0, 0}}));
  EXPECT_EQ(members.at(3)->network.paths_to(1).at(0).path.at(1).entry.gid_index, 1);
}

TEST_F(Networks, plan_over_no_port_of_which_its_member_knows_nothing) {
  cabling.plug({1, 0}, {2, 0});
  add(1);
  add(2);
  settle();
  // Another process on the second one's node, of a lesser number, that sees the other port come up before the first
  // does.
  cabling.plug({1, 1}, {2, 1});
  const CabledPorts early_ports(cabling, 2, 2);
  membership::Announcement early = announcement_of(2);
  NodePorts its = members.at(2)->network.own();
  its.cards = early_ports.cards();
  its.is_active = {true, true};
  its.found = {{0, 1, 0}, {1, 1, 1}};
  early.contact.member = 0;
  early.details = emit(its);
  members.at(1)->network.hear(early);
  look(1);
  EXPECT_EQ(cables(1, 2), (Pairs{{0, 0}}));
  EXPECT_EQ(cables(1, 0), (Pairs{{0, 0}, {1, 1}}));
  settle();
  EXPECT_EQ(cables(1, 2), (Pairs{{0, 0}, {1, 1}}));
}

TEST(DevicePorts, have_numbers_while_they_are_down) {
  const verbs::test::RuntimeFolder folder;
  const verbs::Library library = verbs::Library::open("soft");
  bringup::Survey survey = bringup::survey(library);
  ASSERT_FALSE(survey.usable.empty());
  const std::string name = survey.usable.front().card.device;
  const size_t n = survey.usable.size();
  survey.unusable.push_back({"aaa", 1, "it is down"});
  survey.unusable.push_back({"zzz", 0, "it does not open"});
  Devices devices(library, survey);
  ASSERT_EQ(devices.cards().size(), n + 2);
  EXPECT_FALSE(devices.has_port(0));
  EXPECT_TRUE(devices.has_port(1));
  EXPECT_EQ(devices.first_port(), 1) << "of the one before it there is no device that memory could be registered with";
  EXPECT_EQ(devices.cards()[1].device, name);
  EXPECT_FALSE(devices.has_port(static_cast<uint16_t>(n + 1)));
  EXPECT_FALSE(devices.is_active(0));
  EXPECT_FALSE(devices.look_again(0)) << "there is no such device";

  survey.usable.clear();  // as if it had been down
  survey.unusable.push_back({name, 1, "it is down"});
  Devices down(library, survey);
  EXPECT_FALSE(down.has_port(1));
  EXPECT_TRUE(down.is_active(1));
  EXPECT_TRUE(down.look_again(1));
  EXPECT_TRUE(down.has_port(1));
  EXPECT_EQ(down.cards()[1], devices.cards()[1]);
}

}  // namespace
}  // namespace ringbolt::circuit
