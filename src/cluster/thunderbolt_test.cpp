#include "cluster/thunderbolt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/cabling.h"

namespace ringbolt::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kDevices = "/sys/bus/thunderbolt/devices";
constexpr const char* kConfig = "/sys/kernel/config/thunderbolt/stream";

ThunderboltStream stream(const std::string& name, uint32_t index, int32_t in, int32_t out) {
  return {name, "/dev/tbstream" + std::to_string(index), index, in, out};
}

/// Cabled over `xdomain` to the machine `to`.
ThunderboltPeer peer(const std::string& xdomain, const std::string& own, const std::string& to,
                     std::vector<ThunderboltStream> streams = {}) {
  ThunderboltPeer one{xdomain, "id-" + own, "id-" + to, to + "-box", xdomain + ".1"};
  if (!streams.empty()) {
    one.groups.push_back(xdomain + ".1");
  }
  one.streams = std::move(streams);
  return one;
}

HostThunderbolt machine(const std::string& name, std::vector<ThunderboltPeer> peers) {
  return {name, {"7.2.0-rb", kDevices, kConfig, true, true, true, {"id-" + name}, std::move(peers), {}}};
}

/// Three in a ring; numbers are crossed so that whoever matches by index is wrong.
std::vector<HostThunderbolt> ring() {
  return {machine("a", {peer("0-1", "a", "c", {stream("data", 0, 8, 9)}), peer("0-3", "a", "b", {stream("data", 1, 8, 9)})}),
          machine("b", {peer("0-1", "b", "a", {stream("data", 1, 9, 8)}), peer("0-3", "b", "c", {stream("data", 0, 8, 9)})}),
          machine("c", {peer("0-1", "c", "b", {stream("data", 0, 9, 8)}), peer("0-3", "c", "a", {stream("data", 1, 9, 8)})})};
}

std::vector<std::string> cables(const StreamCabling& found) {
  std::vector<std::string> texts;
  for (const Cable& cable : found.cluster.cables) {
    std::string text;
    for (const CableEnd& end : {cable.a, cable.b}) {
      const Node& node = found.cluster.nodes[end.node];
      text += (text.empty() ? "" : " - ") + node.name + " " + node.ports[end.port].stream;
    }
    texts.push_back(text);
  }
  return texts;
}

TEST(Thunderbolt, matches_ends_by_who_they_lead_to) {
  const StreamCabling found = find_stream_cables(ring());
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(found.setups, IsEmpty());
  EXPECT_THAT(found.notes, IsEmpty());
  EXPECT_THAT(cables(found), ElementsAre("a /dev/tbstream1 - b /dev/tbstream1", "a /dev/tbstream0 - c /dev/tbstream1",
                                         "b /dev/tbstream0 - c /dev/tbstream0"));
  EXPECT_EQ(found.cluster.nodes[0].ports[0].name, "rdma_tbstream1");
  EXPECT_TRUE(with_found_addresses(found.cluster, {{"a", {}}, {"b", {}}, {"c", {}}}));
}

TEST(Thunderbolt, joins_rails_by_name_and_then_by_ids) {
  const StreamCabling found = find_stream_cables(
      {machine("a", {peer("0-1", "a", "b", {stream("x", 0, 8, 9), stream("y", 1, 10, 11), stream("mine", 2, 12, 13)})}),
       machine("b", {peer("0-3", "b", "a", {stream("y", 0, 11, 10), stream("other", 1, 13, 12), stream("x", 2, 9, 8)})})});
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(cables(found), ElementsAre("a /dev/tbstream0+/dev/tbstream1+/dev/tbstream2 - b "
                                         "/dev/tbstream2+/dev/tbstream0+/dev/tbstream1"));
}

TEST(Thunderbolt, joins_parallel_links_of_two_routers_as_rails) {
  const StreamCabling found = find_stream_cables(
      {machine("a", {peer("0-1", "a", "b", {stream("r", 0, 8, 8)}), peer("0-3", "a", "b", {stream("r", 1, 8, 9)})}),
       machine("b", {peer("0-1", "b", "a", {stream("r", 0, 9, 8)}), peer("0-3", "b", "a", {stream("r", 1, 8, 8)})})});
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(cables(found), ElementsAre("a /dev/tbstream0+/dev/tbstream1 - b /dev/tbstream0+/dev/tbstream1"));
}

