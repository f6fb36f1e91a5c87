#include "cluster/cluster_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "cluster/topology.h"

namespace ringbolt::cluster {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kGolden = R"({
  "ringbolt": 1,
  "name": "pair",
  "nodes": [
    {
      "name": "left",
      "ports": [
        "rdma_en2",
        "rdma_en3"
      ]
    },
    {
      "name": "right",
      "ports": [
        "mlx_0"
      ]
    }
  ],
  "cables": [
    {
      "between": [
        "left:rdma_en3",
        "right:mlx_0"
      ],
      "speed_gbps": 200
    }
  ]
}
)";

Cluster golden_cluster() {
  return {"pair", {{"left", {{"rdma_en2"}, {"rdma_en3"}}}, {"right", {{"mlx_0"}}}}, {{{0, 1}, {1, 0}, 200}}};
}

std::string golden_with(std::string_view from, std::string_view to) {
  std::string text(kGolden);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(std::string_view text) {
  const Parsed<Cluster> cluster = parse_cluster(text);
  return cluster ? "accepted" : cluster.error().text();
}

TEST(ClusterFile, parses_the_golden_text) {
  const Parsed<Cluster> cluster = parse_cluster(kGolden);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(*cluster, golden_cluster());
}

TEST(ClusterFile, emits_the_golden_text) { EXPECT_EQ(emit_cluster(golden_cluster()), kGolden); }

TEST(ClusterFile, takes_node_numbers_and_defaults) {
  const Parsed<Cluster> cluster = parse_cluster(
      R"({"ringbolt":1,"nodes":[{"name":"a","ports":["x"]},{"name":"b","ports":["x"]}],
          "cables":[{"between":["1:x","0:x"]}]})");
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->name, "");
  EXPECT_EQ(cluster->cables[0], (Cable{{1, 0}, {0, 0}, kDefaultSpeedGbps}));
}

TEST(ClusterFile, takes_a_loopback_plug) {
  const Parsed<Cluster> cluster =
      parse_cluster(R"({"ringbolt":1,"nodes":[{"name":"a","ports":["x"]}],"cables":[{"between":["a:x","a:x"]}]})");
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(node_spec(*cluster, 0).ports[0].peer_guid, node_spec(*cluster, 0).ports[0].guid);
}

TEST(ClusterFile, names_place_and_problem) {
  EXPECT_EQ(refusal(""), "line 1: no JSON: there is nothing in it");
  EXPECT_THAT(refusal("{\n\n]"), HasSubstr("line 3: no JSON at byte 4, where \"]\" is"));
  EXPECT_EQ(refusal("{\n\"ringbolt\": 1"), "line 2: no JSON: it ends in the middle, after 15 bytes; is it whole?");
  EXPECT_THAT(refusal("[]"), HasSubstr("is no object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("\"ringbolt\" is missing"));
  EXPECT_THAT(refusal(golden_with("\"ringbolt\": 1", "\"ringbolt\": 2")), HasSubstr("from 1 to 1"));
  EXPECT_THAT(refusal(golden_with("\"pair\"", "\"../pair\"")), HasSubstr("name: \"../pair\" is not 1 to 32"));
  EXPECT_THAT(refusal(golden_with("\"name\": \"left\"", "\"nmae\": \"left\"")), HasSubstr("nodes[0]: unknown field"));
  EXPECT_THAT(refusal(golden_with("\"name\": \"left\"", "\"name\": \"a\", \"name\": \"left\"")),
              HasSubstr("field \"name\" occurs twice"));
  EXPECT_THAT(refusal(golden_with("\"right\"", "\"left\"")), HasSubstr("nodes[1].name: node left is named twice"));
  EXPECT_THAT(refusal(golden_with("\"rdma_en3\"", "\"rdma_en2\"")),
              HasSubstr("nodes[0].ports[1]: port rdma_en2 is named"));
  EXPECT_THAT(refusal(golden_with("\"rdma_en3\"", "7")), HasSubstr("nodes[0].ports[1]: is no text"));
  EXPECT_THAT(refusal(golden_with("left:rdma_en3", "left:rdma_en9")),
              HasSubstr("cables[0].between[0]: node left has no port \"rdma_en9\" (it has rdma_en2, rdma_en3)"));
  EXPECT_THAT(refusal(golden_with("left:rdma_en3", "2:rdma_en3")), HasSubstr("node \"2\" is out of range"));
  EXPECT_THAT(refusal(golden_with("left:rdma_en3", "99999999999999999999:x")), HasSubstr("is out of range"));
  EXPECT_THAT(refusal(golden_with("left:rdma_en3", "up:rdma_en3")), HasSubstr("no node \"up\" among the 2"));
  EXPECT_THAT(refusal(golden_with("left:rdma_en3", "left")), HasSubstr("is no NODE:PORT"));
  for (const char* speed : {"0", "-1", "1e3", "10001", "99999999999999999999999", "1.5", "\"40\"", "null"}) {
    EXPECT_THAT(refusal(golden_with("200", speed)), HasSubstr("cables[0].speed_gbps: is no whole number")) << speed;
  }
  EXPECT_THAT(refusal(golden_with("200", "1e999")), HasSubstr("no JSON that can be held"));
}

