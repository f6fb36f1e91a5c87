// Several processes behind one port: who gets which packet while members come, leave, are stopped and killed.
#include "link/udp_group.h"

#include <sys/socket.h>
#include <unistd.h>

#include "link/udp_stage_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

TEST(UdpGroup, hands_each_packet_to_the_process_of_its_slot) {
  in_own_network_with_selectors([] {
    Stage stage(3);
    for (int i = 0; i < 200; ++i) {
      stage.send({0, 1, 2});
    }
    stage.expect_all({0, 1, 2});
    drain(*stage.sender);
    EXPECT_EQ(stage.sender->counters().forwarded_packets, 0U);  // by the kernel, without detours
    EXPECT_EQ(stage.board->forwarded[0] + stage.board->forwarded[1] + stage.board->forwarded[2], 0U);
  });
}

TEST(UdpGroup, loses_nothing_while_a_member_leaves_and_another_comes) {
  in_own_network_with_selectors([] {
    for (uint32_t leaver = 0; leaver < 3; ++leaver) {
      Stage stage(3);
      std::vector<uint32_t> others{0, 1, 2};
      std::erase(others, leaver);
      for (int i = 0; i < 300; ++i) {
        stage.send(i < 100 ? std::vector<uint32_t>{0, 1, 2} : others);
        if (i == 100) {
          stage.expect_all({0, 1, 2});
          stage.board->must_leave[leaver] = true;
        }
      }
      stage.expect_all(others);
      EXPECT_EQ(stage.members[leaver]->wait(), 0);
      stage.start(3);
      for (int i = 0; i < 100; ++i) {
        stage.send({others[0], others[1], 3});
      }
      stage.expect_all({others[0], others[1], 3});
    }
  });
}

// Where a packet and the end of a socket meet, the kernel gives it to the socket that ends.
TEST(UdpGroup, loses_nothing_at_the_moment_at_which_a_member_leaves) {
  in_own_network_with_selectors([] {
    Stage stage(1);
    Child leaver([&stage] {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (int i = 0; i < 100; ++i) {
        stage.folder.open(20).reset();
      }
      stage.board->must_leave[1] = true;
      return 0;
    });
    while (!stage.board->must_leave[1]) {
      stage.send({0, 0, 0, 0});
      EXPECT_TRUE(wait_until([&] {
        drain(*stage.sender);
        return stage.has_all(0);
      })) << stage.board->got[0] << " of " << stage.sent[0] << stage.losses();
      if (::testing::Test::HasFailure()) {
        leaver.kill(SIGKILL);
        break;
      }
    }
    leaver.wait();
  });
}

TEST(UdpGroup, loses_nothing_of_others_when_a_member_is_killed) {
  in_own_network_with_selectors([] {
    for (uint32_t victim = 0; victim < 3; ++victim) {
      Stage stage(3);
      std::vector<uint32_t> others{0, 1, 2};
      std::erase(others, victim);
      stage.send({0, 1, 2});
      for (int i = 0; i < 300; ++i) {
        stage.send(others);
        if (i == 100) {
          stage.kill(victim);
        }
      }
      stage.expect_all(others);
      // Soon the kernel does it without anybody's help again.
      EXPECT_TRUE(wait_until([&] {
        drain(*stage.sender);
        const uint32_t before = stage.board->forwarded[others[0]] + stage.board->forwarded[others[1]] +
                                static_cast<uint32_t>(stage.sender->counters().forwarded_packets);
        stage.send(others);
        stage.expect_all(others);
        drain(*stage.sender);
        return before == stage.board->forwarded[others[0]] + stage.board->forwarded[others[1]] +
                             static_cast<uint32_t>(stage.sender->counters().forwarded_packets);
      }));
    }
  });
}

// Two deaths at a time leave it open who was moved where: the survivors must find out by themselves.
TEST(UdpGroup, finds_its_order_again_after_several_deaths) {
  in_own_network_with_selectors([] {
    for (const bool is_reversed : {false, true}) {
      Stage stage(6);
      stage.send({0, 1, 2, 3, 4, 5});
      stage.expect_all({0, 1, 2, 3, 4, 5});
      // All stopped: nobody sees the first death before the last.
      for (auto& each : stage.members) {
        each->kill(SIGSTOP);
      }
      for (const uint32_t victim : is_reversed ? std::vector<uint32_t>{2, 1, 0} : std::vector<uint32_t>{0, 1, 2}) {
        stage.kill(victim);
      }
      for (uint32_t i = 3; i < 6; ++i) {
        stage.members[i]->kill(SIGCONT);
      }
      for (int i = 0; i < 200; ++i) {
        stage.send({3, 4, 5});
      }
      stage.expect_all({3, 4, 5});
      EXPECT_TRUE(wait_until([&] {
        const auto strays = [&] {
          drain(*stage.sender);
          return stage.board->forwarded[3] + stage.board->forwarded[4] + stage.board->forwarded[5] +
                 static_cast<uint32_t>(stage.sender->counters().forwarded_packets);
        };
        const uint32_t before = strays();
        stage.send({3, 4, 5});
        stage.expect_all({3, 4, 5});
        return strays() == before;
      }));
    }
  });
}

