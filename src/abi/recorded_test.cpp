#include "abi/recorded.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trace/trace_file.h"

namespace ringbolt::abi {
namespace {

constexpr uint32_t kQpn = 0x42;

// Posts that fail, as devices do it: a negated number leaves bad_wr alone (docs/profiles.md).
template <class Queue, class Wr>
int refuse_untold(Queue* /*unused*/, Wr* /*unused*/, Wr** /*unused*/) {
  return -ENOMEM;
}
template <class Queue, class Wr>
int refuse_second(Queue* /*unused*/, Wr* wr, Wr** bad) {
  *bad = wr->next;
  return ENOMEM;
}

/// A program that records, and posts two requests: 7, then 8.
class RecordedTest : public ::testing::Test {
 protected:
  RecordedTest() {
    std::string name = (std::filesystem::temp_directory_path() / "rb-recorded-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    recorder_ = trace::Recorder::open({folder_ + "/a.trace", trace::kLeastBytes});
    before_ = trace::active.exchange(recorder_.get());
    qp_.qp_num = kQpn;
    sends_[0].wr_id = receives_[0].wr_id = 7;
    sends_[1].wr_id = receives_[1].wr_id = 8;
    sends_[0].next = &sends_[1];
    receives_[0].next = &receives_[1];
    sends_[0].opcode = sends_[1].opcode = IBV_WR_RDMA_WRITE;
  }
  ~RecordedTest() override {
    trace::active.store(before_);
    std::filesystem::remove_all(folder_);
  }

  std::vector<trace::Record> events() const {
    std::ifstream file(folder_ + "/a.trace", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return trace::parse_trace(std::as_bytes(std::span(bytes)), "a.trace").events;
  }
  /// One request that was taken, if any, and then the refused one.
  void expect_refused(std::vector<uint64_t> taken, uint64_t refused) const {
    const auto all = events();
    ASSERT_EQ(all.size(), taken.size() + 1);
    for (size_t i = 0; i < taken.size(); ++i) {
      EXPECT_NE(all[i].kind, trace::Kind::refused);
      EXPECT_EQ(all[i].wr_id, taken[i]);
    }
    EXPECT_EQ(all.back().kind, trace::Kind::refused);
    EXPECT_EQ(all.back().wr_id, refused);
    EXPECT_EQ(all.back().number, static_cast<uint32_t>(ENOMEM));
  }

  std::string folder_;
  std::unique_ptr<trace::Recorder> recorder_;
  trace::Recorder* before_ = nullptr;
  ibv_qp qp_{};
  ibv_send_wr sends_[2]{};
  ibv_recv_wr receives_[2]{};
};

TEST_F(RecordedTest, a_bad_wr_that_the_post_did_not_write_is_not_looked_at) {
  ibv_send_wr elsewhere{};  // no request of this list: as a pointer that was never set
  elsewhere.wr_id = 99;
  ibv_send_wr* bad = &elsewhere;
  EXPECT_EQ((recorded_post_send<refuse_untold<ibv_qp, ibv_send_wr>>(&qp_, sends_, &bad)), -ENOMEM);
  EXPECT_EQ(bad, &elsewhere);
  expect_refused({}, 7);
}

TEST_F(RecordedTest, a_bad_wr_of_receives_that_the_post_did_not_write_is_not_looked_at) {
  ibv_recv_wr elsewhere{};
  elsewhere.wr_id = 99;
  ibv_recv_wr* bad = &elsewhere;
  EXPECT_EQ((recorded_post_receive<refuse_untold<ibv_qp, ibv_recv_wr>>(&qp_, receives_, &bad)), -ENOMEM);
  EXPECT_EQ(bad, &elsewhere);
  expect_refused({}, 7);
}

TEST_F(RecordedTest, a_bad_wr_that_was_written_is_handed_on_and_ends_what_was_taken) {
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ((recorded_post_send<refuse_second<ibv_qp, ibv_send_wr>>(&qp_, sends_, &bad)), ENOMEM);
  EXPECT_EQ(bad, &sends_[1]);
  expect_refused({7}, 8);
}

TEST_F(RecordedTest, a_bad_wr_of_receives_that_was_written_is_handed_on_and_ends_what_was_taken) {
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ((recorded_post_receive<refuse_second<ibv_qp, ibv_recv_wr>>(&qp_, receives_, &bad)), ENOMEM);
  EXPECT_EQ(bad, &receives_[1]);
  expect_refused({7}, 8);
}

}  // namespace
}  // namespace ringbolt::abi
