// What is read out of texts, and what becomes a finding: the parts that whole recordings leave in the dark.
#include "doctor/facts.h"

#include <gtest/gtest.h>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

std::unique_ptr<const Facts> facts_with(std::initializer_list<Reading> readings) {
  Recording recording;
  for (const Reading& one : readings) {
    recording.put(one);
  }
  return facts_of(std::move(recording));
}

std::string net_files(const std::string& name, const std::string& more) {
  return "/sys/class/net/" + name + "/flags:0x1003\n/sys/class/net/" + name + "/carrier:1\n" + more;
}

TEST(Facts, words_and_numbers_of_any_text) {
  EXPECT_EQ(word_at("a  b\tc\\", 2), "c");
  EXPECT_EQ(word_at("a b", 2), "");
  EXPECT_EQ(word_after("to via x via y", "via"), "x");
  EXPECT_EQ(word_after("default via", "via"), "");
  EXPECT_EQ(word_after("", "via"), "");
  EXPECT_EQ(number_of(" 0x1f rest"), 31U);
  EXPECT_EQ(number_of("-1"), 0U);
  EXPECT_EQ(number_of("99999999999999999999999"), UINT64_MAX);
  EXPECT_TRUE(contains("RoCE V2", "v2"));
  EXPECT_FALSE(contains("", "a"));
  EXPECT_EQ(line_with("x\nabc\nABd", "ab"), "abc");
}

TEST(Facts, versions_are_compared_by_their_numbers) {
  EXPECT_TRUE(is_older("26.1.3", 26, 2));
  EXPECT_TRUE(is_older("6.8.0-50-generic", 6, 14));
  EXPECT_TRUE(is_older("26", 26, 2));
  EXPECT_FALSE(is_older("26.2", 26, 2));
  EXPECT_FALSE(is_older("27.0", 26, 2));
  EXPECT_FALSE(is_older("6.14.0", 6, 14));
}

TEST(Facts, an_interface_of_linux) {
  const auto facts = facts_with(
      {{"a", "interfaces",
        net_files("en2", "/sys/class/net/en2/mtu:9000\n/sys/class/net/en2/speed:-1\n") +
            net_files("en3", "/sys/class/net/en3/speed:200000\n") + net_files("bad name", "")},
       {"a", "links", "/sys/class/net/en2/master -> ../../br0\n/sys/class/net/en2/device -> ../../0000:01:00.0\n"},
       {"a", "ip -o address",
        "2: en2    inet 10.0.0.1/24 scope global en2\\ valid\n2: en2 inet6 fe80::1/64 dadfailed\n9: no"},
       {"a", "ip -6 route", "default via fe80::9 dev en2 metric 1\n"},
       {"a", "tc qdisc show",
        "qdisc tbf 1: dev en2 root rate 100Kbit\nqdisc tbf 1: dev en3 root rate 2Gbit burst 1\n"}});
  const Host& host = facts->hosts.at(0);
  ASSERT_EQ(host.netdevs.size(), 2U);  // a name that would need quoting is none
  const Netdev& one = host.netdevs[0];
  EXPECT_EQ(one.host, &host);
  EXPECT_EQ(one.master, "br0");
  EXPECT_EQ(one.pci, "0000:01:00.0");
  EXPECT_EQ(one.mtu, 9000U);
  EXPECT_EQ(one.speed_mbps, 0U);
  EXPECT_TRUE(one.is_up.value() && one.has_carrier.value() && one.has_default_route);
  EXPECT_EQ(one.shaped_mbps, 1U);
  EXPECT_EQ(host.netdevs[1].shaped_mbps, 2000U);
  ASSERT_EQ(one.addresses.size(), 2U);
  EXPECT_EQ(one.ipv4()->line, "2: en2    inet 10.0.0.1/24 scope global en2");
  EXPECT_FALSE(one.addresses[0].is_duplicate);
  EXPECT_TRUE(one.addresses[1].is_duplicate);
}

