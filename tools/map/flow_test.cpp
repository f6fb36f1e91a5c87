#include "map/view.h"

#include <cstring>

#include <gtest/gtest.h>

#include "cluster/counter_page.h"
#include "cluster/topology.h"

namespace ringbolt::tools::map {
namespace {

using State = CableFlow::State;

/// The counters of a port, all zero but for these.
PortCounts port(const std::string& node, const std::string& device,
                const std::vector<std::pair<std::string, uint64_t>>& counts) {
  PortCounts made{"line-2", node, device, "up", 100, {}};
  for (const RingboltCounter& counter : cluster::all_counters()) {
    made.values.push_back(0);
    for (const auto& [name, value] : counts) {
      if (name == counter.name && std::strcmp(counter.folder, "counters") == 0) {
        made.values.back() = value;
      }
    }
  }
  return made;
}

/// Words of four bytes that n0 and n1 have sent.
Sample sample(uint64_t time_ns, uint64_t a_words, uint64_t b_words, uint64_t discards = 0) {
  return {time_ns,
          {port("n0", "rdma_en2", {{"port_xmit_data", a_words}, {"port_rcv_data", b_words}}),
           port("n1", "rdma_en2",
                {{"port_xmit_data", b_words}, {"port_rcv_data", a_words}, {"port_xmit_discards", discards}})},
          {true}};
}

const cluster::Cluster kLine = *cluster::parse_topology("line:2");

TEST(Flow, is_what_has_moved_in_each_direction) {
  const auto flows = flows_between(kLine, sample(1'000'000'000, 100, 50), sample(3'000'000'000, 1100, 50, 3));
  ASSERT_EQ(flows.size(), 1U);
  EXPECT_EQ(flows[0].state, State::kActive);
  EXPECT_EQ(flows[0].a_to_b_bytes_per_s, 2000);
  EXPECT_EQ(flows[0].b_to_a_bytes_per_s, 0);
  EXPECT_EQ(flows[0].a_to_b_bytes, 4400U);
  EXPECT_EQ(flows[0].errors, (std::vector<std::pair<std::string, uint64_t>>{{"port_xmit_discards", 3}}));
  EXPECT_EQ(flows[0].n_new_errors, 3U);
}

TEST(Flow, old_errors_are_not_new_ones) {
  const auto flows = flows_between(kLine, sample(1, 0, 0, 3), sample(2, 0, 0, 3));
  EXPECT_EQ(flows[0].n_errors, 3U);
  EXPECT_EQ(flows[0].n_new_errors, 0U);
}

TEST(Flow, of_one_sample_is_nothing) {
  const Sample one = sample(5, 100, 100);
  EXPECT_EQ(flows_between(kLine, one, one)[0].a_to_b_bytes_per_s, 0);
}

TEST(Flow, counters_made_anew_are_no_huge_rate) {
  EXPECT_EQ(flows_between(kLine, sample(1, 1000, 0), sample(2, 10, 0))[0].a_to_b_bytes_per_s, 0);
}

TEST(Flow, knows_cut_cables_and_ends_that_do_not_answer) {
  Sample now = sample(2, 10, 10);
  now.is_up[0] = false;
  EXPECT_EQ(flows_between(kLine, sample(1, 0, 0), now)[0].state, State::kCut);
  now.is_up[0] = true;
  now.ports.erase(now.ports.begin());
  const CableFlow half = flows_between(kLine, now, now)[0];
  EXPECT_EQ(half.state, State::kDown);
  EXPECT_EQ(half.a_to_b_bytes, 40U) << "by what the other end has received";
  EXPECT_EQ(flows_between(kLine, sample(1, 0, 0), now)[0].a_to_b_bytes_per_s, 0) << "one end has gone in between";
}

TEST(Flow, a_loopback_plug_counts_its_port_once) {
  const cluster::Cluster loop = *cluster::parse_topology("loop");
  Sample now{2, {port(loop.nodes[0].name, "rdma_en2", {{"port_xmit_discards", 2}})}, {true}};
  EXPECT_EQ(flows_between(loop, now, now)[0].n_errors, 2U);
}

}  // namespace
}  // namespace ringbolt::tools::map
