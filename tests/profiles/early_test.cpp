// Sends that complete before they are delivered arrive all the same when their queue pair, or their program, ends at
// once.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "rig.h"

namespace ringbolt::profiles {
namespace {

constexpr size_t kBytes = 4096;

/// How a device comes to complete early.
struct Early {
  const char* name;
  const char* profile;
  const char* faults;
  ibv_qp_type type;
};
void PrintTo(const Early& early, std::ostream* out) { *out << early.name; }
constexpr Early kEarly[] = {{"tn3205", "tn3205", "", IBV_QPT_UC},
                            {"apple", "apple", "", IBV_QPT_UC},
                            {"fault_uc", "roce", "completion-early by 0ms", IBV_QPT_UC},
                            {"fault_rc", "roce", "completion-early by 0ms", IBV_QPT_RC}};

class EarlySends : public testing::TestWithParam<Early> {
 protected:
  EarlySends() : faults_(GetParam().faults) {}
  ~EarlySends() override { unsetenv("RINGBOLT_FAULTS"); }

 private:
  Faults faults_;
};
INSTANTIATE_TEST_SUITE_P(All, EarlySends, testing::ValuesIn(kEarly), testing::PrintToStringParamName());

/// Completions until that of the send is there; a receive's may have come before it.
std::vector<ibv_wc> poll_send(ibv_cq* cq) {
  std::vector<ibv_wc> all = poll(cq, 1);
  if (of(all, 1) == nullptr) {
    const std::vector<ibv_wc> more = poll(cq, 1);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST_P(EarlySends, arrive_when_the_queue_pair_is_destroyed_at_its_completion) {
  const Rig rig(GetParam().profile);
  const Buffer buffer(rig, 2 * kBytes);
  for (int i = 0; i < 50; ++i) {
    Pair pair(rig, rig.wanted(GetParam().type));
    ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kBytes, kBytes)), 0);
    ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
    const std::vector<ibv_wc> done = poll_send(rig.cq.get());
    ASSERT_NE(of(done, 1), nullptr);
    pair.a.reset();
    ASSERT_TRUE(of(done, 2) != nullptr || of(poll(rig.cq.get(), 1), 2) != nullptr) << "message " << i;
  }
}

TEST_P(EarlySends, arrive_when_they_are_more_than_a_lane_holds_and_the_receiver_sleeps) {
  constexpr size_t kLong = 3U << 20U;
  const Rig rig(GetParam().profile);
  const Buffer from(rig, kLong);
  const Buffer to(rig, kLong);
  for (size_t at = 0; at < kLong; ++at) {
    from.data()[at] = static_cast<uint8_t>(at * 7 + at / 4096);
  }
  Pair pair(rig, rig.wanted(GetParam().type, 1024));
  ASSERT_EQ(post_receive(pair.b.get(), to.piece(kLong)), 0);
  ASSERT_EQ(post_send(pair.a.get(), from.piece(kLong)), 0);
  ASSERT_NE(of(poll(rig.cq.get(), 1), 1), nullptr);
  pair.a.reset();  // meanwhile nobody polls
  ASSERT_NE(of(poll(rig.cq.get(), 1), 2), nullptr);
  EXPECT_EQ(std::memcmp(from.data(), to.data(), kLong), 0);
}

/// What two programs tell each other about their queue pairs.
struct Card {
  uint32_t qpn;
  ibv_gid gid;
};

Card exchange(int socket, const Card& own) {
  Card other{};
  EXPECT_EQ(write(socket, &own, sizeof own), static_cast<ssize_t>(sizeof own));
  EXPECT_EQ(read(socket, &other, sizeof other), static_cast<ssize_t>(sizeof other));
  return other;
}

/// Sends one message and ends as soon as its completion has come.
[[noreturn]] void send_and_leave(const Early& how, int socket, bool destroys) {
  static const Rig rig(how.profile);
  static const Buffer buffer(rig, kBytes);
  static Held<ibv_qp> qp = rig.make_qp(rig.wanted(how.type));
  const Card peer = exchange(socket, {qp->qp_num, rig.gid(1)});
  if (to_init(qp.get()) != 0 || to_rtr(qp.get(), peer.qpn, peer.gid, 1) != 0 || to_rts(qp.get()) != 0 ||
      post_send(qp.get(), buffer.piece(kBytes)) != 0 || of(poll(rig.cq.get(), 1), 1) == nullptr) {
    _exit(3);
  }
  if (destroys) {
    qp.reset();
    _exit(0);
  }
  static_cast<void>(qp.release());
  std::exit(0);
}

/// The receiver posts, connects, and looks again when its peer is gone. Whether the message came.
bool receives_from_who_leaves(const Early& how, bool destroys) {
  std::array<int, 2> sockets{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    send_and_leave(how, sockets[1], destroys);
  }
  close(sockets[1]);
  int status = -1;
  bool has_come = false;
  {
    const Rig rig(how.profile);
    const Buffer buffer(rig, kBytes);
    const Held<ibv_qp> qp = rig.make_qp(rig.wanted(how.type));
    EXPECT_EQ(to_init(qp.get()), 0);
    EXPECT_EQ(post_receive(qp.get(), buffer.piece(kBytes)), 0);
    const Card peer = exchange(sockets[0], {qp->qp_num, rig.gid(1)});
    EXPECT_EQ(to_rtr(qp.get(), peer.qpn, peer.gid, 1), 0);
    waitpid(child, &status, 0);
    has_come = of(poll(rig.cq.get(), 1), 2) != nullptr;
  }
  close(sockets[0]);
  EXPECT_EQ(status, 0);
  return has_come;
}

TEST_P(EarlySends, arrive_when_the_program_ends_at_their_completion) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(receives_from_who_leaves(GetParam(), true)) << "destroyed, run " << i;
    ASSERT_TRUE(receives_from_who_leaves(GetParam(), false)) << "ended, run " << i;
  }
}

TEST(EarlySend, that_is_lost_is_told_of_once_with_the_number) {
  const Rig rig("tn3205,early-cqe=1000000us");
  const Buffer buffer(rig, 2 * kBytes);
  testing::internal::CaptureStderr();
  for (int pairs = 0; pairs < 2; ++pairs) {
    Pair pair(rig);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
    }
    EXPECT_EQ(poll(rig.cq.get(), 3).size(), 3U);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  constexpr const char* kWords = "a queue pair was destroyed with 3 completed, undelivered messages";
  EXPECT_NE(said.find(kWords), std::string::npos) << said;
  EXPECT_EQ(said.find(kWords), said.rfind(kWords)) << said;
}

}  // namespace
}  // namespace ringbolt::profiles