TEST(Facts, ports_of_a_device_are_devices_and_gids_are_in_order) {
  const std::string port = "/sys/class/infiniband/m/ports/";
  const auto facts = facts_with(
      {{"a", "devices",
        port + "1/state:4: ACTIVE\n" + port + "1/gids/10:0000:0000:0000:0000:0000:ffff:0a00:0001\n" + port +
            "1/gid_attrs/types/10:RoCE v2\n" + port + "1/gids/9:0000:0000:0000:0000:0000:ffff:0a00:0002\n" + port +
            "1/gid_attrs/types/9:IB/RoCE v1\n" + port + "1/gid_attrs/ndevs/9:en2\n" + port + "2/state:1: DOWN\n"},
       {"a", "links", "/sys/class/infiniband/m/device/net/en7 -> en7\n"}});
  const Host& host = facts->hosts.at(0);
  ASSERT_EQ(host.devices.size(), 2U);
  EXPECT_EQ(host.devices[0].gids.front().index, 9U);
  EXPECT_EQ(host.devices[0].ipv4_gid()->index, 10U);  // the one of RoCE v1 is no use
  EXPECT_EQ(host.devices[0].netdev, "en2");
  EXPECT_EQ(host.devices[1].netdev, "en7");
  EXPECT_TRUE(host.devices[0].is_active());
  EXPECT_FALSE(host.devices[1].is_active());
}

TEST(Facts, an_interface_and_a_device_of_a_mac) {
  const auto facts =
      facts_with({{"m", "uname", "Darwin\n"},
                  {"m", "ifconfig -a",
                   "lo0: flags=1<UP> mtu 1\nen5: flags=8863<UP,X> mtu 1500\n\tinet 10.0.5.1 netmask 0xfffffffc\n"
                   "\tinet6 fe80::1%en5 prefixlen 64\n\tstatus: inactive\nbridge0: flags=2<X> mtu 1500\n"
                   "\tmember: en5 flags=3\n"},
                  {"m", "ibv_devinfo -v",
                   "hca_id:\trdma_en5\n\tstate:\tPORT_ACTIVE (4)\n\tGID[  0]:\tfe80::1\n"
                   "\tGID[  1]:\t::ffff:10.0.5.1, RoCE v2\n\tGID[  2]:\t::\n"}});
  const Host& host = facts->hosts.at(0);
  ASSERT_EQ(host.netdevs.size(), 2U);
  const Netdev& port = host.netdevs[0];
  EXPECT_EQ(port.ipv4()->ip.text_with_prefix(), "10.0.5.1/30");
  EXPECT_EQ(port.addresses.at(1).ip.prefix_bits, 64);
  EXPECT_EQ(port.master, "bridge0");
  EXPECT_TRUE(port.is_up.value() && !port.has_carrier.value() && port.is_cabled);
  EXPECT_FALSE(host.netdevs[1].is_up.value());
  EXPECT_EQ(port.file("mtu").text, "en5: flags=8863<UP,X> mtu 1500");
  ASSERT_EQ(host.devices.size(), 1U);
  EXPECT_EQ(host.devices[0].gids.size(), 2U);
  EXPECT_EQ(host.devices[0].ipv4_gid()->index, 1U);
  EXPECT_EQ(host.device_on("en5"), &host.devices[0]);
}

/// Two hosts whose ports en2 are in one subnet.
std::unique_ptr<const Facts> pair_of_hosts(const std::string& second_address, const std::string& route) {
  return facts_with({{"a", "interfaces", net_files("en2", "")},
                     {"a", "ip -o address", "2: en2 inet 10.0.0.1/24\n"},
                     {"b", "interfaces", net_files("en2", "")},
                     {"b", "ip -o address", "2: en2 inet " + second_address + "\n"},
                     {"b", "ip route", route}});
}

TEST(Facts, ports_that_are_alone_in_a_subnet_are_joined) {
  const auto joined = pair_of_hosts("10.0.0.2/24", "");
  ASSERT_EQ(joined->links.size(), 1U);
  EXPECT_EQ(joined->links[0].a, &joined->hosts[0].netdevs[0]);
  EXPECT_EQ(&joined->links[0].other(*joined->links[0].a), &joined->hosts[1].netdevs[0]);
  EXPECT_TRUE(joined->hosts[1].netdevs[0].is_cabled);
  EXPECT_TRUE(pair_of_hosts("10.0.1.2/24", "")->links.empty());
  EXPECT_TRUE(pair_of_hosts("10.0.0.2/24", "default via 10.0.0.9 dev en2\n")->links.empty());
}

TEST(Facts, who_answers_is_joined_and_oneself_is_nobody) {
  const auto facts = facts_with({{"a", "interfaces", net_files("en2", "")},
                                 {"a", "ip -o address", "2: en2 inet6 fe80::1/64 scope link\n"},
                                 {"a", "ping ff02::1",
                                  "64 bytes from fe80::1%en2: seq=1\n64 bytes from fe80::2%en2: seq=1\n64 bytes from "
                                  "fe80::3%en2, seq=1\n64 bytes from fe80::2: seq=1\nfrom\n"},
                                 {"b", "interfaces", net_files("en4", "")},
                                 {"b", "ip -o address", "2: en4 inet6 fe80::2/64 scope link\n"}});
  ASSERT_EQ(facts->sightings.size(), 2U);
  EXPECT_EQ(facts->sightings[0].who, &facts->hosts[1].netdevs[0]);
  EXPECT_EQ(facts->sightings[1].who, nullptr);
  ASSERT_EQ(facts->links.size(), 1U);
  EXPECT_EQ(facts->links[0].origin, Link::Origin::seen);
}