TEST(ClusterFile, refuses_a_port_with_two_cables) {
  EXPECT_THAT(refusal(R"({"ringbolt":1,"nodes":[{"name":"a","ports":["x","y"]},{"name":"b","ports":["x","y"]}],
                          "cables":[{"between":["a:x","b:x"]},{"between":["b:x","a:y"]}]})"),
              HasSubstr("cables[1].between[0]: b:x has cable 0 already"));
}

TEST(ClusterFile, refuses_a_cluster_without_cables) {
  EXPECT_THAT(refusal(R"({"ringbolt":1,"nodes":[{"name":"a","ports":[]}],"cables":[]})"),
              HasSubstr("cables: is no list of 1 to"));
}

TEST(ClusterFile, bounds_nesting) {
  EXPECT_THAT(refusal(std::string(1'000'000, '[')), HasSubstr("nested deeper"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) {
    deep += "{\"a\":";
  }
  EXPECT_THAT(refusal(deep), HasSubstr("nested deeper"));
}

TEST(ClusterFile, quotes_hostile_text_in_part_and_without_control_bytes) {
  const std::string said = refusal(golden_with("\"pair\"", "\"\\u001b[2J" + std::string(500, 'x') + "\""));
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
  EXPECT_LT(said.size(), 200U);
}

TEST(ClusterFile, every_topology_round_trips) {
  for (const char* topology : {"mesh:9", "ring:2", "ring:250", "line:5", "star:250", "torus:3x4", "petersen", "loop"}) {
    const Parsed<Cluster> cluster = parse_topology(topology);
    ASSERT_TRUE(cluster);
    const Parsed<Cluster> again = parse_cluster(emit_cluster(*cluster));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, *cluster) << topology;
  }
}

TEST(ClusterFile, survives_any_change_of_bytes) {
  EXPECT_TRUE(rc::check("changing bytes never crashes; what is accepted can be written and read", [] {
    std::string text(kGolden);
    const auto edits = *rc::gen::inRange(1, 4);
    for (int i = 0; i < edits; ++i) {
      const auto at = *rc::gen::inRange<size_t>(0, text.size());
      const auto length = *rc::gen::inRange<size_t>(0, 12);
      text.replace(at, length,
                   *rc::gen::element<std::string>("", "\"", "{", "[", "9", "-1", "null", "\xff", "\\u0000"));
      RC_PRE(!text.empty());
    }
    const Parsed<Cluster> cluster = parse_cluster(text);
    if (cluster) {
      RC_ASSERT((parse_cluster(emit_cluster(*cluster)) == cluster));
    } else {
      RC_ASSERT(!cluster.error().problem.empty());
    }
  }));
}

