#include "stream/listener.h"

#include <gmock/gmock.h>

#include <poll.h>

#include "base/error.h"
#include "stream/raw_peer_test_support.h"
#include "stream/stream_test_support.h"

namespace ringbolt::stream {
namespace {

using test::Pair;
using test::patterned;
using test::read_all;
using test::soon;
using test::World;
using testing::AllOf;
using testing::HasSubstr;

/// How an attempt to connect ends while the listener accepts what it may.
CloseReason attempt(const World& world, Stream& client) {
  std::thread accepting([&] { static_cast<void>(world.listener->accept(Deadline::in_ms(500))); });
  EXPECT_NE(client.await_connected(soon()), 0);
  accepting.join();
  return client.reason();
}

TEST(Listener, address_that_is_not_on_its_list_is_refused) {
  const World world({.allowed = {"10.1.0.0/16", "fd77::1"}});
  const auto client = world.begin();
  EXPECT_EQ(attempt(world, *client), CloseReason::refused);
  EXPECT_THAT(client->words(), AllOf(HasSubstr("the server through rdma_lo: refused"), HasSubstr("allowed addresses")));
  EXPECT_EQ(world.listener->tally().closes.counts()[static_cast<size_t>(CloseReason::not_allowed)], 1U);
  EXPECT_EQ(world.listener->tally().streams, 0U);
}

/// Who is refused may come again without end: a call that is not to wait answers all the same, 64 refusals later.
TEST(Listener, call_answers_though_ever_more_requests_are_refused) {
  constexpr size_t kAtOnce = 64;
  const World world({.backlog = 2 * kAtOnce, .allowed = {"10.1.0.0/16"}});
  std::vector<std::unique_ptr<test::RawPeer>> strangers;
  for (size_t i = 0; i < kAtOnce + 2; ++i) {
    strangers.push_back(std::make_unique<test::RawPeer>(world));
  }
  // A later request, to another listener: once it is there, those before it are.
  const World later;
  const test::RawPeer last(later);
  pollfd readable{later.listener->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&readable, 1, static_cast<int>(test::limit_ms())), 1);
  for (const size_t refused : {kAtOnce, kAtOnce + 2}) {
    EXPECT_EQ(world.listener->accept(Deadline::now()).error().value, EAGAIN);
    EXPECT_EQ(world.listener->tally().closes.counts()[static_cast<size_t>(CloseReason::not_allowed)], refused);
  }
}

TEST(Listener, one_too_many_is_refused_until_one_goes) {
  const World world({.max_streams = 2});
  const Pair first(world);
  auto second = std::make_unique<Pair>(world);
  const auto third = world.begin();
  EXPECT_EQ(attempt(world, *third), CloseReason::refused);
  EXPECT_EQ(world.listener->tally().closes.counts()[static_cast<size_t>(CloseReason::too_many)], 1U);
  second.reset();
  const Pair fourth(world);
  EXPECT_EQ(world.listener->tally().streams, 2U);
  EXPECT_EQ(world.listener->tally().accepted, 3U);
}

TEST(Listener, buffers_beyond_the_budget_are_refused_and_given_back) {
  const World world({.stream = {.receive_bytes = 65536}}, {.memory_budget_bytes = 4 * 65536});
  const StreamSettings settings{.receive_bytes = 65536};
  const auto client_alone = world.begin(settings);
  std::unique_ptr<Stream> server;
  std::thread accepting([&] { server = std::move(*world.listener->accept(soon())); });
  EXPECT_EQ(client_alone->await_connected(soon()), 0);
  accepting.join();
  ASSERT_TRUE(client_alone->await(kWritable, soon()));
  ASSERT_TRUE(server->await(kWritable, soon()));
  EXPECT_EQ(world.service->budget().left(), 0U);
  const auto second = world.begin(settings);
  EXPECT_EQ(second->await_connected(soon()), ENOBUFS);
  EXPECT_THAT(second->words(), AllOf(HasSubstr("over-budget"), HasSubstr("has 0 left")));
  server.reset();
  EXPECT_EQ(world.service->budget().left(), 2U * 65536);
}

TEST(Listener, port_at_which_nobody_listens_refuses) {
  World world;
  const uint16_t port = world.listener->port();
  world.listener.reset();
  const auto client = Stream::connect(world.service, addresses_of("127.0.0.1", port, Deadline::now()), "nobody",
                                      {.connect_timeout_ms = 10'000});
  const int error = client->await_connected(soon());
  EXPECT_TRUE(error == ECONNREFUSED || error == EHOSTUNREACH) << error;
  EXPECT_THAT(client->words(), HasSubstr("nobody through rdma_lo: refused"));
}

/// Each call begins while the connection of an attempt is there, and may see it go, as another target is tried.
TEST(Listener, calls_survive_an_attempt_that_fails_meanwhile_with_more_targets_left) {
  World world;
  const uint16_t port = world.listener->port();
  world.listener.reset();
  const std::vector<Address> nowhere(16, addresses_of("127.0.0.1", port, Deadline::now()).front());
  std::vector<std::byte> memory(4096);
  using Call = void (*)(Stream&, std::span<std::byte>);
  constexpr Call kCalls[] = {
      [](Stream& one, std::span<std::byte> /*unused*/) { EXPECT_NE(one.close(soon()), ETIMEDOUT); },
      [](Stream& one, std::span<std::byte> /*unused*/) { EXPECT_NE(one.await_sent(soon()), ETIMEDOUT); },
      [](Stream& one, std::span<std::byte> of) { EXPECT_FALSE(one.write_registered(of, soon())); },
      [](Stream& one, std::span<std::byte> of) {
        while (one.reason() == CloseReason::none) {
          static_cast<void>(one.await(kConnected, Deadline::now()));
          static_cast<void>(one.is_drained());
          static_cast<void>(one.unregister_memory(of.data()));
        }
      },
  };
  for (const Call call : kCalls) {
    const auto client = Stream::connect(world.service, nowhere, "nobody", {.connect_timeout_ms = 10'000});
    while (client->device().empty() && client->reason() == CloseReason::none) {
      static_cast<void>(client->await(kConnected, Deadline::now()));
    }
    static_cast<void>(client->register_memory(memory));
    call(*client, memory);
  }
}

TEST(Listener, all_addresses_means_both_families) {
  World world;
  Listener both(world.service, "", 0, {});
  EXPECT_NE(both.port(), 0);
  for (const char* host : {"127.0.0.1", "::1"}) {
    const auto client = Stream::connect(world.service, addresses_of(host, both.port(), Deadline::now()), host, {});
    std::unique_ptr<Stream> server;
    std::thread accepting([&] {
      if (auto made = both.accept(soon())) {
        server = std::move(*made);
      }
    });
    EXPECT_EQ(client->await_connected(soon()), 0) << client->words();
    accepting.join();
    EXPECT_NE(server, nullptr);
  }
}

TEST(Listener, port_that_is_taken_is_refused_with_its_number) {
  const World world;
  try {
    const Listener second(world.service, "127.0.0.1", world.listener->port(), {});
    ADD_FAILURE() << "two listeners at one port";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(std::to_string(world.listener->port())), HasSubstr("another port")));
  }
}

TEST(Listener, client_that_never_says_ready_is_given_up) {
  const World world({.stream = {.connect_timeout_ms = 100}});
  const auto client = world.begin();
  // The client's side goes on only when its program looks: it doesn't, until the server has given up.
  std::unique_ptr<Stream> server;
  auto accepted = base::Result<std::unique_ptr<Stream>>(base::fail(EAGAIN));
  for (int i = 0; i < 3 && !accepted; ++i) {  // resolving its addresses takes two looks
    EXPECT_EQ(client->await_connected(Deadline::now()), EAGAIN);
    accepted = world.listener->accept(Deadline::in_ms(1000));
  }
  ASSERT_TRUE(accepted);
  EXPECT_EQ((*accepted)->await_connected(soon()), ETIMEDOUT);
  EXPECT_EQ((*accepted)->reason(), CloseReason::handshake_timeout);
}

TEST(Listener, descriptor_is_readable_while_a_request_waits) {
  const World world;
  pollfd readable{world.listener->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 0), 0);
  const auto client = world.begin();
  std::thread connecting([&] { EXPECT_EQ(client->await_connected(soon()), 0); });
  EXPECT_EQ(::poll(&readable, 1, static_cast<int>(test::limit_ms())), 1);
  const auto server = world.listener->accept(Deadline::now());
  ASSERT_TRUE(server);
  EXPECT_EQ((*server)->await_connected(soon()), 0);
  connecting.join();
}

TEST(Stream, settings_that_make_no_sense_are_refused_with_what_would) {
  const World world;
  std::array<std::byte, 100> memory{};
  for (const StreamSettings& settings :
       {StreamSettings{.receive_bytes = 4095}, StreamSettings{.receive_bytes = (16U << 20U) + 1},
        StreamSettings{.receive_buffers = 0}, StreamSettings{.receive_buffers = 17},
        StreamSettings{.max_send_bytes = 0}, StreamSettings{.receive_memory = memory}}) {
    EXPECT_THROW(world.begin(settings), base::Error);
  }
}

TEST(Keeper, idle_client_outlives_more_keepalives_than_it_has_receives) {
  // The scaled clock of an hour: a keepalive each millisecond, and nobody calls either side.
  const World world({.stream = {.receive_bytes = 4096, .keepalive_ms = 1}}, {.service_interval_ms = 1});
  const Pair pair(world, {.receive_bytes = 4096});
  const uint64_t until = base::now_ns() + test::limit_ms() * 1'000'000;
  while (pair.client->statistics().keepalives_received < Endpoint::kReceives + 100 && base::now_ns() < until) {
    ::poll(nullptr, 0, 10);
  }
  EXPECT_GE(pair.client->statistics().keepalives_received, Endpoint::kReceives + 100);
  EXPECT_EQ(pair.client->reason(), CloseReason::none);
  ASSERT_EQ(test::write(*pair.client, patterned(100)), 100U);
  EXPECT_EQ(read_all(*pair.server, 100), patterned(100));
}

}  // namespace
}  // namespace ringbolt::stream