/// What one check says of two Macs whose sw_vers has these lines.
std::vector<Finding> findings_of_macs(const std::string& first, const std::string& second, std::string_view check) {
  const auto facts = facts_with(
      {{"m", "uname", "Darwin\n"}, {"m", "sw_vers", first}, {"n", "uname", "Darwin\n"}, {"n", "sw_vers", second}});
  std::vector<Finding> findings = diagnose(*facts).findings;
  std::erase_if(findings, [&](const Finding& one) { return one.check->id != check; });
  return findings;
}

TEST(Facts, the_system_of_a_mac_is_what_stands_behind_the_colon) {
  for (const char* second : {"BuildVersion: 25D125\n", "BuildVersion:25D125\n", "BuildVersion:\t\t25D125 \n"}) {
    EXPECT_TRUE(findings_of_macs("BuildVersion:\t\t25D125\n", second, "mac-systems-differ").empty()) << second;
  }
  const auto builds = findings_of_macs("BuildVersion: 25D125\n", "BuildVersion:25D122\n", "mac-systems-differ");
  ASSERT_EQ(builds.size(), 1U);
  EXPECT_EQ(builds[0].message, "25D122 here, 25D125 on m");
  EXPECT_EQ(builds[0].evidence,
            (std::vector<Evidence>{{"n", "sw_vers", "BuildVersion:25D122"}, {"m", "sw_vers", "BuildVersion: 25D125"}}));
  const auto old = findings_of_macs("ProductVersion:26.2\n", "ProductVersion:26.1\n", "mac-system-old");
  ASSERT_EQ(old.size(), 1U);
  EXPECT_EQ(old[0].message, "macOS 26.1 has no RDMA over Thunderbolt: it begins with 26.2");
  EXPECT_EQ(old[0].evidence, (std::vector<Evidence>{{"n", "sw_vers", "ProductVersion:26.1"}}));
  EXPECT_TRUE(findings_of_macs("ProductVersion:\n", "ProductVersion\n", "mac-system-old").empty()) << "nothing is told";
}

TEST(Judgement, of_what_is_well_keeps_nothing_and_undoes_in_reverse) {
  const auto facts = facts_with({{"a", "x", "1\n"}});
  Probe probe(*facts, Platform::all);
  const Host& host = facts->hosts.at(0);
  EXPECT_FALSE(probe.given(host.value("nowhere")).judge(true, {host, "x"}, "it is {}", 1));
  EXPECT_FALSE(probe.has_looked());
  EXPECT_FALSE(probe.judge(false, {host, "x"}, "it is {}", 1).seen("x", "y").step("do", "undo").advise("z"));
  EXPECT_TRUE(probe.has_looked());
  EXPECT_TRUE(probe.findings().empty());
  probe.given(host.value("x"))
      .judge(true, {host, "x"}, "it is {}", 1)
      .step("do {0}", "undo {0}", 1)
      .step("do 2", "undo 2")
      .seen("y", "a\x1b[31m\tb");
  ASSERT_EQ(probe.findings().size(), 1U);
  const Finding& found = probe.findings()[0];
  EXPECT_EQ(found.message, "it is 1");
  EXPECT_EQ(found.evidence, (std::vector<Evidence>{{"a", "x", "1"}, {"a", "y", "a [31m b"}}));
  EXPECT_EQ(found.mend, (std::vector<Step>{{"a", "do 1"}, {"a", "do 2"}}));
  EXPECT_EQ(found.undo, (std::vector<Step>{{"a", "undo 2"}, {"a", "undo 1"}}));
  EXPECT_TRUE(probe.has_found(host));
}

TEST(Judgement, goes_over_the_machines_of_its_platform_alone) {
  const auto facts = facts_with({{"m", "uname", "Darwin\n"}, {"l", "uname", "Linux\n"}});
  EXPECT_EQ(Probe(*facts, Platform::all).all<Host>().size(), 2U);
  EXPECT_EQ(Probe(*facts, Platform::mac).all<Host>().at(0)->name, "m");
  EXPECT_EQ(Probe(*facts, Platform::linux).all<Host>().at(0)->name, "l");
}

}  // namespace
}  // namespace ringbolt::tools::doctor
