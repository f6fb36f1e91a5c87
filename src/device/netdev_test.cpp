#include "device/netdev.h"

#include <gtest/gtest.h>
#include <net/if.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "device/gid_table.h"
#include "device/route.h"
#include "link/udp_test_support.h"

namespace ringbolt::device {
namespace {

constexpr uint32_t kNoInterface = 0x7ffffff0;
const ibv_gid kLocalIpv4 = mapped_gid(0x7f000001);
const ibv_gid kElsewhere = mapped_gid(0xc0000201);  // 192.0.2.1, which is nobody's (RFC 5737)

bool is_equal(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(a.raw, b.raw, sizeof a.raw) == 0; }

ibv_gid ipv6_loopback() {
  ibv_gid gid{};
  gid.raw[15] = 1;
  return gid;
}

TEST(NetdevNames, are_separated_by_commas) {
  EXPECT_EQ(netdev_names("lo"), std::vector<std::string>{"lo"});
  EXPECT_EQ(netdev_names("en2,en1,a b"), (std::vector<std::string>{"en2", "en1", "a b"}));
}

TEST(NetdevNames, empty_and_repeated_ones_are_refused) {
  for (const char* list : {"", ",", "en1,", ",en1", "en1,,en2", "en1,en2,en1"}) {
    try {
      netdev_names(list);
      ADD_FAILURE() << list;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.errno_value(), EINVAL);
      EXPECT_EQ(error.object(), "RINGBOLT_NETDEVS=" + std::string(list));
    }
  }
}

// IP, UDP, BTH, RETH with immediate data, pad and ICRC are 87 bytes over IPv6: a frame that takes them all must be
// allowed, and the usual sizes of Ethernet give the path MTUs that adapters show there.
TEST(PathMtu, is_the_largest_whose_packets_fit_in_frames) {
  constexpr uint32_t kMostHeaders = 40 + 8 + 12 + 16 + 4 + 3 + 4;
  EXPECT_EQ(path_mtu_of(1500), IBV_MTU_1024);
  EXPECT_EQ(path_mtu_of(9000), IBV_MTU_4096);
  EXPECT_EQ(path_mtu_of(1280), IBV_MTU_1024);
  EXPECT_EQ(path_mtu_of(65536), IBV_MTU_4096);
  EXPECT_EQ(path_mtu_of(0), IBV_MTU_256);
  uint32_t bytes = 256;
  for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    EXPECT_GE(interface_mtu_for(bytes), bytes + kMostHeaders);
    EXPECT_EQ(path_mtu_of(interface_mtu_for(bytes)), mtu);
    if (mtu != IBV_MTU_256) {
      EXPECT_LT(path_mtu_of(interface_mtu_for(bytes) - 1), mtu);
    }
    bytes *= 2;
  }
}

TEST(Ipv4Gids, are_those_that_are_mapped) {
  EXPECT_TRUE(is_ipv4(kLocalIpv4));
  EXPECT_FALSE(is_ipv4(ipv6_loopback()));
  EXPECT_FALSE(is_ipv4(ibv_gid{}));
  EXPECT_FALSE(is_ipv4(link_local_gid(1)));
  ibv_gid compatible = kLocalIpv4;  // RFC 4291, 2.5.5.1: another, older form
  compatible.raw[10] = compatible.raw[11] = 0;
  EXPECT_FALSE(is_ipv4(compatible));
}

TEST(Interfaces, loopback_is_read_as_the_kernel_has_it) {
  link::testing::in_own_network([] {
    const Netdev lo = read_netdev("lo");
    EXPECT_EQ(lo.name, "lo");
    EXPECT_EQ(lo.index, if_nametoindex("lo"));
    EXPECT_EQ(lo.mtu_bytes, 65536U);
    EXPECT_TRUE(lo.is_up);
    EXPECT_NE(lo.guid, 0U);  // it has no hardware address
    ASSERT_GE(lo.gids.size(), 1U);
    EXPECT_TRUE(is_equal(lo.gids[0], kLocalIpv4));  // before the IPv6 address, which is no link-local one
    if (lo.gids.size() == 2) {
      EXPECT_TRUE(is_equal(lo.gids[1], ipv6_loopback()));
    }
    EXPECT_EQ(read_gids(lo.index).size(), lo.gids.size());
    EXPECT_EQ(read_link(lo.index).name, "lo");
    EXPECT_EQ(read_link(lo.index).mtu_bytes, 65536U);
  });
}

TEST(Interfaces, unknown_one_is_refused_with_a_list_of_those_that_there_are) {
  link::testing::in_own_network([] {
    try {
      read_netdev("rb-none0");
      ADD_FAILURE();
    } catch (const base::Error& error) {
      EXPECT_EQ(error.errno_value(), ENODEV);
      EXPECT_EQ(error.object(), "rb-none0");
      EXPECT_NE(std::string(error.what()).find("this network namespace has: lo"), std::string::npos) << error.what();
    }
  });
}

TEST(Interfaces, one_that_is_gone_has_nothing) {
  EXPECT_TRUE(read_gids(kNoInterface).empty());
  EXPECT_FALSE(is_interface_up(kNoInterface));
  EXPECT_EQ(read_link(kNoInterface).name, "");
}

TEST(Interfaces, one_that_was_set_down_is_not_up) {
  link::testing::in_own_network([] {
    const uint32_t index = if_nametoindex("lo");
    EXPECT_TRUE(is_interface_up(index));
    const base::UniqueFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    ASSERT_EQ(ioctl(any.get(), SIOCSIFFLAGS, &request), 0);
    EXPECT_FALSE(is_interface_up(index));
    EXPECT_FALSE(read_netdev("lo").is_up);
  });
}

// RFC 4291, appendix A.
TEST(Interfaces, guid_is_made_of_the_hardware_address) {
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net")) {
    std::array<unsigned, 6> mac{};
    std::string text;
    std::ifstream(entry.path() / "address") >> text;
    if (std::sscanf(text.c_str(), "%x:%x:%x:%x:%x:%x", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) != 6 ||
        text.size() != 17 || text == "00:00:00:00:00:00" || if_nametoindex(entry.path().filename().c_str()) == 0) {
      continue;
    }
    const std::array<unsigned, 8> eui{mac[0], mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
    uint64_t wanted = 0;
    for (const unsigned byte : eui) {
      wanted = wanted << 8U | byte;
    }
    EXPECT_EQ(read_netdev(entry.path().filename()).guid, wanted) << entry.path();
    return;
  }
  GTEST_SKIP() << "skip: no interface with a hardware address";
}

TEST(Routes, lead_out_of_one_interface) {
  link::testing::in_own_network([] {
    const uint32_t lo = if_nametoindex("lo");
    EXPECT_TRUE(has_route(kLocalIpv4, lo));
    EXPECT_TRUE(has_route(mapped_gid(0x7f4d0203), lo));
    EXPECT_FALSE(has_route(kElsewhere, lo));  // nothing leads there, though the interface could be asked for
    EXPECT_FALSE(has_route(kLocalIpv4, kNoInterface));
    if (read_gids(lo).size() == 2) {
      EXPECT_TRUE(has_route(ipv6_loopback(), lo));
    }
    EXPECT_FALSE(has_route(link_local_gid(0x0211223344556677ULL), lo));
  });
}

}  // namespace
}  // namespace ringbolt::device
