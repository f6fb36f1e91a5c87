#include "verbs/connection_manager.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>

#include <cerrno>
#include <string_view>

#include "base/error.h"
#include "verbs/cm_objects.h"
#include "verbs/soft_device_test_support.h"

namespace ringbolt::verbs {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

/// What opening says, or nothing.
std::string refusal_of(const Library& verbs) {
  try {
    ConnectionManager::open(verbs);
    return {};
  } catch (const base::Error& error) {
    return error.what();
  }
}

TEST(ConnectionManager, lies_beside_the_verbs_library) {
  const test::RuntimeFolder folder;
  const Library verbs = Library::open("soft");
  const ConnectionManager manager = ConnectionManager::open(verbs);
  EXPECT_THAT(manager.name(), EndsWith("/lib/ringbolt/librdmacm.so.1"));
  EXPECT_EQ(manager.verbs().name(), verbs.name());
  EXPECT_STREQ(manager.calls().event_str(RDMA_CM_EVENT_ESTABLISHED), "RDMA_CM_EVENT_ESTABLISHED");
}

TEST(ConnectionManager, that_is_not_there_is_named_with_what_to_do) {
  const test::RuntimeFolder folder;
  const Library verbs("/nowhere/libibverbs.so.1", Library::open("soft").calls());
  EXPECT_THAT(refusal_of(verbs), AllOf(HasSubstr("/nowhere/librdmacm.so.1"), HasSubstr("RINGBOLT_VERBS")));
}

TEST(ConnectionManager, that_works_on_another_verbs_library_is_refused) {
  const test::RuntimeFolder folder;
  Calls calls = Library::open("soft").calls();
  calls.destroy_cq = [](ibv_cq*) { return 0; };
  const Library other(Library::open("soft").name(), calls);
  EXPECT_THAT(refusal_of(other), AllOf(HasSubstr("librdmacm.so.1 and "), HasSubstr("LD_LIBRARY_PATH")));
}

TEST(ConnectionManager, channel_does_not_block_and_tells_of_an_address) {
  const test::RuntimeFolder folder;
  const ConnectionManager manager = ConnectionManager::open(Library::open("soft"));
  const EventChannel channel(manager);
  EXPECT_EQ(channel.next(), nullptr);
  const CmIdentifier id(manager, channel);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(1);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(manager.calls().resolve_addr(id.get(), nullptr, reinterpret_cast<sockaddr*>(&to), 1000), 0);
  pollfd readable{channel.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&readable, 1, 5000), 1);
  const CmEvent event = channel.next();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_NE(id->verbs, nullptr);
}

TEST(ConnectionManager, refusal_says_why_and_what_to_do) {
  const test::RuntimeFolder folder;
  const ConnectionManager opened = ConnectionManager::open(Library::open("soft"));
  CmCalls calls = opened.calls();
  calls.create_event_channel = []() -> rdma_event_channel* {
    errno = ENODEV;
    return nullptr;
  };
  const ConnectionManager without_kernel("without", calls, opened.verbs());
  try {
    const EventChannel channel(without_kernel);
    ADD_FAILURE() << "there is no channel";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("without: rdma_create_event_channel"), HasSubstr("RINGBOLT_VERBS=soft")));
  }
}

}  // namespace
}  // namespace ringbolt::verbs