TEST(Thunderbolt, says_what_to_make_where_there_are_no_streams) {
  const StreamCabling found =
      find_stream_cables({machine("a", {peer("0-1", "a", "b")}), machine("b", {peer("0-3", "b", "a")})});
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(found.setups, ElementsAre(StreamSetup{0, std::string(kConfig) + "/0-1.1", true, true, false, "b"},
                                        StreamSetup{1, std::string(kConfig) + "/0-3.1", true, true, true, "a"}));
  EXPECT_EQ(setup_script(found.setups, 0, false),
            "mkdir -p /sys/kernel/config/thunderbolt/stream/0-1.1/ringbolt\n"
            "[ \"$(cat /sys/kernel/config/thunderbolt/stream/0-1.1/ringbolt/in_hopid)\" -gt 0 ] || echo -1 > "
            "/sys/kernel/config/thunderbolt/stream/0-1.1/ringbolt/in_hopid\n"
            "[ \"$(cat /sys/kernel/config/thunderbolt/stream/0-1.1/ringbolt/out_hopid)\" -gt 0 ] || echo -1 > "
            "/sys/kernel/config/thunderbolt/stream/0-1.1/ringbolt/out_hopid\n");
  EXPECT_EQ(setup_script(found.setups, 0, true), "");
  EXPECT_EQ(setup_script(found.setups, 1, false), "");
  EXPECT_THAT(setup_script(found.setups, 1, true), HasSubstr("mkdir -p /sys/kernel/config/thunderbolt/stream/0-3.1/ringbolt\n"));
  EXPECT_EQ(undo_script(setup_folders(found.setups, 0)),
            "[ ! -d /sys/kernel/config/thunderbolt/stream/0-1.1 ] || flock /sys/kernel/config/thunderbolt/stream/0-1.1 sh -c "
            "'[ ! -d /sys/kernel/config/thunderbolt/stream/0-1.1/ringbolt ] || rmdir "
            "/sys/kernel/config/thunderbolt/stream/0-1.1/ringbolt'\n"
            "[ ! -d /sys/kernel/config/thunderbolt/stream/0-1.1 ] || rmdir /sys/kernel/config/thunderbolt/stream/0-1.1 "
            "2> /dev/null || true\n");
}

TEST(Thunderbolt, makes_only_what_is_missing) {
  // One end is whole, so that the other adopts its ids; what was there is not taken away again.
  const StreamCabling found = find_stream_cables({machine("a", {peer("0-1", "a", "b", {stream("ringbolt", 0, 0, 0)})}),
                                                  machine("b", {peer("0-3", "b", "a", {stream("ringbolt", 0, 8, 9)})})});
  EXPECT_THAT(found.setups, ElementsAre(StreamSetup{0, std::string(kConfig) + "/0-1.1", false, false, true, "b"}));
  EXPECT_THAT(setup_folders(found.setups, 0), IsEmpty());
}

TEST(Thunderbolt, names_files_that_cannot_be_used) {
  std::vector<HostThunderbolt> hosts = ring();
  hosts[0].look.peers[0].streams[0].may_open = false;
  hosts[1].look.peers[0].streams[0].holder = "cat (pid 7)";
  hosts[2].look.peers[0].streams[0].device = "";
  EXPECT_THAT(find_stream_cables(hosts).problems,
              ElementsAre(HasSubstr("b: /dev/tbstream1 is busy: cat (pid 7) has it open"),
                          HasSubstr("a: /dev/tbstream0 may not be opened by the user that ssh logs in as; give its group"),
                          HasSubstr("c: stream data is set up as number 0, but there is no /dev/tbstream0")));
}

TEST(Thunderbolt, refuses_ids_that_do_not_face_each_other) {
  std::vector<HostThunderbolt> hosts = ring();
  hosts[0].look.peers[1].streams[0].out_hopid = 12;
  EXPECT_THAT(find_stream_cables(hosts).problems,
              ElementsAre(HasSubstr("a: stream data of /sys/bus/thunderbolt/devices/0-3 has in_hopid 8 and out_hopid 12, "
                                    "but at b it has 9 and 8")));
}

