#include "rsocket/descriptor_table.h"

#include <gtest/gtest.h>

#include "rsocket/fake_socket_test_support.h"

namespace ringbolt::rsocket {
namespace {

using test::FakeSocket;

TEST(DescriptorTable, finds_sockets_by_their_numbers) {
  DescriptorTable table;
  const auto three = std::make_shared<FakeSocket>(3);
  const auto seven = std::make_shared<FakeSocket>(7);
  EXPECT_EQ(table.add(seven), 7);
  EXPECT_EQ(table.add(three), 3);
  EXPECT_EQ(table.find(3), three);
  EXPECT_EQ(table.find(7), seven);
}

TEST(DescriptorTable, knows_no_other_number) {
  DescriptorTable table;
  ASSERT_TRUE(table.add(std::make_shared<FakeSocket>(3)));
  for (const int descriptor : {-1, 0, 2, 4, 0x7fffffff}) {
    EXPECT_EQ(table.find(descriptor), nullptr) << descriptor;
    EXPECT_EQ(table.remove(descriptor), nullptr) << descriptor;
  }
}

TEST(DescriptorTable, gives_a_socket_back_once) {
  DescriptorTable table;
  const auto socket = std::make_shared<FakeSocket>(3);
  ASSERT_TRUE(table.add(socket));
  EXPECT_EQ(table.remove(3), socket);
  EXPECT_EQ(table.remove(3), nullptr);
  EXPECT_EQ(table.find(3), nullptr);
}

/// close(2) behind our back, and the kernel has given the number away again.
TEST(DescriptorTable, lets_go_of_a_socket_whose_number_another_one_has) {
  DescriptorTable table;
  auto before = std::make_shared<FakeSocket>(3);
  const std::weak_ptr<FakeSocket> trace = before;
  ASSERT_TRUE(table.add(std::move(before)));
  const auto after = std::make_shared<FakeSocket>(3);
  EXPECT_EQ(table.add(after), 3);
  EXPECT_EQ(table.find(3), after);
  EXPECT_TRUE(trace.expired());
}

}  // namespace
}  // namespace ringbolt::rsocket