TEST(UdpGroup, is_not_disturbed_by_a_stopped_member) {
  in_own_network_with_selectors([] {
    Stage stage(3);
    // Stopped while it has the order file locked it would keep others from joining, as the error for them says.
    ASSERT_TRUE(wait_until([&] {
      drain(*stage.sender);
      return stage.board->changes[1] > 0;
    })) << "member 1 has not noticed that member 2 joined";
    stage.members[1]->kill(SIGSTOP);
    for (int i = 0; i < 300; ++i) {
      stage.send({0, 1, 2});
      if (i == 100) {
        stage.kill(0);  // what had been the last socket moves
        stage.start(0);
        stage.board->got[0] = 0;
        for (auto& times : stage.board->times[0]) {
          times = 0;
        }
        stage.sent[0] = 0;
      }
    }
    stage.expect_all({0, 2});
    stage.members[1]->kill(SIGCONT);
    stage.expect_all({1});  // waited in the kernel meanwhile
  });
}

TEST(UdpGroup, passes_on_what_goes_astray) {
  in_own_network_with_selectors([] {
    Stage stage(2);
    // Joining announces itself; only then does the group rest.
    EXPECT_TRUE(wait_until([&] {
      drain(*stage.sender);
      return stage.board->changes[0] > 0 && stage.sender->counters().group_changes > 0;
    }));
    // A program that sends everything to the sender's own socket, the first of the group.
    const std::vector<UdpChoice> wrong{{10, 0}, {11, 0}};
    for (int fd = 3; fd < 64; ++fd) {
      attach_udp_selector(fd, udp_selector(wrong, 3, kSlotShift));  // refused by all but the two sockets
    }
    UdpBatch batch(*stage.sender);
    constexpr uint32_t kPackets = 15;
    for (const UdpPath& path : {ipv4_path(), ipv6_path()}) {
      for (uint32_t number : {0U, 1U}) {
        for (uint32_t i = 0; i < kPackets; ++i) {  // whole GSO calls
          EXPECT_TRUE(put(batch, path, numbered_packet(qpn_of(10 + number), stage.sent[number]++, 1036)));
        }
      }
      EXPECT_EQ(batch.flush().sent, 2 * kPackets);
      stage.expect_all({0, 1});
    }
    EXPECT_EQ(stage.sender->counters().forwarded_packets, 4 * kPackets);
    EXPECT_EQ(stage.sender->counters().forward_failures, 0U);
  });
}

TEST(UdpGroup, gives_connection_management_to_anybody) {
  in_own_network_with_selectors([] {
    const SlotsFolder folder;
    std::vector<std::unique_ptr<UdpEndpoint>> endpoints;
    for (uint32_t slot = 0; slot < 3; ++slot) {
      endpoints.push_back(folder.open(slot));
    }
    std::array<uint32_t, 3> got{};
    UdpBatch batch(*endpoints[0]);
    uint32_t sent = 0;
    // One member that does not answer costs a repetition, not the connection.
    EXPECT_TRUE(wait_until([&] {
      EXPECT_TRUE(put(batch, ipv6_path(), numbered_packet(1, sent++, 280)));
      EXPECT_EQ(batch.flush().sent, 1U);
      for (size_t i = 0; i < 3; ++i) {
        got[i] += static_cast<uint32_t>(endpoints[i]->receive([](const UdpEndpoint::Arrived&) {}, 16).value_or(0));
      }
      return got[0] > 0 && got[1] > 0 && got[2] > 0;
    }));
    for (size_t i = 0; i < 3; ++i) {
      got[i] += static_cast<uint32_t>(drain(*endpoints[i]));
    }
    EXPECT_EQ(got[0] + got[1] + got[2], sent);
  });
}

TEST(UdpGroup, is_left_alone_by_a_forked_child) {
  in_own_network_with_selectors([] {
    const SlotsFolder folder;
    auto endpoint = folder.open(3);
    const auto other = folder.open(4);
    Child orderly([&] {
      endpoint->abandon_after_fork();
      endpoint.reset();
      return 0;
    });
    EXPECT_EQ(orderly.wait(), 0);
    Child careless([&] {
      endpoint.reset();
      return 0;
    });
    EXPECT_EQ(careless.wait(), 0);
    for (uint32_t i = 0; i < 10; ++i) {
      send_numbered(*other, ipv4_path(), 3, i);
      send_numbered(*endpoint, ipv6_path(), 4, i);
    }
    EXPECT_EQ(receive_packets(*endpoint, 10).size(), 10U);
    EXPECT_EQ(receive_packets(*other, 10).size(), 10U);
    EXPECT_EQ(endpoint->counters().forwarded_packets + other->counters().forwarded_packets, 0U);
  });
}

}  // namespace
}  // namespace ringbolt::link