TEST(Thunderbolt, says_why_a_machine_has_none) {
  const auto reason = [](auto change) {
    HostThunderbolt host = machine("m", {peer("0-1", "m", "x")});
    change(host.look);
    return why_no_streams(host);
  };
  EXPECT_EQ(reason([](ThunderboltLook&) {}), "");
  EXPECT_THAT(reason([](ThunderboltLook& look) { look.has_bus = false; }), HasSubstr("m: there is no /sys/bus/thunderbolt/devices"));
  EXPECT_THAT(reason([](ThunderboltLook& look) { look.kernel = "6.12.3"; }), HasSubstr("m: its kernel is 6.12.3, and streams"));
  EXPECT_THAT(reason([](ThunderboltLook& look) { look.kernel = "7.1"; }), HasSubstr("come with Linux 7.2"));
  EXPECT_EQ(reason([](ThunderboltLook& look) { look.kernel = "8.0"; }), "");
  EXPECT_THAT(reason([](ThunderboltLook& look) { look.has_configfs = false; }), HasSubstr("m: ConfigFS is not mounted"));
  EXPECT_THAT(reason([](ThunderboltLook& look) { look.has_driver = false; }), HasSubstr("modprobe thunderbolt-stream"));
  EXPECT_THAT(reason([](ThunderboltLook& look) { look.peers.clear(); }), HasSubstr("shows no other machine"));
}

TEST(Thunderbolt, names_machines_that_do_not_fit) {
  std::vector<HostThunderbolt> hosts = ring();
  hosts[1].look.peers.clear();
  EXPECT_THAT(find_stream_cables(hosts).problems, ElementsAre(HasSubstr("b: /sys/bus/thunderbolt/devices shows no other")));
  hosts = ring();
  hosts[1].look.peers.pop_back();  // c still sees it
  EXPECT_THAT(find_stream_cables(hosts).problems,
              ElementsAre(HasSubstr("c: /sys/bus/thunderbolt/devices/0-1 leads to b \"b-box\" (id-b), but b shows 0 of the 1")));
  hosts = ring();
  hosts[2].look.own_ids = {"id-a"};
  EXPECT_THAT(find_stream_cables(hosts).problems, ::testing::Contains(HasSubstr("a and c have routers of one identifier, id-a")));
  hosts = {machine("a", {peer("0-1", "a", "b")}), machine("b", {peer("0-3", "b", "a")})};
  hosts[0].look.peers[0].service = "";
  EXPECT_THAT(find_stream_cables(hosts).problems,
              ElementsAre(HasSubstr("a: /sys/bus/thunderbolt/devices/0-1 leads to b \"b-box\" (id-b), which offers no service "
                                    "\"stream\"; modprobe thunderbolt-stream on b")));
}

TEST(Thunderbolt, passes_over_whoever_is_not_among_the_hosts) {
  std::vector<HostThunderbolt> hosts = ring();
  hosts[0].look.peers.push_back(peer("0-5", "a", "stranger"));
  hosts[1].look.peers.push_back({"0-7", "", "", "", "", {"0-7.0"}, {stream("data", 5, 8, 8)}});
  hosts[2].look.strays = {"/dev/tbstream9"};
  const StreamCabling found = find_stream_cables(hosts);
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_EQ(found.cluster.cables.size(), 3U);
  EXPECT_THAT(found.notes,
              ElementsAre(HasSubstr("a: /sys/bus/thunderbolt/devices/0-5 leads to \"stranger-box\" (id-stranger), which is "
                                    "none of the hosts"),
                          HasSubstr("b: /sys/kernel/config/thunderbolt/stream/0-7.0 is set up, but"),
                          HasSubstr("c: /dev/tbstream9 is a stream that no folder")));
  hosts.erase(hosts.begin() + 1, hosts.end());
  EXPECT_THAT(find_stream_cables(hosts).problems,
              ElementsAre(HasSubstr("a: found no Thunderbolt cable from it to another of the hosts; 0-1 leads to \"c-box\"")));
}

TEST(Thunderbolt, is_wanted_where_the_driver_sees_somebody) {
  ThunderboltLook look = ring().front().look;
  EXPECT_TRUE(offers_streams(look));
  look.has_driver = false;
  look.peers[0].streams.clear();
  look.peers[1].streams.clear();
  EXPECT_FALSE(offers_streams(look));
  EXPECT_FALSE(offers_streams({}));
}

}  // namespace
}  // namespace ringbolt::cluster
