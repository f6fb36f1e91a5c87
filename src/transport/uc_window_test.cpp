#include "transport/uc_window.h"

#include <gtest/gtest.h>

namespace ringbolt::transport {
namespace {

constexpr uint32_t kFirst = 0xfffff0;  // wraps within the window

/// Sends until the window closes or `most` packets are out; their number.
uint32_t send_all(UcWindow& window, uint32_t& psn, uint32_t most, uint64_t now_ns = 1) {
  uint32_t sent = 0;
  for (; sent < most && window.may_send(now_ns); ++sent) {
    window.on_sent(psn);
    psn = psn_add(psn, 1);
  }
  return sent;
}

TEST(UcWindow, lets_everything_out_to_strangers) {
  UcWindow window(kFirst);
  uint32_t psn = kFirst;
  EXPECT_EQ(send_all(window, psn, 1000), 1000U);
  EXPECT_EQ(window.next_deadline_ns(), UINT64_MAX);
}

TEST(UcWindow, stops_a_window_ahead_and_goes_on_with_reports) {
  UcWindow window(kFirst);
  window.enable();
  uint32_t psn = kFirst;
  EXPECT_EQ(send_all(window, psn, 1000), UcWindow::Limits().packets);
  window.on_report(psn_add(kFirst, 16));
  EXPECT_EQ(send_all(window, psn, 1000), 16U);
}

TEST(UcWindow, ignores_old_and_impossible_reports) {
  UcWindow window(kFirst);
  window.enable();
  uint32_t psn = kFirst;
  send_all(window, psn, 1000);
  window.on_report(kFirst);
  window.on_report(psn_add(psn, 1));
  EXPECT_FALSE(window.may_send(1));
}

TEST(UcWindow, does_not_wait_for_ever_for_a_lost_report) {
  UcWindow window(kFirst);
  window.enable();
  uint32_t psn = kFirst;
  send_all(window, psn, 1000, 7);
  EXPECT_EQ(window.next_deadline_ns(), 7 + UcWindow::Limits().patience_ns);
  EXPECT_FALSE(window.may_send(7 + UcWindow::Limits().patience_ns - 1));
  EXPECT_TRUE(window.may_send(7 + UcWindow::Limits().patience_ns));
  EXPECT_EQ(window.next_deadline_ns(), UINT64_MAX);
}

TEST(UcWindow, asks_for_reports_often_enough_to_keep_going) {
  UcWindow window(kFirst);
  window.enable();
  uint32_t asked = 0;
  for (uint32_t i = 0; i < UcWindow::Limits().packets; ++i) {
    asked += window.on_sent(psn_add(kFirst, i)) ? 1U : 0U;
  }
  EXPECT_EQ(asked, UcWindow::Limits().packets / UcWindow::Limits().packets_per_report);
}

}  // namespace
}  // namespace ringbolt::transport