constexpr std::string_view kOnInterfaces = R"({
  "ringbolt": 1,
  "name": "pair",
  "kind": "hosts",
  "mtu": 1500,
  "management": false,
  "nodes": [
    {
      "name": "left",
      "host": "root@10.0.0.1",
      "ports": [
        {
          "name": "rdma_en2",
          "netdev": "enp1s0",
          "addresses": [
            "fe80::1/64",
            "10.1.0.1/30"
          ]
        },
        "rdma_en3"
      ]
    },
    {
      "name": "right",
      "ports": [
        {
          "name": "mlx_0",
          "netdev": "tb0"
        }
      ]
    }
  ],
  "cables": [
    {
      "between": [
        "left:rdma_en2",
        "right:mlx_0"
      ],
      "speed_gbps": 40,
      "rate_mbps": 2500
    }
  ]
}
)";

TEST(ClusterFile, keeps_interfaces_hosts_and_rates) {
  const Parsed<Cluster> cluster = parse_cluster(kOnInterfaces);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->kind, Kind::hosts);
  EXPECT_EQ(cluster->mtu, 1500U);
  EXPECT_FALSE(cluster->has_management);
  EXPECT_EQ(cluster->nodes[0].host, "root@10.0.0.1");
  EXPECT_EQ(cluster->nodes[0].ports[0].netdev, "enp1s0");
  EXPECT_EQ(cluster->nodes[0].ports[0].addresses.size(), 2U);
  EXPECT_EQ(cluster->nodes[0].ports[1], Port{"rdma_en3"});
  EXPECT_EQ(cluster->cables[0].rate_mbps, 2500U);
  EXPECT_EQ(emit_cluster(*cluster), kOnInterfaces);
}

std::string refusal_on_interfaces(std::string_view from, std::string_view to) {
  std::string text(kOnInterfaces);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return refusal(text.replace(at, from.size(), to));
}

TEST(ClusterFile, refuses_bad_interfaces_by_their_place) {
  EXPECT_THAT(refusal_on_interfaces("\"hosts\"", "\"real\""), HasSubstr("kind: \"real\" is none of emulated, netns"));
  EXPECT_THAT(refusal_on_interfaces("1500", "1279"), HasSubstr("mtu: is no whole number from 1280 to 65535"));
  EXPECT_THAT(refusal_on_interfaces("\"management\": false", "\"management\": 0"),
              HasSubstr("management: must be true or false"));
  EXPECT_THAT(refusal_on_interfaces("\"enp1s0\"", "\"en p\""), HasSubstr("nodes[0].ports[0].netdev: \"en p\" is not"));
  EXPECT_THAT(refusal_on_interfaces("\"enp1s0\"", "\"lo\""), HasSubstr("nodes[0].ports[0].netdev"));
  EXPECT_THAT(refusal_on_interfaces("\"rdma_en3\"", R"({"name": "x", "netdev": "enp1s0"})"),
              HasSubstr("nodes[0].ports[1].netdev: enp1s0 carries rdma_en2 already"));
  EXPECT_THAT(refusal_on_interfaces("10.1.0.1/30", "10.1.0.1"), HasSubstr("addresses[1]: \"10.1.0.1\" is no address"));
  EXPECT_THAT(refusal_on_interfaces("10.1.0.1/30", "10.1.0.1/33"), HasSubstr("addresses[1]"));
  EXPECT_THAT(refusal_on_interfaces("root@10.0.0.1", "-oProxyCommand=x"), HasSubstr("nodes[0].host"));
  EXPECT_THAT(refusal_on_interfaces("root@10.0.0.1", "a b"), HasSubstr("nodes[0].host"));
  EXPECT_THAT(refusal_on_interfaces("\"netdev\": \"tb0\"", "\"addresses\": []"),
              HasSubstr("cables[0]: right:mlx_0 has no netdev, which kind hosts needs"));
  EXPECT_THAT(refusal_on_interfaces("2500", "0"), HasSubstr("cables[0].rate_mbps"));
}

