#include "fault/plan_text.h"

#include <gtest/gtest.h>

#include "fault/quantities.h"

namespace ringbolt::fault {
namespace {

Rule only_rule(const std::string& text) {
  const auto plan = parse_plan(text);
  EXPECT_TRUE(plan && plan->rules.size() == 1) << text << ": " << (plan ? "" : plan.error().text());
  return plan && plan->rules.size() == 1 ? plan->rules.front() : Rule{};
}

std::string refusal(const std::string& text) {
  const auto plan = parse_plan(text);
  return plan ? "" : plan.error().text();
}

TEST(FaultText, reads_every_kind) {
  EXPECT_EQ(only_rule("loss 1%").kind, Kind::loss);
  EXPECT_EQ(only_rule("loss 1%").chance, Rule::kCertain / 100);
  EXPECT_EQ(only_rule("duplicate 0.25").chance, Rule::kCertain / 4);
  const Rule reorder = only_rule("reorder 10% by 5 within 200us");
  EXPECT_EQ(reorder.overtakers, 5U);
  EXPECT_EQ(reorder.within_ns, 200'000U);
  EXPECT_EQ(only_rule("corrupt 0.01% bits 3").bits, 3U);
  EXPECT_EQ(only_rule("truncate 100%").chance, Rule::kCertain);
  const Rule delay = only_rule("delay 1 by 2ms jitter 500us");
  EXPECT_EQ(delay.delay_ns, 2'000'000U);
  EXPECT_EQ(delay.jitter_ns, 500'000U);
}

TEST(FaultText, reads_which_frames) {
  const Rule rule = only_rule("loss 1 seed 7 node 2 cable 3 port rdma_en2 direction receive frames 10-19 time 2s-5s");
  EXPECT_EQ(rule.seed, 7U);
  EXPECT_EQ(rule.node, 2U);
  EXPECT_EQ(rule.cable, 3U);
  EXPECT_EQ(rule.port, "rdma_en2");
  EXPECT_EQ(rule.direction, Direction::receive);
  EXPECT_EQ(rule.first_frame, 10U);
  EXPECT_EQ(rule.last_frame, 19U);
  EXPECT_EQ(rule.from_ns, 2'000'000'000U);
  EXPECT_EQ(rule.until_ns, 5'000'000'000U);
  EXPECT_EQ(only_rule("loss 1 frames 5-").last_frame, UINT64_MAX);
}

TEST(FaultText, separates_by_lines_and_semicolons_and_knows_remarks) {
  const auto plan =
      parse_plan("# cable of the lab\nloss 1%; duplicate 2% # both\n\n  reorder 3%\t by 2\r\n;;\ncorrupt 1%");
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->rules.size(), 4U);
  EXPECT_TRUE(parse_plan("")->rules.empty());
  EXPECT_TRUE(parse_plan(" # nothing; loss 1%")->rules.empty());
}

TEST(FaultText, refuses_with_line_and_reason) {
  EXPECT_EQ(refusal("loss 1%\nlos 1%"),
            "line 2: \"los\" is no fault; there are loss, duplicate, reorder, corrupt, truncate, delay, rtr-errno, "
            "rtr-block, pd-null, exhaust, destroy-hang, completion-error, completion-late, completion-missing, "
            "message-loss, bitflip, shape, rnr, completion-early, receive-error, frame-mismatch, silent-overrun, "
            "coalesce, qp-age, flap, unplug, frozen, cross-cables, gid-shuffle, gid-empty, rename-devices, query-hang, gid-change, "
            "call-errno");
  EXPECT_EQ(refusal("loss"), "line 1: loss takes a chance from 0% to 100%, as in 1% or 0.01, with up to 9 digits");
  EXPECT_EQ(refusal("completion-error 200%"),
            "line 1: completion-error takes a chance from 0% to 100%, as in 1% or 0.01, with up to 9 digits");
  EXPECT_EQ(refusal("loss 1% bits 2"), "line 1: loss does not know \"bits\"");
  EXPECT_EQ(refusal("loss 1% seed 1 seed 2"), "line 1: seed is said twice");
  EXPECT_EQ(refusal("delay 1%"), "line 1: delay takes a time: by 1ms");
  EXPECT_EQ(refusal("delay 1% by 11s"), "line 1: by takes a time up to 10s, as in 200us or 5ms");
  EXPECT_EQ(refusal("corrupt 1% bits 17"), "line 1: bits takes a number from 1 to 16");
  EXPECT_EQ(refusal("loss 1% frames 9-8"), "line 1: frames takes A-B or A-, as in 100-199");
  EXPECT_EQ(refusal("loss 1% time 5s"), "line 1: time takes A-B or A-, as in 2s-5s");
  EXPECT_EQ(refusal("loss 1% direction up"), "line 1: direction takes send or receive");
  EXPECT_EQ(refusal("loss 1% port"), "line 1: port takes the name of a device, as in rdma_en2");
  for (const char* chance : {"101%", "1.1", "-1%", "1.%", "%", ".5", "0.0000000001", "1%%", "x", "1e-3"}) {
    EXPECT_NE(refusal(std::string("loss ") + chance), "") << chance;
  }
  std::string many;
  for (size_t i = 0; i <= Plan::kMaxRules; ++i) {
    many += "loss 1%\n";
  }
  EXPECT_EQ(refusal(many), "line 257: more than 256 faults");
  EXPECT_NE(refusal(std::string(kMaxPlanBytes + 1, '#')), "");
}

TEST(FaultText, writes_what_it_reads) {
  for (const char* text : {"loss 1%", "loss 0.0000001%", "duplicate 100% seed 0", "reorder 10% by 5 within 200us",
                           "corrupt 0.01% bits 3 port rdma_en2 direction send", "truncate 0% frames 7-7",
                           "delay 50% by 2ms jitter 1500us node 1 cable 0 time 100ms-", "delay 1% by 0s jitter 1s"}) {
    EXPECT_EQ(emit_rule(only_rule(text)), text);
  }
  const auto plan = parse_plan("loss 0.01; reorder 1%");
  ASSERT_TRUE(plan);
  EXPECT_EQ(emit_plan(*plan), "loss 1%\nreorder 1% by 3\n");
  EXPECT_EQ(*parse_plan(emit_plan(*plan)), *plan);
}

TEST(FaultText, writes_faults_of_calls_as_it_reads_them) {
  for (const char* line : {"rtr-errno 100% errno ENODATA count 0-2",
                           "rtr-block 5% by 3s node 1",
                           "pd-null 100% cable 2",
                           "completion-error 1% status 12 seed 9",
                           "completion-late 10% by 250us port rdma_en2",
                           "completion-missing 0.5% time 2s-",
                           "exhaust 100% object qp left 4 errno EBUSY count 2-",
                           "exhaust 100% object dma left 1048576",
                           "destroy-hang 50% by 2s",
                           "query-hang 100% by 3s count 1-1",
                           "message-loss 1% seed 3",
                           "bitflip 1% bits 3",
                           "shape 100% rate 10Gbit by 5us jitter 1us window 4",
                           "shape 100% rate 1500Mbit",
                           "rnr 30% node 1",
                           "completion-early 100% by 200us",
                           "receive-error 100% status 4",
                           "frame-mismatch 1%",
                           "silent-overrun 100% count 3-",
                           "coalesce after 10s every 5s",
                           "qp-age after 23min",
                           "flap by 200ms every 1s cable 2",
                           "unplug mode hang",
                           "unplug mode port-event restore 5s node 1",
                           "unplug mode flush time 1s-",
                           "unplug mode abort",
                           "frozen node 1 time 1s-5s",
                           "cross-cables with 3 node 1 cable 2",
                           "gid-shuffle seed 4",
                           "gid-empty port rdma_en3",
                           "rename-devices"}) {
    const auto plan = parse_plan(line);
    ASSERT_TRUE(plan) << line;
    EXPECT_EQ(emit_rule(plan->rules.at(0)), line);
  }
}

TEST(FaultText, takes_a_call_each_time_unless_a_chance_is_said) {
  EXPECT_EQ(only_rule("rnr"), only_rule("rnr 100%"));
  EXPECT_EQ(only_rule("exhaust object pd"), only_rule("exhaust 1 object pd left 0"));
}

TEST(FaultText, knows_the_shapes_of_cables) {
  EXPECT_EQ(only_rule("shape preset mac-linux-40g"), only_rule("shape rate 10Gbit by 5us"));
  EXPECT_EQ(only_rule("shape preset mac-mac-80g"), only_rule("shape rate 40Gbit by 4500ns jitter 500ns"));
  EXPECT_EQ(only_rule("shape preset linux-rc-rail"), only_rule("shape rate 10Gbit by 7500ns jitter 500ns"));
}

TEST(FaultText, knows_what_a_kind_needs_and_what_it_has_not) {
  for (const char* line : {"rtr-errno 1%",
                           "rtr-errno 1% errno 22",
                           "rtr-block 1%",
                           "completion-late 1%",
                           "completion-error 1%",
                           "completion-error 1% status 0",
                           "completion-error 1% status 24",
                           "pd-null 1% by 1s",
                           "pd-null 1% frames 1-2",
                           "loss 1% count 1-2",
                           "completion-missing 1% direction send",
                           "exhaust",
                           "exhaust object gpu",
                           "shape",
                           "shape window 4",
                           "shape rate 10",
                           "shape preset mac",
                           "shape rate 0Gbit",
                           "qp-age",
                           "coalesce after 10s",
                           "flap by 2s every 1s",
                           "query-hang",
                           "unplug",
                           "unplug mode gently",
                           "unplug 1% mode hang",
                           "unplug mode hang by 1s",
                           "flap 1% by 1s every 2s",
                           "cross-cables with 1",
                           "frozen 50%",
                           "frozen count 1-2",
                           "rename-devices time 1s-2s",
                           "rnr by 1s"}) {
    EXPECT_FALSE(parse_plan(line)) << line;
  }
}

}  // namespace
}  // namespace ringbolt::fault
