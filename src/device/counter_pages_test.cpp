#include "device/counter_pages.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "device/device_test_support.h"

namespace ringbolt::device {
namespace {

class CounterPagesTest : public testing::Test {
 protected:
  using Port = cluster::CounterPage::Port;
  CounterPagesTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rbp-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~CounterPagesTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  CounterPages pages_;
};

TEST_F(CounterPagesTest, are_one_for_a_file_whoever_asks) {
  const auto page = pages_.at(folder_ + "/one", Port::own);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/one"));
  EXPECT_EQ(pages_.at(folder_ + "/one", Port::own), page);
  EXPECT_EQ(pages_.at(folder_ + "/one", Port::peers), page);
  EXPECT_NE(pages_.at(folder_ + "/other", Port::own), page);
}

TEST_F(CounterPagesTest, live_while_nobody_holds_them) {
  std::weak_ptr<cluster::CounterPage> page = pages_.at(folder_ + "/one", Port::own);
  EXPECT_FALSE(page.expired());
  EXPECT_EQ(pages_.at(folder_ + "/one", Port::own), page.lock());
}

TEST_F(CounterPagesTest, are_own_memory_for_ports_without_a_file) {
  testing::internal::CaptureStderr();
  const Variable log("RINGBOLT_LOG", "debug");
  const auto page = pages_.at("", Port::own);
  ASSERT_NE(page, nullptr);
  page->add(static_cast<RingboltSharedWord>(0));  // nowhere, and harmless
  EXPECT_EQ(pages_.at("", Port::own), page);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(CounterPagesTest, are_own_memory_for_good_where_the_file_can_not_be_used) {
  const std::string path = folder_ + "/missing/one";
  const Variable log("RINGBOLT_LOG", "debug");
  testing::internal::CaptureStderr();
  const auto page = pages_.at(path, Port::own);
  ASSERT_NE(page, nullptr);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("not counted"), std::string::npos) << said;
  EXPECT_NE(said.find(path), std::string::npos) << said;
  std::filesystem::create_directory(folder_ + "/missing");
  testing::internal::CaptureStderr();
  EXPECT_EQ(pages_.at(path, Port::own), page);  // queue pairs have their cells there
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(CounterPagesTest, say_nothing_of_a_bad_file_unless_asked) {
  testing::internal::CaptureStderr();
  ASSERT_NE(pages_.at(folder_, Port::own), nullptr);  // a folder
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace ringbolt::device