TEST(ClusterFile, keeps_the_numbers_of_cables) {
  const auto with_ids = [](std::string_view first, std::string_view second) {
    return parse_cluster(fmt::format(R"({{"ringbolt": 1, "nodes": [{{"name": "a", "ports": ["p", "q", "r"]}},
        {{"name": "b", "ports": ["p", "q", "r"]}}], "cables": [{{{}"between": ["a:p", "b:p"]}},
        {{{}"between": ["b:q", "a:q"]}}, {{"between": ["a:r", "b:r"]}}]}})",
                                     first, second));
  };
  const Parsed<Cluster> cluster = with_ids("\"id\": 7, ", "\"id\": 0, ");
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->cables[0].id, 7U);
  EXPECT_EQ(cluster->cables[1].id, 0U);
  EXPECT_FALSE(cluster->cables[2].id);
  EXPECT_EQ(parse_cluster(emit_cluster(*cluster)), cluster);
  EXPECT_TRUE(with_ids("\"id\": 16383, ", "\"id\": 16382, "));
  const auto refused = [&](std::string_view second) {
    const Parsed<Cluster> other = with_ids("\"id\": 7, ", second);
    return other ? "accepted" : other.error().text();
  };
  EXPECT_THAT(refused("\"id\": 7, "), HasSubstr("cables[1].id: 7 is the number of cables[0] (a:p-b:p) already"));
  EXPECT_THAT(refused("\"id\": 16384, "), HasSubstr("cables[1].id: is no whole number from 0 to 16383"));
  EXPECT_THAT(refused("\"id\": -1, "), HasSubstr("cables[1].id: is no whole number"));
  EXPECT_THAT(refused("\"id\": \"7\", "), HasSubstr("cables[1].id: is no whole number"));
}

constexpr std::string_view kOnStreams = R"({"ringbolt": 1, "name": "s", "kind": "hosts", "nodes": [
  {"name": "a", "ports": [{"name": "tb", "stream": "/dev/tbstream0+/dev/tbstream1"}, {"name": "tc", "stream": "fd:3,4"}]},
  {"name": "b", "ports": [{"name": "tb", "stream": "tcp:[::1]:77"}]}],
  "cables": [{"between": ["a:tb", "b:tb"]}]})";

std::string on_streams_with(std::string_view from, std::string_view to) {
  std::string text(kOnStreams);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  const Parsed<Cluster> cluster = parse_cluster(text.replace(at, from.size(), to));
  return cluster ? "accepted" : cluster.error().text();
}

TEST(ClusterFile, keeps_streams) {
  const Parsed<Cluster> cluster = parse_cluster(kOnStreams);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->nodes[0].ports[0].stream, "/dev/tbstream0+/dev/tbstream1");
  EXPECT_EQ(cluster->nodes[1].ports[0], (Port{"tb", "", {}, "tcp:[::1]:77"}));
  EXPECT_EQ(parse_cluster(emit_cluster(*cluster)), cluster);
}

TEST(ClusterFile, refuses_bad_streams_by_their_place) {
  EXPECT_EQ(on_streams_with("fd:3,4", "fd:3,5"), "accepted");
  EXPECT_THAT(on_streams_with("fd:3,4", "fd: 3"), HasSubstr("nodes[0].ports[1].stream: \"fd: 3\" is not 1 to 255"));
  EXPECT_THAT(on_streams_with("fd:3,4", "a;b"), HasSubstr("nodes[0].ports[1].stream"));
  EXPECT_THAT(on_streams_with("fd:3,4", ""), HasSubstr("nodes[0].ports[1].stream"));
  EXPECT_THAT(on_streams_with("fd:3,4", std::string(256, 'x')), HasSubstr("nodes[0].ports[1].stream"));
  EXPECT_EQ(on_streams_with("fd:3,4", std::string(255, 'x')), "accepted");
  EXPECT_THAT(on_streams_with("\"fd:3,4\"", "7"), HasSubstr("nodes[0].ports[1].stream"));
  EXPECT_THAT(on_streams_with("fd:3,4", "/dev/tbstream0+/dev/tbstream1"),
              HasSubstr("nodes[0].ports[1].stream: /dev/tbstream0+/dev/tbstream1 carries tb already"));
  EXPECT_THAT(on_streams_with("\"stream\": \"fd:3,4\"", R"("netdev": "en3", "stream": "fd:3,4")"),
              HasSubstr("beside a netdev"));
  EXPECT_THAT(on_streams_with("\"hosts\"", "\"netns\""),
              HasSubstr("cables[0]: a:tb has no netdev, which kind netns needs"));
}

}  // namespace
}  // namespace ringbolt::cluster
